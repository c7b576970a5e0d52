# SPDX-License-Identifier: MIT
"""Attacks from inside a confined run: none has what it wants, and the host is unharmed.

A test of this kind passes for many wrong reasons: the attack has a mistake, the file was never there. So each attack is tried once
more with its guard taken out, by a bwrap of ours that leaves out arguments, and there it must succeed. Where another guard,
or the machine itself, would still stop it, only the first half is tried.
"""
import contextlib
import errno
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import termios
import time

from harness.kit import *  # noqa: F403
from harness.view import case, is_dead, mounts

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = '/usr/bin/python3'
SECRET = 'MARK-not-a-real-secret'
once = case(mount=False, modes=('fresh',), timeout=240)

# A bwrap that lacks something: {option: its number of arguments} is left out, "places" shows the whole host instead.
WRAPPER = '''#!{python}
import os, sys
left, args, places = {left!r}, sys.argv[1:], {places!r}
if places:
    first, last = args.index('--hostname') + 2, args.index('--seccomp')
    args[first:last] = ['--dev-bind', '/', '/'] + args[last - 2:last]
for wanted in left:
    wanted = wanted.split()
    for at in range(len(args)):
        if args[at:at + len(wanted)] == wanted or wanted[-1] == 'N' and args[at] == wanted[0]:
            del args[at:at + len(wanted)]
            break
os.execv({real!r}, [{real!r}] + args)
'''


def without(t, *left, places=False):
    """The environment in which these arguments of bwrap are missing."""
    real = next(p for p in ('/usr/bin/bwrap', '/usr/local/bin/bwrap') if os.path.exists(p))
    os.makedirs(t.path('bin'), exist_ok=True)
    write(t.path('bin/bwrap'), WRAPPER.format(python=PYTHON, left=left, places=places, real=real))
    os.chmod(t.path('bin/bwrap'), 0o755)
    return {'PATH': t.path('bin') + ':' + os.environ['PATH']}


def run(t, *command, options=(), code=0, **named):
    return t.sbxfs('run', '-n', t.name, *(['-p', t.policy_file] if not t.is_mounted(t.path('run/sbxfs', t.name, 'mnt')) else []), *options, t.low, '--', *command, code=code, **named)


def attack(t, name, *arguments, **named):
    """{try: result} of an attack, run confined."""
    source = read(os.path.join(HERE, 'attacks.py')).decode()
    done = run(t, PYTHON, '-c', source, name, *map(str, arguments), **named)
    return dict(line.rpartition(': ')[::2] for line in done.out.splitlines() if ': ' in line)


def stopped(results, *needed):
    got = {what: result for what, result in results.items() if result.startswith('got')}
    check(not got, f'this was not stopped: {short(got)}')
    for what in needed:
        check(what in results, f'{what} was not tried: {short(results)}')


def succeeds(results, *needed):
    """With the guard taken out."""
    for what in needed:
        check(results.get(what, '').startswith('got'), f'without its guard {what} should work, or the test shows nothing: {short(results)}')


def nothing_left(t):
    for _ in range(500):
        left = [m.point for m in mounts(t.dir)] + names(t.path('run/sbxfs'))
        if not left:
            break
        time.sleep(0.02)
    check(not left, f'left: {left}')


# What can be seen


@once
def test_files_of_the_host(t):
    t.seed({'f': 'f'})
    grow(t.dir, {'home/.ssh/id_rsa': SECRET, 'sibling/.git/config': SECRET, 'sibling/code': SECRET, 'tmp/of-another-program': SECRET})
    yield
    outside = ['home/.ssh/id_rsa', 'sibling/.git/config', 'sibling/code', 'sibling', 'tmp/of-another-program', 'state/sbxfs', f'state/sbxfs/{t.name}/store.db',
               f'run/sbxfs/{t.name}.sock', f'run/sbxfs/{t.name}/mnt/f', 'run/sbxfs', 'policy.ini', 'm']
    paths = [t.path(p) for p in outside if not p.endswith('.sock')] + ['/root', '/home', '/var/lib', '/var/run', '/sys/kernel', '/boot', '/mnt', '/srv', '/opt']
    stopped(attack(t, 'read', *paths), *paths)
    eq(run(t, 'cat', t.w('f')).out, 'f', 'the view at the path of the workspace')
    succeeds(attack(t, 'read', *paths, env=without(t, places=True)), t.path('home/.ssh/id_rsa'), t.path('sibling'), t.path(f'state/sbxfs/{t.name}/store.db'))
    nothing_left(t)


@once
def test_the_workspace_itself(t):
    """By no path is there another file than the view's."""
    t.seed({'.env': SECRET, 'f': 'original'})
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\ndeny = .env\n')
    os.link(t.w('f'), t.path('marker-of-the-host'))
    yield
    paths = [t.w('.env'), t.w('../w/.env'), '/proc/self/cwd/.env', '/proc/1/cwd/.env', '/proc/1/root' + t.w('.env'), '/proc/self/root/../..' + t.w('.env')]
    stopped(attack(t, 'read', *paths), *paths)
    stopped(attack(t, 'find', 'marker-of-the-host'))
    run(t, 'sh', '-c', f'echo changed >{t.w("f")}; echo new >{t.w("n")}')
    eq((read(t.w('f')), is_gone(t.w('n'))), (b'original', True), 'the workspace')
    check(attack(t, 'find', 'marker-of-the-host', env=without(t, places=True)), 'without its guard the marker should be found')


@once
def test_roots_of_other_processes(t):
    write(t.path('mark'), SECRET)
    yield
    stopped(attack(t, 'roots', t.path('mark')), '/proc/1/root', '/proc/self/root')
    succeeds(attack(t, 'roots', t.path('mark'), env=without(t, places=True)), '/proc/self/root')


@once
def test_descriptors_of_the_daemon(t):
    t.seed({'.env': SECRET})
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\ndeny = .env\n')
    yield
    stopped(attack(t, 'descriptors', '.env'), 'descriptors')
    t.mount()
    # not confined, as the same user: who can do that could read the workspace as well
    source = read(os.path.join(HERE, 'attacks.py')).decode()
    done = t.program(PYTHON, '-c', source, 'descriptors', '.env')
    check(': got' in done.out, 'without a confinement the workspace should be found behind a descriptor, or the test shows nothing')
    t.umount()
    nothing_left(t)


