# SPDX-License-Identifier: MIT
"""The life of the process that serves a view: mounts, ends of every kind, and what is there afterwards."""
import os
import signal
import subprocess
import sys
import time

from harness.kit import *  # noqa: F403
from harness.view import case, is_dead, kill_all, mounts

once = case(modes=('fresh',))

# writes files in every way and reports each step on standard output after the call returned
WRITER = r'''
import os, sys
top = sys.argv[1]
def done(*words):
    os.write(1, (' '.join(map(str, words)) + '\n').encode())
os.makedirs(top + '/d', exist_ok=True)
done('dir', 'd')
number = 0
while True:
    number += 1
    path = f'{top}/d/f{number}'
    size = (7, 3000, 90_000)[number % 3]
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640)
    done('file', f'd/f{number}', 0)
    os.write(fd, bytes([number % 256]) * size)
    done('file', f'd/f{number}', size)
    os.pwrite(fd, b'!', size)
    done('file', f'd/f{number}', size + 1)
    os.close(fd)
    if number % 4 == 0:
        os.rename(path, f'{top}/d/r{number}')
        done('moved', f'd/f{number}', f'd/r{number}', size + 1)
    if number % 7 == 0:
        os.unlink(f'{top}/d/f{number - 1}')
        done('gone', f'd/f{number - 1}')
    if number % 5 == 0:
        os.symlink(str(number), f'{top}/d/s{number}')
        done('link', f'd/s{number}', number)
    if number % 6 == 0:
        os.chmod(f'{top}/low', 0o600 + number % 8)
        done('mode', 'low', 0o600 + number % 8)
    if number % 9 == 0:
        with open(f'{top}/log', 'ab') as log:
            log.write(b'%08d\n' % number)
        done('log', 'log', number)
'''


def replay(lines):
    """{path: what must be there} and the paths that must not, after the reported steps."""
    state, last = {}, {}
    for line in lines:
        kind, path, *rest = line.split()
        if kind == 'moved':
            state[path], state[rest[0]] = ('gone',), ('file', int(rest[1]))
        elif kind == 'gone':
            state[path] = ('gone',)
        elif kind in ('file', 'mode', 'log'):
            last[path] = state[path] = (kind, int(rest[0]))
        else:
            state[path] = (kind, *rest)
    return state


def check_state(t, state, in_flight):
    """Everything that was reported is there. What came after the last report may be there too."""
    for path, (kind, *rest) in state.items():
        if path in in_flight:
            continue
        if kind == 'gone':
            check(is_gone(t.m(path)), f'{path} came back')
        elif kind == 'file':
            data = read(t.m(path))
            number = int(os.path.basename(path)[1:])
            check(len(data) >= rest[0], f'{path} has {len(data)} of {rest[0]} bytes')
            check(set(data) <= {number % 256, ord('!')}, f'{path} has foreign bytes')
        elif kind == 'link':
            eq(os.readlink(t.m(path)), rest[0], path)
        elif kind == 'mode':
            check(permissions(t.m(path)) >= 0o600, path)
        elif kind == 'log':
            check(b'%08d\n' % rest[0] in read(t.m(path)), f'{path}: record {rest[0]}')


