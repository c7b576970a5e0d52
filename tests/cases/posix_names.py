# SPDX-License-Identifier: MIT
"""Names: rename in all forms, hard links, symlinks, special files, names that are long or no text."""
import os
import shutil
import socket
import stat

from harness.kit import *  # noqa: F403
from harness.view import case

TREE = {'f': 'f\n', 'g': 'g\n', 'd/sub/deep/h': 'h\n', 'd/x': 'x\n', 'd/l': ('->', 'x'), 'd/run': ('#!/bin/sh\n', 0o755), 'full/k': 'k\n',
        'empty/': None, 'h1': 'hard\n', 'h2': ('=', 'h1'), 's': ('->', 'f')}


@case(plain=True)
def test_rename_moves_whole_directories(t):
    t.seed(TREE)
    yield
    want = digest(t.m('d'), EVERYTHING)[1:]
    inode = os.stat(t.m('d')).st_ino
    os.rename(t.m('d'), t.m('d2'))
    same_lists(digest(t.m('d2'), EVERYTHING)[1:], want, 'the tree under its new name')
    eq((os.stat(t.m('d2')).st_ino, is_gone(t.m('d'))), (inode, True), 'inode number and old name')
    os.rename(t.m('d2/sub'), t.m('empty/sub'))
    os.rename(t.m('empty'), t.m('d2/e'))
    eq((read(t.m('d2/e/sub/deep/h')), names(t.m('d2'))), (b'h\n', ['e', 'l', 'run', 'x']), 'after two more')
    os.mkdir(t.m('d'))
    eq(names(t.m('d')), [], 'a new directory of the old name')
    write(t.m('d/x'), 'new')
    os.rename(t.m('d2/e/sub'), t.m('d/sub'))
    eq((names(t.m('d')), read(t.m('d2/x'))), (['sub', 'x'], b'x\n'), 'both directories')


@case(plain=True)
def test_rename_replaces_files(t):
    t.seed(TREE)
    yield
    os.rename(t.m('f'), t.m('g'))
    eq((read(t.m('g')), is_gone(t.m('f'))), (b'f\n', True), 'over a workspace file')
    write(t.m('n'), 'new')
    os.rename(t.m('n'), t.m('d/x'))
    eq(read(t.m('d/x')), b'new', 'a new file over a workspace file')
    os.rename(t.m('d/x'), t.m('s'))
    eq((read(t.m('s')), os.path.islink(t.m('s'))), (b'new', False), 'over a symlink, which is not followed')
    os.rename(t.m('d/l'), t.m('h1'))
    eq((os.readlink(t.m('h1')), os.stat(t.m('h2')).st_nlink), ('x', 1), 'a symlink over one of two names')
    t.shell('echo saved >.f.new; mv .f.new g; sed -i s/saved/edited/ g; [ "$(cat g)" = edited ]')
    eq(sorted(n for n in names(t.mnt) if n not in TREE), ['d', 'empty', 'full'], 'nothing else was left')


@case(plain=True)
def test_rename_refusals_leave_both_sides(t):
    t.seed(TREE)
    yield
    before = digest(t.mnt, ('ino', 'nlink'))
    table = [('d', 'd/sub/x', 'EINVAL'), ('d', 'd/sub', ('EINVAL', 'ENOTEMPTY')), ('d/sub', 'd', ('ENOTEMPTY', 'EEXIST')), ('f', 'd', 'EISDIR'),
             ('d', 'f', 'ENOTDIR'), ('d', 'full', ('ENOTEMPTY', 'EEXIST')), ('none', 'x', 'ENOENT'), ('f', 'none/x', 'ENOENT'),
             ('f', 'g/x', 'ENOTDIR'), ('f/x', 'g', 'ENOTDIR'), ('f', 'n' * 256, 'ENAMETOOLONG'), ('d/.', 'q', ('EINVAL', 'EBUSY')),
             ('f', 'd/..', ('EINVAL', 'EBUSY', 'ENOTEMPTY', 'EISDIR', 'EEXIST')), ('s', 'd', 'EISDIR'), ('d', 's', 'ENOTDIR'),
             ('f', 'f', 'OK'), ('d', 'd', 'OK'), ('h1', 'h2', 'OK'), ('h2', 'h1', 'OK')]
    for source, target, want in table:
        one_of(errno_of(os.rename, t.m(source), t.m(target)), (want,) if isinstance(want, str) else want, f'rename {source} {target[:20]}')
    same_lists(digest(t.mnt, ('ino', 'nlink')), before, 'the tree after refused renames')


