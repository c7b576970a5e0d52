# SPDX-License-Identifier: MIT
"""Where the view lies over the workspace: deletions, replaced directories, copies made at the first change, and promise 1.

After each case the harness compares the workspace with what it was, times and inode numbers included.
"""
import contextlib
import mmap
import os
import shutil
import stat
import time

from harness.kit import *  # noqa: F403
from harness.view import case

TREE = {'d/f': 'f\n', 'd/sub/g': 'g\n', 'd/sub/sub2/h': 'h\n', 'a/b/c1': '1', 'a/b/c2': '2', 'c/b/x': 'x', 'keep': 'k\n'}


@case(plain=True)
def test_a_remade_directory_is_empty(t):
    t.seed(TREE)
    yield
    shutil.rmtree(t.m('d'))
    for path in ('d/f', 'd/sub/g', 'd/sub/sub2/h', 'd/sub', 'd'):
        fails('ENOENT', os.open, t.m(path), os.O_RDONLY)
    for path in ('d', 'd/sub', 'd/sub/sub2'):
        os.mkdir(t.m(path))
        eq(names(t.m(path)), [], path)
        fails('ENOENT', os.stat, t.m(path, 'f'))
        fails('ENOENT', os.open, t.m('d/sub/g'), os.O_RDONLY)
    os.mkdir(t.m('d/sub/g'))
    create(t.m('d/f'))
    write(t.m('d/f'), 'new')
    eq((read(t.m('d/f')), names(t.m('d/sub'))), (b'new', ['g', 'sub2']), 'new files of old names')
    t.remount()
    eq((names(t.m('d')), names(t.m('d/sub/sub2')), names(t.m('d/sub/g'))), (['f', 'sub'], [], []), 'after a remount')


@case(plain=True)
def test_other_kinds_take_the_place_of_a_deleted_name(t):
    makers = {'file': lambda p: write(p, 'new'), 'link': lambda p: os.symlink('keep', p), 'directory': os.mkdir, 'fifo': os.mkfifo, 'hard': lambda p: os.link(t.m('keep'), p)}
    for kind in makers:
        t.seed({f'f-{kind}': 'old', f'd-{kind}/old': 'old', f's-{kind}': ('->', 'old')})
    t.seed(TREE)
    yield
    for kind, make in makers.items():
        for prefix in 'fds':
            path = t.m(f'{prefix}-{kind}')
            shutil.rmtree(path) if prefix == 'd' else os.unlink(path)
            make(path)
            if kind == 'directory':
                eq(names(path), [], path)
                os.rmdir(path)
            else:
                os.unlink(path)
            check(is_gone(path), f'{path} came back')
            make(path)
    t.remount()
    for prefix in 'fds':
        eq((read(t.m(f'{prefix}-file')), os.readlink(t.m(f'{prefix}-link')), names(t.m(f'{prefix}-directory'))), (b'new', 'keep', []), f'{prefix}: after a remount')
    eq(os.stat(t.m('keep')).st_nlink, 4, 'names of the linked file')


@case(plain=True)
def test_a_new_directory_moves_onto_a_deleted_one(t):
    t.seed(TREE)
    yield
    grow(t.m('n'), {'b/c2': 'new', 'b/e': 'e'})
    shutil.rmtree(t.m('a'))
    os.rename(t.m('n'), t.m('a'))
    eq((names(t.m('a/b')), read(t.m('a/b/c2'))), (['c2', 'e'], b'new'), 'only new children')
    grow(t.m('n2'), {'b/y': 'y'})
    shutil.rmtree(t.m('c'))
    rename2(t.m('n2'), t.m('c'), RENAME_NOREPLACE)
    eq(names(t.m('c/b')), ['y'], 'by RENAME_NOREPLACE')
    shutil.rmtree(t.m('a/b'))
    os.rename(t.m('d'), t.m('a/b'))
    eq((names(t.m('a/b')), read(t.m('a/b/sub/g'))), (['f', 'sub'], b'g\n'), 'a workspace directory onto a deleted name')
    t.remount()
    eq((names(t.m('a/b')), names(t.m('c/b')), is_gone(t.m('d'))), (['f', 'sub'], ['y'], True), 'after a remount')


