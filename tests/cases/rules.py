# SPDX-License-Identifier: MIT
"""The rules of a policy, tried by every road to a file that we know: nothing denied is ever read, nothing read-only changed."""
import contextlib
import errno
import json
import mmap
import os
import shutil
import stat
import time

from harness.kit import *  # noqa: F403
from harness.secrets import *  # noqa: F403
from harness.view import case

POLICY = r"""[profile cases]
description = rules of the tests

[files cases]
write = **
deny = **/.env, **/.env.*
write = **/.env.example
deny = **/secrets
deny = **/*.pem
deny = re:(^|/)id_(rsa|ed25519)$
deny = /anchored/top/**
hide = **/vault, **/*.hid
read = **/locked, **/.git/hooks
"""
TREE = {'.env': MARK, '.env.local': MARK, '.env.example': 'template\n', 'a/b/.env': MARK, 'a/b/.env.example': 'template\n', 'a/pub': 'pub\n', 'secrets/k': MARK, 'secrets/sub/k': MARK,
        'a/secrets/k': MARK, 'id_rsa': MARK, 'a/x.pem': MARK, 'anchored/top/key': MARK, 'anchored/top/deep/k': MARK, 'anchored/pub': 'pub\n', 'vault/v': MARK,
        'a/vault/v': MARK, 's.hid': MARK, 'locked/f': 'l\n', 'locked/sub/g': 'g\n', '.git/hooks/h': 'h\n', '.git/config': 'c\n', 'pub': 'pub\n', 'pd/p': 'p\n'}
DENIED_FILES = ['.env', '.env.local', 'a/b/.env', 'secrets/k', 'secrets/sub/k', 'a/secrets/k', 'id_rsa', 'a/x.pem', 'anchored/top/key', 'anchored/top/deep/k']
HIDDEN = ['vault', 'vault/v', 'a/vault', 's.hid']

ruled = case(policy=POLICY)


def seed(t):
    t.seed(TREE)
    os.symlink('/elsewhere/' + MARK.decode(), t.w('secrets/link'))


def intact(t):
    """Everything protected is where it was."""
    for name in DENIED_FILES:
        denied(bytes_of, t.m(name))
    eq((read(t.m('locked/f')), read(t.m('pub')), names(t.m('pd'))), (b'l\n', b'pub\n', ['p']), 'files beside the denied ones')
    sweep(t)


@ruled
def test_denied_files_cannot_be_read(t):
    seed(t)
    yield
    for name in DENIED_FILES:
        denied(bytes_of, t.m(name))
        denied(lambda p: mmap.mmap(os.open(p, os.O_RDONLY), 4, mmap.MAP_SHARED, mmap.PROT_READ), t.m(name))
        check(t.program('cat', t.m(name), code=None).code != 0, f'cat {name}')
    for name in ('secrets', 'a/secrets', 'secrets/sub'):
        denied(os.listdir, t.m(name))
    denied(os.readlink, t.m('secrets/link'))
    t.as_ordinary(lambda: [denied(os.open, t.m(name), os.O_RDONLY) for name in DENIED_FILES] and None)
    for name in ('.env.example', 'a/b/.env.example'):
        eq(read(t.m(name)), b'template\n', 'an exception')
    sweep(t)
    for command in (['grep', '-r', '.', t.mnt], ['tar', '-C', t.mnt, '-cf', '-', '.'], ['find', t.mnt, '-type', 'f', '-exec', 'cat', '{}', '+'], ['cp', '-r', t.mnt, t.path('copy')]):
        done = t.program(*command, code=None)
        check(MARK not in done.bytes and MARK.decode() not in done.err, f'{command[0]} got at it')
    sweep(t, t.path('copy'))