@case(plain=True)
def test_rename_onto_empty_directories(t):
    t.seed({**TREE, 'once/a/b': 'b'})
    yield
    shutil.rmtree(t.m('once/a'))
    for target in ('empty', 'once'):
        os.mkdir(t.m('n'))
        write(t.m('n/i'), 'i')
        os.rename(t.m('n'), t.m(target))
        eq(names(t.m(target)), ['i'], f'listing of {target}')
    os.mkdir(t.m('e2'))
    os.rename(t.m('d'), t.m('e2'))
    eq(read(t.m('e2/sub/deep/h')), b'h\n', 'a workspace directory over a new one')


@case(plain=True)
def test_rename_noreplace(t):
    t.seed(TREE)
    yield
    write(t.m('n'), 'new')
    for target in ('g', 'd', 'full', 's', 'empty'):
        fails('EEXIST', rename2, t.m('n'), t.m(target), RENAME_NOREPLACE)
    eq((read(t.m('g')), read(t.m('n'))), (b'g\n', b'new'), 'both after the refusal')
    os.unlink(t.m('f'))
    works(rename2, t.m('n'), t.m('f'), RENAME_NOREPLACE)
    eq(read(t.m('f')), b'new', 'onto a deleted name')
    shutil.rmtree(t.m('d'))
    works(rename2, t.m('full'), t.m('d'), RENAME_NOREPLACE)
    works(rename2, t.m('h1'), t.m('h3'), RENAME_NOREPLACE)
    eq((names(t.m('d')), names(t.mnt)), (['k'], ['d', 'empty', 'f', 'g', 'h2', 'h3', 's']), 'listings')
    fails('EINVAL', rename2, t.m('f'), t.m('x'), RENAME_NOREPLACE | RENAME_EXCHANGE)


@case(plain=True)
def test_rename_exchange(t):
    t.seed(TREE)
    yield
    write(t.m('n'), 'new')
    numbers = {name: os.lstat(t.m(name)).st_ino for name in ('f', 'd', 's', 'n', 'full')}
    exchange(t.m('f'), t.m('n'))
    eq((read(t.m('f')), read(t.m('n'))), (b'new', b'f\n'), 'a new and a workspace file')
    exchange(t.m('d'), t.m('s'))
    eq((os.readlink(t.m('d')), read(t.m('s/sub/deep/h'))), ('f', b'h\n'), 'a directory and a symlink')
    exchange(t.m('full'), t.m('s/sub'))
    eq((names(t.m('full')), read(t.m('s/sub/k'))), (['deep'], b'k\n'), 'directories of different parents')
    got = {'f': 'n', 'd': 's', 's': 'd', 'n': 'f', 's/sub': 'full'}
    eq({a: os.lstat(t.m(a)).st_ino for a in got}, {a: numbers[b] for a, b in got.items()}, 'inode numbers went along')
    fails('ENOENT', exchange, t.m('f'), t.m('none'))
    fails('ENOENT', exchange, t.m('none'), t.m('f'))
    fails('EINVAL', exchange, t.m('s'), t.m('s/sub'))
    exchange(t.m('h1'), t.m('h2'))
    exchange(t.m('f'), t.m('f'))
    eq(os.stat(t.m('h1')).st_nlink, 2, 'two names of one file')