@case(plain=True)
def test_directories_swap_places(t):
    t.seed({'a/one': '1', 'a/both': 'a', 'b/two': '2', 'b/both': 'b'})
    yield
    os.rename(t.m('a'), t.m('t'))
    os.rename(t.m('b'), t.m('a'))
    os.rename(t.m('t'), t.m('b'))
    eq((names(t.m('a')), names(t.m('b')), read(t.m('a/both')), read(t.m('b/both'))), (['both', 'two'], ['both', 'one'], b'b', b'a'), 'by three renames')
    os.unlink(t.m('a/two'))
    write(t.m('b/three'), '3')
    exchange(t.m('a'), t.m('b'))
    t.remount()
    eq((names(t.m('a')), names(t.m('b'))), (['both', 'one', 'three'], ['both']), 'by an exchange, after a remount')


@case(plain=True)
def test_a_renamed_directory_keeps_its_own_and_its_workspace_entries(t):
    t.seed(TREE)
    yield
    write(t.m('d/new'), 'n')
    os.unlink(t.m('d/f'))
    append(t.m('d/sub/g'), '+')
    os.rename(t.m('d'), t.m('a/d'))
    eq((names(t.m('a/d')), read(t.m('a/d/sub/g')), read(t.m('a/d/sub/sub2/h'))), (['new', 'sub'], b'g\n+', b'h\n'), 'after the rename')
    write(t.m('a/d/f'), 'again')
    os.rename(t.m('a/d/sub/sub2'), t.m('d'))
    os.rename(t.m('a'), t.m('z'))
    t.remount()
    eq((names(t.m('z/d')), names(t.m('d')), read(t.m('z/d/f')), read(t.m('z/b/c1'))), (['f', 'new', 'sub'], ['h'], b'again', b'1'), 'after a remount')


@case(plain=True)
def test_renaming_there_and_back(t):
    t.seed(TREE)
    yield
    before = digest(t.mnt, ('owner', 'ino', 'nlink', 'xattr'))
    for name in ('d', 'keep', 'a/b', 'd/sub'):
        os.rename(t.m(name), t.m('elsewhere'))
        os.rename(t.m('elsewhere'), t.m(name))
    same_lists(digest(t.mnt, ('owner', 'ino', 'nlink', 'xattr')), before, 'after there and back')
    if not t.plain:
        eq(t.diff().out, '', 'no difference')


@case(plain=True)
def test_changes_of_attributes_read_no_data(t):
    """chmod, chown, utimens and xattrs of a large file copy nothing: the store stays small."""
    with open(t.w('big'), 'wb') as file:
        for number in range(32):
            file.write(noise(1 << 20, number))
    yield
    os.chmod(t.m('big'), 0o600)
    os.utime(t.m('big'), (5, 5))
    os.chown(t.m('big'), -1, os.getgid())
    with contextlib.suppress(OSError):
        os.setxattr(t.m('big'), 'user.x', b'1')
    os.link(t.m('big'), t.m('big2'))
    os.rename(t.m('big'), t.m('big3'))
    if not t.plain:
        size = int(t.program('du', '-sk', t.store()).out.split()[0])
        check(size < 16_000, f'the store has {size} KiB')
    os.pwrite(os.open(t.m('big2'), os.O_RDWR), b'one byte', 5 << 20)
    check(read(t.m('big3'))[(5 << 20) + 8:] == b''.join(noise(1 << 20, n) for n in range(5, 32))[8:], 'content behind the write')
    if not t.plain:
        size = int(t.program('du', '-sk', t.store()).out.split()[0])
        check(size < 40_000, f'the store has {size} KiB')


