# SPDX-License-Identifier: MIT
"""The file systems that are compared. Each opens a fresh view of a directory and takes it down again.

A view has: dir (where the work is done), lower (the directory below, never written), pid of the process that serves it
(None for those in the kernel), store (where its changes lie), and opened, the seconds until it answered.
"""
import ctypes
import os
import re
import shutil
import subprocess
import time

from . import control, proc
from .proc import Failed, command

POLICY = '[profile bench]\ndescription = everything may be changed\n\n[files bench]\nwrite = **\n'


def mounts_below(directory):
    with open('/proc/self/mountinfo') as file:
        points = [re.sub(r'\\([0-7]{3})', lambda m: chr(int(m[1], 8)), line.split()[4]) for line in file]
    return [p for p in points if p.startswith(directory + '/')]


def unmount(point, seconds=20):
    """Waits for programs that are just leaving."""
    umount = ['umount'] if os.geteuid() == 0 else ['fusermount3', '-u']
    end = time.monotonic() + seconds
    while subprocess.run(umount + [point], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode:
        if point not in mounts_below(os.path.dirname(point)):
            return
        if time.monotonic() > end:
            subprocess.run(['umount', '-l', point] if os.geteuid() == 0 else ['fusermount3', '-uz', point], timeout=60)
            return
        time.sleep(0.05)


def wait_gone(pid, seconds=30):
    end = time.monotonic() + seconds
    while pid and proc.alive(pid) and time.monotonic() < end:
        time.sleep(0.01)


def disk_bytes(path):
    """What a tree takes on the disk."""
    total = 0
    for directory, _, names in os.walk(path):
        for name in names + ['.']:
            try:
                total += os.lstat(os.path.join(directory, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


def sync_disk(path):
    """The measured file system only, not the rest of the machine's."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd) < 0:
            raise OSError(ctypes.get_errno(), 'syncfs')
    finally:
        os.close(fd)


class View:
    pid = store = None
    opened = 0.0

    def __init__(self, directory, lower):
        self.dir, self.lower = directory, lower
        self.scratch = None     # a directory outside of the view, for the workload
        self.data = None        # data.Data

    def messages(self):
        """How many requests of each kind the daemon has had, None if it doesn't say."""
        return None

    def settle(self):
        """Called before the changes are measured on the disk."""

    def close(self):
        pass


class System:
    """name in tables; root: needs it; base: a directory for what it needs, on the measured disk"""
    name = label = ''
    root = False

    def __init__(self, base):
        self.base, self.count = os.path.join(base, self.name), 0
        os.makedirs(self.base, exist_ok=True)

    def missing(self):
        """Why it can't be measured here, or None."""
        return None

    def version(self):
        return None

    def place(self):
        self.count += 1
        path = os.path.join(self.base, str(self.count))
        os.makedirs(path)
        return path


class Native(System):
    name, label = 'native', 'native'

    def open(self, lower, changes=True, policy=None):
        if not changes:
            return View(lower, lower)
        view = View(os.path.join(self.place(), 'w'), lower)
        command(['cp', '-a', lower, view.dir])
        view.store = view.dir
        view.close = lambda: shutil.rmtree(os.path.dirname(view.dir))
        return view

    def version(self):
        return f'{os.uname().sysname} {os.uname().release}'


class Mounted(System):
    """What overlayfs and fuse-overlayfs have in common: lowerdir, upperdir, workdir."""

    def mount_command(self, options, point):
        raise NotImplementedError

    def open(self, lower, changes=True, policy=None):
        place = self.place()
        view = View(os.path.join(place, 'm'), lower)
        view.store = os.path.join(place, 'u')
        for name in 'muk':
            os.mkdir(os.path.join(place, name))
        options = f'lowerdir={lower},upperdir={view.store},workdir={place}/k'
        start = time.perf_counter()
        command(self.mount_command(options, view.dir), timeout=60, capture=False)
        os.stat(view.dir)
        view.opened = time.perf_counter() - start
        if self.name == 'fuse-overlayfs':
            view.pid = proc.find_process(view.dir)

        def close():
            unmount(view.dir)
            wait_gone(view.pid)
            shutil.rmtree(place)
        view.close = close
        return view


class Overlay(Mounted):
    name, label, root = 'overlay', 'kernel overlayfs', True

    def missing(self):
        if os.geteuid():
            return 'needs root'
        with open('/proc/filesystems') as file:
            if 'overlay' not in file.read().split():
                subprocess.run(['modprobe', 'overlay'], stderr=subprocess.DEVNULL, check=False)
        with open('/proc/filesystems') as file:
            return None if 'overlay' in file.read().split() else 'this kernel has no overlayfs'

    def mount_command(self, options, point):
        return ['mount', '-t', 'overlay', 'overlay', '-o', options, point]

    def version(self):
        return f'Linux {os.uname().release}'


class FuseOverlayfs(Mounted):
    name = label = 'fuse-overlayfs'

    def missing(self):
        if not shutil.which('fuse-overlayfs'):
            return 'not installed (Debian package fuse-overlayfs)'
        return None if os.access('/dev/fuse', os.R_OK | os.W_OK) else 'no /dev/fuse'

    def mount_command(self, options, point):
        return ['fuse-overlayfs', '-o', options, point]

    def version(self):
        lines = command(['fuse-overlayfs', '--version']).decode().splitlines()
        return next((line.split()[-1] for line in lines if line.startswith('fuse-overlayfs')), None)


class Bare(System):
    """tests/bench/bare.c: what remains when a FUSE file system does nothing. It works on a copy, as native does."""
    name, label = 'bare', 'bare FUSE'

    def missing(self):
        if os.path.exists(os.path.join(self.base, 'bare')):
            return None
        flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'fuse3'], capture_output=True, text=True, check=False).stdout.split()
        if not flags or not shutil.which('cc'):
            return 'needs a compiler and libfuse 3 (Debian package libfuse3-dev)'
        source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'bare.c')
        command(['cc', '-O2', '-D_GNU_SOURCE', '-o', os.path.join(self.base, 'bare'), source, *flags])
        return None

    def open(self, lower, changes=True, policy=None):
        place = self.place()
        view = View(os.path.join(place, 'm'), lower)
        view.store = os.path.join(place, 'w')
        os.mkdir(view.dir)
        if changes:
            command(['cp', '-a', lower, view.store])
        start = time.perf_counter()
        daemon = subprocess.Popen([os.path.join(self.base, 'bare'), view.store if changes else lower, view.dir], stdin=subprocess.DEVNULL)
        while view.dir not in mounts_below(place) and daemon.poll() is None:
            time.sleep(0.001)
        os.stat(view.dir)
        view.opened, view.pid = time.perf_counter() - start, daemon.pid

        def close():
            unmount(view.dir)
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
            shutil.rmtree(place)
        view.close = close
        return view