@ruled
def test_denied_files_show_their_name_and_nothing_else(t):
    seed(t)
    yield
    check({'.env', 'secrets', 'id_rsa'} <= set(names(t.mnt)), 'listing')
    for name in ('.env', 'a/x.pem', 'id_rsa'):
        if t.is_root and errno_of(os.lstat, t.m(name)) == 'EACCES':
            continue  # whoever may override permissions may be refused before there is an inode to open
        info = os.lstat(t.m(name))
        eq((stat.S_IMODE(info.st_mode), info.st_size), (0, 0), f'mode and size of {name}')
        eq(errno_of(os.getxattr, t.m(name), 'user.x') in ('EACCES', 'EPERM', 'ENODATA', 'EOPNOTSUPP'), True, f'xattr of {name}')
    listed = t.program('ls', '-la', t.mnt)
    eq((listed.err, '.env' in listed.out), ('', True), 'what ls complains of')
    # x alone is the way through to something allowed below
    one_of(errno_or(permissions, t.m('secrets')), (0, 0o111, 'EACCES') if t.is_root else (0, 0o111), 'mode of a denied directory')


@ruled
def test_denied_files_cannot_be_changed(t):
    seed(t)
    with contextlib.suppress(OSError):
        os.setxattr(t.w('.env'), 'user.s', MARK)
    yield
    for name in DENIED_FILES + ['secrets', 'secrets/sub']:
        path = t.m(name)
        for call in (lambda p: os.chmod(p, 0o777), lambda p: os.chown(p, os.getuid(), os.getgid()), lambda p: os.utime(p, (1, 1)), lambda p: os.setxattr(p, 'user.a', b'1'),
                     lambda p: os.truncate(p, 0), os.unlink, os.rmdir, lambda p: os.rename(p, t.m('away')), lambda p: os.link(p, t.m('alias')),
                     lambda p: os.link(p, p + '2'), lambda p: (write(t.m('tmp'), 'x'), os.rename(t.m('tmp'), p)), lambda p: exchange(p, t.m('pub')),
                     lambda p: exchange(t.m('pub'), p), lambda p: exchange(t.m('pd'), p), lambda p: exchange(p, t.m('pd')), lambda p: write(p, 'x'), lambda p: append(p, 'x'),
                     lambda p: os.removexattr(p, 'user.s')):
            denied(call, path, also=('EISDIR', 'ENOTDIR', 'EOPNOTSUPP'))
        check(not os.path.lexists(t.m('away')) and not os.path.lexists(t.m('alias')), f'{name} went away')
    one_of(errno_of(os.getxattr, t.m('.env'), 'user.s'), DENIED + ('ENODATA', 'EOPNOTSUPP'), 'its xattr')
    check('user.s' not in errno_or(os.listxattr, t.m('.env')), 'names of its xattrs')
    intact(t)
    stored = t.program('grep', '-rqa', MARK.decode(), t.store(), code=None)
    eq(stored.code, 1, 'grep for the secret in the store')


@ruled
def test_denied_names_cannot_be_made(t):
    t.seed({'d/': None, 'file': 'f'})
    yield
    os.makedirs(t.m('n/m'))
    write(t.m('mine'), 'x')
    made = ('.env', '.env.local', 'x.pem', 'secrets', 'id_ed25519')
    for directory in ('', 'd', 'n', 'n/m'):
        for name in made:
            path = t.m(directory, name)
            for call in (create, os.mkdir, os.mkfifo, lambda p: os.symlink('x', p), lambda p: os.link(t.m('mine'), p), lambda p: os.rename(t.m('mine'), p),
                         lambda p: os.rename(t.m('file'), p), lambda p: rename2(t.m('mine'), p, RENAME_NOREPLACE), lambda p: write(p, 'x'),
                         lambda p: os.mknod(p, stat.S_IFREG | 0o644)):
                denied(call, path)
            check(is_gone(path), f'{path} is there')
    for top in (t.mnt, t.low):
        for directory, directories, files in os.walk(top):
            check(not set(directories + files) & set(made), f'a placeholder in {directory}')
    write(t.m('n/.env.example'), 'ok')
    eq((read(t.m('n/.env.example')), read(t.m('mine'))), (b'ok', b'x'), 'what is allowed')
    denied(create, t.m('anchored/top/key'), also=('ENOENT',))


