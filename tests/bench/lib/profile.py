# SPDX-License-Identifier: MIT
"""Where sbxfs spends its time in one workload: the daemon's symbols (perf), its system calls (strace -c), and those of the commands it runs.

Both tools slow the work down, so they run by themselves, after everything was measured.
"""
import os
import shutil
import signal
import subprocess
import time

from . import proc
from .measure import timed
from .proc import Failed, command


def attach(tool, pid, output):
    if tool == 'perf':
        arguments = ['perf', 'record', '-q', '-F', '1999', '-g', '-o', output, '-p', str(pid)]
    else:
        arguments = ['strace', '-f', '-c', '-S', 'time', '-o', output, '-p', str(pid)]
    tracer = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(1.0)
    return tracer


def detach(tracer):
    tracer.send_signal(signal.SIGINT)
    try:
        tracer.wait(60)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()


def symbols(output):
    """The heaviest symbols, without and with what they call."""
    parts = []
    for title, option in (('itself', '--no-children'), ('with what it calls', '--children')):
        text = command(['perf', 'report', '-i', output, '--stdio', '-q', '-g', 'none', '--percent-limit', '1', option, '--sort', 'dso,symbol'],
                       ok=(0, 1)).decode('utf-8', 'replace')
        parts.append(f'{title}:\n' + '\n'.join(line.rstrip() for line in text.splitlines() if line.strip())[:6000])
    return '\n'.join(parts)


def one(measure, workload, system, tool, directory):
    lower = measure.data.get(workload.data)
    if workload.own:
        lower = os.path.join(measure.scratch, 'own')
        command(['cp', '-a', measure.data.get(workload.data), lower])
    if workload.before:
        proc.in_child(workload.before, type('At', (), {'lower': lower, 'dir': lower, 'data': measure.data}), timeout=workload.timeout)
    view = system.open(lower, workload.changes, workload.policy(measure.scratch) if workload.policy else None)
    view.data, view.scratch, tracer = measure.data, measure.scratch, None
    outputs = {'daemon': os.path.join(directory, f'{workload.name}.daemon.{tool}'), 'command': os.path.join(directory, f'{workload.name}.command.{tool}')}
    try:
        if workload.setup:
            proc.in_child(workload.setup, view, timeout=workload.timeout)
        tracer = attach(tool, view.pid, outputs['daemon'])
        view.prefix = {'perf': ['perf', 'record', '-q', '-F', '1999', '-g', '-o', outputs['command'], '--'],
                       'strace': ['strace', '-f', '-c', '-S', 'time', '-o', outputs['command'], '--']}[tool]
        proc.in_child(timed, workload, view, timeout=workload.timeout * 3)
    finally:
        view.prefix = []
        if tracer:
            detach(tracer)
        view.close()
        if workload.own:
            shutil.rmtree(lower, ignore_errors=True)
    for kind, output in outputs.items():
        if os.path.exists(output):
            if tool == 'perf':
                text = symbols(output)
                os.unlink(output)
            else:
                with open(output) as file:
                    text = '\n'.join(file.read().splitlines()[:25])
                os.unlink(output)
            yield f'{workload.name}: {kind}, {"perf" if tool == "perf" else "strace -c"}\n{text}\n'


def run(measure, workloads, system, directory):
    """One text file for each workload."""
    os.makedirs(directory, exist_ok=True)
    for workload in workloads:
        parts = []
        for tool in ('perf', 'strace'):
            try:
                if not shutil.which(tool):
                    raise Failed('not installed')
                parts += one(measure, workload, system, tool, directory)
            except (Failed, OSError) as error:
                parts.append(f'{workload.name}: {tool}: {error}\n')
        with open(os.path.join(directory, workload.name + '.txt'), 'w') as file:
            file.write('\n'.join(parts))
        measure.say(f'profiled {workload.name}')