@case(modes=('fresh',), remount=True, timeout=300)
def test_nothing_that_returned_is_lost_by_a_kill(t):
    t.seed({'low': 'l', 'log': 'first\n'})
    yield
    total = 0
    for round_ in range(6):
        top = t.m(f'round{round_}')
        os.mkdir(top)
        for name in ('low', 'log'):
            write(os.path.join(top, name), 'x\n')
        writer = subprocess.Popen([sys.executable, '-c', WRITER, top], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        pids = t.daemons()
        time.sleep(0.15 + 0.17 * round_)
        kill_all(pids)
        lines = writer.stdout.read().decode().splitlines()
        writer.wait()
        total += len(lines)
        t.check_database()
        t.mount()
        prefix = f'round{round_}/'
        state = {prefix + path: value for path, value in replay(lines).items()}
        last = max([int(''.join(c for c in os.path.basename(p) if c.isdigit()) or 0) for p in state] or [0])
        check_state(t, state, {f'{prefix}d/{kind}{number}' for kind in 'frs' for number in (last - 1, last, last + 1)})
        names(t.m(f'round{round_}'))
    check(total > 300, f'only {total} steps were made')


@once
def test_a_kill_right_after_a_call(t):
    """Each kind of change alone, then the kill at once."""
    t.seed({'f': 'low', 'd/x': 'x', 'g': 'g', 'u': 'u', 'h': 'h'})
    yield
    steps = [(lambda: write(t.m('new'), 'new'), lambda: eq(read(t.m('new')), b'new', 'a new file')),
             (lambda: append(t.m('f'), '+'), lambda: eq(read(t.m('f')), b'low+', 'an append')),
             (lambda: os.rename(t.m('d'), t.m('d2')), lambda: eq((read(t.m('d2/x')), is_gone(t.m('d'))), (b'x', True), 'a rename')),
             (lambda: os.unlink(t.m('u')), lambda: check(is_gone(t.m('u')), 'an unlink')),
             (lambda: os.truncate(t.m('g'), 0), lambda: eq(read(t.m('g')), b'', 'a truncation')),
             (lambda: os.link(t.m('h'), t.m('h2')), lambda: eq(os.stat(t.m('h')).st_nlink, 2, 'a link')),
             (lambda: write(t.m('big'), b'b' * 3_000_000), lambda: eq(read(t.m('big')), b'b' * 3_000_000, 'a large file')),
             (lambda: t.snapshot('s'), lambda: check('s' in [s['name'] for s in t.status()['snapshots']], 'a snapshot')),
             (lambda: t.rollback(paths=['f']), lambda: eq(read(t.m('f')), b'low', 'a rollback'))]
    for step, holds in steps:
        step()
        t.kill_daemon()
        check(errno_of(os.listdir, t.mnt) in ('ENOTCONN', 'EIO', 'ECONNABORTED'), 'the dead mount answers with an error, at once')
        t.mount()
        holds()


@once
def test_a_dead_mount_is_taken_over_or_down(t):
    t.seed({'f': 'f'})
    yield
    write(t.m('n'), 'n')
    t.kill_daemon()
    t.sbxfs('status', t.name)
    eq(t.name_status(), {'n': 'A'}, 'the difference of a dead mount')
    t.mount()
    eq(read(t.m('n')), b'n', 'mounted over the dead mount')
    eq(len([m for m in mounts(t.mnt)]), 1, 'mounts on the mountpoint')
    t.kill_daemon()
    t.umount()
    eq(mounts(t.mnt), [], 'umount of a dead mount')
    t.mount()


@once
def test_signals_unmount(t):
    t.seed({'f': 'f\n'})
    yield
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        append(t.m('f'), f'{number}\n')
        with opened(t.m('open'), os.O_RDWR | os.O_CREAT) as fd:
            os.write(fd, b'unsynced')
        t.kill_daemon(number)
        check(not t.is_mounted(), f'still mounted after signal {number}')
        t.mount()
        check(read(t.m('f')).endswith(f'{number}\n'.encode()) and read(t.m('open')) == b'unsynced', 'the last writes')


@once
def test_one_store_is_served_once(t):
    t.seed({'f': 'f'})
    os.mkdir(t.path('m2'))
    yield
    done = t.mount(mnt=t.path('m2'), code=8)
    check(t.name in done.err or t.mnt in done.err, f'the message names it: {short(done.err)}')
    done = t.mount(code=8)
    write(t.m('n'), 'n')
    eq((read(t.m('n')), len(mounts(t.mnt)), mounts(t.path('m2'))), (b'n', 1, []), 'the first one serves on')
    done = t.sbxfs('destroy', t.name, '--force', code=8)
    check(os.path.isdir(t.store()), 'destroy of a mounted sandbox')


@once
def test_umount_waits_for_nobody(t):
    t.seed({'f': 'f', 'd/x': 'x'})
    yield
    with opened(t.m('f')):
        done = t.umount(code=8)
        check(t.mnt in done.err or 'busy' in done.err, f'the message says why: {short(done.err)}')
        eq(read(t.m('d/x')), b'x', 'it serves on')
    t.umount()
    t.umount(code=(7, 8))
    t.mount()


@once
def test_unmounted_by_others(t):
    t.seed({'f': 'f'})
    yield
    for command in (['umount', t.mnt] if t.is_root else ['fusermount3', '-u', t.mnt], ['fusermount3', '-u', t.mnt]):
        append(t.m('f'), '+')
        pid = t.daemon()
        t.program(*command)
        for _ in range(1000):
            if is_dead(pid):
                break
            time.sleep(0.01)
        check(is_dead(pid), 'the daemon ends')
        t.mount()
    eq(read(t.m('f')), b'f++', 'content')


# takes the lock for a moment, again and again, as a command that only looks whether somebody has the store
LOOKER = '''
import fcntl, sys, time
lock = open(sys.argv[1])
while True:
    fcntl.flock(lock, fcntl.LOCK_SH)
    time.sleep(0.004)
    fcntl.flock(lock, fcntl.LOCK_UN)
    time.sleep(0.004)
'''


@once
def test_who_only_looks_is_waited_for(t):
    yield
    t.umount()
    looker = subprocess.Popen([sys.executable, '-c', LOOKER, os.path.join(t.store(), 'lock')])
    for _ in range(12):
        t.mount()
        t.umount()
    t.sbxfs('fsck', '--repair', t.name)
    t.sbxfs('destroy', t.name)
    looker.kill()
    looker.wait()
    t.mount()


@once
def test_the_next_view_at_the_place_stays(t):
    """A process whose view was unmounted by others ends late, when the view of another sandbox is there already."""
    t.seed({'f': 'f'})
    yield
    pid = t.daemon()
    os.kill(pid, signal.SIGSTOP)
    t.program('fusermount3', '-u', t.mnt)  # umount(8) would ask the stopped one
    t.mount(name='other')
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: is_dead(pid), 'the end of the process before')
    eq(read(t.m('f')), b'f', 'the view of the other')
    t.sbxfs('umount', 'other')
    t.mount()