@ruled
def test_a_tree_moved_in_gets_no_denied_name(t):
    t.seed({'pub': 'p'})
    yield
    grow(t.m('x'), {'top/key': 'k', 'top/deep/k': 'k'})
    one_of(errno_of(os.rename, t.m('x'), t.m('anchored')), ('OK',) + DENIED, 'a rename onto an anchored name')
    if not is_gone(t.m('anchored')):
        for name in ('top/key', 'top/deep/k'):
            denied(bytes_of, t.m('anchored', name), also=('ENOENT',))
            denied(write, t.m('anchored', name), 'x', also=('ENOENT',))


@ruled
def test_a_denied_name_that_appears_later_is_denied_at_once(t):
    t.seed({'late/pub': 'p'})
    yield
    t.options.workspace_changes = True
    t.options.remount = False
    names(t.m('late'))
    fails(('ENOENT',) + DENIED, bytes_of, t.m('late/.env'))
    grow(t.w('late'), {'.env': MARK, 'secrets/k': MARK, 'v.hid': MARK, 'vault/k': MARK})
    end = time.monotonic() + 3
    while time.monotonic() < end:
        sweep(t)
        for call, name in ((bytes_of, '.env'), (bytes_of, 'secrets/k'), (os.listdir, 'secrets')):
            fails(('ENOENT',) + DENIED, call, t.m('late', name))
        for name in ('v.hid', 'vault', 'vault/k'):
            fails('ENOENT', os.lstat, t.m('late', name))
        time.sleep(0.1)
    os.unlink(t.w('late/.env'))
    grow(t.w('late'), {'.env/inner': MARK})
    time.sleep(1.5)
    sweep(t)


@ruled
def test_links_reach_nothing_denied(t):
    seed(t)
    os.makedirs(t.w('links'))
    os.symlink('../.env', t.w('links/low'))
    os.symlink('../secrets', t.w('links/dir'))
    yield
    for name, target in (('rel', '../.env'), ('abs', t.m('.env')), ('c1', 'rel'), ('c2', 'c1'), ('d2', t.m('secrets')), ('dots', '../links/../.env'), ('cwd', '/proc/self/cwd/.env')):
        os.symlink(target, t.m('links', name))
    os.chdir(t.mnt)
    for name in ('low', 'rel', 'abs', 'c1', 'c2', 'dots', 'cwd', 'dir/k', 'd2/k'):
        denied(bytes_of, t.m('links', name))
    for name in ('dir', 'd2'):
        denied(os.listdir, t.m('links', name))
        denied(create, t.m('links', name, 'new'))
    for name in ('.env', 'secrets/k', 'secrets', 'id_rsa'):
        fd = os.open(t.m(name), O_PATH) if errno_of(os.open, t.m(name), O_PATH) == 'OK' else None
        if fd is not None:
            errno_of(linkat, fd, '', AT_FDCWD, t.m('pd/alias'), AT_EMPTY_PATH)
            errno_of(linkat, AT_FDCWD, f'/proc/self/fd/{fd}', AT_FDCWD, t.m('pd/alias2'), AT_SYMLINK_FOLLOW)
            os.close(fd)
    intact(t)


@ruled
def test_other_spellings_reach_nothing_denied(t):
    seed(t)
    yield
    os.chdir(t.m('a/b'))
    with opened(t.mnt) as fd:
        for path in (t.mnt + '//.env', t.m('./.env'), t.m('a/../.env'), t.m('a/b/../../.env'), '../../.env', '../.././/.env', '/proc/self/cwd/../../.env',
                     '/proc/self/root' + t.m('.env'), f'/proc/self/fd/{fd}/.env', f'/dev/fd/{fd}/.env', f'/proc/{os.getpid()}/cwd/../../.env',
                     t.m('secrets/../secrets/k'), t.m('secrets//k'), t.m('secrets/./k'), '../../secrets/k'):
            denied(bytes_of, path)
        denied(bytes_of, t.m('.env/'), also=('ENOTDIR',))
        denied(os.listdir, t.m('secrets/'))
        denied(lambda: os.read(os.open('.env', os.O_RDONLY, dir_fd=fd), 99))
        denied(lambda: os.read(os.open('secrets/k', os.O_RDONLY, dir_fd=fd), 99))
    denied(lambda: (os.chdir(t.m('secrets')), bytes_of('k'))[1])
    with contextlib.suppress(OSError), opened(t.m('secrets'), O_PATH) as fd:
        denied(lambda: os.read(os.open('k', os.O_RDONLY, dir_fd=fd), 99))


