# SPDX-License-Identifier: MIT
"""The tables."""
from . import targets


def collect(facts, measure, workloads):
    cells = {}
    for (workload, system), cell in measure.cells.items():
        cells.setdefault(workload, {})[system] = cell.report()
    return {'schema': 'sbxfs.bench/1', **facts, 'labels': {w.name: w.label for w in workloads}, 'workloads': cells,
            'different': measure.mismatches, 'targets': judge(cells)}


def judge(cells):
    rows = []
    for target in targets.TARGETS:
        for name, value, limit, met in target.judge(cells):
            rows.append({'target': target.label, 'workload': name, 'value': value, 'limit': limit, 'met': met,
                         'of': target.of or target.against, 'unit': 'x' if target.of or target.against else target.unit})
    for name, ratio in targets.beaten(cells):
        rows.append({'target': 'faster than fuse-overlayfs', 'workload': name, 'value': ratio, 'limit': 1.0, 'met': False,
                     'of': 'fuse-overlayfs', 'unit': 'x'})
    return rows


def seconds(value):
    if value is None:
        return '-'
    return f'{value * 1000:.2f} ms' if value < 0.01 else f'{value * 1000:.0f} ms' if value < 1 else f'{value:.2f} s'


def amount(value, unit):
    if unit == 'x':
        return f'{value:.2f} x'
    if unit == 's':
        return seconds(value)
    return f'{value / (1 << 20 if unit == "B" else 1 << 10):.1f} MiB'


def table(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    return lines + ['| ' + ' | '.join(row) + ' |' for row in rows]


def ratio(cells, system):
    ours, theirs = cells.get('sbxfs', {}).get('median'), cells.get(system, {}).get('median')
    return f'{ours / theirs:.2f}' if ours and theirs else '-'


def main_table(result):
    names = [s for s in ('native', 'overlay', 'fuse-overlayfs', 'bare', 'sbxfs') if s in result['versions']]
    titles = {'overlay': 'kernel overlayfs', 'bare': 'bare FUSE'}
    others = [s for s in names if s != 'sbxfs'] if 'sbxfs' in names else []
    rows = []
    for workload, cells in result['workloads'].items():
        row = [result['labels'][workload]]
        for name in names:
            row.append('failed' if cells.get(name, {}).get('failed') else seconds(cells.get(name, {}).get('median')))
        rows.append(row + [ratio(cells, name) for name in others])
    return table(['work'] + [titles.get(n, n) for n in names] + [f'sbxfs / {titles.get(n, n)}' for n in others], rows)


def daemon_table(result):
    rows = []
    for workload, cells in result['workloads'].items():
        ours = cells.get('sbxfs', {})
        if ours.get('messages') is None and ours.get('daemon_kib') is None:
            continue
        messages = ', '.join(f'{name} {count:g}' for name, count in (ours.get('messages') or {}).items())
        growth = ours.get('store_growth')
        rows.append([result['labels'][workload], f'{ours.get("daemon_kib", 0) / 1024:.0f}', seconds(ours.get('daemon_cpu')),
                     f'{growth / (1 << 20):.1f}' if growth is not None else '', messages or 'none'])
    return table(['work', 'memory, MiB', 'processor', 'store growth, MiB', 'messages from the kernel'], rows) if rows else []


def target_table(result):
    rows = []
    for row in result['targets']:
        of = f' {row["of"]}' if row['of'] else ''
        rows.append([row['target'], result['labels'].get(row['workload'], row['workload']), amount(row['limit'], row['unit']) + of,
                     amount(row['value'], row['unit']), 'yes' if row['met'] else '**no**'])
    return table(['target', 'work', 'at most', 'measured', 'met'], rows) if rows else []


def markdown(result):
    m = result['machine']
    lines = [f'{result["date"]}, {m["processors"]} x {m["model"]}, {m["memory_mib"] // 1024} GiB, Linux {m["kernel"]}, '
             f'{result["file_system"]}, as {result["user"]}; medians of {result["repeat"]}; load at the end {result["load"][0]:.1f}.', '']
    lines += main_table(result)
    for title, part in (('The daemon of sbxfs', daemon_table(result)), ('Targets', target_table(result))):
        if part:
            lines += ['', f'### {title}', ''] + part
    for system, reason in result['skipped'].items():
        lines.append(f'\n{system} was left out: {reason}.')
    for workload, cells in result['workloads'].items():
        for system, cell in cells.items():
            if cell.get('failed'):
                lines.append(f'\nfailed: {result["labels"][workload]} on {system}: {cell["failed"]}')
    lines += [f'\ndifferent result: {text}' for text in result['different']]
    return '\n'.join(lines)