@case(plain=True)
def test_hard_links_are_one_file(t):
    t.seed(TREE)
    yield
    write(t.m('new'), 'base\n')
    for name in ('f', 'new'):
        number = os.stat(t.m(name)).st_ino
        os.link(t.m(name), t.m('l'))
        eq([(os.stat(t.m(n)).st_ino, os.stat(t.m(n)).st_nlink) for n in (name, 'l')], [(number, 2)] * 2, f'{name}: both names')
        append(t.m('l'), 'more')
        check(read(t.m(name)).endswith(b'\nmore'), f'{name}: append through the new name')
        os.chmod(t.m(name), 0o600)
        eq(permissions(t.m('l')), 0o600, f'{name}: mode through the other name')
        os.truncate(t.m(name), 2)
        eq((os.stat(t.m('l')).st_size, len(read(t.m('l')))), (2, 2), f'{name}: truncate')
        os.link(t.m('l'), t.m('d/k'))
        os.rename(t.m('l'), t.m('d/k2'))
        eq((os.stat(t.m('d/k2')).st_ino, os.stat(t.m(name)).st_nlink), (number, 3), f'{name}: three names')
        os.unlink(t.m(name))
        os.unlink(t.m('d/k'))
        eq((os.stat(t.m('d/k2')).st_nlink, len(read(t.m('d/k2')))), (1, 2), f'{name}: one name left')
        os.unlink(t.m('d/k2'))
    fails('EEXIST', os.link, t.m('g'), t.m('h1'))
    fails('EPERM', os.link, t.m('d'), t.m('dl'))
    fails('ENOENT', os.link, t.m('none'), t.m('l'))
    os.link(t.m('s'), t.m('s2'), follow_symlinks=False)
    eq((os.readlink(t.m('s2')), os.lstat(t.m('s')).st_nlink), ('f', 2), 'a hard link to a symlink')


@case(plain=True)
def test_links_of_the_workspace_stay_linked(t):
    t.seed({'p/x': 'base\n', 'q/y': ('=', 'p/x'), 'z': ('=', 'p/x'), 'once/a': 'a', 'once/b': ('=', 'once/a')})
    yield
    append(t.m('p/x'), '+w')
    paths = [t.m(n) for n in ('p/x', 'q/y', 'z')]
    eq([read(p) for p in paths], [b'base\n+w'] * 3, 'content through each name')
    eq(len({os.stat(p).st_ino for p in paths}), 1, 'inode numbers')
    eq([os.stat(p).st_nlink for p in paths], [3] * 3, 'link counts')
    os.unlink(t.m('z'))
    os.chmod(t.m('q/y'), 0o600)
    eq((permissions(t.m('p/x')), os.stat(t.m('p/x')).st_nlink), (0o600, 2), 'after an unlink and a chmod')
    os.rename(t.m('q'), t.m('r'))
    write(t.m('r/y'), 'again')
    eq(read(t.m('p/x')), b'again', 'after a rename of the directory')
    os.unlink(t.m('once/a'))
    eq((os.stat(t.m('once/b')).st_nlink, read(t.m('once/b'))), (1, b'a'), 'one of two names deleted')


@case(plain=True)
def test_symlinks_are_verbatim(t):
    t.seed({'t': 't\n', 'abs': ('->', '/etc/hostname'), 'rel': ('->', 't'), 'dangling': ('->', 'nowhere'), 'up': ('->', '../../..'),
            'd/up': ('->', '../t'), 'loop1': ('->', 'loop2'), 'loop2': ('->', 'loop1')})
    yield
    for name, target in (('abs', '/etc/hostname'), ('rel', 't'), ('dangling', 'nowhere'), ('up', '../../..'), ('d/up', '../t')):
        eq((os.readlink(t.m(name)), os.lstat(t.m(name)).st_size), (target, len(target)), name)
    fails('ELOOP', os.open, t.m('loop1'), os.O_RDONLY)
    eq(read(t.m('d/up')), b't\n', 'through a link')
    longest = 'x/' * 2047 + 'y'
    os.symlink(longest, t.m('long'))
    eq(os.readlink(t.m('long')), longest, 'the longest target')
    fails('ENAMETOOLONG', os.symlink, longest + 'zz', t.m('long2'))
    fails('ENOENT', os.symlink, '', t.m('none'))
    fails('EEXIST', os.symlink, 'x', t.m('rel'))
    raw = os.fsencode(t.m('raw'))
    os.symlink(b'\xff\n\xfe', raw)
    eq(os.readlink(raw), b'\xff\n\xfe', 'bytes that are no text')
    fails('EINVAL', os.readlink, t.m('t'))
    fails('ENOTDIR', os.rmdir, t.m('d/up'))
    old = os.stat(t.m('t'))
    os.utime(t.m('rel'), ns=(111, 222), follow_symlinks=False)
    os.utime(t.m('dangling'), ns=(111, 333), follow_symlinks=False)
    eq((os.lstat(t.m('rel')).st_mtime_ns, os.lstat(t.m('dangling')).st_mtime_ns), (222, 333), 'times of links')
    if t.is_root:
        os.lchown(t.m('rel'), 7, 8)
        eq((os.lstat(t.m('rel')).st_uid, os.lstat(t.m('rel')).st_gid), (7, 8), 'owner of a link')
    eq((os.stat(t.m('t')).st_mtime_ns, os.stat(t.m('t')).st_uid), (old.st_mtime_ns, old.st_uid), 'the target')
    os.unlink(t.m('rel'))
    eq(read(t.m('t')), b't\n', 'the target of a removed link')