@once
def test_sockets_of_other_programs(t):
    """Agents, databases, docker: whatever listens on the host, by path or abstract or on its loopback."""
    yield
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named:
        tcp.bind(('127.0.0.1', 0))
        abstract.bind(f'\0sbxfs-{os.getpid()}')
        named.bind(t.path('tmp/agent.sock'))
        for listener in (tcp, abstract, named):
            listener.listen()
        paths = [t.path('tmp/agent.sock'), '/var/run/docker.sock', '/run/docker.sock', '/run/podman/podman.sock', '/run/dbus/system_bus_socket', '/tmp/.X11-unix/X0',
                 '/var/run/postgresql/.s.PGSQL.5432', '/run/mysqld/mysqld.sock', f'/run/user/{os.geteuid()}/bus', t.path(f'run/sbxfs/{t.name}.sock')]
        arguments = ('connect', tcp.getsockname()[1], f'sbxfs-{os.getpid()}', *paths)
        stopped(attack(t, *arguments, env={'SSH_AUTH_SOCK': paths[0], 'DOCKER_HOST': 'unix://' + paths[0]}), '127.0.0.1', 'abstract', *paths)
        stopped(attack(t, 'find', 'docker.sock'))
        succeeds(attack(t, *arguments, env=without(t, '--unshare-net')), '127.0.0.1', 'abstract')
        succeeds(attack(t, *arguments, env=without(t, places=True)), paths[0], paths[-1])


@once
def test_other_processes(t):
    yield
    sleeper = subprocess.Popen(['sleep', '100'])
    try:
        stopped(attack(t, 'processes', sleeper.pid), 'signal', 'ptrace', 'environment')
        # without the namespace the pid is seen; /proc is still another
        succeeds(attack(t, 'processes', sleeper.pid, env=without(t, '--unshare-pid')), 'signal')
        check(sleeper.poll() is None, 'the process of the host has ended')
    finally:
        sleeper.kill()
        sleeper.wait()


@once
def test_secrets_of_the_system(t):
    yield
    secrets = [p for p in ('/etc/shadow', '/etc/gshadow', '/etc/shadow-', '/etc/sudoers', '/etc/ssl/private', '/etc/ssh/ssh_host_rsa_key') if os.path.exists(p)]
    results = attack(t, 'read', *secrets)
    stopped({what: result for what, result in results.items() if result != 'got []'}, '/etc/shadow')
    eq([p for p in ('/etc/passwd', '/etc/hosts') if not run(t, 'cat', p).out], [], 'what everybody may read')
    if t.is_root:
        succeeds(attack(t, 'read', *secrets, env=without(t, '--ro-bind /dev/null /etc/shadow')), '/etc/shadow')


@once
def test_the_system_cannot_be_written(t):
    yield
    paths = ['/usr/bin/env', '/etc/passwd', '/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', '/proc/sys/kernel/hostname', '/proc/sysrq-trigger']
    stopped(attack(t, 'write', *paths), *paths)
    stopped(attack(t, 'fill'), '/', '/usr', '/dev')
    if t.is_root:
        succeeds(attack(t, 'write', *paths, env=without(t, '--ro-bind /proc/sys /proc/sys')), '/proc/sys/kernel/core_pattern')
    succeeds(attack(t, 'fill', env=without(t, '--remount-ro /')), '/')


@once
def test_environment(t):
    yield
    env = {'AWS_SECRET_ACCESS_KEY': SECRET, 'SSH_AUTH_SOCK': '/x', 'DBUS_SESSION_BUS_ADDRESS': 'x', 'LD_PRELOAD_X': 'x', 'BUILD_FLAGS': 'mine'}
    seen = dict(line.split('=', 1) for line in run(t, 'env', env=env).out.splitlines())
    check(not set(seen) & set(env), f'let through: {set(seen) & set(env)}')
    eq((seen['SBXFS'], seen['SBXFS_SANDBOX'], seen['HOME']), ('1', t.name, t.path('home')), 'what is set')
    eq(run(t, 'cat', '/proc/1/environ', env=env).out.count(SECRET), 0, 'the environment of the first process')
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[run cases]\nenvironment = BUILD_*, OTHER\n')
    check('BUILD_FLAGS=mine' in run(t, 'env', env=env).out, 'the profile lets BUILD_* through')


# What can be called


@once
def test_mounts_and_namespaces(t):
    yield
    stopped(attack(t, 'mount'), 'mount', 'remount', 'unshare', 'unshare and mount', 'clone')
    succeeds(attack(t, 'mount', env=without(t, '--seccomp N')), 'unshare', 'unshare and mount')


@once
def test_system_calls(t):
    if os.uname().machine != 'x86_64':
        t.skip('the numbers of the calls are those of x86-64')
    yield
    results = attack(t, 'calls')
    stopped(results, 'keyctl', 'bpf', 'raw', 'packet', 'vsock')
    eq({what: results[what] for what in ('keyctl', 'bpf', 'perf_event_open', 'userfaultfd', 'raw', 'raw6')}, dict.fromkeys(('keyctl', 'bpf', 'perf_event_open', 'userfaultfd', 'raw', 'raw6'), 'EPERM'), 'refused by')
    eq((results['io_uring_setup'], results['vsock'], results['alg'], results['packet']), ('ENOSYS', 'EAFNOSUPPORT', 'EAFNOSUPPORT', 'EAFNOSUPPORT'), 'refused by')
    succeeds(attack(t, 'calls', env=without(t, '--seccomp N')), 'keyctl')
    status = run(t, 'cat', '/proc/self/status').out
    for line in ('CapPrm:\t0000000000000000', 'CapEff:\t0000000000000000', 'CapBnd:\t0000000000000000', 'CapAmb:\t0000000000000000', 'NoNewPrivs:\t1', 'Seccomp:\t2'):
        check(line in status, f'{line} is not in the status')


@once
def test_what_programs_need_works(t):
    """The filter is no hindrance: threads, child processes, sockets among themselves, a debugger's ptrace."""
    yield
    script = '''
import threading, subprocess, socket, multiprocessing, tempfile, os
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.run(["sh", "-c", "exit 3"]).returncode == 3
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); c.close()
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
assert multiprocessing.Pool(2).map(abs, [-1, -2]) == [1, 2]
tempfile.NamedTemporaryFile(); open(os.path.expanduser("~/.cache-of-mine"), "w").write("x")
print("good")'''
    eq(run(t, PYTHON, '-c', script).out, 'good\n', 'ordinary work')


