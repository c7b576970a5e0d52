# SPDX-License-Identifier: MIT
"""The process that serves a view dies and another one takes over: programs see a pause, no error, and nothing done twice."""
import contextlib
import fcntl
import json
import mmap
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time

from harness.kit import *  # noqa: F403
from harness.view import OPEN_POLICY, case, is_dead, kill_all, mounts

KILLS = 12
PATIENCE = 60
once = case(modes=('fresh',), timeout=300)


def needs_resend(t):
    release = [int(''.join(c for c in part if c.isdigit()) or 0) for part in os.uname().release.split('.')[:2]]
    if release < [6, 9]:
        t.skip('this kernel does not send requests again')


def worker_of(keeper):
    """The last process that it forked, or None."""
    with contextlib.suppress(OSError), open(f'/proc/{keeper}/task/{keeper}/children', encoding='ascii') as file:
        alive = [pid for pid in map(int, file.read().split()) if not is_dead(pid)]
        return alive[-1] if alive else None
    return None


def kill_worker(t, keeper=None, number=signal.SIGKILL):
    """Once; the next one answers when it returns."""
    keeper = keeper or t.daemons()[0]
    pid = wait_until(lambda: worker_of(keeper), 'a process that serves')
    os.kill(pid, number)
    wait_until(lambda: worker_of(keeper) not in (None, pid), 'another one that serves')
    is_gone(t.m(f'no such name {pid}'))


class Killer(threading.Thread):
    """Kills whoever serves the view, at any moment, also while it takes over. @over: as often as it was to."""

    def __init__(self, t, kills=KILLS):
        super().__init__()
        self.t, self.kills, self.over, self.fault = t, kills, False, None
        self.keeper = t.daemons()[0]
        self.before = t.status()['takeovers']
        self.random = random.Random(kills)

    def run(self):
        try:
            for number in range(self.kills):
                time.sleep(self.random.uniform(0.02, 0.2))
                os.kill(wait_until(lambda: worker_of(self.keeper), 'a process that serves'), signal.SIGKILL)
                if number % 3:  # not so often in a row that the keeper gives up
                    is_gone(self.t.m(f'no such name {number}'))
        except BaseException as fault:
            self.fault = fault
        self.over = True


