# SPDX-License-Identifier: MIT
"""Processes: commands with a timeout, and the timed part of a workload in a child of its own."""
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback


class Failed(Exception):
    """A measurement that can't be had; its message goes into the report."""


def command(arguments, cwd=None, timeout=600, capture=True, env=None, ok=(0,)):
    """Runs to the end; standard output as bytes."""
    with subprocess.Popen(arguments, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if capture else subprocess.DEVNULL,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException as error:
            kill_session(process.pid)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f'{arguments[0]} {arguments[1] if len(arguments) > 1 else ""}: not done after {timeout} s')
            raise
    if process.returncode not in ok:
        last = err.decode('utf-8', 'replace').strip().splitlines()[-3:]
        raise Failed(f'{" ".join(arguments)[:200]}: exit {process.returncode}: {" / ".join(last)}')
    return out or b''


def kill_session(pid):
    """A session that we started, by the number of its leader."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def child_answer(descriptor, timeout):
    data, end = b'', time.monotonic() + timeout
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0, end - time.monotonic()))
        if not ready:
            return None
        part = os.read(descriptor, 65536)
        if not part:
            return data
        data += part


def in_child(function, *arguments, timeout=600):
    """
    Calls it in a forked process, so that nothing of ours holds the view and a hang can be ended. What it returns must be JSON.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            try:
                answer = {'value': function(*arguments)}
            except Failed as error:
                answer = {'failed': str(error)}
            except BaseException as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                answer = {'failed': f'{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})'}
            with os.fdopen(writer, 'wb') as pipe:
                pipe.write(json.dumps(answer).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    try:
        data = child_answer(reader, timeout)
    finally:
        os.close(reader)
        kill_session(pid)
        os.waitpid(pid, 0)
    if data is None:
        raise Failed(f'not done after {timeout} s')
    answer = json.loads(data) if data else {'failed': 'the process ended without an answer'}
    if 'failed' in answer:
        raise Failed(answer['failed'])
    return answer['value']


def memory_kib(pid):
    """(resident now, most ever), None for a process that is gone."""
    try:
        with open(f'/proc/{pid}/status') as file:
            lines = dict(line.split(':', 1) for line in file)
    except OSError:
        return None
    return int(lines['VmRSS'].split()[0]), int(lines['VmHWM'].split()[0])


def cpu_seconds(pid):
    try:
        with open(f'/proc/{pid}/stat') as file:
            fields = file.read().rpartition(')')[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def alive(pid):
    """Not when it has ended and only nobody has asked for its status yet."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def find_process(argument):
    """The process that has this as an argument, the youngest."""
    found = []
    for name in os.listdir('/proc'):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f'/proc/{name}/cmdline', 'rb') as file:
                    if os.fsencode(argument) in file.read().split(b'\0'):
                        found.append(int(name))
            except OSError:
                pass
    return max(found, default=None)
