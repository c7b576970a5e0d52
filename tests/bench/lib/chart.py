# SPDX-License-Identifier: MIT
"""The chart for the README: a group of bars for each workload, the slowest system of a group takes the whole width."""
from xml.sax.saxutils import escape

from .report import seconds

SHOWN = ('rg-warm', 'read-warm', 'status-warm', 'untar', 'npm', 'clone', 'saves', 'rm', 'compile', 'sqlite', 'write-256', 'first-write')
COLOURS = {'native': '#8a9099', 'overlay': '#4f81c7', 'fuse-overlayfs': '#d99a3d', 'sbxfs': '#2c9a66'}
TITLES = {'overlay': 'kernel overlayfs'}
LEFT, WIDTH, RIGHT, BAR, GAP, TOP = 220, 440, 90, 11, 12, 64


def text(x, y, content, anchor='start', size=12, weight='normal', colour='#24292f'):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{colour}">'
            f'{escape(content)}</text>')


def legend(systems):
    parts, x = [], LEFT
    for system in systems:
        parts.append(f'<rect x="{x}" y="38" width="11" height="11" rx="2" fill="{COLOURS[system]}"/>')
        parts.append(text(x + 16, 48, TITLES.get(system, system)))
        x += 38 + 7 * len(TITLES.get(system, system))
    return parts


def group(label, cells, systems, y):
    times = {s: cells[s]['median'] for s in systems if cells.get(s, {}).get('median')}
    most, parts = max(times.values()), [text(LEFT - 10, y + len(times) * BAR / 2 + 4, label, 'end')]
    for i, (system, value) in enumerate(times.items()):
        top, width = y + i * BAR, max(1.5, WIDTH * value / most)
        parts.append(f'<rect x="{LEFT}" y="{top:.1f}" width="{width:.1f}" height="{BAR - 1.5}" fill="{COLOURS[system]}"/>')
        parts.append(text(LEFT + width + 5, top + BAR - 2.5, seconds(value), size=9.5, colour='#57606a'))
    return parts, y + len(times) * BAR + GAP


def draw(result):
    systems, y, parts = [s for s in COLOURS if s in result['versions']], TOP, []
    for name in SHOWN:
        cells = result['workloads'].get(name, {})
        if any(cell.get('median') for cell in cells.values()):
            added, y = group(result['labels'][name], cells, systems, y)
            parts += added
    width = LEFT + WIDTH + RIGHT
    machine = result['machine']
    title = [text(LEFT, 24, 'Time for the same work, shorter is better', size=14, weight='bold')]
    foot = [text(LEFT, y + 10, f'medians, {machine["processors"]} processors, Linux {machine["kernel"].split("-")[0]}, {result["date"]}', size=10,
                 colour='#57606a')]
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 24}" width="{width}" height="{y + 24}" '
                      'font-family="system-ui, sans-serif">', '<!-- SPDX-License-Identifier: MIT -->',
                      f'<rect width="{width}" height="{y + 24}" fill="#ffffff"/>'] + title + legend(systems) + parts + foot + ['</svg>', ''])