@once
def test_many_rounds_leave_nothing(t):
    t.seed({'n': '0'})
    yield
    before = set(os.listdir('/proc'))
    for number in range(20):
        write(t.m('n'), str(number))
        t.remount()
        eq(read(t.m('n')), str(number).encode(), f'round {number}')
    eq(len(mounts(t.mnt)), 1, 'mounts')
    ours = [pid for pid in set(os.listdir('/proc')) - before if pid.isdigit() and not is_dead(pid) and t.dir.encode() in errno_bytes(f'/proc/{pid}/cmdline')]
    check(len(ours) <= 3, f'processes: {ours}')
    t.umount()
    left = [os.path.join(d, name) for d, _, files in os.walk(t.path('run')) for name in files]
    eq([path for path in left if 'sock' in path], [], 'sockets')
    t.mount()


def errno_bytes(path):
    try:
        return read(path)
    except OSError:
        return b''


@once
def test_no_mountpoint_given(t):
    t.seed({'f': 'f'})
    yield
    t.umount()
    out = t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low, '--json').json()
    eq(out['mountpoint'], t.path('run/sbxfs', t.name, 'mnt'), 'mountpoint')
    eq(read(os.path.join(out['mountpoint'], 'f')), b'f', 'a file')
    t.umount()
    t.mount()


