# SPDX-License-Identifier: MIT
"""The error of every path operation for every kind of wrong path, as tables. POSIX names them; programs depend on them."""
import os
import stat

from harness.kit import *  # noqa: F403
from harness.view import OTHER_UID, case

TREE = {'f': 'f', 'd/x': 'x', 'empty/': None, 's': ('->', 'f'), 'sd': ('->', 'd'), 'dangling': ('->', 'nowhere'), 'loop': ('->', 'loop'), 'p/f': 'f'}

# operations on one path, and whether they follow a symlink at its end
ON_PATH = {
    'stat': (os.stat, True), 'lstat': (os.lstat, False), 'open': (lambda p: os.close(os.open(p, os.O_RDONLY)), True),
    'truncate': (lambda p: os.truncate(p, 0), True), 'chmod': (lambda p: os.chmod(p, 0o644), True), 'chown': (lambda p: os.chown(p, -1, -1), True),
    'lchown': (lambda p: os.lchown(p, -1, -1), False), 'utimens': (lambda p: os.utime(p, (1, 1)), True), 'unlink': (os.unlink, False),
    'rmdir': (os.rmdir, False), 'readlink': (os.readlink, False), 'access': (lambda p: os.stat(p), True), 'listdir': (os.listdir, True),
    'link from': (lambda p: os.link(p, p + '.l'), False), 'rename from': (lambda p: os.rename(p, p[:-1] + '~'), False),
    'getxattr': (lambda p: os.getxattr(p, 'user.none'), True), 'statfs': (os.statvfs, True), 'chdir': (os.chdir, True),
}
# operations that make a name
MAKE = {
    'create': create, 'mkdir': os.mkdir, 'mkfifo': os.mkfifo, 'symlink': lambda p: os.symlink('x', p),
    'mknod': lambda p: os.mknod(p, stat.S_IFREG | 0o644),
}


@case(plain=True)
def test_a_file_on_the_way(t):
    t.seed(TREE)
    yield
    for name, (call, _) in ON_PATH.items():
        eq(errno_of(call, t.m('f/below')), 'ENOTDIR', name)
    for name, call in MAKE.items():
        eq(errno_of(call, t.m('f/below')), 'ENOTDIR', name)
    eq(errno_of(os.link, t.m('f'), t.m('p/f/l')), 'ENOTDIR', 'link to')
    eq(errno_of(os.rename, t.m('f'), t.m('p/f/l')), 'ENOTDIR', 'rename to')


@case(plain=True)
def test_nothing_there(t):
    t.seed(TREE)
    yield
    for path in ('none', 'none/below', 'd/none', 'dangling/below'):
        for name, (call, _) in ON_PATH.items():
            eq(errno_of(call, t.m(path)), 'ENOENT', f'{name} {path}')
    for name, (call, follows) in ON_PATH.items():
        if follows:
            eq(errno_of(call, t.m('dangling')), 'ENOENT', f'{name} through a dangling link')
    for name, call in MAKE.items():
        eq(errno_of(call, t.m('none/below')), 'ENOENT', name)
    for call in (os.link, os.rename):
        eq(errno_of(call, t.m('f'), t.m('none/l')), 'ENOENT', f'{call.__name__} to')
    eq(errno_of(os.stat, ''), 'ENOENT', 'the empty path')


@case(plain=True)
def test_loops(t):
    t.seed(TREE)
    yield
    for name, (call, follows) in ON_PATH.items():
        eq(errno_of(call, t.m('loop/below')), 'ELOOP', f'{name} below a loop')
        if follows:
            eq(errno_of(call, t.m('loop')), 'ELOOP', f'{name} of a loop')
    for name, call in MAKE.items():
        eq(errno_of(call, t.m('loop/below')), 'ELOOP', name)


@case(plain=True)
def test_names_and_paths_too_long(t):
    t.seed(TREE)
    yield
    long_path = t.mnt + '/' + 'd/../' * 820 + 'x' * 8
    for path in (t.m('n' * 256), t.m('d', 'n' * 256), long_path):
        for name, (call, _) in ON_PATH.items():
            eq(errno_of(call, path), 'ENAMETOOLONG', name)
        for name, call in MAKE.items():
            eq(errno_of(call, path), 'ENAMETOOLONG', name)


@case(plain=True)
def test_name_taken(t):
    t.seed(TREE)
    yield
    os.mkdir(t.m('nd'))
    create(t.m('nf'))
    for taken in ('f', 'd', 'empty', 's', 'dangling', 'loop', 'nd', 'nf'):
        for name, call in MAKE.items():
            eq(errno_of(call, t.m(taken)), 'EEXIST', f'{name} {taken}')
        eq(errno_of(os.link, t.m('p/f'), t.m(taken)), 'EEXIST', f'link to {taken}')
    for path in ('.', 'd/.', 'd/..', ''):
        eq(errno_of(os.mkdir, t.m(path)), 'EEXIST', f'mkdir {path}')


