# SPDX-License-Identifier: MIT
"""What stat(2) shows and who may change it: modes, owners, times, xattrs, ACLs, inode numbers, statfs."""
import contextlib
import grp
import os
import stat
import struct
import time

from harness.kit import *  # noqa: F403
from harness.view import OTHER_UID, case

BILLION = 1_000_000_000


def tick():
    """Longer than the clock that file systems take their times from needs to move."""
    time.sleep(0.02)


def times(path):
    info = os.lstat(path)
    return {'a': info.st_atime_ns, 'm': info.st_mtime_ns, 'c': info.st_ctime_ns}


def moved(before, after):
    return ''.join(kind for kind in 'mc' if after[kind] > before[kind])


@case(plain=True)
def test_which_times_each_call_moves(t):
    t.seed({'d/f': 'content', 'd/g': 'g', 'd/s': ('->', 'f'), 'd/sub/': None, 'e/': None, 'd/h': 'h'})
    yield
    fd = os.open(t.m('d/h'), os.O_RDWR)
    # a call; the objects whose mtime and ctime it moves ('mc'), or only ctime ('c'), or neither ('')
    table = [
        (lambda p: write(p('d/f'), b'x', 'r+b'), {'d/f': 'mc', 'd': ''}),
        (lambda p: os.truncate(p('d/f'), 3), {'d/f': 'mc', 'd': ''}),
        (lambda p: os.close(os.open(p('d/f'), os.O_WRONLY | os.O_TRUNC)), {'d/f': 'mc', 'd': ''}),
        (lambda p: read(p('d/f')), {'d/f': '', 'd': ''}),
        (lambda p: os.close(os.open(p('d/f'), os.O_RDWR)), {'d/f': '', 'd': ''}),
        (lambda p: os.chmod(p('d/f'), 0o600), {'d/f': 'c', 'd': ''}),
        (lambda p: os.chown(p('d/f'), os.getuid(), -1), {'d/f': 'c', 'd': ''}),
        (lambda p: os.link(p('d/f'), p('d/l')), {'d/f': 'c', 'd': 'mc'}),
        (lambda p: os.link(p('d/f'), p('e/l')), {'d/f': 'c', 'd': '', 'e': 'mc'}),
        (lambda p: os.unlink(p('d/l')), {'d/f': 'c', 'd': 'mc'}),
        (lambda p: create(p('d/n')), {'d': 'mc', 'd/f': '', '.': ''}),
        (lambda p: os.mkdir(p('d/nd')), {'d': 'mc', '.': ''}),
        (lambda p: os.rmdir(p('d/nd')), {'d': 'mc', '.': ''}),
        (lambda p: os.symlink('x', p('d/ns')), {'d': 'mc'}),
        (lambda p: os.mkfifo(p('d/p')), {'d': 'mc'}),
        (lambda p: os.rename(p('d/g'), p('d/g2')), {'d': 'mc', 'd/f': ''}),
        (lambda p: os.rename(p('d/g2'), p('e/g2')), {'d': 'mc', 'e': 'mc', '.': ''}),
        (lambda p: os.rename(p('d/sub'), p('e/sub')), {'d': 'mc', 'e': 'mc'}),
        (lambda p: os.rename(p('d/n'), p('e/g2')), {'d': 'mc', 'e': 'mc'}),
        (lambda p: os.pwrite(fd, b'y', 0), {'d/h': 'mc', 'd': ''}),
        (lambda p: os.ftruncate(fd, 9), {'d/h': 'mc', 'd': ''}),
        (lambda p: os.posix_fallocate(fd, 0, 100), {'d/h': 'mc', 'd': ''}),
        (lambda p: os.utime(p('d/h'), ns=(5, 6)), {'d/h': 'c', 'd': ''}),
        (lambda p: os.listdir(p('d')), {'d': ''}),
        (lambda p: os.truncate(p('d/h'), 50), {'d/h': 'mc'}),
    ]
    for number, (call, want) in enumerate(table):
        before = {name: times(t.m(name)) for name in want}
        tick()
        call(t.m)
        got = {name: moved(before[name], times(t.m(name))) for name in want}
        if number == 22:  # utimens set the mtime itself
            eq(os.stat(t.m('d/h')).st_mtime_ns, 6, 'mtime that was set')
        eq(got, want, f'times moved by call {number} of the table')
    before = {name: times(t.m(name)) for name in ('d/f', 'd/h', 'd')}
    tick()
    exchange(t.m('d/f'), t.m('d/h'))
    eq([moved(before[o], times(t.m(n))) for o, n in (('d/f', 'd/h'), ('d/h', 'd/f'), ('d', 'd'))][2], 'mc', 'times of the directory after an exchange')
    os.close(fd)


