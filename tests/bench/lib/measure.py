# SPDX-License-Identifier: MIT
"""Runs the workloads on the systems in turn and keeps what was measured."""
import itertools
import os
import shutil
import statistics
import time

from . import proc
from .proc import Failed, command
from .systems import disk_bytes, sync_disk


class Cell:
    """One workload on one system."""

    def __init__(self):
        self.seconds, self.cpu, self.growth, self.memory, self.extra = [], [], [], [], {}
        self.messages, self.value, self.failed = None, None, None

    def median(self):
        return statistics.median(self.seconds) if self.seconds else None

    def report(self):
        result = {'median': self.median(), 'samples': self.seconds}
        for name in ('messages', 'failed', 'value'):
            if getattr(self, name) is not None:
                result[name] = getattr(self, name)
        for name in ('cpu', 'growth'):
            if getattr(self, name):
                result['daemon_cpu' if name == 'cpu' else 'store_growth'] = statistics.median(getattr(self, name))
        if self.memory:
            result['daemon_kib'] = max(self.memory)
        result.update(self.extra)
        return result


def timed(workload, view):
    """In the child: the work, as often as it is to be done."""
    seconds = []
    for _ in range(workload.passes):
        start = time.perf_counter()
        value = workload.work(view)
        seconds.append(time.perf_counter() - start)
        if isinstance(value, dict) and 'seconds' in value:
            seconds[-1] = value['seconds']
            extra, value = value.get('extra', {}), value['value']
        else:
            extra = {}
    return {'seconds': statistics.median(seconds), 'value': value, 'extra': extra}


def message_difference(before, after, passes):
    if before is None or after is None:
        return None
    counts = {name: (after[name] - before.get(name, 0)) / passes for name in after}
    return {name: round(count, 1) for name, count in sorted(counts.items(), key=lambda item: -item[1]) if count > 0}


class Measure:
    def __init__(self, systems, data, scratch, say):
        self.systems, self.data, self.scratch, self.say = systems, data, scratch, say
        self.cells, self.mismatches = {}, []

    def run(self, workloads, repeat):
        for _, group in itertools.groupby(workloads, lambda w: w.group or w.name):
            group = list(group)
            for workload in group:
                self.data.get(workload.data)
                for system in self.used(workload):
                    self.cells[workload.name, system.name] = Cell()
            for turn in range(repeat):
                for workload in group:
                    for system in self.used(workload) if turn < (workload.most or repeat) else []:
                        self.one(workload, system)
            for workload in group:
                self.compare(workload, self.used(workload))
                self.say(self.line(workload, self.used(workload)))

    def used(self, workload):
        return [s for s in self.systems if s.name in workload.systems]

    def line(self, workload, used):
        shown = []
        for system in used:
            cell = self.cells[workload.name, system.name]
            shown.append(f'{system.name} ' + (f'{cell.median():.4f}' if cell.seconds else f'FAILED: {cell.failed}'))
        return f'{workload.name}: ' + ', '.join(shown)

    def one(self, workload, system):
        cell = self.cells[workload.name, system.name]
        if cell.failed:
            return
        view, lower = None, self.data.get(workload.data)
        try:
            if workload.own:
                lower = os.path.join(self.scratch, 'own')
                command(['cp', '-a', self.data.get(workload.data), lower])
            if workload.before:
                proc.in_child(workload.before, type('At', (), {'lower': lower, 'dir': lower, 'data': self.data}), timeout=workload.timeout)
            policy = workload.policy(self.scratch) if workload.policy else None
            view = system.open(lower, workload.changes, policy)
            view.data, view.scratch = self.data, self.scratch
            self.work(workload, view, cell)
        except (Failed, OSError) as error:
            cell.failed = str(error) or type(error).__name__
            self.say(f'{workload.name} on {system.name}: {cell.failed}')
        finally:
            if view:
                try:
                    view.close()
                except (Failed, OSError) as error:
                    cell.failed = cell.failed or f'taking down: {error}'
                    self.say(f'{workload.name} on {system.name}: taking down: {error}')
            if workload.own:
                shutil.rmtree(lower, ignore_errors=True)

    def work(self, workload, view, cell):
        if workload.setup:
            proc.in_child(workload.setup, view, timeout=workload.timeout)
        if workload.changes:
            sync_disk(self.scratch)   # what the turn before left for the disk is not this one's to pay
        grown = disk_bytes(view.store) if workload.store and view.store else None
        before, cpu = view.messages(), proc.cpu_seconds(view.pid) if view.pid else None
        answer = proc.in_child(timed, workload, view, timeout=workload.timeout)
        after = view.messages()
        cell.seconds.append(answer['seconds'])
        cell.messages = message_difference(before, after, workload.passes) or cell.messages
        if view.pid:
            cell.cpu.append((proc.cpu_seconds(view.pid) - cpu) / workload.passes)
            cell.memory.append(proc.memory_kib(view.pid)[0])
        if grown is not None:
            sync_disk(self.scratch)
            cell.growth.append(disk_bytes(view.store) - grown)
        cell.extra.update(answer['extra'])
        value = [answer['value'], proc.in_child(workload.check, view, timeout=workload.timeout) if workload.check else None]
        if cell.value is None:
            cell.value = value
        elif cell.value != value:
            raise Failed(f'the result differs between two repetitions: {cell.value} and {value}')

    def compare(self, workload, used):
        """The first system is the measure for the others."""
        cells = [(s.name, self.cells[workload.name, s.name]) for s in used]
        done = [(name, cell) for name, cell in cells if cell.value is not None]
        for name, cell in done[1:]:
            if cell.value != done[0][1].value:
                self.mismatches.append(f'{workload.name}: {done[0][0]} gives {done[0][1].value}, {name} {cell.value}')
                self.say('DIFFERENT RESULT ' + self.mismatches[-1])