def on_terminal(t, *command, typed=(), env=None):
    """What a command shows on a terminal of its own, and how it ends. @typed: (pause, keys)."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, {**os.environ, **(env or {})})
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 37, 111, 0, 0))
    shown = b''

    def drain(until):
        nonlocal shown
        end = time.monotonic() + 30
        with contextlib.suppress(OSError):
            while time.monotonic() < end and (until is None or until not in shown):
                if not select.select([fd], [], [], 1)[0]:
                    continue
                data = os.read(fd, 4096)
                if not data:
                    break
                shown += data

    for wait_for, keys in typed:
        drain(wait_for)
        time.sleep(0.3)
        os.write(fd, keys)
    drain(None)
    os.close(fd)  # hangs up whoever is still there
    return shown.decode('utf-8', 'replace'), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sbxfs_on_terminal(t, *command, typed=(), **named):
    return on_terminal(t, 'sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', *command, typed=typed, **named)


@once
def test_typing_into_the_terminal(t):
    yield
    source = read(os.path.join(HERE, 'attacks.py')).decode()
    shown, _ = sbxfs_on_terminal(t, PYTHON, '-c', source, 'terminal')
    eq(shown.count('TIOCSTI: EPERM') + shown.count('above: EPERM'), 2, 'refused')
    if read('/proc/sys/dev/tty/legacy_tiocsti').strip() == b'1':
        shown, _ = sbxfs_on_terminal(t, PYTHON, '-c', source, 'terminal', env=without(t, '--seccomp N'))
        check('TIOCSTI: got' in shown, f'without its guard TIOCSTI should work: {short(shown)}')


@once
def test_the_terminal_is_one(t):
    """Size, keys, job control; and whoever was interrupted decides what that means."""
    yield
    shown, code = sbxfs_on_terminal(t, 'bash', '--norc', '-i', typed=[(b'# ' if t.is_root else b'$ ', b'stty size; sleep 100\n'), (b'37 111', b'\x1a'), (b'Stopped', b'kill -9 %1; exec sh -c "exit 7"\n')])
    check('37 111' in shown, f'size: {short(shown)}')
    eq(code, 7, f'exit status after job control: {short(shown)}')
    script = 'import time\nprint("u" + "p", flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print("interrupted")'
    shown, code = sbxfs_on_terminal(t, PYTHON, '-c', script, typed=[(b'up', b'\x03')])
    check('interrupted' in shown and code == 0, f'Ctrl-C: {short(shown)}, exit {code}')
    shown, code = sbxfs_on_terminal(t, 'sh', '-c', 'echo u""p; exec sleep 60', typed=[(b'up', b'\x03')])
    eq(code, 128 + signal.SIGINT, f'a program that an interrupt ends: {short(shown)}')
    command = f'sbxfs run -n {t.name} -p {t.policy_file} --limit time=1s {t.low} -- sh -c "stty raw -echo; sleep 60"; echo $?; stty -a'
    shown, _ = on_terminal(t, 'sh', '-c', command)
    check('124' in shown and ' icanon' in shown and ' echo ' in shown, f'modes of the terminal after an editor was ended: {short(shown)}')
    nothing_left(t)


# What comes along


@once
def test_open_files_are_no_way_out(t):
    write(t.path('input'), 'input\n')
    yield
    with opened(t.dir, os.O_RDONLY) as directory, open(t.path('input'), 'rb') as given, open(t.path('output'), 'wb') as taken:
        source = read(os.path.join(HERE, 'attacks.py')).decode()
        command = ['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', PYTHON, '-c', source, 'streams']
        done = subprocess.run(command, stdin=given, stdout=taken, stderr=subprocess.DEVNULL, pass_fds=[directory], timeout=60)
        eq(done.returncode, 0, 'exit')
        out = read(t.path('output')).decode()
        check('got' not in out, f'descriptors of the host: {out}')
        eq(read(t.path('input')), b'input\n', 'the file that was the input')
        refused = subprocess.run(command, stdin=directory, capture_output=True, timeout=60)
        eq(refused.returncode, 2, 'a directory as standard input')
    eq(run(t, 'cat', data=b'through a pipe').out, 'through a pipe', 'input')
    with open(t.path('input'), 'rb') as given:
        done = subprocess.run(command[:command.index('--') + 1] + ['cat'], stdin=given, capture_output=True, timeout=60)
        eq(done.stdout, b'input\n', 'a file as input')


@once
def test_git_directories_outside(t):
    env = {**os.environ}
    for command in (['git', 'init', '-q', t.path('main')], ['git', '-C', t.path('main'), 'commit', '-q', '--allow-empty', '-m', 'first']):
        subprocess.run(command, check=True, env=env)
    os.rmdir(t.low)
    subprocess.run(['git', '-C', t.path('main'), 'worktree', 'add', '-q', t.low], check=True, env=env)
    grow(t.dir, {'main/untracked': SECRET, 'home/.ssh/id_rsa': SECRET})
    yield
    eq(run(t, 'git', '-c', 'safe.directory=*', 'log', '--format=%s').out, 'first\n', 'git log in a work tree')
    stopped(attack(t, 'read', t.path('main/untracked')))
    stopped(attack(t, 'write', t.path('main/.git/config'), t.path('main/.git/HEAD')))


@once
def test_a_git_file_that_lies(t):
    grow(t.dir, {'home/.ssh/id_rsa': SECRET, 'home/.ssh/HEAD': 'x', 'home/.ssh/config': '[core]\n\tbare = false\n'})
    t.seed({'.git': f'gitdir: {t.path("home/.ssh")}\n'})
    yield
    stopped(attack(t, 'read', t.path('home/.ssh/id_rsa'), t.path('home/.ssh')))


def git(t, *arguments):
    t.program('git', '-c', 'protocol.file.allow=always', *arguments)


@once
def test_a_git_file_that_names_another_repository(t):
    """One that a program made, and somebody committed: of another project, of a work tree or a submodule of it, or bare."""
    for name in ('other', 'lib'):
        git(t, 'init', '-q', t.path(name))
        git(t, '-C', t.path(name), 'commit', '-q', '--allow-empty', '-m', SECRET)
    git(t, 'clone', '-q', '--bare', t.path('other'), t.path('other.git'))
    git(t, '-C', t.path('other'), 'worktree', 'add', '-q', t.path('tree'))
    git(t, '-C', t.path('other'), 'submodule', '--quiet', 'add', t.path('lib'), 'lib')
    yield
    for name in ('other/.git', 'other.git', 'other/.git/worktrees/tree', 'other/.git/modules/lib'):
        t.options.workspace_changes = True
        write(t.w('.git'), f'gitdir: {t.path(name)}\n')
        stopped(attack(t, 'read', t.path(name), t.path(name, 'HEAD'), t.path('other/.git/HEAD')), t.path(name))


@once
def test_a_submodule_is_a_workspace(t):
    for name in ('top', 'lib'):
        git(t, 'init', '-q', t.path(name))
        git(t, '-C', t.path(name), 'commit', '-q', '--allow-empty', '-m', 'of ' + name)
    git(t, '-C', t.path('top'), 'submodule', '--quiet', 'add', t.path('lib'), 'lib')
    git(t, 'init', '-q', '--separate-git-dir', t.path('elsewhere'), t.path('apart'))
    git(t, '-C', t.path('apart'), 'commit', '-q', '--allow-empty', '-m', 'of apart')
    yield
    for workspace, subject in (('top/lib', 'of lib'), ('apart', 'of apart')):
        done = t.sbxfs('run', '-n', t.name + workspace[:2], '-p', t.policy_file, t.path(workspace), '--', 'git', '-c', 'safe.directory=*', 'log', '--format=%s')
        eq(done.out, subject + '\n', f'git log in {workspace}')
    nothing_left(t)


@once
def test_home_by_the_profile(t):
    grow(t.dir, {'home/.cargo/bin/tool': ('#!/bin/sh\necho tool\n', 0o755), 'home/.cargo/credentials': SECRET, 'home/.cache/pip/': None, 'home/.ssh/id_rsa': SECRET})
    t.seed({'.sbxfs.ini': '[profile w]\n[files w]\nread = x\n[run w]\nhome.read = .ssh\nenvironment = *\n'})
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[run cases]\nhome.read = .cargo/bin, .not-there\nhome.write = .cache/pip\n')
    yield
    eq(run(t, t.path('home/.cargo/bin/tool')).out, 'tool\n', 'home.read')
    stopped(attack(t, 'read', t.path('home/.cargo/credentials'), t.path('home/.ssh')))
    stopped(attack(t, 'write', t.path('home/.cargo/bin/tool')))
    run(t, 'touch', t.path('home/.cache/pip/wheel'))
    eq(names(t.path('home/.cache/pip')), ['wheel'], 'home.write')
    for bad in ('../x', '/etc', '.', 'a/../../b'):
        write(t.policy_file, f'[profile cases]\n[files cases]\nwrite = **\n[run cases]\nhome.read = {bad}\n')
        run(t, 'true', code=3)


@once
def test_own_places_cannot_be_let_in(t):
    """A profile that would show the store or the socket is refused, and so is a workspace that is the system."""
    os.rename(t.path('state'), t.path('home/state'))
    os.symlink(t.path('run'), t.path('home/link'))
    env = {'XDG_STATE_HOME': t.path('home/state')}
    yield
    for entry in ('state', 'state/sbxfs', 'link'):
        write(t.policy_file, f'[profile cases]\n[files cases]\nwrite = **\n[run cases]\nhome.read = {entry}\n')
        run(t, 'true', code=3, env=env)
    os.rename(t.path('home/state'), t.path('state'))
    for system in ('/usr', '/etc', '/proc'):
        if t.is_root or system == '/usr':
            one_of(t.sbxfs('run', '-n', 'system', '-p', t.policy_file, system, '--', 'true', code=None).code, (2, 3), f'a view of {system}')
    nothing_left(t)


# How much can be used


@once
def test_limits(t):
    """Each one stops its bomb, says so, and lets the same pass when it is not set."""
    yield
    for kind, amount, limit, code, free in (('sleep', 3, 'time=1s', 124, True), ('memory', 300, 'memory=100M', 137, True), ('shared', 300, 'memory=100M', 137, True), ('unmapped', 300, 'memory=100M', 137, True), ('cpu', 3, 'cpu=1s', 137, False), ('output', 5, 'output=1M', 137, True)):
        started = time.monotonic()
        done = run(t, PYTHON, '-c', read(os.path.join(HERE, 'attacks.py')).decode(), 'bombs', kind, str(amount), options=('--limit', limit), code=code)
        check(f'the limit {limit} was reached' in done.err, f'{kind}: no reason: {done.err}')
        logged = [r['detail'].partition(': ')[2] for r in map(json.loads, t.sbxfs('log', t.name, '--json', '--op', 'limit').out.splitlines())]
        eq(logged[-1:], [f'the limit {limit} was reached'], f'{kind}: the audit')
        check(time.monotonic() - started < 60, f'{kind}: not ended in time')
        if kind == 'output':
            eq(len(done.bytes), 1 << 20, 'output')
        if free:
            run(t, PYTHON, '-c', read(os.path.join(HERE, 'attacks.py')).decode(), 'bombs', kind, str(amount))
    eq(run(t, 'sh', '-c', 'ulimit -n', options=('--limit', 'files=77')).out, '77\n', 'files')
    nothing_left(t)


@once
def test_fork_bombs(t):
    yield
    done = attack(t, 'bombs', 'forks', 60, options=('--limit', 'processes=20,time=20s'), code=(1, 124, 137))
    check('forks' not in done, f'60 processes under a limit of 20: {done}')
    succeeds(attack(t, 'bombs', 'forks', 60), 'forks')
    started = time.monotonic()
    attack(t, 'bombs', 'bomb', 0, options=('--limit', 'processes=50,time=3s'), code=(124, 137))
    check(time.monotonic() - started < 60, 'not ended in time')
    nothing_left(t)


@once
def test_endless_output(t):
    yield
    done = run(t, 'sh', '-c', 'yes | head -c 10000000000', options=('--limit', 'output=2M'), code=137)
    eq(len(done.bytes), 2 << 20, 'output')


def fill(t, megabytes, name='big'):
    return f'dd if=/dev/zero of={name} bs=1M count={megabytes} 2>&1 | grep -o "No space left on device"; stat -c %s {name}'


@once
def test_disk_bombs(t):
    """The writer has ENOSPC, everything else works, and what is deleted can be written again."""
    t.seed({'f': 'original', 'large': 'l' * 3_000_000})
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[limits cases]\ndisk = 20M\n')
    yield
    done = run(t, 'sh', '-c', 'stat -f -c "%b %S" .; ' + fill(t, 40) + '; cat f; head -c 3 large; echo')
    lines = done.out.splitlines()
    blocks, size = map(int, lines[0].split())
    eq(blocks * size, 20 << 20, 'statfs')
    eq((lines[1], lines[3][:8]), ('No space left on device', 'original'), 'a large file')
    check(17 << 20 <= int(lines[2]) <= 20 << 20, f'written: {lines[2]}')
    check('big' in t.diff('--name-status').out, 'the changes can be shown')
    small = 'i=0; while [ $i -lt 3000 ]; do head -c 20000 /dev/urandom >s$i || break; i=$((i+1)); done 2>/dev/null; echo $i; '
    done = run(t, 'sh', '-c', small + 'rm s*; ' + small + 'rm s*; echo again >f && cat f', options=('--limit', 'disk=40M'))
    first, second, text = [line for line in done.out.splitlines() if line]
    check(700 < int(first) < 1100 and int(second) > int(first) * 0.9 and text == 'again', f'small files: {done.out} {done.err}')
    check('No space' in run(t, 'sh', '-c', fill(t, 40, 'b2'), options=('--limit', 'disk=10M')).out, 'a smaller limit')
    t.sbxfs('rollback', t.name, '-y')
    eq(run(t, 'sh', '-c', 'cat f; ls').out, 'originalf\nlarge\n', 'rolled back')
    check('No space' not in run(t, 'sh', '-c', fill(t, 40), options=('--limit', 'disk=200M')).out, 'a larger limit')


LINKS = """
import os
done = 0
try:
    for done in range(5000):
        os.symlink('x' * 4000, 'l%d' % done)