@case(plain=True)
def test_wrong_kind(t):
    t.seed(TREE)
    yield
    table = [
        ('rmdir of a file', os.rmdir, 'f', 'ENOTDIR'), ('rmdir of a link', os.rmdir, 'sd', 'ENOTDIR'), ('rmdir of a full directory', os.rmdir, 'd', 'ENOTEMPTY'),
        ('unlink of a directory', os.unlink, 'd', 'EISDIR'), ('readlink of a file', os.readlink, 'f', 'EINVAL'), ('readlink of a directory', os.readlink, 'd', 'EINVAL'),
        ('listdir of a file', os.listdir, 'f', 'ENOTDIR'), ('truncate of a directory', lambda p: os.truncate(p, 0), 'd', 'EISDIR'),
        ('negative truncate', lambda p: os.truncate(p, -1), 'f', 'EINVAL'), ('chdir to a file', os.chdir, 'f', 'ENOTDIR'),
        ('open of a directory to write', lambda p: os.open(p, os.O_WRONLY), 'd', 'EISDIR'), ('a slash after a file', os.stat, 'f/', 'ENOTDIR'),
        ('a slash after a link to a file', os.stat, 's/', 'ENOTDIR'), ('a slash after a link to a directory', os.stat, 'sd/', 'OK'),
        ('create with a slash', lambda p: os.open(p, os.O_CREAT | os.O_WRONLY), 'new/', 'EISDIR'), ('mkdir with a slash', os.mkdir, 'newdir/', 'OK'),
        ('unlink with a slash', os.unlink, 'f/', 'ENOTDIR'), ('rmdir of a dot', os.rmdir, 'empty/.', 'EINVAL'),
        ('removal through a link to a directory', os.rmdir, 'sd/', 'ENOTDIR'), ('open of a socketless fifo to write', lambda p: (os.mkfifo(p), os.open(p, os.O_WRONLY | os.O_NONBLOCK)), 'ff', 'ENXIO'),
    ]
    for what, call, path, want in table:
        eq(errno_of(call, t.mnt + '/' + path), want, what)


@case(plain=True)
def test_rename_and_link_tables(t):
    t.seed(TREE)
    yield
    table = [
        (os.rename, 'd', 'f', 'ENOTDIR'), (os.rename, 'f', 'd', 'EISDIR'), (os.rename, 'd', 'p', ('ENOTEMPTY', 'EEXIST')), (os.rename, 'd', 'd/below', 'EINVAL'),
        (os.rename, 'f', 'f/', 'ENOTDIR'), (os.rename, 'f', 'new/', 'ENOTDIR'), (os.rename, 'd/.', 'new', ('EBUSY', 'EINVAL')), (os.rename, 'd/..', 'new', ('EBUSY', 'EINVAL', 'ENOTEMPTY')),
        (os.rename, 'f', 'loop/x', 'ELOOP'), (os.rename, 'loop/x', 'y', 'ELOOP'), (os.rename, 'dangling', 'dangling2', 'OK'), (os.rename, 'f', 'n' * 256, 'ENAMETOOLONG'),
        (os.link, 'd', 'new', 'EPERM'), (os.link, 'f', 'd', 'EEXIST'), (os.link, 'loop/x', 'y', 'ELOOP'), (os.link, 'f', 'n' * 256, 'ENAMETOOLONG'),
        (os.link, 'f', 'f/x', 'ENOTDIR'), (os.link, 'f/x', 'new', 'ENOTDIR'), (os.link, 'f', 'f', 'EEXIST'),
    ]
    for call, source, target, want in table:
        one_of(errno_of(call, t.m(source), t.m(target)), (want,) if isinstance(want, str) else want, f'{call.__name__} {source} {target[:20]}')
    outside = t.path('outside')
    write(outside, 'o')
    if not t.plain:
        eq((errno_of(os.rename, outside, t.m('in')), errno_of(os.link, outside, t.m('in')), errno_of(os.rename, t.m('f'), outside + '2')), ('EXDEV',) * 3, 'across file systems')