@case(plain=True)
def test_long_names(t):
    longest, too_long = 'n' * 255, 'n' * 256
    t.seed({f'low/{longest}': 'x'})
    yield
    eq(read(t.m('low', longest)), b'x', 'a workspace file')
    for make in (create, os.mkdir, lambda p: os.symlink('x', p), os.mkfifo, lambda p: os.link(t.m('low', longest), p)):
        works(make, t.m(longest))
        check(longest in names(t.mnt), 'listing')
        works(os.rename, t.m(longest), t.m('m' * 255))
        (os.rmdir if os.path.isdir(t.m('m' * 255)) else os.unlink)(t.m('m' * 255))
        fails('ENAMETOOLONG', make, t.m(too_long))
    for call in (os.stat, os.unlink, os.rmdir, os.readlink, lambda p: os.rename(p, t.m('x')), lambda p: os.rename(t.m('low'), p), lambda p: os.chmod(p, 0o600)):
        fails('ENAMETOOLONG', call, t.m(too_long))
    euro = '\u20ac' * 85
    create(t.m(euro))
    eq(names(t.mnt), ['low', euro], 'a name of 255 bytes and 85 characters')


@case(plain=True)
def test_paths_longer_than_the_kernel_takes(t):
    step, levels = 'd' * 200, 30
    os.chdir(t.low)
    for _ in range(levels):
        os.mkdir(step)
        os.chdir(step)
    write('bottom', 'workspace')
    os.chdir('/')
    yield
    os.chdir(t.mnt)
    for _ in range(levels):
        os.chdir(step)
    eq(read('bottom'), b'workspace', 'at the bottom')
    append('bottom', '+')
    os.mkdir(step)
    os.rename('bottom', step + '/moved')
    os.chdir(step)
    eq((read('moved'), os.listdir('.')), (b'workspace+', ['moved']), 'after the change')
    os.chdir(t.mnt)
    os.rename(step, 'short')
    t.program('rm', '-rf', t.m('short'))
    eq(names(t.mnt), [], 'rm -rf of it all')


@case(plain=True)
def test_names_that_are_no_text(t):
    low, mnt = os.fsencode(t.low), os.fsencode(t.mnt)
    odd = [b'\xff\xfe', b'new\nline', b'tab\there', b' leading and trailing ', b'-rf', b'*', b'back\\slash', b'"quoted"', b'caf\xe9', 'caf\u00e9'.encode(), 'cafe\u0301'.encode(),
           b'\x01\x7f', b'con', b'.hidden', b'...', b'~', b'%s%n', b'$(id)', b':', b';', b'a' * 255]
    for name in odd:
        write(low + b'/' + name, name)
    yield
    eq(names(mnt), sorted(odd), 'workspace names')
    os.mkdir(mnt + b'/n')
    for name in odd:
        eq(read(mnt + b'/' + name), name, f'content of {name!r}')
        append(mnt + b'/' + name, b'+')
        write(mnt + b'/n/' + name, name)
        os.rename(mnt + b'/' + name, mnt + b'/moved-' + name[:200])
        works(os.stat, mnt + b'/moved-' + name[:200])
    eq(names(mnt + b'/n'), sorted(odd), 'new names')
    t.remount()
    eq((names(mnt + b'/n'), len(names(mnt))), (sorted(odd), len(odd) + 1), 'after a remount')