@once
def test_in_the_foreground(t):
    t.seed({'f': 'f'})
    yield
    t.umount()
    process = subprocess.Popen(['sbxfs', 'mount', '-f', '-n', t.name, t.low, t.mnt], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while not t.is_mounted():
        check(process.poll() is None, 'it ended early')
        time.sleep(0.02)
    write(t.m('n'), 'n')
    eq(t.status()['pid'], process.pid, 'pid of the status')
    t.mount(code=8)  # and does not wait: the process holds nothing that another command needs
    process.send_signal(signal.SIGTERM)
    eq(process.wait(60), 0, 'exit after SIGTERM')
    check(not t.is_mounted(), 'unmounted')
    t.mount()
    eq(read(t.m('n')), b'n', 'content')


@case(modes=('fresh',), root=True, remount=False)
def test_a_full_disk_is_an_error_to_the_writer_only(t):
    t.seed({'big': b'L' * 12_000_000, 'small': 'small'})
    yield
    t.umount()
    os.mkdir(t.path('disk'))
    t.program('mount', '-t', 'tmpfs', '-o', 'size=10m', 'none', t.path('disk'))
    try:
        os.environ['XDG_STATE_HOME'] = t.path('disk')
        t.mount(name='full')
        outcome = 'OK'
        for number in range(40):
            outcome = errno_of(write, t.m(f'x{number}'), b'x' * 500_000)
            if outcome != 'OK':
                break
        eq(outcome, 'ENOSPC', 'filling the store')
        one_of(errno_of(lambda: write(t.m('big'), b'Y', 'r+b')), ('ENOSPC', 'OK'), 'a change of a large file')
        data = read(t.m('big'))
        check(len(data) == 12_000_000 and data.strip(b'L') in (b'', b'Y'), 'the large file is damaged')
        eq(read(t.m('small')), b'small', 'another file')
        names(t.mnt)
        for name in names(t.mnt):
            if name.startswith('x'):
                one_of(errno_of(os.unlink, t.m(name)), ('OK', 'ENOSPC'), 'deleting')
        eq(errno_of(write, t.m('after'), b'a' * 500_000), 'OK', 'a write after room was made')
        t.sbxfs('umount', 'full')
        t.mount(name='full')
        eq((len(read(t.m('after'))), len(read(t.m('big')))), (500_000, 12_000_000), 'after a remount')
        t.sbxfs('umount', 'full')
    finally:
        os.environ['XDG_STATE_HOME'] = t.path('state')
        t.program('umount', '-l', t.mnt, code=None)
        t.program('umount', '-l', t.path('disk'), code=None)


@once
def test_the_daemon_holds_nothing_of_its_caller(t):
    """No inherited descriptor, no current directory: whoever started it can go."""
    t.seed({'f': 'f'})
    yield
    pid = t.daemon()
    eq(os.readlink(f'/proc/{pid}/cwd'), '/', 'current directory')
    held = [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]
    check(not [path for path in held if 'case.log' in path], f'descriptors: {held}')
    reader, writer = os.pipe()
    t.umount()
    process = subprocess.run(['sbxfs', 'mount', '-n', t.name, *(['-o', 'allow_other'] if t.is_root else []), t.low, t.mnt], stdout=writer, stderr=writer, stdin=subprocess.DEVNULL)
    os.close(writer)
    eq(process.returncode, 0, 'mount')
    with open(reader, 'rb') as file:
        file.read()  # ends only when nobody holds the other side


@case(modes=('fresh',), workspace_changes=True, remount=False)
def test_what_a_killed_reader_held_ends_with_the_mount(t):
    yield
    write(t.m('gone'), 'by the sandbox')
    test = 'echo $$ >pid; mv pid started; exec sleep 100'
    reader = subprocess.Popen(['sbxfs-gate', t.name, '--test', test], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(t.m('started')), 'the gate reads')
    pid = int(read(t.m('started')))
    os.unlink(t.m('gone'))
    t.kill_daemon()
    reader.kill()
    reader.wait()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: errno_of(os.readlink, f'/proc/{pid}/cwd') != 'OK', 'nobody works in the dead view')
    t.mount()
    write(t.w('gone'), 'by the owner')
    wait_until(lambda: os.path.exists(t.m('gone')), "the owner's file is seen")
    eq(read(t.m('gone')), b'by the owner', "the owner's file")


@once
def test_killed_callers_leave_the_daemon_sound(t):
    t.seed({'big': b'B' * 20_000_000, 'other': 'o'})
    yield
    for round_ in range(8):
        pid = os.fork()
        if pid == 0:
            fd = os.open(t.m('big'), os.O_RDWR)
            for number in range(200):
                os.pwrite(fd, b'B' * 100_000, number * 100_000)
            os._exit(0)
        time.sleep(0.003 * round_)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        eq(read(t.m('other')), b'o', 'another file')
    check(read(t.m('big')) == b'B' * 20_000_000, 'the file is damaged')


@case(root=True, modes=('fresh',))
def test_another_namespace_does_not_keep_the_view(t):
    t.seed({'f': 'f'})
    yield
    other = subprocess.Popen(['unshare', '-m', '--propagation', 'private', 'sleep', '120'], stdin=subprocess.DEVNULL)
    try:
        while os.readlink(f'/proc/{other.pid}/ns/mnt') == os.readlink('/proc/self/ns/mnt'):
            time.sleep(0.01)
        t.umount()
        check(other.poll() is None, 'the namespace ended by itself')
    finally:
        other.kill()
        other.wait()
    t.mount()