except OSError as error:
    print(error.errno, done)
for n in range(done):
    os.unlink('l%d' % n)
os.symlink('x' * 4000, 'again')
"""


@once
def test_a_bomb_of_names(t):
    """What has no bytes takes room, too."""
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[limits cases]\ndisk = 6M\n')
    yield
    done = run(t, PYTHON, '-c', LINKS)
    check(done.out.startswith(f'{errno.ENOSPC} ') and 500 < int(done.out.split()[1]) < 1600, f'symlinks: {done.out}')


@once
def test_a_full_store_is_no_leak(t):
    """What is refused leaves nothing behind, however often it is tried."""
    t.seed({'big': 'x' * 30_000_000})
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[limits cases]\ndisk = 12M\n')
    yield
    run(t, 'sh', '-c', 'dd if=/dev/zero of=a bs=1M count=30 2>/dev/null; for i in $(seq 300); do head -c 2000000 /dev/zero >n$i; echo x >>big; truncate -s 1G a; fallocate -l 5G a; done 2>/dev/null; true')
    objects = os.path.join(t.store(), 'objects')
    used = sum(os.lstat(os.path.join(objects, n)).st_blocks * 512 for n in os.listdir(objects))
    check(used <= 13 << 20, f'the store takes {used}')


@once
def test_limits_of_the_policy(t):
    """A managed or workspace value can be tightened and not loosened."""
    t.seed({'.sbxfs.ini': '[profile w]\n[files w]\nread = x\n[limits w]\nfiles = 50\n'})
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[limits cases]\nfiles = 90\ntime = 1h\n')
    yield
    eq(run(t, 'sh', '-c', 'ulimit -n').out, '50\n', 'the tightest')
    eq(run(t, 'sh', '-c', 'ulimit -n', options=('--limit', 'files=70')).out, '50\n', 'loosened')
    eq(run(t, 'sh', '-c', 'ulimit -n', options=('--limit', 'files=30')).out, '30\n', 'tightened')
    eq(run(t, 'sh', '-c', 'ulimit -n', options=('--limit', 'files=16')).out, '16\n', 'the least')
    for bad in ('files', 'files=', 'files=x', 'files=0', 'files=15', 'speed=9', 'disk=1GB', 'memory=4GB'):
        run(t, 'true', options=('--limit', bad), code=2)


# How it ends


@once
def test_exit_status(t):
    yield
    eq(run(t, 'sh', '-c', 'exit 37', code=37).code, 37, 'exit')
    run(t, 'sh', '-c', 'kill -9 $$', code=137)
    run(t, 'no-such-program', code=127)
    run(t, t.low, code=126)
    t.sbxfs('run', t.low, code=2)
    run(t, 'true', options=('--net', 'sideways'), code=2)
    run(t, 'true', options=('--on-exit', 'never'), code=2)


def processes_with(mark, program=None):
    """Everything that has it as an argument, those that wait for the program too; or the program alone."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            words = read(f'/proc/{pid}/cmdline').decode('utf-8', 'replace').split('\0')
            if mark in words and program in (None, words[0]) and not is_dead(int(pid)):
                found.append(int(pid))
    return found