class SbxfsView(View):
    """Also has name, program and env, for the commands, and control. prefix goes before each command: a profiler."""
    prefix = ()

    def run(self, *arguments, timeout=600, ok=(0,)):
        return command([*self.prefix, self.program, *arguments], timeout=timeout, env=self.env, ok=ok)

    def call(self, operation, **arguments):
        return self.control.call(operation, **arguments)

    def messages(self):
        return self.call('status').get('messages') or None


class Sbxfs(System):
    name = label = 'sbxfs'

    def __init__(self, base, program):
        super().__init__(base)
        self.program = program
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(self.base, 's'), XDG_RUNTIME_DIR=os.path.join(self.base, 'r'),
                        XDG_CONFIG_HOME=os.path.join(self.base, 'c'))
        for name in 'src':
            os.makedirs(os.path.join(self.base, name), mode=0o700, exist_ok=True)
        self.policy = os.path.join(self.base, 'bench.ini')
        with open(self.policy, 'w') as file:
            file.write(POLICY)

    def missing(self):
        return None if os.access('/dev/fuse', os.R_OK | os.W_OK) else 'no /dev/fuse'

    def version(self):
        return command([self.program, '--version']).decode().split()[-1]

    def open(self, lower, changes=True, policy=None):
        place = self.place()
        view = SbxfsView(os.path.join(place, 'm'), lower)
        view.name, view.program, view.env = f'b{self.count}', self.program, self.env
        view.store = os.path.join(self.base, 's', 'sbxfs', view.name)
        os.mkdir(view.dir)
        start = time.perf_counter()
        view.run('mount', '-n', view.name, '-p', policy or self.policy, lower, view.dir, timeout=60)
        os.stat(view.dir)
        view.opened = time.perf_counter() - start
        view.control = control.Control(os.path.join(self.base, 'r', 'sbxfs', view.name + '.sock'))
        view.pid = view.call('status')['pid']

        def close():
            view.control.close()
            try:
                view.run('umount', view.name, timeout=60)
            except Failed:
                unmount(view.dir)
                wait_gone(view.pid, 120)
                view.run('destroy', '--force', view.name)
                raise
            wait_gone(view.pid)
            view.run('destroy', '--force', view.name)
            os.rmdir(view.dir)
            os.rmdir(place)
        view.close = close
        return view