@ruled
def test_descriptors_give_nothing_denied(t):
    seed(t)
    yield
    for name in ('.env', 'secrets/k', 'id_rsa'):
        try:
            fd = os.open(t.m(name), O_PATH)
        except OSError:
            continue
        fails('EBADF', os.read, fd, 9)
        for flags in (os.O_RDONLY, os.O_RDWR):
            denied(lambda: os.read(os.open(f'/proc/self/fd/{fd}', flags), 99))
        denied(lambda: os.open(f'/proc/self/fd/{fd}', os.O_WRONLY | os.O_TRUNC))
        denied(os.chmod, f'/proc/self/fd/{fd}', 0o777)
        with contextlib.suppress(OSError):
            by_handle = Handle(t.mnt, os.lstat(t.m(name)).st_ino).open(os.O_RDONLY)
            denied(os.read, by_handle, 99)
        os.close(fd)
    sweep(t)


@ruled
def test_renaming_a_parent_frees_nothing(t):
    seed(t)
    yield
    os.mkdir(t.m('new'))
    for source, target in (('anchored', 'free'), ('free', 'free2'), ('a', 'aa'), ('aa/b', 'bb'), ('a/b', 'bb2'), ('anchored/top', 'top'), ('secrets/sub', 'sub')):
        errno_of(os.rename, t.m(source), t.m(target))
        sweep(t)
    for source, target in (('anchored', 'new'), ('a', 'new'), ('pd', 'anchored')):
        errno_of(exchange, t.m(source), t.m(target))
        sweep(t)
    for name in ('anchored', 'anchored/top', 'a', 'a/b'):
        errno_of(os.mkdir, t.m(name))
    write(t.m('mine'), 'x')
    errno_of(os.rename, t.m('mine'), t.m('anchored/top/key'))
    sweep(t)
    t.remount()
    sweep(t)
    t.rollback()
    intact(t)


@ruled
def test_a_moved_denied_file_is_denied_at_its_new_place(t):
    t.seed({'conf/.env': MARK, 'conf/secrets/k': MARK, 'conf/pub': 'p'})
    yield
    moved = errno_of(os.rename, t.m('conf'), t.m('x')) == 'OK'
    top = 'x' if moved else 'conf'
    for name in ('.env', 'secrets/k'):
        denied(bytes_of, t.m(top, name))
    errno_of(os.rename, t.m(top, 'pub'), t.m(top, 'pub2'))
    if moved:
        write(t.m('fresh'), 'f')
        errno_of(os.mkdir, t.m('conf'))
        denied(os.rename, t.m('fresh'), t.m('conf/.env'))
    t.snapshot('moved')
    t.rollback()
    denied(bytes_of, t.m('conf/.env'))
    t.rollback('moved')
    denied(bytes_of, t.m(top, '.env'))
    sweep(t)


@ruled
def test_hidden_files_are_not_there(t):
    seed(t)
    yield
    check(not {'vault', 's.hid'} & set(names(t.mnt)) and 'vault' not in names(t.m('a')), 'listing')
    for name in HIDDEN:
        path = t.m(name)
        for call in (os.stat, os.lstat, bytes_of, os.unlink, os.rmdir, os.listdir, os.readlink, lambda p: os.chmod(p, 0o777), lambda p: os.rename(p, t.m('away')),
                     lambda p: os.link(p, t.m('alias')), lambda p: exchange(p, t.m('pub')), lambda p: exchange(t.m('pub'), p), lambda p: os.truncate(p, 0)):
            fails('ENOENT', call, path)
    for name in ('vault', 'a/vault', 's.hid', 'n.hid', 'pd/vault'):
        for call in (create, os.mkdir, lambda p: os.symlink('x', p), lambda p: os.rename(t.m('pub'), p), lambda p: os.link(t.m('pub'), p)):
            fails(DENIED + ('ENOENT',), call, t.m(name))
    intact(t)