@once
def test_nothing_outlives_a_kill(t):
    """SIGKILL of `sbxfs run`: the program, its orphans, the view are gone; a view that was there before stays."""
    yield
    seconds = str(7000 + os.getpid() % 900)
    command = ['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', 'sh', '-c', f'setsid sleep {seconds} & sleep {seconds}; :']
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(processes_with(seconds, 'sleep')) == 2, 'the program runs')
        process.send_signal(number)
        process.wait()
        wait_until(lambda: not processes_with(seconds), f'its end after signal {number}')
        nothing_left(t)
        t.sbxfs('snapshot', 'list', t.name)
    t.sbxfs('mount', '-n', t.name, t.low)
    del command[4:6]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(processes_with(seconds, 'sleep')) == 2, 'the program runs')
    process.kill()
    process.wait()
    wait_until(lambda: not processes_with(seconds), 'its end')
    time.sleep(0.5)
    check(t.is_mounted(t.path('run/sbxfs', t.name, 'mnt')), 'the view that was there before is gone')
    run(t, 'true')
    check(t.is_mounted(t.path('run/sbxfs', t.name, 'mnt')), 'the view that was there before is gone')
    t.umount()


def keepers(t):
    """The processes that take a view of this test down after the last run."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            if read(f'/proc/{pid}/comm') == b'sbxfs-keeper\n' and t.path('state').encode() in read(f'/proc/{pid}/environ'):
                found.append(int(pid))
    return found


def groups_of(pid):
    return subprocess.run(['find', '/sys/fs/cgroup', '-name', f'sbxfs-run-{pid}'], capture_output=True, check=False).stdout


@once
def test_no_control_group_outlives_a_kill(t):
    yield
    process = subprocess.Popen(['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, '--limit', 'memory=1G,processes=99,cpu=1h', t.low, '--', 'sh', '-c', 'echo up; exec sleep 99'],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.readline()
    made = groups_of(process.pid)
    process.kill()
    process.communicate()
    wait_until(lambda: not groups_of(process.pid), 'the end of its groups')
    nothing_left(t)
    if not made:
        t.skip('no control group can be made here')


@once
def test_a_killed_bwrap(t):
    """The program was run, so it is not said that it could not be."""
    yield
    process = subprocess.Popen(['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', 'sh', '-c', 'echo up; exec sleep 99'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    with open(f'/proc/{process.pid}/task/{process.pid}/children') as children:
        for child in map(int, children.read().split()):
            with open(f'/proc/{child}/comm') as comm:
                if comm.read() == 'bwrap\n':
                    os.kill(child, signal.SIGKILL)
    said = process.communicate(timeout=60)[1].decode()
    eq(process.returncode, 137, f'exit status: {said}')
    check('signal 9' in said and 'run-1: exit 137' in said, f'what it says: {said}')
    nothing_left(t)


@once
def test_the_guard_against_what_outlives(t):
    """The same without bwrap's --die-with-parent: the program stays, so the test above shows something."""
    yield
    seconds = str(8000 + os.getpid() % 900)
    process = subprocess.Popen(['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', 'sleep', seconds], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, **without(t, '--die-with-parent')})
    wait_until(lambda: processes_with(seconds, 'sleep'), 'the program runs')
    process.kill()
    process.wait()
    time.sleep(1)
    left = processes_with(seconds, 'sleep')
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    check(left, 'without its guard the program should have stayed')
    nothing_left(t)


