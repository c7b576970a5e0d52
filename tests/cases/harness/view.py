# SPDX-License-Identifier: MIT
"""One workspace, its sandbox and its mounted view, for the life of one case.

A case is a function with one argument, the View. When it is a generator, what stands before its `yield` fills the workspace
and the rest works in the mounted view. The View runs the installed commands and nothing of their insides: what it knows
of sbxfs is the names of the commands, their exit codes and their JSON.
"""
import contextlib
import inspect
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import time

from . import kit
from .kit import Failed, Skipped, check, eq

OPEN_POLICY = '[profile cases]\ndescription = everything is allowed\n\n[files cases]\nwrite = **\n\n[gate cases]\nchecks = none\n'
OTHER_UID = 65534
MODES = ('fresh', 'rolled')


class Options:
    """What a case needs; see case()."""

    def __init__(self, plain=False, modes=MODES, root=None, policy=OPEN_POLICY, workspace_changes=False, remount=True, mount=True,
                 in_place=False, timeout=180):
        self.plain, self.modes, self.root, self.policy = plain, modes, root, policy
        self.workspace_changes, self.remount, self.mount = workspace_changes, remount, mount
        self.in_place, self.timeout = in_place, timeout


def case(**options):
    """
    Options of a case:
      plain              it holds on any local file system (--plain runs it there)
      modes              'fresh': on a new view; 'rolled': after a snapshot, changes and a rollback to it
      root               True: only as root; False: only as an ordinary user
      policy             text of the policy file; the gate is off when it has no [gate cases]
      workspace_changes  the case itself edits the workspace or commits; without it any change of it fails the case
      remount            False: the view is not compared across a remount at the end
      mount              False: the case mounts by itself
      in_place           the mountpoint is the workspace
    """
    def mark(function):
        function.options = Options(**options)
        return function
    return mark


class Program:
    """A finished command."""

    def __init__(self, arguments, done):
        self.arguments, self.code = arguments, done.returncode
        self.bytes, self.out = done.stdout, done.stdout.decode('utf-8', 'surrogateescape')
        self.err = done.stderr.decode('utf-8', 'surrogateescape')

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Failed(f'{" ".join(self.arguments)}: no JSON ({error}): {kit.short(self.out)}')


