# SPDX-License-Identifier: MIT
"""The power goes: what was synced is there, the rest is old or new, and the store opens.

The file system that holds the store is shut down without writing its log (the ioctl is the same for ext4 and xfs), as if the machine had
stopped, and mounted anew. That needs root and a loop device.
"""
import contextlib
import fcntl
import os
import random
import signal
import struct

from harness.kit import *  # noqa: F403
from harness.view import case, kill_all

SHUTDOWN, NO_LOG = 0x8004587D, 2
FILL = bytes(range(256))


class Disk:
    """A file system in a file, where the stores are."""

    def __init__(self, t, kind):
        self.t, self.image, self.point = t, t.path('disk.img'), t.path('disk')
        os.makedirs(self.point, exist_ok=True)
        with open(self.image, 'wb') as image:
            image.truncate(400 << 20)
        if t.program(f'mkfs.{kind}', '-q', self.image, code=None).code:
            t.skip(f'no mkfs.{kind}')
        if not self.mount():
            t.skip('no loop device')
        os.environ['XDG_STATE_HOME'] = self.point

    def mount(self):
        return self.t.program('mount', '-o', 'loop', self.image, self.point, code=None).code == 0

    def cut(self, pids):
        """@pids: who serves, asked for before the work: a view that is asked commits what it has."""
        with opened(self.point, os.O_RDONLY) as fd:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack('I', NO_LOG))
        kill_all(pids)
        self.t.program('umount', '-l', self.t.mnt)
        wait_until(lambda: self.t.program('umount', self.point, code=None).code == 0, 'the disk can be unmounted')
        wait_until(self.mount_anew, 'the disk can be mounted again')

    def mount_anew(self):
        """As long as another mount namespace keeps what was shut down, mount(8) gives that again: nothing can be made on it."""
        if not self.mount():
            return False
        probe = os.path.join(self.point, 'probe')
        if errno_of(os.mkdir, probe) == 'OK':
            os.rmdir(probe)
            return True
        self.t.program('umount', self.point, code=None)
        return False

    def close(self):
        os.environ['XDG_STATE_HOME'] = self.t.path('state')
        self.t.program('umount', '-l', self.t.mnt, code=None)
        self.t.program('umount', '-l', self.point, code=None)


@contextlib.contextmanager
def disk(t, kind):
    t.umount()
    d = Disk(t, kind)
    try:
        t.mount(name='power')
        t.name = 'power'
        yield d
    finally:
        d.close()
        t.name = 'c'
        t.mount()


def versions(n, size):
    """Two contents of one length that differ in every byte."""
    return (FILL[n:] * (size // 64))[:size], (FILL[n + 1:] * (size // 64))[:size]


def work(t, seed):
    """{path: contents that it may have afterwards}; those of one content were synced."""
    dice, wanted = random.Random(seed), {}
    for n in range(60):
        path, size, synced = f'f{n}', dice.choice((10, 600, 70_000, 400_000)), dice.random() < 0.5
        one, two = versions(n, size)
        how = dice.choice(('new', 'rename', 'overwrite', 'part', 'lower', 'delete'))
        if how == 'lower':
            path = f'low{n % 8}'
        elif how != 'new':
            sync(t.m(path), one)
        old = {'lower': b'L' * 100_000, 'new': None}.get(how, one)
        old_all = wanted.get(path, (old,)) if how == 'lower' else (old,)
        if how == 'delete':
            os.unlink(t.m(path))
            new = None
            if synced:
                with opened(t.mnt, os.O_RDONLY) as fd:
                    os.fsync(fd)
        elif how == 'rename':
            new = two
            (sync if synced else write)(t.m(path + '.tmp'), two)
            os.rename(t.m(path + '.tmp'), t.m(path))
            if synced:
                with opened(t.mnt, os.O_RDONLY) as fd:
                    os.fsync(fd)
        elif how == 'part':
            new = b'!' + one[1:]
            with opened(t.m(path), os.O_WRONLY) as fd:
                os.pwrite(fd, b'!', 0)
                if synced:
                    os.fsync(fd)
        else:
            new = two
            (sync if synced else write)(t.m(path), two)
        wanted[path] = (new,) if synced else (*old_all, new)
    wanted['burst'] = (burst(t.m('burst')),)
    return wanted


def burst(path):
    """So quickly that they share a commit, which the cut comes before."""
    with opened(path, os.O_WRONLY | os.O_CREAT, 0o644) as fd:
        for n in range(20):
            os.pwrite(fd, bytes([n]) * 3000, 0)
            os.fsync(fd)
    return bytes([n]) * 3000


def sync(path, data):
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644) as fd:
        os.write(fd, data)
        os.fsync(fd)


def power(t, kind):
    with disk(t, kind) as d:
        for seed in range(6):
            pids = t.daemons()
            wanted = work(t, seed)
            d.cut(pids)
            t.mount(name='power')
            for path, contents in wanted.items():
                got = None if is_gone(t.m(path)) else read(t.m(path))
                if len(contents) == 1:
                    check(got == contents[0], f'{path} (seed {seed}) was synced: {short(got)}, want {short(contents[0])}')
                elif got not in contents:
                    # Not synced: as after any crash its end, or pages of it, may be missing.
                    check(got is None or len(got) <= max(len(c or b'') for c in contents), f'{path} (seed {seed}): {short(got)}')
            eq(t.sbxfs('log', 'power', '--verify', '--json').json()['intact'], True, 'the audit')
            t.rollback()
            eq(sorted(names(t.mnt)), sorted(f'low{n}' for n in range(8)), 'after a rollback')


@case(modes=('fresh',), root=True, remount=False)
def test_what_was_synced_survives_on_ext4(t):
    t.seed({f'low{n}': 'L' * 100_000 for n in range(8)})
    yield
    power(t, 'ext4')


@case(modes=('fresh',), root=True, remount=False)
def test_what_was_synced_survives_on_xfs(t):
    t.seed({f'low{n}': 'L' * 100_000 for n in range(8)})
    yield
    power(t, 'xfs')