@case(plain=True)
def test_nobody_searches_a_closed_directory(t):
    t.seed(TREE)
    os.chmod(t.low, 0o755)
    yield
    os.mkdir(t.m('closed'))
    for name, value in (('f', 'f'), ('s', ('->', 'f'))):
        grow(t.m('closed'), {name: value})
    os.mkdir(t.m('closed/d'))
    os.chmod(t.m('closed'), 0o600)
    os.chmod(t.m('p'), 0o644)

    def ordinary():
        for directory in ('closed', 'p'):
            for name, (call, _) in ON_PATH.items():
                eq(errno_of(call, t.m(directory, 'f')), 'EACCES', f'{name} in {directory}')
            for name, call in MAKE.items():
                eq(errno_of(call, t.m(directory, 'n')), 'EACCES', f'{name} in {directory}')
            eq(errno_of(os.rename, t.m(directory, 'f'), t.m('x')), 'EACCES', 'rename from')
            eq(errno_of(os.link, t.m(directory, 'f'), t.m('x')), 'EACCES', 'link from')
    t.as_ordinary(ordinary)
    os.chmod(t.m('closed'), 0o700)
    os.chmod(t.m('p'), 0o755)


@case(plain=True)
def test_nobody_changes_a_directory_without_w(t):
    t.seed(TREE)
    yield
    os.chmod(t.m('d'), 0o555)
    os.mkdir(t.m('open'))
    os.chmod(t.m('open'), 0o777)

    def ordinary():
        grow(t.m('open'), {'f': 'f'})
        for name, call in MAKE.items():
            eq(errno_of(call, t.m('d/n')), 'EACCES', name)
        for call in (lambda: os.unlink(t.m('d/x')), lambda: os.rename(t.m('d/x'), t.m('open/x')), lambda: os.rename(t.m('open/f'), t.m('d/f')),
                     lambda: os.rename(t.m('open/f'), t.m('d/x')), lambda: os.link(t.m('open/f'), t.m('d/l')), lambda: exchange(t.m('open/f'), t.m('d/x'))):
            eq(errno_of(call), 'EACCES', 'a change of the directory')
        eq(errno_of(create, t.m('d/x')), 'EEXIST', 'an existing name')
        works(read, t.m('d/x'))
    t.as_ordinary(ordinary)
    os.chmod(t.m('d'), 0o755)


@case(plain=True, root=True)
def test_sticky_directories_protect_owners(t):
    t.seed({'sticky/roots': 'r', 'sticky/dir/': None})
    os.chmod(t.w('sticky'), 0o1777)
    yield
    third = OTHER_UID - 1

    def make():
        grow(t.m('sticky'), {'his': 'h', 'hisdir/': None})
    in_child(make, third, third)

    def other():
        for name in ('roots', 'his'):
            eq(errno_of(os.unlink, t.m('sticky', name)), 'EPERM', f'unlink {name}')
            eq(errno_of(os.rename, t.m('sticky', name), t.m('sticky/x')), 'EPERM', f'rename {name}')
        for name in ('dir', 'hisdir'):
            eq(errno_of(os.rmdir, t.m('sticky', name)), 'EPERM', f'rmdir {name}')
        create(t.m('sticky/mine'))
        eq(errno_of(os.rename, t.m('sticky/mine'), t.m('sticky/his')), 'EPERM', 'replace')
        eq(errno_of(exchange, t.m('sticky/mine'), t.m('sticky/his')), 'EPERM', 'exchange')
        works(os.rename, t.m('sticky/mine'), t.m('sticky/mine2'))
        works(os.unlink, t.m('sticky/mine2'))
    t.as_other(other)
    in_child(lambda: works(os.unlink, t.m('sticky/his')), third, third)
    works(os.unlink, t.m('sticky/roots'))


@case(plain=True, root=True)
def test_only_owners_change_attributes(t):
    t.seed({'f': ('f', 0o666), 'd/': 0o777})
    yield
    create(t.m('n'), 0o666)
    os.chmod(t.m('n'), 0o666)

    def other():
        for name in ('f', 'n', 'd'):
            for what, call in (('chmod', lambda p: os.chmod(p, 0o777)), ('chown', lambda p: os.chown(p, OTHER_UID, -1)), ('chgrp', lambda p: os.chown(p, -1, OTHER_UID)),
                               ('utimens', lambda p: os.utime(p, (1, 1)))):
                eq(errno_of(call, t.m(name)), 'EPERM', f'{what} {name}')
            works(os.utime, t.m(name))
    t.as_other(other)
    os.chown(t.m('n'), OTHER_UID, OTHER_UID)

    def owner():
        works(os.chmod, t.m('n'), 0o640)
        works(os.utime, t.m('n'), (1, 1))
        works(os.chown, t.m('n'), -1, OTHER_UID)
        eq(errno_of(os.chown, t.m('n'), 0, -1), 'EPERM', 'giving a file away')
        eq(errno_of(os.chown, t.m('n'), -1, 0), 'EPERM', 'a group that one is not in')
        os.chmod(t.m('n'), 0o2644)
    t.as_other(owner)