@case(plain=True)
def test_names_that_other_overlays_treat_as_marks(t):
    t.seed({'.wh.keep': 'w', 'keep': 'k', 'd/.wh..wh..opq': '', 'd/keep': 'k', 'e/keep': 'k', '.wh..wh.plnk/x': '', '.fuse_hidden0001': 'f', '#123': 'h'})
    yield
    eq((names(t.mnt), names(t.m('d'))), (['#123', '.fuse_hidden0001', '.wh..wh.plnk', '.wh.keep', 'd', 'e', 'keep'], ['.wh..wh..opq', 'keep']), 'workspace names')
    write(t.m('e/.wh.keep'), 'mine')
    create(t.m('e/.wh..wh..opq'))
    eq((names(t.m('e')), read(t.m('e/keep'))), (['.wh..wh..opq', '.wh.keep', 'keep'], b'k'), 'new names')
    create(t.m('d/test'))
    os.unlink(t.m('d/test'))
    create(t.m('e/test'))
    t.remount()
    eq(names(t.m('e')), ['.wh..wh..opq', '.wh.keep', 'keep', 'test'], 'after a remount')


@case(plain=True)
def test_fifos_and_sockets_work(t):
    os.mkfifo(t.w('low'))
    yield
    os.mkfifo(t.m('new'), 0o600)
    eq(oct(os.lstat(t.m('new')).st_mode), oct(stat.S_IFIFO | 0o600), 'mode')
    for name in ('low', 'new'):
        if (pid := os.fork()) == 0:
            write(t.m(name), b'through')
            os._exit(0)
        eq(read(t.m(name)), b'through', f'fifo {name}')
        os.waitpid(pid, 0)
    os.chdir(t.mnt)
    server = socket.socket(socket.AF_UNIX)
    server.bind('sock')
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect('sock')
    eq(stat.S_ISSOCK(os.lstat('sock').st_mode), True, 'a socket')
    client.sendall(b'hello')
    eq(server.accept()[0].recv(9), b'hello', 'through the socket')
    os.rename('sock', 'sock2')
    fails('ENOENT', socket.socket(socket.AF_UNIX).connect, 'sock')
    fails(('ECONNREFUSED', 'OK'), socket.socket(socket.AF_UNIX).connect, 'sock2')
    fails('EEXIST', os.mkfifo, 'low')


@case(plain=True)
def test_device_nodes(t):
    yield
    device = os.makedev(1, 3)
    if not t.is_root:
        fails('EPERM', os.mknod, t.m('null'), stat.S_IFCHR | 0o666, device)
        return
    outcome = errno_of(os.mknod, t.m('null'), stat.S_IFCHR | 0o640, device)
    one_of(outcome, ('OK', 'EPERM', 'EACCES'), 'mknod of a device')
    if outcome == 'OK':
        info = os.stat(t.m('null'))
        eq((oct(info.st_mode), info.st_rdev), (oct(stat.S_IFCHR | 0o640), device), 'mode and number')


@case(plain=True, root=True)
def test_a_zero_device_is_no_whiteout(t):
    t.seed({'keep': 'k', 'gone': 'g'})
    yield
    os.unlink(t.m('gone'))
    for name in ('z', 'gone'):
        outcome = errno_of(os.mknod, t.m(name), stat.S_IFCHR | 0o600, 0)
        one_of(outcome, ('OK', 'EPERM', 'EACCES', 'EOPNOTSUPP'), 'mknod c 0 0')
        if outcome == 'OK':
            check(name in names(t.mnt), 'not in the listing')
            works(os.lstat, t.m(name))
            works(os.unlink, t.m(name))
    eq(names(t.mnt), ['keep'], 'at the end')


@case(plain=True)
def test_unlink_takes_away_one_name(t):
    t.seed(TREE)
    yield
    os.unlink(t.m('f'))
    os.unlink(t.m('s'))
    os.unlink(t.m('h1'))
    create(t.m('n'))
    os.unlink(t.m('n'))
    eq((names(t.mnt), os.stat(t.m('h2')).st_nlink), (['d', 'empty', 'full', 'g', 'h2'], 1), 'listing and link count')
    for name in ('f', 's', 'h1', 'n'):
        for call in (os.lstat, os.unlink, read, os.readlink):
            fails('ENOENT', call, t.m(name))
    fails('EISDIR', os.unlink, t.m('d'))
    fails('ENOTDIR', os.rmdir, t.m('g'))
    fails('ENOTEMPTY', os.rmdir, t.m('full'))
    fails('EINVAL', os.rmdir, t.m('full/.'))
    fails('ENOTEMPTY', os.rmdir, t.m('d/sub/..'))
    create(t.m('f'))
    eq(read(t.m('f')), b'', 'a new file of an old name')