@contextlib.contextmanager
def killing(t, kills=KILLS):
    """Inside, what is done goes on until killer.over."""
    needs_resend(t)
    killer = Killer(t, kills)
    killer.start()
    try:
        yield killer
    finally:
        killer.kills = 0
        killer.join()
    check(not killer.fault, f'the killer: {killer.fault}')
    eq(t.daemons()[0], killer.keeper, 'the keeper')
    check(t.status()['takeovers'] - killer.before > kills // 2, 'too few took over')


def in_threads(*calls):
    """All at once; the first error of any fails the case."""
    faults = []

    def attempt(call):
        try:
            call()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=attempt, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


# What programs do goes on


def write_round(top, n):
    """One of each change of a name; each is seen to be done, and to be done once."""
    path = f'{top}/f{n}'
    with opened(path, os.O_CREAT | os.O_EXCL | os.O_RDWR) as fd:
        os.write(fd, b'%d' % n)
    os.link(path, path + 'l')
    eq(os.stat(path).st_nlink, 2, 'links')
    os.rename(path, path + 'r')
    check(is_gone(path), 'a renamed name')
    os.unlink(path + 'l')
    eq(os.stat(path + 'r').st_nlink, 1, 'links after an unlink')
    os.setxattr(path + 'r', 'user.a', b'1', os.XATTR_CREATE)
    os.removexattr(path + 'r', 'user.a')
    write(path + 'x', 'X')
    exchange(path + 'r', path + 'x')
    eq((read(path + 'x'), read(path + 'r')), (b'%d' % n, b'X'), 'an exchange')
    os.mkdir(path + 'd')
    os.symlink('x', path + 'd/s')
    os.mkfifo(path + 'd/p')
    os.rename(path + 'x', path + 'd/s')
    append(path + 'r', 'Y' * 100_000)
    os.truncate(path + 'r', 2)
    eq(read(path + 'r'), b'XY', 'a truncation')
    for name in ('d/s', 'd/p', 'r'):
        os.unlink(path + name)
    os.rmdir(path + 'd')
    eq(names(top), [], 'what is left')


@once
def test_a_writer_is_not_disturbed(t):
    with killing(t, 3 * KILLS) as killer:
        def writer(number):
            os.mkdir(t.m(f'w{number}'))
            n = 0
            while not killer.over:
                n += 1
                write_round(t.m(f'w{number}'), n)

        in_threads(*(lambda number=number: writer(number) for number in range(3)))
    eq(names(t.mnt), ['w0', 'w1', 'w2'], 'the view afterwards')


@once
def test_a_reader_is_not_disturbed(t):
    files = {f'd{number % 7}/f{number}': noise(2000 + 997 * number, number) for number in range(60)}
    t.seed(files)
    yield
    for number, (path, data) in enumerate(files.items()):
        if number % 2:
            write(t.m(path), data)
    with killing(t) as killer:
        while not killer.over:
            for path, data in files.items():
                with opened(t.m(path)) as fd:
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    check(os.read(fd, len(data) + 1) == data, f'the bytes of {path}')
            eq(sum(len(names(t.m(d))) for d in names(t.mnt)), 60, 'names listed')


def use_sqlite(path, rows):
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
        database.execute('CREATE TABLE IF NOT EXISTS t (x)')
        for number in range(rows):
            with database:
                database.executemany('INSERT INTO t VALUES (?)', [(number,)] * 3)
        eq(database.execute('PRAGMA integrity_check').fetchall(), [('ok',)], 'the database')
        count = database.execute('SELECT count(*) FROM t').fetchone()[0]
    eq(count, 3 * rows, 'rows')


@once
def test_tools_are_not_disturbed(t):
    t.seed({f'src/d{n % 5}/f{n}': noise(500 * n, n) for n in range(40)} | {'src/l': ('->', 'd0'), 'src/h': ('=', 'src/d0/f5')})
    yield
    want = digest(t.m('src'), STATE)
    with killing(t, 2 * KILLS) as killer:
        def tree():
            while not killer.over:
                t.shell('cp -a src copy; diff -r src copy; tar cf t.tar src; mkdir out; tar xf t.tar -C out; diff -r src out/src; rm -rf copy out t.tar')

        def git():
            t.shell('mkdir repo; cd repo; git init -q; cp -r ../src .; git add -A; git commit -qm one')
            n = 0
            while not killer.over:
                n += 1
                t.shell(f'cd repo; echo {n} >>n; git add n; git commit -qm {n}; test -z "$(git status --porcelain)"; git fsck --no-progress 2>&1')

        def database():
            while not killer.over:
                use_sqlite(t.m('db'), 20)
                os.unlink(t.m('db'))

        in_threads(tree, git, database)
    same_lists(digest(t.m('src'), STATE), want, 'the tree that was only read')


@once
def test_what_is_open_goes_on(t):
    t.seed({'low': 'low', 'gone': 'gone' * 5000, 'big': noise(300_000), 'd/sub/f': 'f', 'm': b'm' * 8192, 'log': ''})
    yield
    needs_resend(t)
    write(t.m('own'), 'own')
    write(t.m('own-big'), noise(200_000, 2))
    fds = {name: os.open(t.m(name), os.O_RDWR) for name in ('low', 'gone', 'big', 'own', 'own-big', 'm')}
    for name in ('gone', 'big', 'own', 'own-big'):
        os.unlink(t.m(name))
    os.pwrite(fds['big'], b'!', 5)
    os.rename(t.m('d'), t.m('moved'))
    os.chdir(t.m('moved/sub'))
    shared = mmap.mmap(fds['m'], 8192)
    shared[:1] = b'M'
    fcntl.flock(fds['low'], fcntl.LOCK_EX)
    for round_, number in enumerate((signal.SIGKILL, signal.SIGABRT, signal.SIGTRAP)):
        kill_worker(t, number=number)
        for name, want in (('gone', b'gone' * 5000), ('own', b'own'), ('own-big', noise(200_000, 2)), ('low', b'low')):
            os.posix_fadvise(fds[name], 0, 0, os.POSIX_FADV_DONTNEED)
            check(os.pread(fds[name], 1 << 20, 0) == want, f'{name}, open, after {round_ + 1}')
        check(os.pread(fds['big'], 10, 0) == noise(300_000)[:5] + b'!' + noise(300_000)[6:10], 'a changed one without a name')
        eq(os.fstat(fds['own']).st_nlink, 0, 'links of what is unlinked')
        os.pwrite(fds['big'], b'!', 5)
        eq(read('f'), b'f', 'below the current directory')
        write(f'new{round_}', 'new')
        eq(os.getcwd(), t.m('moved/sub'), 'the current directory')
        shared[4096:4097] = b'%d' % round_
        shared.flush()
        eq(read(t.m('m'))[:1] + read(t.m('m'))[4096:4097], b'M%d' % round_, 'a shared mapping')
        with opened(t.m('low')) as other:
            eq(errno_of(fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB), 'EAGAIN', 'a lock')
        append(t.m('log'), '+')
    os.chdir('/')
    shared.close()
    for fd in fds.values():
        os.close(fd)
    eq((names(t.m('moved/sub')), read(t.m('log'))), (['f', 'new0', 'new1', 'new2'], b'+++'), 'the rest')
    eq([names(t.m('.')), is_gone(t.m('d'))], [['log', 'low', 'm', 'moved'], True], 'names')


@once
def test_places_are_kept(t):
    """Directories without rows below renamed ones, hard links of the workspace, long and odd names: their numbers stay what they were."""
    long = 'n' * 255
    t.seed({f'a/b/{long}/f': 'f', 'a/b/x': 'x', 'h1': 'h', 'h2': ('=', 'h1'), 'a/s': ('->', 'b')})
    write(t.w(os.fsdecode(b'a/b/\xff')), 'odd')
    yield
    needs_resend(t)
    os.rename(t.m('a'), t.m('z'))
    before = digest(t.mnt, EVERYTHING)
    fds = [os.open(t.m(f'z/b/{long}'), os.O_RDONLY), os.open(t.m('h2'), os.O_RDONLY)]
    for _ in range(2):
        kill_worker(t)
        eq(os.listdir(fds[0]), ['f'], 'an open directory')
        same_lists(digest(t.mnt, EVERYTHING), before, 'the view')
    os.rename(t.m('z/b'), t.m('b'))
    write(t.m('h1'), 'changed')
    eq((os.pread(fds[1], 10, 0), read(t.m('h2')), names(t.m('b', long))), (b'changed', b'changed', ['f']), 'changes afterwards')
    for fd in fds:
        os.close(fd)


@case(modes=('fresh',), in_place=True, remount=False, workspace_changes=True)
def test_a_view_in_place(t):
    """The view covers its workspace: the path leads into the view itself."""
    t.seed({'f': 'f', 'd/g': 'g'})
    yield
    needs_resend(t)
    write(t.m('d/own'), 'own')
    for _ in range(2):
        kill_worker(t)
        eq((read(t.m('f')), read(t.m('d/g')), read(t.m('d/own')), names(t.mnt)), (b'f', b'g', b'own', ['d', 'f']), 'what it shows')
        write(t.m('f'), 'f')
    t.umount()
    eq((read(t.w('f')), names(t.w('d'))), (b'f', ['g']), 'the workspace')
    t.mount()


@case(modes=('fresh',), workspace_changes=True)
def test_a_workspace_that_was_moved(t):
    t.seed({'f': 'f', 'd/g': 'g'})
    yield
    needs_resend(t)
    os.rename(t.low, t.path('away'))
    os.mkdir(t.low)
    write(t.w('other'), 'other')
    try:
        kill_worker(t)
        eq((names(t.mnt), read(t.m('d/g'))), (['d', 'f'], b'g'), 'what the view shows')
    finally:
        os.unlink(t.w('other'))
        os.rmdir(t.low)
        os.rename(t.path('away'), t.low)


# A commit and its undo go on


COMMITTED = ({f'e/f{i}': 'old\n' for i in range(60)} | {f'x/g{i}': 'gone\n' for i in range(40)} | {f'm/n{i}/in': f'moved {i}\n' for i in range(40)} |
             {f'h/a{i}': f'linked {i}\n' for i in range(20)} | {f'h/b{i}': ('=', f'h/a{i}') for i in range(20)} | {f'o/{i}': 'gives way\n' for i in range(20)} |
             {'large': b'L' * 300_000, 'kept': 'k\n'})
CHANGES = """for i in $(seq 0 59); do echo more >>e/f$i; echo new >e/n$i; done; rm -r x; mv m moved; mkdir -p deep/er; echo n >deep/er/n; chmod 600 e/f1
    ls h >/dev/null; for i in $(seq 0 19); do mv h/a$i o/$i; done; printf X | dd of=large bs=1 seek=200000 conv=notrunc status=none"""


def kill_after(keeper, seconds):
    """The worker of now, that much later."""
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(wait_until(lambda: worker_of(keeper), 'a process that serves'), signal.SIGKILL)


def moments(t, arguments, count):
    """How long to wait before each of @count kills, so that they are spread over what the command @arguments does, which is done once."""
    begin = time.monotonic()
    t.program(*arguments)
    whole = time.monotonic() - begin
    chance = random.Random(count)
    return [whole * chance.uniform(number, number + 1) / count for number in range(count)]


def finished(process, t):
    """What was begun is done: by the command, or, if it gave up, by the next one."""
    process.communicate(timeout=PATIENCE)
    if process.returncode:
        t.diff()
    is_gone(t.m(f'no such name {process.pid}'))


@case(modes=('fresh',), timeout=600, remount=False, workspace_changes=True)
def test_a_commit_and_its_undo_are_not_disturbed(t):
    """Whoever serves is killed at moments spread over each, so also while it is told of the undo's beginning or end, or settles; all is as without."""
    t.seed(COMMITTED)
    yield
    needs_resend(t)
    keeper, details = t.daemons()[0], ('owner', 'xattr')
    t.shell(CHANGES)
    start, view, pending = digest(t.low, details), digest(t.mnt, details), t.name_status()
    commands = ['sbxfs-commit', t.name, '-y', '--reviewed'], ['sbxfs-commit', t.name, '-y', '--undo']
    spread = [moments(t, command, 8) for command in commands]
    before = t.status()['takeovers']
    for number, waits in enumerate(zip(*spread)):
        for undo, (command, wait) in enumerate(zip(commands, waits)):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            kill_after(keeper, wait)
            finished(process, t)
            what = f'after {"undo" if undo else "commit"} {number}, killed after {wait:.3f} s'
            if (digest(t.low, details) == start) != bool(undo):  # a refusal because nobody answered in time did nothing
                t.program(*command)
            same_lists(digest(t.low, details), start if undo else view, f'the workspace {what}')
            same_lists(digest(t.mnt, details), view, f'the view {what}')
            eq(t.name_status(), pending if undo else {}, f'pending {what}')
    check(t.status()['takeovers'] > before, 'nobody was killed')
    t.commit('--reviewed')
    append(t.w('e/f0'), "owner's\n")
    os.chmod(t.w('e/n1'), 0o640)
    os.utime(t.w('moved/n1/in'), (1, 1))
    eq((read(t.m('e/f0')), os.stat(t.m('e/n1')).st_mode & 0o777, os.stat(t.m('moved/n1/in')).st_mtime), (b"old\nmore\nowner's\n", 0o640, 1), 'the view follows the workspace')


@case(modes=('fresh',), timeout=600, remount=False, workspace_changes=True)
def test_what_is_deleted_during_an_undo_stays_deleted(t):
    """Also by one who was killed right after, whatever it was that was deleted."""
    count = 40
    t.seed(COMMITTED)
    yield
    needs_resend(t)
    keeper = t.daemons()[0]
    t.shell(CHANGES)
    t.commit('--reviewed')
    undo = ['sbxfs-commit', t.name, '-y', '--undo']
    spread = moments(t, undo, 8)
    for number, wait in enumerate(spread):
        t.commit('--reviewed')
        view = set(digest(t.mnt, ()))
        gone = [f'e/n{number}', f'e/f{number + 20}', f'moved/n{number}/in', f'o/{number}']
        process = subprocess.Popen(undo, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(wait)
        for path in gone:
            os.unlink(t.m(path))
        kill_after(keeper, 0)
        finished(process, t)
        for path in gone:
            check(is_gone(t.m(path)), f'{path} came back, undo {number} after {wait:.3f} s')
        names_of = lambda listing: {line.split(' ')[0] for line in listing}
        eq(names_of(view) - names_of(digest(t.mnt, ())), set(gone), f'names that went with undo {number}')
        if 'e/n' + str(count + 19) not in t.name_status():  # refused, as nobody answered in time
            t.program(*undo)
        eq([path for path in gone if not is_gone(t.m(path))], [], f'names that came back after undo {number}')


# What the owner did meanwhile


@contextlib.contextmanager
def nobody_serves(t):
    """Inside, the process that served is dead and the next one not there."""
    keeper, pid = t.daemons()
    os.kill(keeper, signal.SIGSTOP)
    try:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: is_dead(pid), 'its death')
        yield
    finally:
        os.kill(keeper, signal.SIGCONT)


@case(modes=('fresh',), workspace_changes=True)
def test_edits_of_the_owner_meanwhile(t):
    t.seed({'d/edited': 'before', 'd/removed': 'x', 'd/replaced': 'old', 'top': 'before', 'd/sub/f': 'f'})
    yield
    needs_resend(t)
    for name in ('d/edited', 'd/removed', 'd/replaced', 'top', 'd/sub/f'):
        read(t.m(name))
    for name in ('d/new', 'new', 'd/sub/new'):
        check(is_gone(t.m(name)), name)
    names(t.m('d'))
    with nobody_serves(t):
        write(t.w('d/edited'), 'AFTER.')
        write(t.w('top'), 'after, and longer')
        os.unlink(t.w('d/removed'))
        write(t.w('d/r'), 'new one')
        os.rename(t.w('d/r'), t.w('d/replaced'))
        for name in ('d/new', 'new', 'd/sub/new'):
            write(t.w(name), 'new')
    wanted = {'d/edited': b'AFTER.', 'top': b'after, and longer', 'd/replaced': b'new one', 'd/new': b'new', 'new': b'new', 'd/sub/new': b'new', 'd/removed': None}
    for name, data in wanted.items():
        wait_until(lambda name=name, data=data: (None if is_gone(t.m(name)) else read(t.m(name))) == data, f'the view shows what the owner did to {name}')
    eq(names(t.m('d')), ['edited', 'new', 'replaced', 'sub'], 'a listing')
    write(t.w('later'), 'later')
    wait_until(lambda: 'later' in names(t.mnt) and read(t.m('later')) == b'later', 'directories are watched again')


@once
def test_the_store_is_not_free_meanwhile(t):
    """A command that comes in the pause waits for the next process, and does not take itself for the only one."""
    needs_resend(t)
    write(t.m('f'), 'f')
    with nobody_serves(t):
        with opened(os.path.join(t.store(), 'lock')) as lock:
            eq(errno_of(fcntl.flock, lock, fcntl.LOCK_EX | fcntl.LOCK_NB), 'EAGAIN', 'the lock of the store')
        command = subprocess.Popen(['sbxfs', 'snapshot', 'create', 'in-the-pause', t.name], stdin=subprocess.DEVNULL)
    eq(command.wait(PATIENCE), 0, 'the command')
    check('in-the-pause' in [s['name'] for s in t.status()['snapshots']], 'what it made')


@once
def test_an_unmount_meanwhile(t):
    needs_resend(t)
    write(t.m('f'), 'f')
    keeper = t.daemons()[0]
    with nobody_serves(t):
        command = subprocess.Popen(['sbxfs', 'umount', t.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_until(lambda: not t.is_mounted(), 'the unmount')
    eq((command.wait(PATIENCE), is_dead(keeper)), (0, True), 'the command and the keeper')
    t.mount()
    eq(read(t.m('f')), b'f', 'after a mount')


# The same view as before


def log_of(t):
    return t.sbxfs('log', t.name, '--json').out.splitlines()


STRICT = '[profile cases]\n[files cases]\nwrite = **\nread = /fixed\ndeny = /closed\nhide = /hidden\nmask = /masked\n' \
         '[limits cases]\ndeletions = 4\ndisk = 40M\n[audit cases]\nkeep = 1s\n[ask cases]\ntimeout = 1s\n[gate cases]\nchecks = none\n'


@case(modes=('fresh',), policy=STRICT, remount=False, workspace_changes=True)
def test_rules_and_limits_stay_those_of_the_mount(t):
    t.seed({'fixed': 'f', 'closed': 'c', 'hidden': 'h', 'masked': 'A=secret\n', 'linked': 'l', **{f'x{n}': 'x' for n in range(6)}})
    yield
    needs_resend(t)

    def closed():
        return t.as_ordinary(lambda: [errno_of(write, t.m('fixed'), 'x'), errno_of(read, t.m('closed')), errno_of(read, t.m('hidden')), read(t.m('masked'))])

    before = closed()
    check('ENOENT' in str(before) and '<masked>' in str(before), f'the rules: {before}')
    with opened(t.m('masked')) as masked:
        for name in ('x0', 'x1', 'x2'):
            os.unlink(t.m(name))
        t.sbxfs('run', '-n', t.name, '--limit', 'disk=30M', t.low, '--', 'true')
        # Neither of these counts before the next mount.
        write(t.policy_file, OPEN_POLICY)
        write(t.w('.sbxfs.ini'), '[profile w]\n[files w]\ndeny = **\n')
        # What is open has no name any more; its path has other bytes.
        write(t.w('other'), 'A=other\n')
        os.rename(t.w('other'), t.w('masked'))
        wait_until(lambda: os.stat(t.m('masked')).st_ino != os.fstat(masked).st_ino, 'the view has the new file')
        records = len(log_of(t))
        wait_until(lambda: time.time() > os.stat(t.m('fixed')).st_mtime + 3, 'the records are old')
        kill_worker(t)
        eq(closed(), before, 'the rules after a change of processes')
        os.posix_fadvise(masked, 0, 0, os.POSIX_FADV_DONTNEED)
        eq(os.pread(masked, 100, 0), b'A=<masked>\n', 'an open masked file')
        eq(t.status()['disk'].get('limit'), 30 << 20, 'the limit of the disk')
        check(len(log_of(t)) > records, 'old records of the audit go at a mount only')
        os.unlink(t.m('x3'))
        eq(errno_of(os.unlink, t.m('x4')), 'EACCES', 'the fifth deletion, which nobody allows')
    os.unlink(t.w('.sbxfs.ini'))


@case(modes=('fresh',), policy='[profile cases]\n[files cases]\nwrite = **\nask = /secret\n[gate cases]\nchecks = none\n', remount=False, workspace_changes=True)
def test_who_waits_for_a_human_is_asked_again(t):
    t.seed({'secret': 'secret', 'other': 'before'})
    yield
    needs_resend(t)
    read(t.m('other'))
    reader = subprocess.Popen(['cat', t.m('secret')], stdout=subprocess.PIPE)

    def asked():
        return t.sbxfs('ask', 'list', t.name, '--json').json()['questions']

    first = wait_until(asked, 'a question')[0]['id']
    kill_worker(t)
    again = wait_until(asked, 'the question again')[0]['id']
    check(again != first, 'a number is used once')
    write(t.w('other'), 'after')
    wait_until(lambda: read(t.m('other')) == b'after', 'while he waits, others see what the owner does')
    eq(len(asked()), 1, 'and he still waits')
    write(t.w('other'), 'before')
    t.sbxfs('ask', 'allow', str(again), t.name)
    eq(reader.communicate(timeout=PATIENCE)[0], b'secret', 'what it read')


@once
def test_each_change_is_in_the_audit(t):
    made = []
    with killing(t) as killer:
        while not killer.over:
            made.append(f'f{len(made)}')
            write(t.m(made[-1]), 'x')
    records = [json.loads(line) for line in t.sbxfs('log', t.name, '--json', '--op', 'create').out.splitlines()]
    of = [record['path'] for record in records]
    check(set(made) <= set(of), f'not recorded: {short(sorted(set(made) - set(of)))}')
    # A change that was announced and not committed is announced again.
    check(len(of) <= len(made) + KILLS, f'{len(of)} records of {len(made)} files')
    t.sbxfs('log', t.name, '--verify')
    takeovers = len(t.sbxfs('log', t.name, '--json', '--op', 'takeover').out.splitlines())
    check(KILLS // 2 < takeovers <= t.status()['takeovers'], f'{takeovers} takeovers recorded')  # one that was killed first left none


# Commands that are connected


@case(modes=('fresh',), mount=False, timeout=300)
def test_a_run_goes_on(t):
    needs_resend(t)
    script = 'i=0; until test -e end; do i=$((i+1)); echo $i >n || exit 9; /usr/bin/test "$(cat n)" = $i || exit 8; echo $i; done; exit 5'
    run = subprocess.Popen(['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', 'sh', '-c', script], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    eq(run.stdout.readline(), b'1\n', 'it runs')
    drain = threading.Thread(target=lambda: [None for _ in run.stdout])
    drain.start()
    t.mnt = t.status()['mountpoint']
    keeper = t.daemons()[0]
    for _ in range(4):
        kill_worker(t, keeper)
    eq(t.status()['takeovers'], 4, 'takeovers')
    write(t.m('end'), '')
    code = run.wait(PATIENCE)
    drain.join()
    err = run.stderr.read().decode()
    eq(code, 5, f'the run: {err}')
    check('cannot be recorded' not in err and 'changed paths: 2' in err, f'what it says: {err}')
    starts = [json.loads(line) for line in t.sbxfs('log', t.name, '--json', '--op', 'exec').out.splitlines()]
    check(len(starts) > 8, 'what was executed')
    wait_until(lambda: not mounts(t.dir), 'its view goes with it')
    t.mnt = t.path('m')


@once
def test_followers_go_on(t):
    needs_resend(t)
    follow = subprocess.Popen(['sbxfs', 'log', t.name, '--follow', '--op', 'mkdir'], stdout=subprocess.PIPE)
    watch = subprocess.Popen(['sbxfs', 'ask', 'watch', t.name, '--json'], stdout=subprocess.PIPE)
    try:
        for number in range(3):
            os.mkdir(t.m(f'd{number}'))
            check(f'd{number}'.encode() in follow.stdout.readline(), 'a line of the log')
            kill_worker(t)
        eq((follow.poll(), watch.poll()), (None, None), 'both follow')
        t.umount()
        eq(watch.wait(PATIENCE), 0, 'the watch ends with the view')
    finally:
        for process in (follow, watch):
            process.kill()
            process.wait()
            process.stdout.close()
    t.mount()


# Ends


@once
def test_the_end_of_the_keeper(t):
    needs_resend(t)
    keeper, pid = t.daemons()
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: is_dead(keeper), 'its death')
    write(t.m('f'), 'f')
    status = t.status()
    eq((status['pid'], status['keeper'], read(t.m('f'))), (pid, 0, b'f'), 'the one that serves goes on')
    kill_all([pid])
    # ECONNABORTED: what was sent just before the kernel was done with the process.
    check(errno_of(os.stat, t.m('never asked for')) in ('ENOTCONN', 'ECONNABORTED'), 'nobody is left')
    t.mount()
    eq(read(t.m('f')), b'f', 'after a mount')
    keeper, pid = t.daemons()
    os.kill(keeper, signal.SIGTERM)
    wait_until(lambda: is_dead(keeper) and is_dead(pid), 'both end')
    check(not t.is_mounted(), 'the view is unmounted')
    t.mount()


@once
def test_what_kills_each_is_not_served_for_ever(t):
    needs_resend(t)
    write(t.m('f'), 'f')
    keeper, _ = t.daemons()
    while not is_dead(keeper):
        pid = worker_of(keeper)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    check(errno_of(os.stat, t.m('never asked for')) in ('ENOTCONN', 'ECONNABORTED'), 'the view is dead')
    check('not replaced: too many died' in read(os.path.join(t.store(), 'log')).decode(), 'the log says why')
    t.mount()
    eq(read(t.m('f')), b'f', 'after a mount')


@once
def test_a_mount_finds_it_done(t):
    needs_resend(t)
    t.mount(code=8)
    kill_worker(t)
    check(t.mnt in t.mount().out, 'it says where')
    eq(t.sbxfs('mount', '-n', t.name, t.low, t.mnt).code, 0, 'without a policy of its own')
    eq(len(mounts(t.mnt)), 1, 'mounts')
    other = t.path('other.ini')
    write(other, OPEN_POLICY.replace('write = **', 'write = **\nread = x'))
    t.mount(policy=other, code=8)
    os.mkdir(t.path('elsewhere'))
    t.mount(mnt=t.path('elsewhere'), code=8)
    t.mount('--new', code=2)