@case(plain=True)
def test_refused_calls_move_no_times(t):
    t.seed({'d/f': 'f', 'd/sub/x': 'x'})
    yield
    before = {name: times(t.m(name)) for name in ('d', 'd/f', 'd/sub')}
    tick()
    for call in (lambda: os.mkdir(t.m('d/f')), lambda: os.rmdir(t.m('d/sub')), lambda: os.unlink(t.m('d/none')), lambda: create(t.m('d/f')),
                 lambda: os.symlink('x', t.m('d/f')), lambda: os.rename(t.m('d/f'), t.m('d/sub')), lambda: os.link(t.m('d/f'), t.m('d/sub')),
                 lambda: os.truncate(t.m('d/f'), -1), lambda: os.removexattr(t.m('d/f'), 'user.none')):
        check(errno_of(call) != 'OK', 'a call that must fail')
    eq({name: moved(before[name], times(t.m(name))) for name in before}, {'d': '', 'd/f': '', 'd/sub': ''}, 'moved times')


@case(plain=True)
def test_times_are_kept_to_the_nanosecond(t):
    t.seed({'f': 'f', 'd/': None, 's': ('->', 'f')})
    recent = (int(time.time()) + 5000) * BILLION + 123_456_789  # later than all others: reading does not move it
    os.utime(t.w('f'), ns=(recent, BILLION + 987_654_321))
    yield
    eq((os.stat(t.m('f')).st_atime_ns, os.stat(t.m('f')).st_mtime_ns), (recent, BILLION + 987_654_321), 'of the workspace')
    for access, change in ((1, 2), (BILLION * 1_700_000_000 + 999_999_999, 4_000_000_000 * BILLION + 1), (0, 0), (-1, -BILLION - 1), (2**33 * BILLION, 5)):
        for name in ('f', 'd', 's'):
            os.utime(t.m(name), ns=(access, change), follow_symlinks=False)
            info = os.lstat(t.m(name))
            eq((info.st_atime_ns, info.st_mtime_ns), (access, change), f'{name}: times')
    before = os.stat(t.m('f'))
    tick()
    libc.utimensat(AT_FDCWD, os.fsencode(t.m('f')), struct.pack('qqqq', 0, (1 << 30) - 2, 7, 8), 0)  # UTIME_OMIT
    eq((os.stat(t.m('f')).st_atime_ns, os.stat(t.m('f')).st_mtime_ns), (before.st_atime_ns, 7 * BILLION + 8), 'UTIME_OMIT')
    libc.utimensat(AT_FDCWD, os.fsencode(t.m('f')), struct.pack('qqqq', 0, (1 << 30) - 1, 0, (1 << 30) - 2), 0)  # UTIME_NOW
    check(abs(os.stat(t.m('f')).st_atime - time.time()) < 100 and os.stat(t.m('f')).st_mtime_ns == 7 * BILLION + 8, 'UTIME_NOW')
    t.remount()
    eq(os.stat(t.m('f')).st_mtime_ns, 7 * BILLION + 8, 'after a remount')


@case(plain=True)
def test_new_times_are_now(t):
    yield
    start = time.time() - 1
    create(t.m('f'))
    os.mkdir(t.m('d'))
    os.symlink('x', t.m('s'))
    for name in ('f', 'd', 's'):
        for value in times(t.m(name)).values():
            check(start <= value / BILLION <= time.time() + 1, f'{name}: a time of {value}')