@ruled
def test_hidden_entries_leave_no_trace_in_their_directory(t):
    for name in ('a', 'b'):
        t.seed({f'{name}/v1/': None, f'{name}/f': 'x'})
        os.utime(t.w(name), (5, 5))
    t.seed({'a/vault/k': MARK, 'a/s.hid': MARK})
    os.utime(t.w('a'), (5, 5))
    yield

    def seen(name):
        info = os.stat(t.m(name))
        return info.st_nlink, info.st_size, info.st_blocks, names(t.m(name))
    eq(seen('a'), seen('b'), 'with and without hidden entries')
    for name in ('a', 'b'):
        os.mkdir(t.m(name, 'n'))
    eq(seen('a'), seen('b'), 'after a change')
    for name in ('a', 'b'):
        shutil.rmtree(t.m(name, 'v1'))
    eq(seen('a'), seen('b'), 'after a removal')


@ruled
def test_read_only_files_stay_as_they_are(t):
    seed(t)
    yield
    before = digest(t.m('locked'), EVERYTHING), digest(t.m('.git/hooks'), EVERYTHING)
    for name in ('locked/f', 'locked/sub/g', '.git/hooks/h'):
        path = t.m(name)
        check(read(path), f'{name} can be read')
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_TRUNC, os.O_RDWR | os.O_CREAT):
            # whoever may override permissions is refused at the write
            fails(REFUSED, lambda p: os.write(os.open(p, flags), b'x') if os.geteuid() == 0 and flags & 3 else os.open(p, flags), path)
        for call in (lambda p: os.truncate(p, 0), lambda p: os.chmod(p, 0o777), lambda p: os.chown(p, os.getuid(), os.getgid()), lambda p: os.utime(p, (1, 1)),
                     lambda p: os.setxattr(p, 'user.x', b'1'), os.unlink, lambda p: os.rename(p, t.m('away')), lambda p: os.rename(p, p + '2'),
                     lambda p: (write(t.m('tmp'), 'x'), os.rename(t.m('tmp'), p)), lambda p: exchange(p, t.m('pub')), lambda p: exchange(t.m('pub'), p)):
            fails(REFUSED, call, path)
    for call in (lambda: create(t.m('locked/n')), lambda: os.mkdir(t.m('locked/n')), lambda: os.rmdir(t.m('locked/sub')), lambda: os.symlink('x', t.m('locked/n')),
                 lambda: os.rename(t.m('locked/sub'), t.m('sub')), lambda: os.rename(t.m('locked'), t.m('unlocked')), lambda: os.chmod(t.m('locked'), 0o777),
                 lambda: os.link(t.m('pub'), t.m('locked/n')), lambda: os.rename(t.m('pub'), t.m('locked/n')), lambda: os.mkfifo(t.m('locked/n')),
                 lambda: exchange(t.m('pd'), t.m('locked')), lambda: os.rename(t.m('pd'), t.m('locked/sub')), lambda: shutil.rmtree(t.m('locked'))):
        fails(REFUSED, call)
    fails(REFUSED + ('EOPNOTSUPP',), os.open, t.m('locked'), O_TMPFILE | os.O_RDWR)
    eq((digest(t.m('locked'), EVERYTHING), digest(t.m('.git/hooks'), EVERYTHING)), before, 'what is read-only')
    fails('EROFS', os.unlink, t.m('locked/f'))
    shutil.copyfile(t.m('locked/f'), t.m('copy'))
    write(t.m('copy'), 'mine')
    eq(read(t.m('locked/f')), b'l\n', 'a copy is independent')
    append(t.m('.git/config'), 'x')
    intact(t)


@ruled
def test_nothing_protected_is_lost_with_its_parent(t):
    seed(t)
    yield
    t.program('rm', '-rf', t.m('a'), t.m('anchored'), t.m('.git'), t.m('locked'), code=None)
    for name in ('a/b/.env', 'a/secrets/k', 'a/x.pem', 'anchored/top/key'):
        denied(bytes_of, t.m(name))
    eq((read(t.m('locked/f')), read(t.m('.git/hooks/h'))), (b'l\n', b'h\n'), 'read-only files')
    t.rollback()
    intact(t)