class View:
    def __init__(self, directory, options, mode):
        self.dir, self.options, self.mode = directory, options, mode
        self.plain = mode == 'plain'
        self.low = os.path.join(directory, 'w')
        self.mnt = self.low if self.plain or options.in_place else os.path.join(directory, 'm')
        self.name = 'c'
        self.is_root = os.geteuid() == 0
        for name in ('w', 'm', 'home', 'state', 'config', 'run', 'tmp'):
            os.makedirs(os.path.join(directory, name), exist_ok=True)
        os.chmod(self.path('run'), 0o700)
        os.chmod(self.low, 0o777)
        self.policy_file = self.path('policy.ini')
        # Cases of commits are about what is written; those of the gate have a [gate] of their own.
        kit.write(self.policy_file, options.policy + ('' if '[gate' in options.policy else '\n[gate cases]\nchecks = none\n'))
        self.env = self._environment()
        os.environ.update(self.env)

    def _environment(self):
        git = {'GIT_CONFIG_NOSYSTEM': '1', 'GIT_CONFIG_GLOBAL': self.path('home/.gitconfig'), 'GIT_CEILING_DIRECTORIES': self.dir}
        for who in ('AUTHOR', 'COMMITTER'):
            git[f'GIT_{who}_NAME'], git[f'GIT_{who}_EMAIL'] = 'case', 'case@example.invalid'
        kit.write(self.path('home/.gitconfig'), '[safe]\n\tdirectory = *\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n'
                  '[protocol "file"]\n\tallow = always\n')
        sanitizers = f'halt_on_error=1:print_stacktrace=1:log_path={self.path("sanitizer")}'
        return {**git, 'HOME': self.path('home'), 'XDG_STATE_HOME': self.path('state'), 'XDG_RUNTIME_DIR': self.path('run'),
                'XDG_CONFIG_HOME': self.path('config'), 'TMPDIR': self.path('tmp'), 'LC_ALL': 'C.UTF-8', 'PYTHONDONTWRITEBYTECODE': '1',
                'ASAN_OPTIONS': f'{sanitizers}:detect_leaks=1:detect_stack_use_after_return=1', 'UBSAN_OPTIONS': sanitizers,
                'G_DEBUG': 'fatal-criticals', 'NO_COLOR': '1'}

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def m(self, *parts):
        """A path in the view."""
        return os.path.join(self.mnt, *parts)

    def w(self, *parts):
        """A path in the workspace."""
        return os.path.join(self.low, *parts)

    def seed(self, spec):
        kit.grow(self.low, spec)

    def skip(self, reason):
        raise Skipped(reason)

    def needs_root(self):
        if not self.is_root:
            self.skip('needs root')

    # Commands

    def program(self, *arguments, code=0, cwd=None, timeout=120, data=None, env=None):
        """Runs a command; any other exit code than @code (None: any, or a tuple) fails the case."""
        done = subprocess.run(arguments, input=data, capture_output=True, cwd=cwd or '/', timeout=timeout, env={**os.environ, **(env or {})},
                              stdin=None if data is not None else subprocess.DEVNULL)
        result = Program(arguments, done)
        wanted = code if isinstance(code, tuple) else (code,)
        if code is not None and result.code not in wanted:
            raise Failed(f'{" ".join(map(str, arguments))}: exit {result.code}, want {code}: {kit.short((result.err + result.out)[-600:])}')
        return result

    def shell(self, script, cwd=None, **named):
        return self.program('bash', '-ec', script, cwd=cwd or self.mnt, **named)

    def sbxfs(self, *arguments, **named):
        return self.program('sbxfs', *arguments, **named)

    def mount(self, *extra, code=0, name=None, policy=None, low=None, mnt=None):
        allow = ['-o', 'allow_other'] if self.is_root else []
        return self.sbxfs('mount', '-n', name or self.name, '-p', policy or self.policy_file, *allow, *extra, low or self.low, mnt or self.mnt, code=code)

    def umount(self, code=0):
        return self.sbxfs('umount', self.name, code=code)

    def remount(self):
        if not self.plain:
            self.umount()
            self.mount()

    def snapshot(self, name):
        return self.sbxfs('snapshot', 'create', name, self.name)

    def rollback(self, to=None, paths=(), code=0):
        return self.program('sbxfs-rollback', self.name, '-y', *(['--to', to] if to else []), *(['--', *paths] if paths else []), code=code)

    def diff(self, *arguments, code=0):
        return self.program('sbxfs-diff', self.name, *arguments, code=code)

    def name_status(self, *arguments):
        """{path: status} of the pending changes as a commit takes them, directories aside."""
        changes = self.diff('--json', '--no-renames', *arguments).json()['changes']
        return {c['path']: c['status'] for c in changes if not all(c[side]['mode'].startswith('04') for side in ('old', 'new') if side in c)}

    def commit(self, *arguments, paths=(), code=0):
        return self.program('sbxfs-commit', self.name, '-y', *arguments, *(['--', *paths] if paths else []), code=code)

    def status(self):
        return self.sbxfs('status', self.name, '--json').json()

    def store(self):
        return self.path('state', 'sbxfs', self.name)

    def daemon(self):
        """The process that serves the view."""
        pid = self.status()['pid']
        check(os.path.basename(os.readlink(f'/proc/{pid}/exe')).startswith('sbxfs'), f'pid {pid} of the status is no sbxfs')
        return pid

    def daemons(self):
        """What has to die for the view to be dead: the process that would replace the one that serves, then that one."""
        pid = self.daemon()
        keeper = self.status()['keeper']
        check(keeper > 0, 'nobody keeps the view')
        return [keeper, pid]

    def kill_daemon(self, number=signal.SIGKILL):
        kill_all(self.daemons() if number == signal.SIGKILL else [self.daemon()], number)

    # Other users

    def as_other(self, call):
        """Runs @call as another ordinary user. Only root can."""
        self.needs_root()
        return kit.in_child(call, OTHER_UID, OTHER_UID)

    def as_ordinary(self, call):
        """Runs @call without privileges: as another user for root, else as oneself."""
        return kit.in_child(call, OTHER_UID, OTHER_UID) if self.is_root else call()

    # The whole life of a case

    def run(self, function):
        body = function(self) if inspect.isgeneratorfunction(function) else None
        if body:
            next(body)
        before = kit.digest(self.low, kit.EVERYTHING)
        if not self.plain and self.options.mount:
            self.mount()
        if self.mode == 'rolled':
            self.roll()
        if body:
            with contextlib.suppress(StopIteration):
                next(body)
                raise Failed('the case has a second yield')
        else:
            function(self)
        if not self.plain:
            self.finish(before)

    def roll(self):
        """A snapshot, then all kinds of changes, then a rollback: the view is as it was, to the last attribute."""
        start = kit.digest(self.mnt, kit.EVERYTHING)
        self.snapshot('before')
        disturb(self.mnt)
        self.rollback('before')
        kit.same_lists(kit.digest(self.mnt, kit.EVERYTHING), start, 'the view after snapshot, changes and rollback')

    def finish(self, before):
        """What holds after each case, whatever it did."""
        os.chdir('/')
        self.close_files()
        if self.is_mounted():
            # what was committed is the workspace's new file from the next mount on, with its number
            parts = [part for part in kit.EVERYTHING if part != 'ino' or not self.options.workspace_changes]
            seen = kit.digest(self.mnt, parts) if self.options.remount else None
            self.umount()
            check(not self.is_mounted(), 'still mounted after sbxfs umount')
            self.check_store()
            if seen:
                self.mount()
                kit.same_lists(kit.digest(self.mnt, parts), seen, 'the view after a remount')
                self.umount()
        if not self.options.workspace_changes:
            kit.same_lists(kit.digest(self.low, kit.EVERYTHING), before, 'the workspace was changed')

    def close_files(self):
        """What the case still holds open in the view would make it busy."""
        for fd in os.listdir('/proc/self/fd'):
            with contextlib.suppress(OSError):
                if os.readlink(f'/proc/self/fd/{fd}').startswith(self.mnt + '/'):
                    os.close(int(fd))

    def is_mounted(self, path=None):
        return any(mount.point == (path or self.mnt) and mount.is_fuse for mount in mounts())

    def check_store(self):
        store = self.store()
        if not os.path.isdir(store):
            return
        eq(oct(stat.S_IMODE(os.stat(store).st_mode)), '0o700', 'mode of the store')
        self.check_database()

    def check_database(self):
        with contextlib.closing(sqlite3.connect(os.path.join(self.store(), 'store.db'), timeout=30)) as database:
            eq(database.execute('PRAGMA integrity_check').fetchall(), [('ok',)], 'PRAGMA integrity_check')
        found = self.sbxfs('fsck', self.name, '--json', code=None).json()
        bad = [f['message'] for f in found['findings'] if f['level'] == 'damaged' or f['check'] in ('pages', 'merge-texts') and f['remedy']]
        eq(bad, [], 'what sbxfs fsck finds')