@case(plain=True)
def test_copy_up_changes_nothing_that_shows(t):
    t.seed({'p/q/f': ('content', 0o640), 'p/q/g': ('#!/bin/sh', 0o755), 'p/q/big': 'x' * 200_000})
    with contextlib.suppress(OSError):
        os.setxattr(t.w('p/q/f'), 'user.k', b'value')
    os.chmod(t.w('p'), 0o751)
    yield
    paths = ['p', 'p/q', 'p/q/f', 'p/q/g', 'p/q/big']

    def state():
        return {name: _describe_without_ctime(t.m(name)) for name in paths}
    before = state()
    os.close(os.open(t.m('p/q/f'), os.O_RDWR))
    eq(state(), before, 'after open(O_RDWR) and close')
    os.utime(t.m('p/q/f'), ns=(os.stat(t.m('p/q/f')).st_atime_ns, os.stat(t.m('p/q/f')).st_mtime_ns))
    os.chmod(t.m('p/q/g'), 0o755)
    with opened(t.m('p/q/big'), os.O_RDWR) as fd:
        stamp = os.fstat(fd)
        os.pwrite(fd, b'x', 5)
        os.utime(fd, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    eq(state(), before, 'after changes to the same values')
    tick()
    append(t.m('p/q/f'), '')
    append(t.m('p/q/f'), '+')
    check(os.stat(t.m('p/q/f')).st_mtime_ns > before['p/q/f'][3], 'mtime moves on a write')
    after = state()
    for name in paths:
        if name != 'p/q/f':
            eq(after[name], before[name], f'{name} after a write to p/q/f')
    eq((after['p/q/f'][:2], after['p/q/f'][4:]), (before['p/q/f'][:2], before['p/q/f'][4:]), 'mode, owner, inode, xattrs of the written file')


def _describe_without_ctime(path):
    info = os.lstat(path)
    xattrs = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return oct(info.st_mode), (info.st_uid, info.st_gid), info.st_size, info.st_mtime_ns, info.st_ino, info.st_nlink, xattrs


@case(plain=True)
def test_inode_numbers_are_stable_and_distinct(t):
    t.seed({f'd/f{i}': str(i) for i in range(10)} | {'d/e/x': 'x', 'd/s': ('->', 'f1')})
    yield
    create(t.m('d/n'))
    keep = os.open(t.m('d/f1'), os.O_RDONLY)

    def numbers():
        return {name: os.lstat(t.m('d', name)).st_ino for name in names(t.m('d'))}
    before = numbers()
    eq(len(set(before.values())), len(before), 'distinct numbers')
    eq({entry.name: entry.inode() for entry in os.scandir(t.m('d'))}, before, 'numbers of the listing')
    append(t.m('d/f1'), 'w')
    os.chmod(t.m('d/f2'), 0o600)
    os.utime(t.m('d/f3'), (1, 1))
    os.rename(t.m('d/f4'), t.m('d/g4'))
    os.truncate(t.m('d/f5'), 0)
    create(t.m('d/e/new'))
    os.link(t.m('d/f6'), t.m('d/e/l6'))
    before['g4'] = before.pop('f4')
    eq(numbers(), before, 'numbers after copy-up')
    eq({entry.name: entry.inode() for entry in os.scandir(t.m('d'))}, before, 'numbers of the listing after copy-up')
    eq(os.fstat(keep).st_ino, before['f1'], 'of a descriptor from before')
    os.close(keep)
    t.remount()
    eq(numbers(), before, 'numbers after a remount')
    eq(len({os.lstat(t.m('d', name)).st_dev for name in before}), 1, 'devices')


@case(plain=True)
def test_modes_of_new_files_follow_the_umask(t):
    t.seed({'d/': None})
    yield
    for mask in (0, 0o022, 0o077, 0o777):
        old = os.umask(mask)
        create(t.m('f'), 0o6777)
        os.mkdir(t.m('n'), 0o777)
        os.mkfifo(t.m('p'), 0o666)
        os.mknod(t.m('k'), 0o666 | stat.S_IFREG)
        os.umask(old)
        eq([permissions(t.m(n)) & 0o777 for n in ('f', 'n', 'p', 'k')], [0o777 & ~mask, 0o777 & ~mask, 0o666 & ~mask, 0o666 & ~mask], f'modes under umask {mask:o}')
        for name in ('f', 'p', 'k'):
            os.unlink(t.m(name))
        os.rmdir(t.m('n'))


@case(plain=True)
def test_chmod_takes_every_bit(t):
    t.seed({'f': 'f', 'd/': None})
    yield
    create(t.m('n'))
    for name in ('f', 'd', 'n'):
        for mode in (0, 0o7, 0o70, 0o700, 0o644, 0o1755, 0o2755, 0o4755, 0o7777):
            os.chmod(t.m(name), mode)
            eq(oct(permissions(t.m(name))), oct(mode), f'mode of {name}')
        eq(os.stat(t.m(name)).st_mode & ~S_IALLUGO, stat.S_IFDIR if name == 'd' else stat.S_IFREG, f'kind of {name}')
        os.chmod(t.m(name), 0o755)


@case(plain=True, root=False)
def test_permissions_bind_an_ordinary_user(t):
    t.seed({'f': ('f', 0o400), 'x': ('#!/bin/sh\n', 0o644), 'd/in': 'i'})
    yield
    create(t.m('n'), 0)
    fails('EACCES', os.open, t.m('f'), os.O_WRONLY)
    fails('EACCES', os.open, t.m('n'), os.O_RDONLY)
    fails('EACCES', os.truncate, t.m('f'), 0)
    fails('EACCES', os.execv, t.m('x'), ['x'])
    os.chmod(t.m('d'), 0o600)
    for call in (lambda: read(t.m('d/in')), lambda: create(t.m('d/n')), lambda: os.stat(t.m('d/in')), lambda: os.rename(t.m('d/in'), t.m('o'))):
        fails('EACCES', call)
    eq(names(t.m('d')), ['in'], 'a listing needs only r')
    os.chmod(t.m('d'), 0o300)
    fails('EACCES', os.listdir, t.m('d'))
    works(create, t.m('d/n'))
    os.chmod(t.m('d'), 0o500)
    for call in (lambda: create(t.m('d/n2')), lambda: os.unlink(t.m('d/in')), lambda: os.mkdir(t.m('d/n3')), lambda: os.rename(t.m('d/in'), t.m('d/o'))):
        fails('EACCES', call)
    works(read, t.m('d/in'))
    os.chmod(t.m('d'), 0o755)
    fails('EPERM', os.chown, t.m('f'), 0, 0)
    write(t.m('o'), 'o')
    os.chmod(t.m('o'), 0o444)
    os.rename(t.m('o'), t.m('f'))
    works(os.unlink, t.m('f'))


@case(plain=True, root=True)
def test_another_user_is_held_to_the_modes(t):
    t.seed({'pub/f': ('f', 0o644), 'priv/f': 'f', 'sticky/mine': ('m', 0o666), 'group/f': ('g', 0o660), 'open/f': ('f', 0o666)})
    os.chmod(t.w('priv'), 0o700)
    os.chmod(t.w('sticky'), 0o1777)
    os.chmod(t.w('open'), 0o777)
    os.chown(t.w('group/f'), 0, OTHER_UID)
    yield

    def other():
        eq(read(t.m('pub/f')), b'f', 'a readable file')
        table = [(lambda: write(t.m('pub/f'), b'x'), 'EACCES'), (lambda: create(t.m('pub/n')), 'EACCES'), (lambda: os.stat(t.m('priv/f')), 'EACCES'),
                 (lambda: os.listdir(t.m('priv')), 'EACCES'), (lambda: os.chmod(t.m('open/f'), 0o777), 'EPERM'), (lambda: os.utime(t.m('open/f'), (1, 1)), 'EPERM'),
                 (lambda: os.utime(t.m('open/f')), 'OK'), (lambda: os.utime(t.m('pub/f')), 'EACCES'), (lambda: os.chown(t.m('open/f'), OTHER_UID, OTHER_UID), 'EPERM'),
                 (lambda: os.unlink(t.m('sticky/mine')), 'EPERM'), (lambda: os.rename(t.m('sticky/mine'), t.m('sticky/x')), 'EPERM'), (lambda: create(t.m('sticky/n')), 'OK'),
                 (lambda: os.rename(t.m('sticky/n'), t.m('sticky/mine')), 'EPERM'), (lambda: os.unlink(t.m('sticky/n')), 'OK'), (lambda: append(t.m('group/f'), b'x'), 'OK'),
                 (lambda: append(t.m('open/f'), b'x'), 'OK'), (lambda: os.rename(t.m('open/f'), t.m('open/g')), 'OK'), (lambda: os.rmdir(t.m('pub')), 'ENOTEMPTY'),
                 (lambda: os.setxattr(t.m('pub/f'), 'user.x', b'1'), 'EACCES'), (lambda: os.mkdir(t.m('open/d')), 'OK'), (lambda: os.chown(t.m('open/d'), 0, -1), 'EPERM'),
                 (lambda: os.truncate(t.m('pub/f'), 0), 'EACCES'), (lambda: os.link(t.m('priv/f'), t.m('open/l')), 'EACCES'), (lambda: os.readlink(t.m('priv/f')), 'EACCES')]
        for number, (call, want) in enumerate(table):
            eq(errno_of(call), want, f'call {number} of the table')
    t.as_other(other)
    info = os.stat(t.m('open/d'))
    eq((info.st_uid, info.st_gid), (OTHER_UID, OTHER_UID), 'owner of what the other user made')


@case(plain=True, root=True)
def test_owners_change_and_stay(t):
    t.seed({'f': 'f', 'd/': None})
    yield
    create(t.m('n'))
    for name in ('f', 'd', 'n'):
        os.chown(t.m(name), 1234, 5678)
        os.chown(t.m(name), -1, 91)
        os.chown(t.m(name), 4_000_000_000, -1)
        eq((os.stat(t.m(name)).st_uid, os.stat(t.m(name)).st_gid), (4_000_000_000, 91), f'owner of {name}')
    t.remount()
    eq((os.stat(t.m('n')).st_uid, os.stat(t.m('f')).st_gid), (4_000_000_000, 91), 'after a remount')


@case(plain=True, root=True)
def test_setuid_bits_fall_when_others_touch_the_file(t):
    t.seed({'low': ('x' * 100, 0o4777), 'cut': ('x' * 100, 0o6777), 'own': ('x', 0o6755), 'utime': ('x', 0o4755), 'nox': ('x', 0o2666)})
    yield
    write(t.m('new'), 'x' * 100)
    os.chmod(t.m('new'), 0o6777)
    t.as_other(lambda: (append(t.m('low'), b'y'), append(t.m('new'), b'y'), os.truncate(t.m('cut'), 2), append(t.m('nox'), b'y')) and None)
    eq([oct(permissions(t.m(n))) for n in ('low', 'new', 'cut')], ['0o777'] * 3, 'after a write by another user')
    one_of(permissions(t.m('nox')), (0o2666, 0o666), 'setgid without x')
    os.chown(t.m('own'), OTHER_UID, OTHER_UID)
    eq(oct(permissions(t.m('own'))), '0o755', 'after chown')
    os.utime(t.m('utime'), (1, 1))
    eq(oct(permissions(t.m('utime'))), '0o4755', 'kept by utimens')
    with opened(t.m('s'), os.O_WRONLY | os.O_CREAT, 0o600) as fd:
        os.write(fd, b'1' * 5000)
        os.fchown(fd, 0, 0)
        os.fchmod(fd, 0o4755)
        os.fsync(fd)
    os.sync()
    eq(oct(permissions(t.m('s'))), '0o4755', 'set after the write')


@case(plain=True, root=True)
def test_setgid_directories_hand_down_their_group(t):
    t.seed({'d/': None, 'd/low/': None})
    os.chown(t.w('d'), 0, 42)
    os.chmod(t.w('d'), 0o2777)
    yield
    for name, make in (('f', create), ('sub', os.mkdir), ('p', os.mkfifo)):
        make(t.m('d', name))
        eq(os.stat(t.m('d', name)).st_gid, 42, f'group of {name}')
    os.symlink('x', t.m('d/s'))
    eq(os.lstat(t.m('d/s')).st_gid, 42, 'group of a symlink')
    eq(oct(permissions(t.m('d/sub'))), oct(0o2755), 'a directory hands on the bit')
    create(t.m('d/sub/f'))
    eq(os.stat(t.m('d/sub/f')).st_gid, 42, 'group one level down')
    t.as_other(lambda: create(t.m('d/other'), 0o2755))
    eq((os.stat(t.m('d/other')).st_gid, oct(permissions(t.m('d/other')))), (42, '0o755'), 'a stranger gets the group, not the bit')


@case(plain=True)
def test_user_xattrs(t):
    t.seed({'f': 'f', 'd/': None})
    with contextlib.suppress(OSError):
        os.setxattr(t.w('f'), 'user.low', b'from the workspace')
    yield
    create(t.m('n'))
    if errno_of(os.setxattr, t.m('n'), 'user.probe', b'') == 'EOPNOTSUPP':
        t.skip('no user xattrs here')
    os.removexattr(t.m('n'), 'user.probe')
    if 'user.low' in os.listxattr(t.m('f')):
        eq(os.getxattr(t.m('f'), 'user.low'), b'from the workspace', 'value')
        os.chmod(t.m('f'), 0o600)
        append(t.m('f'), 'x')
        eq(os.getxattr(t.m('f'), 'user.low'), b'from the workspace', 'value after copy-up')
        os.removexattr(t.m('f'), 'user.low')
    for name in ('f', 'd', 'n'):
        path = t.m(name)
        eq([n for n in os.listxattr(path) if n.startswith('user.')], [], f'{name}: none')
        for key, value in (('user.a', b''), ('user.b', bytes(range(256))), ('user.' + 'k' * 250, b'long'), ('user.big', b'v' * 3000)):
            os.setxattr(path, key, value)
            eq(os.getxattr(path, key), value, f'{name}: {key[:20]}')
        eq(len([n for n in os.listxattr(path) if n.startswith('user.')]), 4, f'{name}: names')
        fails('EEXIST', os.setxattr, path, 'user.a', b'x', os.XATTR_CREATE)
        fails('ENODATA', os.setxattr, path, 'user.none', b'x', os.XATTR_REPLACE)
        fails('ENODATA', os.getxattr, path, 'user.none')
        fails('ENODATA', os.removexattr, path, 'user.none')
        fails('ERANGE', os.setxattr, path, 'user.' + 'k' * 251, b'')
        fails('EOPNOTSUPP', os.setxattr, path, 'nonsense.x', b'')
        os.setxattr(path, 'user.a', b'other', os.XATTR_REPLACE)
        os.removexattr(path, 'user.b')
        buffer = bytes(2)
        eq(libc.getxattr(os.fsencode(path), b'user.a', buffer, 2), -1, f'{name}: ERANGE for a small buffer')
        eq(libc.getxattr(os.fsencode(path), b'user.a', None, 0), 5, f'{name}: size only')
    t.remount()
    eq((os.getxattr(t.m('d'), 'user.a'), os.getxattr(t.m('n'), 'user.big')), (b'other', b'v' * 3000), 'after a remount')
    os.symlink('f', t.m('s'))
    fails(('EPERM', 'EOPNOTSUPP'), os.setxattr, t.m('s'), 'user.x', b'', follow_symlinks=False)


@case(plain=True, root=True)
def test_trusted_xattrs_and_capabilities(t):
    t.seed({'f': 'f', 'c': ('#!/bin/sh\n', 0o755), 'c2': ('#!/bin/sh\n', 0o755)})
    capability = struct.pack('<IIIII', 0x02000001, 1 << 10, 0, 0, 0)
    for name in ('c', 'c2'):
        with contextlib.suppress(OSError):
            os.setxattr(t.w(name), 'security.capability', capability)
    yield
    outcome = errno_of(os.setxattr, t.m('f'), 'trusted.x', b'1')
    one_of(outcome, ('OK', 'EOPNOTSUPP'), 'a trusted xattr')
    if outcome == 'OK':
        eq(os.getxattr(t.m('f'), 'trusted.x'), b'1', 'its value')
        t.as_other(lambda: fails(('ENODATA', 'EPERM'), os.getxattr, t.m('f'), 'trusted.x'))
    append(t.m('c'), '#')
    os.truncate(t.m('c2'), 3)
    for name in ('c', 'c2'):
        fails(('ENODATA', 'EOPNOTSUPP'), os.getxattr, t.m(name), 'security.capability')
    create(t.m('n'))
    outcome = errno_of(os.setxattr, t.m('n'), 'security.capability', capability)
    if outcome == 'OK':
        append(t.m('n'), 'x')
        fails('ENODATA', os.getxattr, t.m('n'), 'security.capability')


@case(plain=True, root=True)
def test_access_lists_bind_or_are_refused(t):
    t.seed({'f': ('secret', 0o600), 'd/': 0o755})
    yield

    def acl(*entries):
        return struct.pack('<I', 2) + b''.join(struct.pack('<HHI', tag, bits, who & 0xffffffff) for tag, bits, who in entries)
    grant = acl((1, 6, -1), (2, 4, OTHER_UID), (4, 0, -1), (0x10, 4, -1), (0x20, 0, -1))
    outcome = errno_of(os.setxattr, t.m('f'), 'system.posix_acl_access', grant)
    if outcome == 'EOPNOTSUPP':
        t.skip('no access lists here')
    eq(outcome, 'OK', 'setting an access list')
    eq(t.as_other(lambda: read(t.m('f')).decode()), 'secret', 'the user of the list reads')
    t.as_other(lambda: fails('EACCES', os.open, t.m('f'), os.O_WRONLY))
    os.chmod(t.m('f'), 0o600)
    t.as_other(lambda: fails('EACCES', os.open, t.m('f'), os.O_RDONLY))
    os.setxattr(t.m('d'), 'system.posix_acl_default', acl((1, 7, -1), (2, 6, OTHER_UID), (4, 5, -1), (0x10, 7, -1), (0x20, 0, -1)))
    create(t.m('d/n'), 0o666)
    works(t.as_other, lambda: append(t.m('d/n'), b'x'))


@case(plain=True)
def test_statfs_tells_of_a_real_file_system(t):
    t.seed({'d/f': 'f'})
    yield
    for path in (t.mnt, t.m('d/f')):
        info = os.statvfs(path)
        check(info.f_blocks > 0 and 0 < info.f_bfree <= info.f_blocks and info.f_bavail <= info.f_bfree, 'blocks')
        check(info.f_bsize >= 512 and info.f_frsize > 0, 'block size')
        eq(info.f_namemax, 255, 'longest name')
    t.shell('df . >/dev/null')


@case(plain=True)
def test_blocks_and_sizes_make_sense_to_du(t):
    t.seed({'f': 'x' * 100_000, 'small': 'x'})
    yield
    write(t.m('n'), 'y' * 100_000)
    write(t.m('n2'), 'y' * 1000)
    for name, size in (('f', 100_000), ('n', 100_000), ('n2', 1000)):
        info = os.stat(t.m(name))
        eq(info.st_size, size, f'size of {name}')
        check(size / 512 * 0.9 <= info.st_blocks <= size / 512 * 1.5 + 24, f'{info.st_blocks} blocks for {name}')
        check(info.st_blksize >= 512, 'st_blksize')
    check(int(t.shell('du -k --apparent-size . | cut -f1').out) >= 195, 'du')


@case(plain=True)
def test_groups_of_an_ordinary_user(t):
    t.seed({'f': 'f'})
    yield
    group = next((g for g in os.getgroups() if g != os.getgid()), None)
    if group is None or t.is_root:
        fails('EPERM' if not t.is_root else 'OK', os.chown, t.m('f'), -1, max(g.gr_gid for g in grp.getgrall()))
        return
    os.chown(t.m('f'), -1, group)
    eq(os.stat(t.m('f')).st_gid, group, 'group')