@ruled
def test_the_last_matching_rule_wins(t):
    for directory in ('', 'a/', 'a/b/'):
        t.seed({directory + '.env.example': 'template\n', directory + '.env.example2': MARK, directory + '.env.example.local': MARK})
    t.seed({'.env.examples/x': MARK})
    yield
    for directory in ('', 'a/', 'a/b/'):
        eq(read(t.m(directory + '.env.example')), b'template\n', 'the exception')
        write(t.m(directory + '.env.example'), 'new')
        for name in ('.env.example2', '.env.example.local'):
            denied(bytes_of, t.m(directory + name))
    denied(bytes_of, t.m('.env.examples/x'))
    sweep(t)


@case(policy='[profile cases]\n[files cases]\nwrite = **\ndeny = private/\nwrite = private/open/deep/\nread = ro/\nwrite = ro/rw/**\nhide = h/\n')
def test_an_exception_inside_a_closed_directory(t):
    t.seed({'private/k': MARK, 'private/open/k': MARK, 'private/open/deep/f': 'f\n', 'private/open/deep/d/g': 'g\n', 'ro/f': 'f', 'ro/rw/f': 'f', 'h/x': MARK})
    yield
    eq(read(t.m('private/open/deep/f')), b'f\n', 'a read')
    append(t.m('private/open/deep/d/g'), '+')
    create(t.m('private/open/deep/new'))
    eq(names(t.m('private/open/deep')), ['d', 'f', 'new'], 'a listing')
    for name in ('private/k', 'private/open/k'):
        denied(bytes_of, t.m(name))
    for name in ('private/n', 'private/open/n'):
        denied(create, t.m(name))
    fails(REFUSED, append, t.m('ro/f'), 'x')
    append(t.m('ro/rw/f'), 'x')
    fails('ENOENT', os.stat, t.m('h'))
    sweep(t)


@case(policy='[profile cases]\nnocase = yes\n[files cases]\nwrite = **\ndeny = *.KEY\n')
def test_rules_without_case(t):
    t.seed({'a.key': MARK, 'B.KEY': MARK, 'c.Key': MARK, 'd.keys': 'open'})
    yield
    for name in ('a.key', 'B.KEY', 'c.Key'):
        denied(bytes_of, t.m(name))
    denied(create, t.m('e.kEY'))
    eq(read(t.m('d.keys')), b'open', 'another name')


@ruled
def test_loops_of_links_disturb_no_rule(t):
    t.seed({'x/y/f': 'ok', 'x/.env': MARK})
    for name, target in (('x/up', '..'), ('self', 'self'), ('root', '/'), ('x/y/x', 'x'), ('x/loop', '../x/y')):
        os.symlink(target, t.w(name))
    yield
    t.program('ls', '-laR', t.mnt, code=None)
    eq(read(t.m('x/up/x/loop/f')), b'ok', 'a path through links')
    for name in ('x/.env', 'x/up/x/up/x/.env', 'x/y/../.env'):
        denied(bytes_of, t.m(name))


@ruled
def test_diff_and_commit_leave_protected_files_out(t):
    seed(t)
    t.options.workspace_changes = True
    yield
    append(t.m('a/pub'), 'edit\n')
    os.rename(t.m('a/pub'), t.m('a/pub2'))
    t.program('rm', '-rf', t.m('.env'), t.m('a/b'), t.m('secrets'), code=None)
    out = t.diff()
    check(MARK not in out.bytes, 'the difference shows a secret')
    for name in ('.env"', '/.env\n', 'secrets', 'vault', '.pem'):
        check(name not in out.out, f'the difference names {name!r}')
    check(MARK not in t.diff('--json').bytes, 'its JSON shows a secret')
    t.commit()
    eq((read(t.w('.env')), read(t.w('a/b/.env')), read(t.w('secrets/k')), read(t.w('a/vault/v'))), (MARK,) * 4, 'protected files of the workspace')
    check(is_gone(t.w('a/pub')) and read(t.w('a/pub2')) == b'pub\nedit\n', 'what was allowed')


