# SPDX-License-Identifier: MIT
"""The workspace and the policy that the view is attacked on: a protected file of each kind beside one that is free.

An attack passes for many wrong reasons, so tests/redteam/mutate takes each guard out of the program and looks whether the attacks that it
stands for succeed then.
"""
import contextlib
import os
import time

from harness.kit import *  # noqa: F403
from harness.secrets import *  # noqa: F403
from harness.view import case

POLICY = """[profile cases]
[files cases]
write = **
read = locked/
write = /locked/open*
mask = *.cfg
deny = .env, *.key, vault/
deny = /conf/app/token
write = /vault/open/
hide = ghost, ghost.d/
"""
SHAPE = b'KEY=<masked>\n'
TREE = {'.env': MARK, 'a/.env': MARK, 'a/x.key': MARK, 'a/pub': 'pub\n', 'conf/app/token': MARK, 'conf/app/pub': 'pub\n', 'vault/k': MARK, 'vault/sub/k': MARK,
        'vault/open/f': 'open\n', 'ghost': MARK, 'ghost.d/k': MARK, 'a/ghost': MARK, 'locked/f': 'locked\n', 'locked/sub/f': 'locked\n', 'locked/open': 'edit me\n',
        'shape.cfg': b'KEY=' + MARK + b'\n', 'pub': 'pub\n', 'free/f': 'free\n', 'spare/': None}
DENIED_FILES = ['.env', 'a/.env', 'a/x.key', 'conf/app/token', 'vault/k', 'vault/sub/k']
DENIED_DIRS = ['vault', 'vault/sub']
SHOWN = ['.env', 'a/.env', 'a/x.key', 'conf/app/token', 'vault']  # by name, in a directory that is not denied itself
HIDDEN_FILES = ['ghost', 'ghost.d/k', 'a/ghost']
HIDDEN = HIDDEN_FILES + ['ghost.d']
LOCKED = ['locked/f', 'locked/sub/f']

ruled = case(policy=POLICY)
fresh = case(policy=POLICY, modes=('fresh',))


def seed(t):
    t.seed(TREE)
    for name in ('vault/link', 'a/link.key'):
        os.symlink('/elsewhere/' + MARK.decode(), t.w(name))
    for name in ('.env', 'shape.cfg'):
        with contextlib.suppress(OSError):
            os.setxattr(t.w(name), 'user.s', MARK)


def intact(t):
    """Everything protected is where it was and what it was, and nothing of it is anywhere else."""
    for name in DENIED_FILES:
        denied(bytes_of, t.m(name))
    for name in HIDDEN:
        fails('ENOENT', os.lstat, t.m(name))
    eq([read(t.m(name)) for name in LOCKED], [b'locked\n'] * len(LOCKED), 'what is read-only')
    eq(read(t.m('shape.cfg')), SHAPE, 'what is masked')
    eq(read(t.m('vault/open/f')), b'open\n', 'what is allowed again')
    sweep(t)
    eq(t.program('grep', '-rqa', MARK.decode(), t.store(), code=None).code, 1, 'grep for the secret in the store')


def handles(t, inode, flags=O_PATH):
    """Descriptors without a walk, which the case closes: one, or none for whoever may not have it."""
    try:
        return [Handle(t.mnt, inode).open(flags)]
    except OSError:
        return []


def descriptors(t, name, flags=O_PATH):
    """
    Descriptors of a file that the rules guard, by every way that a caller has: a walk, and as root a handle, which no lookup sees.
    A caller whom each way refuses has none.
    """
    found = []
    with contextlib.suppress(OSError):
        found.append(os.open(t.m(name), flags))
    with contextlib.suppress(OSError):
        found += handles(t, os.lstat(t.m(name)).st_ino, flags)
    for fd in found:
        yield fd
        os.close(fd)


def soon(condition, what):
    """The kernel is told to forget what it has cached after the operation that made it wrong has returned."""
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise Failed(f'{what}: not in 5 s')
