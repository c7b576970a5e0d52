# SPDX-License-Identifier: MIT
"""Runs cases, each in processes and a directory of its own, and cleans up after them whatever happened.

For each run of a case a supervisor is forked, which is the subreaper of everything the case starts, the served views too. It
ends the case at its time limit, takes down what is still mounted (a stuck connection through /sys/fs/fuse/connections), ends
what still runs, and fails the case if anything was left, or if a sanitizer or GLib had something to say.
"""
import contextlib
import ctypes
import glob
import importlib.util
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from . import kit
from .view import Options, View, is_dead, mounts

PR_SET_CHILD_SUBREAPER = 36
TROUBLE = re.compile(rb'ERROR: (Address|Leak)Sanitizer|runtime error:|-(CRITICAL|WARNING|ERROR) \*\*|GLib(-[A-Za-z]+)?-(CRITICAL|WARNING|ERROR)')


class Job:
    """One case in one mode."""

    def __init__(self, suite, function, mode):
        self.suite, self.function, self.mode = suite, function, mode
        self.name = f'{suite}/{function.__name__.removeprefix("test_")}'
        self.options = getattr(function, 'options', None) or Options()


def load(files):
    """(suite, function) of every test_* in the order of the files."""
    found = []
    for path in files:
        directory, name = os.path.split(os.path.abspath(path))
        if directory not in sys.path:
            sys.path.append(directory)  # what the files beside it share
        suite = name.removesuffix('.py')
        spec = importlib.util.spec_from_file_location('cases_' + suite, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        tests = [f for name, f in vars(module).items() if name.startswith('test_') and inspect.isfunction(f)]
        found += [(suite, function) for function in sorted(tests, key=lambda f: f.__code__.co_firstlineno)]
    return found


def jobs_of(cases, modes, pattern):
    for suite, function in cases:
        job = Job(suite, function, None)
        if pattern and not re.search(pattern, job.name) or job.options.root not in (None, os.geteuid() == 0):
            continue
        wanted = [mode for mode in modes if mode == 'plain' and job.options.plain or mode in job.options.modes]
        for mode in wanted:
            yield Job(suite, function, mode)


# One run


def children(pid):
    """All descendants, the deepest first."""
    found = []
    for path in glob.glob(f'/proc/{pid}/task/*/children'):
        with contextlib.suppress(OSError), open(path, encoding='ascii') as file:
            for child in map(int, file.read().split()):
                found += children(child) + [child]
    return found


def body(job, directory, answer):
    """In the process of the case."""
    kit.libc.prctl(1, signal.SIGKILL)
    os.setsid()
    # Ignored, it would be so in all that a case starts: nohup(1) does that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    log = os.open(os.path.join(directory, 'case.log'), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.umask(0o022)
    os.chdir('/')
    result = ('FAIL', 'ended early')
    try:
        View(directory, job.options, job.mode).run(job.function)
        result = ('PASS', '')
    except kit.Skipped as reason:
        result = ('SKIP', str(reason))
    except kit.Failed as fault:
        traceback.print_exc()
        result = ('FAIL', f'{fault} ({place(fault)})')
    except BaseException as fault:
        traceback.print_exc()
        result = ('FAIL', f'{type(fault).__name__}: {fault} ({place(fault)})')
    os.write(answer, json.dumps(result).encode())
    os._exit(0)


def place(fault):
    """The line of the case that failed."""
    frames = [f for f in traceback.extract_tb(fault.__traceback__) if os.sep + 'harness' + os.sep not in f.filename]
    return f'{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}' if frames else 'harness'


def supervise(job, base):
    """In a process of its own: (status, message, directory)."""
    kit.libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    directory = tempfile.mkdtemp(prefix='c', dir=base)
    os.chmod(directory, 0o755)
    try:
        return attend(job, directory)
    except BaseException:
        abort_connections(directory)
        end_processes()
        clean(directory)
        raise


def attend(job, directory):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        body(job, directory, writer)
    os.close(writer)
    in_time = wait_for(pid, job.options.timeout)
    if not in_time:
        abort_connections(directory)
        end_processes()
    with open(reader, 'rb') as file:
        answer = file.read()
    status, message = json.loads(answer) if answer else ('FAIL', 'the process of the case died')
    if not in_time:
        status, message = 'FAIL', f'no end in {job.options.timeout} s'
    left = clean(directory)
    if status != 'FAIL':
        problems = (left if status == 'PASS' else []) + trouble(directory)
        if problems:
            status, message = 'FAIL', '; '.join(problems)
    else:
        message = '; '.join([message] + trouble(directory))
    return status, message, directory


def wait_for(pid, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(ChildProcessError):
            while (reaped := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if reaped == pid:
                    return True
        time.sleep(0.005)
    return False


def abort_connections(directory):
    for mount in mounts(directory):
        with contextlib.suppress(OSError):
            kit.write(f'/sys/fs/fuse/connections/{mount.minor}/abort', b'1')


def end_processes():
    for _ in range(100):
        left = children(os.getpid())
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        reap()
        if not left:
            return
        time.sleep(0.02)


def reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def clean(directory):
    """Takes down what the case left; returns what that was."""
    left = []
    for attempt in range(20):
        found = mounts(directory)
        if not found:
            break
        if attempt == 0:
            left += [f'left mounted: {mount.point}' for mount in found]
        if attempt == 5:
            abort_connections(directory)
        for mount in found:
            lazy = ['-z'] if attempt > 5 else []
            command = ['umount', *(['-l'] if lazy else []), mount.point] if os.geteuid() == 0 else ['fusermount3', '-u', *lazy, mount.point]
            subprocess.run(command, capture_output=True)
        time.sleep(0.05 * attempt)
    for _ in range(200):
        reap()
        if not children(os.getpid()):
            break
        time.sleep(0.02)
    left += [f'left running: {command_of(pid)}' for pid in children(os.getpid()) if not is_dead(pid)]
    end_processes()
    return left


def command_of(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/cmdline', 'rb') as file:
        return f'{pid} {file.read().replace(bytes(1), b" ").decode("utf-8", "replace")[:120]}'
    return str(pid)


def trouble(directory):
    """What sanitizers and GLib wrote."""
    found = []
    logs = glob.glob(os.path.join(directory, 'sanitizer.*')) + glob.glob(os.path.join(directory, 'state', '**', '*.log'), recursive=True)
    for path in logs + [os.path.join(directory, 'case.log')]:
        with contextlib.suppress(OSError):
            for line in kit.read(path).splitlines():
                if TROUBLE.search(line):
                    found.append(f'{os.path.basename(path)}: {line.decode("utf-8", "replace")[:200]}')
                    break
    return found


# Many runs


class Runner:
    def __init__(self, base, logs, workers, label):
        self.base, self.logs, self.workers, self.label = base, logs, workers, label
        self.outcomes = {}  # name -> [(mode, status, message)]
        self.running = {}   # pid -> (job, reader, start)
        self.times = []     # (seconds, name, mode)

    def start(self, job):
        reader, writer = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            for _, other, _ in self.running.values():
                os.close(other)
            os.close(reader)
            signal.signal(signal.SIGTERM, interrupted)
            signal.signal(signal.SIGINT, interrupted)
            try:
                answer = supervise(job, self.base)
                if answer[0] != 'FAIL':
                    kit.remove_tree(answer[2])
            except BaseException:
                end_processes()
                answer = ('FAIL', 'harness: ' + traceback.format_exc(), None)
            os.write(writer, json.dumps(answer).encode())
            os._exit(0)
        os.close(writer)
        self.running[pid] = (job, reader, time.monotonic())

    def collect(self):
        pid = os.wait()[0]
        job, reader, start = self.running.pop(pid)
        self.times.append((time.monotonic() - start, job.name, job.mode))
        with open(reader, 'rb') as file:
            answer = file.read()
        status, message, directory = json.loads(answer) if answer else ('FAIL', 'the supervisor died', None)
        self.outcomes.setdefault(job.name, []).append((job.mode, status, message))
        if status == 'FAIL':
            log = self.keep(job, directory)
            print(f'FAIL {job.name} [{self.label}, {job.mode}]: {message[:700]}\n     log: {log}', flush=True)
        if directory and os.path.lexists(directory):
            kit.remove_tree(directory)

    def keep(self, job, directory):
        target = os.path.join(self.logs, f'{self.label}-{job.name.replace("/", "-")}-{job.mode}')
        os.makedirs(target, exist_ok=True)
        if directory:
            for path in glob.glob(os.path.join(directory, 'sanitizer.*')) + [os.path.join(directory, 'case.log')]:
                with contextlib.suppress(OSError):
                    shutil.copy(path, target)
        return target

    def run(self, jobs):
        for job in sorted(jobs, key=lambda job: -job.options.timeout):  # the long ones first
            while len(self.running) >= self.workers:
                self.collect()
            self.start(job)
        while self.running:
            self.collect()

    def verdicts(self):
        """name -> (status, message): a case passed when each of its modes did."""
        rank = {'FAIL': 0, 'PASS': 1, 'SKIP': 2}
        for name, outcomes in self.outcomes.items():
            _, status, message = min(outcomes, key=lambda outcome: rank[outcome[1]])
            yield name, status, message


def interrupted(number, frame):
    """Once: what cleans up then is left in peace."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