@case(policy=POLICY, workspace_changes=True, remount=False)
def test_old_descriptors_write_nothing_into_the_workspace(t):
    t.seed({'f': 'base', 'g': 'base'})
    yield
    with opened(t.m('f'), os.O_RDWR) as fd:
        os.pwrite(fd, b'first version', 0)
        mapping = mmap.mmap(fd, 5)
        t.commit()
        eq(read(t.w('f')), b'first version', 'committed')
        before = digest(t.low, EVERYTHING)
        os.pwrite(fd, b'SNEAKY', 0)
        mapping[0:5] = b'SNEAK'
        mapping.flush()
        os.ftruncate(fd, 3)
        os.fchmod(fd, 0o777)
        os.fsync(fd)
        mapping.close()
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace after writes through old descriptors')


@ruled
def test_why_names_the_rule(t):
    seed(t)
    yield
    for name, action in (('.env', 'deny'), ('a/x.pem', 'deny'), ('vault', 'hide'), ('locked/f', 'read'), ('a/b/.env.example', 'write'), ('nowhere/.env', 'deny')):
        out = t.sbxfs('why', name, t.name).out
        check(action in out and os.path.basename(t.policy_file) in out, f'why {name}: {short(out)}')


@case(modes=('fresh',), policy='[profile cases]\n[files cases]\nwrite = **\nread = /r/\nwrite = /r/open\ndeny = /d/, /way/\nwrite = /way/open\nhide = /h/\nmask = /m/\n')
def test_why_foretells_each_operation(t):
    t.seed({f'{d}/{f}': 'x' for d in ('w', 'r', 'd', 'h', 'm', 'way') for f in ('f', 'open')})
    yield
    attempts = {'list': os.listdir, 'stat': os.lstat, 'read': read, 'write': lambda p: append(p, 'x'), 'create': create, 'rename': lambda p: os.rename(p, p + '2'), 'chmod': lambda p: os.chmod(p, 0o700),
                'delete': os.unlink}
    for d in ('w', 'r', 'd', 'h', 'm', 'way'):
        for name, operations in ((d, ('list', 'stat', 'chmod', 'rename')), (f'{d}/f', ('stat', 'read', 'write', 'chmod', 'delete')), (f'{d}/open', ('read', 'write', 'chmod', 'rename', 'delete')), (f'{d}/new', ('create',))):
            for operation in operations:
                said = json.loads(t.sbxfs('why', name, t.name, '--op', operation, '--json').out)
                try:
                    attempts[operation](t.m(name))
                    got = None
                except OSError as error:
                    got = errno.errorcode[error.errno]
                if operation == 'rename' and got is None:
                    os.rename(t.m(name) + '2', t.m(name))
                # The mode of a read-only file refuses an ordinary user's open, which the kernel calls EACCES.
                wanted = ('EROFS', 'EACCES') if (operation, said['error']) == ('write', 'EROFS') else (said['error'],)
                check(got in wanted and said['allowed'] == (got is None), f'{operation} {name}: {got}, foretold {said}')


@case(mount=False, modes=('fresh',))
def test_the_default_policy(t):
    t.seed({'.env': MARK, 'sub/.env.production': MARK, '.env.example': 'e', 'key.pem': MARK, 'id_ed25519': MARK, 'my-secret-file': MARK, 'credentials.json': MARK,
            '.npmrc': MARK, '.git/config': 'c', '.github/w.yml': 'w', '.vscode/s.json': 's', '.claude/c': 'c', 'src/f.c': 'f'})
    yield
    allow = ['-o', 'allow_other'] if t.is_root else []
    t.sbxfs('mount', '-n', t.name, *allow, t.low, t.mnt)
    for name in ('.env', 'sub/.env.production', 'key.pem', 'id_ed25519', 'my-secret-file', 'credentials.json', '.npmrc'):
        denied(bytes_of, t.m(name))
    for name in ('.git/config', '.github/w.yml', '.vscode/s.json', '.claude/c'):
        check(read(t.m(name)), f'{name} can be read')
        fails('EROFS', os.unlink, t.m(name))
        fails(REFUSED, os.truncate, t.m(name), 0)  # a missing w bit comes first
    eq(read(t.m('.env.example')), b'e', 'a template')
    append(t.m('src/f.c'), '+')
    fails(DENIED + ('EEXIST',), create, t.m('.env'))
    for name in ('src/.env', 'src/deep-secret', 'src/x.key'):
        denied(create, t.m(name))
    sweep(t)
    t.umount()
    eq(read(t.w('.env')), MARK, 'the workspace')