def kill_all(pids, number=signal.SIGKILL):
    for pid in pids:
        os.kill(pid, number)
    for _ in range(1000):
        if all(is_dead(pid) for pid in pids):
            return
        time.sleep(0.01)
    raise Failed(f'the daemon still runs after signal {number}')


def is_dead(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='latin-1') as file:
            return file.read().rpartition(')')[2].split()[0] in 'ZX'
    except OSError:
        return True


def disturb(top):
    """Changes of every kind to whatever is there, errors aside: rules may refuse some of it."""
    quietly = contextlib.suppress(OSError)
    entries = []
    for directory, directories, files in os.walk(top):
        entries += [os.path.join(directory, name) for name in files[:40] + directories[:40]]
        if len(entries) > 150:
            break
    for number, path in enumerate(entries):
        with quietly:
            info = os.lstat(path)
            if stat.S_ISREG(info.st_mode) and info.st_size < 1 << 24:
                kit.read(path)
                disturb_file(path, number)
            elif stat.S_ISDIR(info.st_mode):
                kit.create(os.path.join(path, '.disturb'))
                [lambda: os.chmod(path, 0o700), lambda: shutil.rmtree(path), lambda: os.rename(path, path + '.r'), lambda: None][number % 4]()
            elif number % 2:
                os.unlink(path)
    with quietly:
        kit.grow(top, {'disturb/a/b': 'x' * 100000, 'disturb/l': ('->', 'a'), 'disturb/h': ('=', 'disturb/a/b')})


def disturb_file(path, number):
    [lambda: kit.append(path, b'disturbed'), lambda: os.truncate(path, 1), lambda: os.unlink(path), lambda: os.rename(path, path + '.r'),
     lambda: os.chmod(path, 0o600), lambda: os.utime(path, (1, 1)), lambda: os.link(path, path + '.l'),
     lambda: (os.unlink(path), os.mkdir(path)), lambda: kit.write(path, b'replaced')][number % 9]()


class Mount:
    def __init__(self, line):
        left, _, right = line.partition(' - ')
        fields = left.split()
        self.minor = int(fields[2].partition(':')[2])
        self.point = fields[4].replace('\\040', ' ').replace('\\134', '\\')
        self.is_fuse = right.split()[0].startswith('fuse')


def mounts(below=None):
    """What is mounted, at @below or under it, the last first."""
    with open('/proc/self/mountinfo', encoding='utf-8', errors='surrogateescape') as file:
        found = [Mount(line) for line in file]
    return [mount for mount in reversed(found) if below is None or mount.point == below or mount.point.startswith(below + '/')]