@case(plain=True)
def test_every_change_leaves_the_workspace_alone(t):
    t.seed({**{f'd/f{i}': f'{i}\n' for i in range(1, 10)}, 'd/e/': None, 'd/s': ('->', 'f1'), 'd/h2': ('=', 'd/f2'), 'x/y/z': 'z'})
    os.mkfifo(t.w('d/p'))
    with contextlib.suppress(OSError):
        os.setxattr(t.w('d/f1'), 'user.a', b'1')
    yield
    d = t.m('d')
    for call in (lambda: write(d + '/f1', 'x'), lambda: append(d + '/f2', 'x'), lambda: os.truncate(d + '/f3', 100), lambda: os.truncate(d + '/f3', 0),
                 lambda: os.chmod(d + '/f4', 0), lambda: os.utime(d + '/f4', (1, 1)), lambda: os.chown(d + '/f4', os.getuid(), os.getgid()),
                 lambda: os.setxattr(d + '/f4', 'user.q', b'1'), lambda: os.removexattr(d + '/f1', 'user.a'), lambda: os.link(d + '/f5', d + '/l5'),
                 lambda: write(d + '/l5', 'by link'), lambda: os.rename(d + '/f6', d + '/r6'), lambda: os.unlink(d + '/f7'), lambda: os.symlink('q', d + '/f7'),
                 lambda: os.rename(d + '/f8', d + '/f9'), lambda: exchange(d + '/f9', d + '/s'), lambda: os.utime(d + '/s', (1, 1), follow_symlinks=False),
                 lambda: os.chmod(d, 0o700), lambda: os.utime(d, (1, 1)), lambda: os.chmod(d + '/p', 0o600), lambda: os.rename(t.m('x/y/z'), t.m('x/z')),
                 lambda: os.rmdir(t.m('x/y')), lambda: os.mkdir(t.m('x/y')), lambda: shutil.rmtree(t.m('x')), lambda: os.rename(d + '/e', t.m('e2')),
                 lambda: os.mkfifo(d + '/np'), lambda: os.chmod(t.mnt, 0o755), lambda: os.utime(t.mnt, (2, 2))):
        with contextlib.suppress(OSError):
            call()
    for name in ('f2', 'h2', 'l5'):
        with opened(os.path.join(d, name), os.O_RDWR) as fd, mmap.mmap(fd, 1) as mapping:
            mapping[0:1] = b'M'
            os.posix_fallocate(fd, 0, 9999)
            os.ftruncate(fd, 3)
            os.fchmod(fd, 0o777)
            os.utime(fd, (9, 9))
            os.fsync(fd)
    os.sync()


@case()
def test_reading_moves_no_access_time(t):
    t.seed({'d/f': 'x' * 100_000, 'd/s': ('->', 'f'), 'd/g': 'g'})
    for name in ('d/f', 'd/g', 'd', '.'):
        os.utime(t.w(name), ns=(1, os.stat(t.w(name)).st_mtime_ns))
    write(t.path('probe'), 'p')
    os.utime(t.path('probe'), ns=(1, 2))
    read(t.path('probe'))
    if os.stat(t.path('probe')).st_atime_ns == 1:
        t.skip('this file system keeps no access times')
    yield
    for name in ('d/f', 'd/g', 'd', '.'):
        os.utime(t.w(name), ns=(1, os.stat(t.w(name)).st_mtime_ns))
    t.options.workspace_changes = True  # ours, right above
    t.remount()
    names(t.mnt), names(t.m('d')), read(t.m('d/f')), os.readlink(t.m('d/s'))
    append(t.m('d/g'), 'x')
    t.diff()
    eq([os.stat(t.w(name)).st_atime_ns for name in ('d/f', 'd/g', 'd', '.')], [1] * 4, 'access times in the workspace')