MASKING = '[profile cases]\n[files cases]\nwrite = **\nmask = **/.env, conf/\n'
SCRATCH = '[profile cases]\n[files cases]\nwrite = **\nscratch = node_modules/, target/\n'


@case(policy=MASKING, modes=('fresh',))
def test_masked_files_show_their_keys(t):
    t.seed({'.env': f'KEY={MARK.decode()}\n# {MARK.decode()}\n', 'conf/app.ini': f'[db]\nhost = h\npassword = {MARK.decode()}\n', 'conf/key.pem': MARK, 'free': 'f'})
    yield
    shown = {'.env': b'KEY=<masked>\n#\n', 'conf/app.ini': b'[db]\nhost = h\npassword =<masked>\n', 'conf/key.pem': b''}
    for name, want in shown.items():
        eq((read(t.m(name)), os.stat(t.m(name)).st_size), (want, len(want)), name)
        fails(REFUSED, append, t.m(name), 'x')
        fails('EROFS', os.unlink, t.m(name))
        fails('EROFS', os.rename, t.m(name), t.m('out'))
        fails(DENIED + ('EROFS',), os.link, t.m(name), t.m('out'))
        fails(DENIED, os.listxattr, t.m(name))
    fails('EROFS', create, t.m('conf/new'))
    fails('EROFS', os.rename, t.m('free'), t.m('conf/free'))
    os.mkdir(t.m('d'))
    fails('EROFS', create, t.m('d/.env'))
    for directory, _, files in os.walk(t.mnt):
        for name in files:
            check(MARK not in read(os.path.join(directory, name)), f'{name} shows what is masked')
    check(MARK not in t.sbxfs('diff', t.name).bytes, 'the diff shows what is masked')


@case(policy=SCRATCH, modes=('fresh',), workspace_changes=True)
def test_scratch_stays_out_of_the_workspace(t):
    t.seed({'p/a': 'a', 'target/old': 'old'})
    yield
    os.makedirs(t.m('p/node_modules/x'))
    os.makedirs(t.m('new/target'))
    for name in ('p/node_modules/x/f', 'new/target/o', 'target/old', 'new/file', 'p/a'):
        write(t.m(name), 'agent')
    listed = t.sbxfs('diff', t.name, '--name-status').out.splitlines()
    eq(sorted(listed), ['A\tnew', 'A\tnew/file', 'M\tp/a'], 'the diff')
    t.sbxfs('rollback', t.name, '-y')
    scratch = ('p/node_modules/x/f', 'new/target/o', 'target/old')
    eq(([read(t.m(name)) for name in scratch], read(t.m('p/a')), is_gone(t.m('new/file'))), ([b'agent'] * 3, b'a', True), 'after a rollback')
    t.remount()
    eq([read(t.m(name)) for name in scratch], [b'agent'] * 3, 'after a remount')
    write(t.m('p/a'), 'agent')
    t.sbxfs('commit', t.name, '-y')
    eq((read(t.w('p/a')), read(t.w('target/old')), is_gone(t.w('p/node_modules'))), (b'agent', b'old', True), 'the workspace')
    t.sbxfs('rollback', t.name, '-y', '--scratch')
    # The directory above what was kept was pending, and is the workspace's since the commit.
    eq((names(t.m('p')), read(t.m('target/old')), names(t.m('new'))), (['a'], b'old', []), 'after a rollback of scratch')