@once
def test_several_runs_in_one_sandbox(t):
    """The view goes with the last of them, whoever mounted it."""
    yield
    command = ['sbxfs', 'run', '-n', t.name, t.low, '--', 'sh', '-c']
    first = subprocess.Popen([*command[:4], '-p', t.policy_file, *command[4:], 'touch first; while [ ! -e go ]; do sleep 0.05; done'], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    point = t.path('run/sbxfs', t.name, 'mnt')
    wait_until(lambda: os.path.exists(os.path.join(point, 'first')), 'the first runs')
    second = subprocess.Popen([*command, 'touch go; while [ ! -e stop ]; do sleep 0.05; done'], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eq(first.wait(30), 0, 'the first')
    time.sleep(0.5)
    check(t.is_mounted(point) and second.poll() is None, 'the view left with the first')
    write(os.path.join(point, 'stop'), '')
    eq(second.wait(30), 0, 'the second')
    nothing_left(t)


@once
def test_several_runs_begin_a_sandbox(t):
    """At the same moment: one makes and mounts it, the others join, and nobody's work is lost."""
    yield
    for turn in range(3):
        name = f'{t.name}-{turn}'
        runs = [subprocess.Popen(['sbxfs', 'run', '-q', '-n', name, t.low, '--', 'touch', f'by-{i}'], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) for i in range(4)]
        said = [p.communicate(timeout=60)[1].decode() for p in runs]
        eq([p.returncode for p in runs], [0] * 4, f'four at once: {said}')
        eq(t.sbxfs('diff', name, '--name-status').out.split(), ['A', 'by-0', 'A', 'by-1', 'A', 'by-2', 'A', 'by-3'], 'what they did')
    nothing_left(t)


# In the place of fusermount3: takes a view down, and waits a while before and after it for a file that says that something was tried meanwhile.
SLOW_UNMOUNT = '''#!/bin/sh
case "$*" in -u*) ;; *) exec {real} "$@" ;; esac
wait_for() {{ i=0; while [ ! -e "$1" ] && [ $i -lt 150 ]; do sleep 0.01; i=$((i + 1)); done; }}
touch {dir}/before; wait_for {dir}/tried-before
{real} "$@" || exit
touch {dir}/after; wait_for {dir}/tried-after
'''


def last_run_ends(t):
    """The run that mounted the view has ended before, so a process that is nobody's takes it down, slowly."""
    for name in ('before', 'after', 'tried-before', 'tried-after', 'bin/fusermount3'):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(t.path(name))
    write(t.path('bin/fusermount3'), SLOW_UNMOUNT.format(dir=t.dir, real=shutil.which('fusermount3')))
    os.chmod(t.path('bin/fusermount3'), 0o755)
    point = t.path('run/sbxfs', t.name, 'mnt')
    command = ['sbxfs', 'run', '-q', '-n', t.name, t.low, '--', 'sh', '-c']
    slow = {**os.environ, 'PATH': t.path('bin') + ':' + os.environ['PATH']}
    first = subprocess.Popen([*command, 'touch up; while [ ! -e go ]; do sleep 0.01; done'], stdin=subprocess.DEVNULL, env=slow)
    wait_until(lambda: os.path.exists(os.path.join(point, 'up')), 'the first runs')
    second = subprocess.Popen([*command, 'touch go; while [ ! -e stop ]; do sleep 0.01; done'], stdin=subprocess.DEVNULL)
    eq(first.wait(60), 0, 'the first')
    write(os.path.join(point, 'stop'), '')
    eq(second.wait(60), 0, 'the second')


@case(mount=False, modes=('fresh',), root=False, timeout=240)
def test_a_view_that_goes_is_waited_for(t):
    """Whatever comes while the view is taken down after the last run: it is neither refused, nor is what it mounts taken away."""
    yield
    os.makedirs(t.path('bin'))
    for moment in ('before', 'after'):
        for command in (['mount', '-n', t.name, t.low], ['run', '-n', t.name, t.low, '--', 'true'], ['diff', t.name], ['snapshot', 'create', moment, t.name],
                        ['destroy', '--force', t.name]):
            last_run_ends(t)
            wait_until(lambda: os.path.exists(t.path(moment)), 'the view goes')
            t.sbxfs(*command)
            write(t.path('tried-' + moment), '')
            if command[0] == 'mount':
                wait_until(lambda: not keepers(t), 'the end of who took the view down')
                check(t.is_mounted(t.path('run/sbxfs', t.name, 'mnt')), f'the new view was taken down, mounted {moment} the old one was')
                check(t.status()['pid'] > 0, 'the new view does not answer')
                t.umount()
            nothing_left(t)
            if command[0] != 'destroy':
                t.sbxfs('destroy', '--force', t.name)


@once
def test_a_command_keeps_the_view_of_the_last_run(t):
    """It works with the view, so that goes when both have ended; and runs come and go meanwhile."""
    yield
    point = t.path('run/sbxfs', t.name, 'mnt')
    first = subprocess.Popen(['sbxfs', 'run', '-q', '-n', t.name, t.low, '--', 'sh', '-c', 'touch up; while [ ! -e go ]; do sleep 0.01; done'], stdin=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(os.path.join(point, 'up')), 'the first runs')
    gate = subprocess.Popen(['sbxfs', 'gate', t.name, '--test', f'touch {t.path("started")}; while [ ! -e {t.path("end")} ]; do sleep 0.01; done'],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_until(lambda: os.path.exists(t.path('started')), 'the gate tests')
    write(os.path.join(point, 'go'), '')
    eq(first.wait(60), 0, 'the run')
    for _ in range(2):
        check(t.is_mounted(point), 'the view went under the gate')
        t.sbxfs('run', '-q', '-n', t.name, t.low, '--', 'true')
    write(t.path('end'), '')
    said = gate.communicate(timeout=60)[1].decode()
    eq(gate.returncode, 0, f'the gate: {said}')
    nothing_left(t)


@once
def test_no_unmount_under_a_run(t):
    """It sees the view through a mount of its own, so the kernel would let ours go and the run lose it."""
    yield
    t.mount()
    first = subprocess.Popen(['sbxfs', 'run', '-q', '-n', t.name, t.low, '--', 'sh', '-c', 'touch up; while [ ! -e stop ]; do sleep 0.05; done; touch end'], stdin=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(t.m('up')), 'the run')
    check('run' in t.umount(code=8).err, 'why not')
    write(t.m('stop'), '')
    eq(first.wait(60), 0, 'the run')
    check(os.path.exists(t.m('end')), 'what it did')
    t.umount()


@once
def test_two_workspaces_of_one_name_begin(t):
    """At the same moment, each with a sandbox of its own."""
    yield
    places = [t.path(f'place{i}/project') for i in range(3)]
    for place in places:
        os.makedirs(place)
    runs = [subprocess.Popen(['sbxfs', 'run', '-q', place, '--', 'pwd'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for place in places]
    said = [p.communicate(timeout=60) for p in runs]
    eq([out.decode().strip() for out, _ in said], places, f'where they ran: {said}')
    nothing_left(t)


@once
def test_a_kill_while_a_sandbox_is_made(t):
    """There is one that works, or none."""
    yield
    os.makedirs(t.path('run/sbxfs'), mode=0o700, exist_ok=True)
    command = ['sbxfs', 'run', '-q', '-n', t.name, '-p', t.policy_file, t.low, '--', 'true']
    for step in range(30):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(step / 500)
        process.kill()
        process.wait()
        nothing_left(t)
        listed = t.sbxfs('list', '--json').out
        check('damaged' not in listed, f'killed after {2 * step} ms: {listed}')
        if f'"{t.name}"' in listed:
            run(t, 'true')
            t.sbxfs('destroy', '--force', t.name)
    run(t, 'true')
    eq([name for name in names(t.path('state/sbxfs')) if name.startswith('.')], ['.views.lock'], 'what killed commands left')


@once
def test_a_run_is_in_the_audit(t):
    yield
    run(t, 'sh', '-c', 'exit 3', code=3)
    records = [json.loads(line) for line in t.sbxfs('log', t.name, '--json').out.splitlines()]
    runs = [(r['operation'], r['detail']) for r in records if r['kind'] == 'run']
    eq([r[0] for r in runs], ['run', 'run-end'], 'start and end')
    eq(runs[0][1], "run-1: 'sh' '-c' 'exit 3'", 'the command')
    check(runs[1][1].startswith('run-1: exit 3 after '), f'the end: {runs[1][1]}')


def commands(t):
    return [json.loads(line) for line in t.sbxfs('log', t.name, '--json').out.splitlines() if '"command"' in line]


THREAD = 'import os, threading; t = threading.Thread(target=os.execv, args=("/bin/sh", ["sh", "-c", "exit 9"])); print(os.getpid()); t.start(); t.join()'


@once
def test_what_is_executed_is_in_the_audit(t):
    """Each program with its arguments and its end, whoever starts it and however; values of variables are not."""
    yield
    script = f'export SECRET=$(printf "hun%s" ter2); /bin/echo "a b" ""; {PYTHON} -c "{THREAD.replace(chr(34), chr(92) + chr(34))}"; sh -c "kill -9 $$"; /bin/echo $(head -c 20000 /dev/zero | tr "\\0" x) >/dev/null; exit 3'
    run(t, 'sh', '-c', script.replace('$$', '\\$\\$'), code=3)
    records = commands(t)
    starts, ends = [[r for r in records if r['operation'] == o] for o in ('exec', 'exit')]
    echo = next(r for r in starts if r['command']['argv'][0] == '/bin/echo')
    eq((echo['command']['argv'], echo['command']['cwd'], 'SECRET' in echo['command']['environment']), (['/bin/echo', 'a b', ''], t.low, True), 'a program')
    check('hunter2' not in t.sbxfs('log', t.name, '--json').out, 'a value is in the log')
    shell = next(r for r in starts if r['command']['argv'][:2] == ['sh', '-c'])
    eq(echo['command']['parent'], shell['pid'], 'the parent')
    check('/bin/echo \'a b\' \'\'' in t.sbxfs('log', t.name, '--op', 'exec').out, 'the log for people')
    thread = [r for r in starts if r['command']['argv'][-1] == 'exit 9']
    eq([r['pid'] for r in thread], [r['pid'] for r in starts if r['command']['argv'][0] == PYTHON], 'a thread that becomes another program')
    long = [r['command'] for r in starts if r['command'].get('argv_cut')]
    eq([len(long), len(''.join(long[0]['argv'])) < 9000], [1, True], 'long arguments are cut, and say so')
    by_pid = {r['pid']: r['command'] for r in ends}
    eq(len(by_pid), len({r['pid'] for r in starts}), 'an end for each process')
    eq((by_pid[shell['pid']].get('exit'), by_pid[thread[0]['pid']].get('exit')), (3, 9), 'exit statuses')
    killed = next(r for r in starts if r['command']['argv'][-1].startswith('kill'))
    tells = tuple(map(int, os.uname().release.split('.')[:2])) >= (6, 15)
    eq(by_pid[killed['pid']].get('signal'), 9 if tells else None, 'a signal')


DESCRIPTORS = """import os, ctypes, sys
libc = ctypes.CDLL(None)
def execveat(fd, path, mark):
    if os.fork() == 0:
        libc.syscall(322, fd, path, (ctypes.c_char_p * 3)(b"ls", mark, None), (ctypes.c_char_p * 1)(None), 0x1000)
        os._exit(1)
    os.wait()
held = os.memfd_create("held")
os.write(held, open("/bin/true", "rb").read())
execveat(held, b"", b"a")
execveat(os.open("/bin/true", os.O_PATH), b"", b"b")
execveat(os.open("/usr", os.O_PATH), b"bin/true", b"c")
os.chdir("/usr")
execveat(-100, b"bin/true", b"d")"""


@once
def test_what_a_descriptor_executes_is_named(t):
    """By whatever name it is called: argv says nothing of what runs."""
    if os.uname().machine != 'x86_64':
        t.skip('the number of execveat')
    yield
    run(t, PYTHON, '-c', DESCRIPTORS)
    paths = {e['argv'][1]: e['path'] for e in (r['command'] for r in commands(t) if r['operation'] == 'exec') if e['argv'][:1] == ['ls']}
    eq(paths, {'a': '/memfd:held (deleted)', 'b': os.path.realpath('/bin/true'), 'c': '/usr/bin/true', 'd': 'bin/true'}, 'what was executed')
    nothing_left(t)


@once
def test_no_execution_is_lost(t):
    """Many at once, and with what is not there: each is in the log, once."""
    yield
    run(t, 'sh', '-c', 'for i in $(seq 300); do /bin/true $i & done; wait; /no/such/program; exec /bin/true last')
    starts = [r['command']['argv'] for r in commands(t) if r['operation'] == 'exec']
    eq(sorted(int(a[1]) for a in starts if a[0] == '/bin/true' and a[1] != 'last'), list(range(1, 301)), 'the 300')
    check(['/bin/true', 'last'] in starts, 'the last one')
    check(['/no/such/program'] not in starts, 'where nothing is, nothing was executed')
    ends = [r for r in commands(t) if r['operation'] == 'exit']
    eq(len({r['pid'] for r in ends}), len(ends), 'one end for each')


@once
def test_what_cannot_be_recorded_is_not_executed(t):
    yield
    command = ['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', 'sh', '-c', 'cd /; echo ready; read x; /usr/bin/printf "ra%s" n; echo; echo end']
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    eq(process.stdout.readline(), b'ready\n', 'it runs')
    t.kill_daemon()
    out, err = process.communicate(b'\n', timeout=60)
    check(b'ran' not in out and b'end' in out, f'it was executed without a record: {out}')
    check(b'cannot be recorded' in err, f'the reason: {err}')
    nothing_left(t)


@once
def test_output_is_kept_in_part(t):
    yield
    done = run(t, 'sh', '-c', 'echo first; yes | head -c 1000000; echo last; echo wrong >&2')
    check(done.bytes.startswith(b'first') and done.bytes.endswith(b'last\n') and len(done.bytes) == 1000011, 'the output itself')
    kept = {r['operation']: r['detail'] for r in map(json.loads, t.sbxfs('log', t.name, '--json').out.splitlines()) if r['operation'].startswith('std')}
    check(kept['stdout'].startswith('first') and kept['stdout'].endswith('last\n') and 'bytes left out' in kept['stdout'], 'an excerpt')
    check(len(kept['stdout']) < 66000 and kept['stderr'].startswith('wrong'), f'the excerpt: {len(kept["stdout"])}, {kept["stderr"]}')


@case(mount=False, modes=('fresh',), workspace_changes=True)
def test_the_command_log_can_be_left_out(t):
    """By the user; a workspace cannot, and can ask for it."""
    t.seed({'.sbxfs.ini': '[profile w]\n[files w]\nread = x\n[run w]\ncommand_log = no\n'})
    yield
    run(t, 'true')
    check(commands(t), 'the workspace switched it off')
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[run cases]\ncommand_log = no\n')
    before = len(commands(t))
    run(t, 'true')
    eq(len(commands(t)), before, 'switched off')
    write(t.w('.sbxfs.ini'), '[profile w]\n[files w]\nread = x\n[run w]\ncommand_log = yes\n')
    run(t, 'true')
    check(len(commands(t)) > before, 'the workspace asks for it')
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[run cases]\ncommand_log = maybe\n')
    run(t, 'true', code=3)


@once
def test_never_unconfined(t):
    """Without bwrap, or when it fails, nothing runs."""
    yield
    os.makedirs(t.path('bin'))
    here = os.environ['PATH'].split(':')
    for tool in ('sbxfs', 'fusermount3', 'touch', 'env', 'sh'):
        with contextlib.suppress(StopIteration):
            os.symlink(next(os.path.join(d, tool) for d in here if os.path.exists(os.path.join(d, tool))), t.path('bin', tool))
    env = {'PATH': t.path('bin')}
    done = run(t, 'touch', t.w('ran'), code=10, env=env)
    check('apt-get install bubblewrap' in done.err, f'the remedy: {done.err}')
    for script in ('#!/bin/sh\nexit 1\n', '#!/bin/sh\nexit 0\n', '#!/bin/sh\necho "{ \\"child-pid\\": 0 }" >&2\nexit 0\n', '#!/nowhere\n'):
        write(t.path('bin/bwrap'), script)
        os.chmod(t.path('bin/bwrap'), 0o755)
        check('could not be confined' in run(t, 'touch', t.w('ran'), code=10, env=env).err, 'the reason')
    check(is_gone(t.w('ran')), 'it ran on the host')
    eq(t.diff('--name-status').out, '', 'it ran in the view')
    nothing_left(t)


@case(mount=False, modes=('fresh',), workspace_changes=True)
def test_before_and_after(t):
    """A snapshot before each run, a summary after it, and what --on-exit does."""
    t.seed({'f': 'original'})
    yield
    done = run(t, 'sh', '-c', 'echo 1 >f; echo 1 >n')
    check('run-1: exit 0' in done.err and 'changed paths: 2' in done.err and 'refused' not in done.err, f'summary: {done.err}')
    done = run(t, 'sh', '-c', 'echo 2 >f; echo 2 >o; echo out', options=('--on-exit', 'rollback'))
    eq(done.out, 'out\n', 'standard output is the program\'s')
    eq(run(t, 'sh', '-c', 'cat f n; ls').out, '1\n1\nf\nn\n', 'after a rollback')
    done = run(t, 'sh', '-c', 'echo 3 >>f', options=('--on-exit', 'ask'))
    check('kept' in done.err, f'nobody to ask: {done.err}')
    eq(read(t.w('f')), b'original', 'kept')
    done = run(t, 'sh', '-c', 'exit 5', options=('--on-exit', 'commit'), code=5)
    check('nothing is committed' in done.err, f'of a program that failed: {done.err}')
    done = run(t, 'sleep', '100', options=('--on-exit', 'commit', '--limit', 'time=1s'), code=124)
    check('nothing is committed' in done.err, f'of a program that was stopped: {done.err}')
    eq(read(t.w('f')), b'original', 'still kept')
    eq(run(t, 'true', options=('--on-exit', 'commit')).out, '', 'commit')
    eq((read(t.w('f')), read(t.w('n'))), (b'1\n3\n', b'1\n'), 'committed')
    append(t.w('f'), 'meanwhile')
    run(t, 'sh', '-c', 'echo 4 >f', options=('--on-exit', 'rollback'))
    eq([line.split()[-1] for line in t.sbxfs('snapshot', 'list', t.name).out.splitlines() if 'run-' in line], [f'run-{n}' for n in range(1, 9)], 'snapshots')
    nothing_left(t)


@once
def test_a_rollback_at_the_end_is_of_this_run_alone(t):
    """What another run does meanwhile, or did since, must not go with it."""
    t.seed({'f': 'f'})
    yield
    view = t.path('run/sbxfs', t.name, 'mnt')
    early = subprocess.Popen(['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', 'sh', '-c', 'touch early; while [ ! -e stop ]; do sleep 0.05; done'],
                             stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while is_gone(os.path.join(view, 'early')):
        check(early.poll() is None, 'the first run ended')
        time.sleep(0.02)
    done = run(t, 'sh', '-c', 'touch late', options=('--on-exit', 'rollback'))
    check('other runs were in the sandbox' in done.err, f'one still is: {done.err}')
    done = run(t, 'touch', 'stop', options=('--on-exit', 'rollback'))
    check('other runs were in the sandbox' in done.err, f'one was: {done.err}')
    eq(early.wait(), 0, 'the first run')
    eq(run(t, 'ls').out, 'early\nf\nlate\nstop\n', 'all of it is kept')
    done = run(t, 'touch', 'more', options=('--on-exit', 'rollback'))
    check('rolled back' in done.err, f'alone: {done.err}')
    eq(run(t, 'ls').out, 'early\nf\nlate\nstop\n', 'of this run alone')
    nothing_left(t)


@case(mount=False, modes=('fresh',), policy='[profile cases]\n[files cases]\nwrite = **\ndeny = *.key\n')
def test_what_was_refused_is_counted(t):
    """In the summary, and only what this run was refused."""
    t.seed({'a.key': SECRET, 'f': 'f'})
    yield
    said = [run(t, 'sh', '-c', script).err for script in ('cat a.key f || true', 'cat f', 'cat a.key; ln f b.key || true')]
    total = len(t.sbxfs('log', t.name, '--denied', '--json').out.splitlines())
    counts = [int(err.partition('refused by rules: ')[2].split()[0]) if 'refused' in err else 0 for err in said]
    check(counts[0] > 0 and counts[1] == 0 and counts[2] > counts[0] and sum(counts) == total, f'{counts}, in the audit {total}: {said}')
    nothing_left(t)


@once
def test_the_program_itself_inside(t):
    """It says where it is, not that a sandbox is in the way or missing."""
    program = os.path.realpath(shutil.which('sbxfs'))
    shutil.copy(program, t.w('sbxfs'))
    yield
    for arguments in ('run . -- true', 'mount .', 'status', 'commit -y', 'ask list'):
        said = run(t, 'sh', '-c', f'./sbxfs {arguments} 2>&1; echo "code $?"').out
        check('confined' in said and 'code 10' in said, f'{arguments}: {said}')
    nothing_left(t)