@case(workspace_changes=True, remount=False)
def test_edits_of_the_workspace_are_seen_whole(t):
    t.seed({'f': '0123456789\n', 'g': '0123456789\n', 'gone': 'g', 'd/x': 'x'})
    yield
    old = b'0123456789\n'
    eq((read(t.m('f')), read(t.m('g')), names(t.m('d'))), (old, old, ['x']), 'before')
    fails('ENOENT', os.stat, t.m('new'))
    append(t.w('f'), 'appended\n')
    os.truncate(t.w('g'), 4)
    write(t.w('new'), 'n')
    write(t.w('d/y'), 'y')
    os.unlink(t.w('gone'))

    def current():
        one_of(read(t.m('f')), (old, old + b'appended\n'), 'an edited file')
        one_of(read(t.m('g')), (old, b'0123'), 'a shortened file')
        return (len(read(t.m('f'))), len(read(t.m('g'))), os.path.exists(t.m('new')), names(t.m('d')), is_gone(t.m('gone'))) == (20, 4, True, ['x', 'y'], True)
    end = time.monotonic() + 30
    while not current():
        check(time.monotonic() < end, 'edits of the workspace do not show')
        time.sleep(0.05)
    append(t.m('f'), '!')
    eq(read(t.m('f')), old + b'appended\n!', 'an append in the view after it')


@case(workspace_changes=True, remount=False)
def test_edits_of_the_workspace_leave_changed_files_alone(t):
    t.seed({'f': 'base', 'd/g': 'base', 'del': 'base'})
    yield
    write(t.m('f'), 'ours')
    append(t.m('d/g'), '+ours')
    os.unlink(t.m('del'))
    write(t.w('f'), 'theirs')
    write(t.w('d/g'), 'theirs')
    write(t.w('del'), 'theirs')
    t.remount()
    eq((read(t.m('f')), read(t.m('d/g')), is_gone(t.m('del'))), (b'ours', b'base+ours', True), 'the sandbox keeps its own')


@case(remount=False)
def test_the_store_does_not_show_in_the_view(t):
    t.seed(TREE)
    yield
    write(t.m('n'), 'n')
    eq(names(t.mnt), sorted({name.split('/')[0] for name in TREE} | {'n'}), 'listing')
    for name in ('.sbxfs', 'store.db', '.store', '.control', 'socket'):
        fails('ENOENT', os.stat, t.m(name))
    eq((permissions(t.path('state/sbxfs')) & 0o77, permissions(t.store())), (0, 0o700), 'modes on the way to the store')
    for directory, _, files in os.walk(t.path('run')):
        for name in files:
            path = os.path.join(directory, name)
            check(not permissions(path) & 0o77, f'mode of {path}')


@case(in_place=True)
def test_a_view_over_the_workspace_itself(t):
    t.seed({**TREE, 'm': 'm', 'deep/er/f': 'x' * 200_000})
    outside = os.path.realpath(t.low)
    yield
    eq(sorted(name.split('/')[0] for name in names(t.mnt)), ['a', 'c', 'd', 'deep', 'keep', 'm'], 'listing')
    write(t.m('keep'), 'changed')
    os.rename(t.m('d'), t.m('d2'))
    shutil.rmtree(t.m('a'))
    with opened(t.m('deep/er/f'), os.O_RDWR) as fd:
        os.pwrite(fd, b'!', 100_000)
    eq((read(t.m('d2/sub/g')), read(t.m('keep')), is_gone(t.m('a'))), (b'g\n', b'changed', True), 'changes')
    eq(os.path.realpath(t.mnt), outside, 'the same path')
    status = t.name_status()
    eq((status['keep'], 'a/b/c1' in status), ('M', True), 'the difference sees the workspace below')
    t.umount()
    eq((read(t.w('keep')), names(t.w('a/b'))), (b'k\n', ['c1', 'c2']), 'the workspace after the unmount')
    t.mount()
    eq((read(t.m('keep')), is_gone(t.m('a'))), (b'changed', True), 'mounted again')


@case(in_place=True, workspace_changes=True, remount=False)
def test_commit_and_rollback_under_a_view_in_place(t):
    t.seed(TREE)
    yield
    write(t.m('keep'), 'changed')
    write(t.m('d/new'), 'n')
    t.commit(paths=['keep'])
    eq(t.name_status(), {'d/new': 'A'}, 'left after a commit of one file')
    t.rollback()
    eq((read(t.m('keep')), names(t.m('d'))), (b'changed', ['f', 'sub']), 'after the rollback')
    t.umount()
    eq((read(t.w('keep')), names(t.w('d'))), (b'changed', ['f', 'sub']), 'the workspace')


@case(plain=True)
def test_a_workspace_with_odd_permissions(t):
    t.seed({'ro/f': ('f', 0o444), 'ro/sub/g': ('g', 0o400), 'x': ('x', 0o4755)})
    os.chmod(t.w('ro'), 0o555)
    yield
    eq((read(t.m('ro/f')), oct(permissions(t.m('ro'))), oct(permissions(t.m('x')))), (b'f', '0o555', '0o4755'), 'as in the workspace')
    os.chmod(t.m('ro'), 0o755)
    os.unlink(t.m('ro/f'))
    write(t.m('ro/f'), 'new')
    eq(read(t.m('ro/f')), b'new', 'after chmod in the view')


@case(plain=True)
def test_sparse_files_stay_sparse_when_touched(t):
    with open(t.w('sparse'), 'wb') as file:
        file.truncate(256 << 20)
        file.seek(128 << 20)
        file.write(b'island')
    yield
    with opened(t.m('sparse'), os.O_RDWR) as fd:
        os.pwrite(fd, b'x', 5)
        eq((os.pread(fd, 6, 128 << 20), os.pread(fd, 3, 4), os.fstat(fd).st_size), (b'island', b'\0x\0', 256 << 20), 'content')
        check(os.fstat(fd).st_blocks * 512 < 16 << 20, f'{os.fstat(fd).st_blocks} blocks')
        os.ftruncate(fd, 100)
    eq(stat.S_ISREG(os.stat(t.m('sparse')).st_mode), True, 'kind')


@case(plain=True)
def test_editors_and_tools_save_in_their_ways(t):
    names_ = ['emacs', 'vim', 'rename', 'backup', 'sed', 'perl', 'truncate', 'atomic']
    t.seed({f'{name}.txt': ('one\ntwo\n', 0o640) for name in names_})
    yield

    def save(name, text):
        path = t.m(f'{name}.txt')
        if name == 'emacs':
            os.rename(path, path + '~')
            write(path, text)
            os.chmod(path, 0o640)
        elif name == 'vim':
            shutil.copy2(path, path + '~')
            write(path, text)
            os.unlink(path + '~')
        elif name == 'rename':
            write(path + '.tmp', text)
            os.chmod(path + '.tmp', 0o640)
            with opened(path + '.tmp') as fd:
                os.fsync(fd)
            os.rename(path + '.tmp', path)
        elif name == 'backup':
            os.link(path, path + '.bak')
            write(path + '.new', text)
            os.chmod(path + '.new', 0o640)
            os.rename(path + '.new', path)
        elif name == 'sed':
            t.program('sed', '-i', 's/two/2/', path)
        elif name == 'perl':
            t.program('perl', '-pi', '-e', 's/two/2/', path)
        elif name == 'truncate':
            with opened(path, os.O_WRONLY | os.O_TRUNC) as fd:
                os.write(fd, text)
        else:
            write(t.m('.#atomic'), text)
            os.chmod(t.m('.#atomic'), 0o640)
            exchange(t.m('.#atomic'), path)
            os.unlink(t.m('.#atomic'))
    for name in names_:
        save(name, b'one\n2\n')
        eq((read(t.m(f'{name}.txt')), oct(permissions(t.m(f'{name}.txt')))), (b'one\n2\n', '0o640'), name)
    left = [name for name in names(t.mnt) if name.removesuffix('.txt') not in names_]
    eq(left, ['backup.txt.bak', 'emacs.txt~'], 'names left')
    if not t.plain:
        eq(sorted(set(t.name_status()) - {'backup.txt.bak', 'emacs.txt~'}), [f'{name}.txt' for name in sorted(names_)], 'changes')
