# SPDX-License-Identifier: MIT
"""Attacks on the view by names: links, renames, removals, other spellings. One trick a test."""
import stat

from guarded import *  # noqa: F403

FRESH_NAMES = ('n.key', 'a/n.key', 'free/.env', 'vault/n', 'vault/sub/n')
HIDDEN_NAMES = ('free/ghost', 'ghost', 'ghost.d', 'a/ghost')


def makers(t, path):
    """Every call that makes a name."""
    return (lambda: create(path), lambda: write(path, 'x'), lambda: os.mkdir(path), lambda: os.mkfifo(path), lambda: os.symlink('x', path),
            lambda: os.mknod(path, stat.S_IFREG | 0o644), lambda: os.link(t.m('pub'), path), lambda: os.rename(t.m('pub'), path),
            lambda: os.rename(t.m('spare'), path), lambda: rename2(t.m('pub'), path, RENAME_NOREPLACE))


# Links


@ruled
def test_hard_link_from_a_denied_file(t):
    seed(t)
    yield
    for name in DENIED_FILES:
        denied(os.link, t.m(name), t.m('alias'))
        denied(os.link, t.m(name), t.m('free/alias'))
    for name in LOCKED + ['shape.cfg']:
        fails(REFUSED, os.link, t.m(name), t.m('alias'))
    for name in HIDDEN_FILES:
        fails('ENOENT', os.link, t.m(name), t.m('alias'))
    eq((is_gone(t.m('alias')), is_gone(t.m('free/alias'))), (True, True), 'no link was made')
    intact(t)


@ruled
def test_hard_link_to_a_denied_name(t):
    seed(t)
    yield
    for name in FRESH_NAMES + HIDDEN_NAMES:
        denied(os.link, t.m('pub'), t.m(name))
    for name in ('locked/n', 'free/n.cfg'):
        fails(REFUSED, os.link, t.m('pub'), t.m(name))
    eq(os.lstat(t.m('pub')).st_nlink, 1, 'links')
    intact(t)


@ruled
def test_linkat_by_descriptor(t):
    """A descriptor of O_PATH and its name in /proc are no way around the source's name."""
    seed(t)
    yield
    for name in DENIED_FILES + LOCKED + ['shape.cfg']:
        for fd in descriptors(t, name):
            fails(REFUSED + ('ENOENT',), linkat, fd, '', AT_FDCWD, t.m('alias'), AT_EMPTY_PATH)  # ENOENT: the caller may not do so at all
            fails(REFUSED, linkat, AT_FDCWD, f'/proc/self/fd/{fd}', AT_FDCWD, t.m('alias'), AT_SYMLINK_FOLLOW)
    check(is_gone(t.m('alias')), 'a link was made')
    intact(t)


@ruled
def test_unnamed_file_linked_at_a_denied_name(t):
    """O_TMPFILE, or where there is none a file that lost its name: neither gets a name that a rule forbids."""
    seed(t)
    yield
    try:
        fd = os.open(t.m('free'), O_TMPFILE | os.O_RDWR, 0o666)
    except OSError as error:
        eq(name_of(error.errno), 'EOPNOTSUPP', 'O_TMPFILE')
        fd = os.open(t.m('free/tmp'), os.O_CREAT | os.O_RDWR)
        os.unlink(t.m('free/tmp'))
    for name in FRESH_NAMES + HIDDEN_NAMES:
        fails(DENIED + ('ENOENT',), linkat, AT_FDCWD, f'/proc/self/fd/{fd}', AT_FDCWD, t.m(name), AT_SYMLINK_FOLLOW)
    os.close(fd)
    fails(REFUSED + ('EOPNOTSUPP',), os.open, t.m('locked'), O_TMPFILE | os.O_RDWR)
    fails(REFUSED + ('EOPNOTSUPP',), os.open, t.m('vault'), O_TMPFILE | os.O_RDWR)
    intact(t)


@ruled
def test_symlink_into_what_is_denied(t):
    seed(t)
    os.symlink('../.env', t.w('a/low'))
    yield
    for name, target in (('rel', '../.env'), ('abs', t.m('.env')), ('chain', 'rel'), ('dots', '../a/../.env'), ('cwd', '/proc/self/cwd/.env')):
        os.symlink(target, t.m('free', name))
    os.symlink(t.m('vault'), t.m('free/dir'))
    os.symlink(t.m('ghost'), t.m('free/ghostly'))
    os.chdir(t.mnt)
    for name in ('a/low', 'free/rel', 'free/abs', 'free/chain', 'free/dots', 'free/cwd', 'free/dir/k', 'free/dir/sub/k'):
        denied(bytes_of, t.m(name))
        denied(write, t.m(name), 'x')
    denied(os.listdir, t.m('free/dir'))
    denied(create, t.m('free/dir/new'))
    fails('ENOENT', bytes_of, t.m('free/ghostly'))
    intact(t)


@case(policy=POLICY + 'read = /made/later/key, /deep/**\n')
def test_symlink_above_a_denied_name(t):
    """A link in the place of a directory would lead a protected name to a file of one's own."""
    seed(t)
    yield
    os.symlink('free', t.m('link'))
    os.rename(t.m('conf'), t.m('away'))
    os.mkdir(t.m('made'))
    for name in ('conf', 'made/later', 'deep'):
        for call in (lambda p: os.symlink(t.m('free'), p), lambda p: os.rename(t.m('link'), p), lambda p: os.link(t.m('link'), p, follow_symlinks=False),
                     lambda p: exchange(t.m('link'), p)):
            denied(call, t.m(name), also=('ENOENT',))
        check(is_gone(t.m(name)), f'{name} is there')
    denied(os.rename, t.m('link'), t.m('made/later'))
    os.mkdir(t.m('conf'))
    denied(exchange, t.m('link'), t.m('conf'))
    denied(exchange, t.m('conf'), t.m('link'))
    os.symlink('free', t.m('made/link'))  # any other name may be one
    os.rename(t.m('made/link'), t.m('made/another'))
    os.rmdir(t.m('conf'))
    os.rename(t.m('away'), t.m('conf'))
    intact(t)


@ruled
def test_denied_symlink_shows_no_target(t):
    seed(t)
    yield
    for name in ('vault/link', 'a/link.key'):
        denied(os.readlink, t.m(name))
        denied(os.open, t.m(name), os.O_RDONLY)
        for fd in descriptors(t, name, O_PATH | os.O_NOFOLLOW):
            denied(lambda: os.readlink('', dir_fd=fd))
    intact(t)


@fresh
def test_symlink_out_of_the_view(t):
    """The view shows a link as it is and follows none itself; the gate speaks of those that leave the workspace."""
    seed(t)
    write(t.path('outside'), MARK)
    write(t.policy_file, POLICY + '[gate cases]\nchecks = modes\n')
    yield
    os.symlink(t.path('outside'), t.m('free/out'))
    os.symlink('../..', t.m('free/up'))
    eq(os.readlink(t.m('free/out')), t.path('outside'), 'its target')
    for command in (['diff'], ['diff', '--json'], ['gate', '--json']):
        check(MARK not in t.sbxfs(command[0], t.name, *command[1:], code=None).bytes, f'{command} followed a link')
    found = t.sbxfs('gate', t.name, '--json', code=1).json()['findings']
    eq(sorted(f['path'] for f in found), ['free/out', 'free/up'], 'what the gate found')
    os.unlink(t.m('free/out'))
    os.unlink(t.m('free/up'))


# Moving


@ruled
def test_rename_of_a_denied_node(t):
    seed(t)
    yield
    for name in DENIED_FILES + DENIED_DIRS:
        for target in ('away', 'free/away', name + '2'):
            denied(os.rename, t.m(name), t.m(target))
    for name in LOCKED + ['locked', 'locked/sub', 'shape.cfg']:
        fails(REFUSED, os.rename, t.m(name), t.m('away'))
    for name in HIDDEN:
        fails('ENOENT', os.rename, t.m(name), t.m('away'))
    check(is_gone(t.m('away')) and is_gone(t.m('free/away')), 'something moved')
    intact(t)


@ruled
def test_rename_of_a_parent(t):
    """What is denied in a directory is so wherever that goes: by its name, or by the place it came from."""
    seed(t)
    yield
    for source, target in (('conf', 'c'), ('a', 'b'), ('c/app', 'free/app'), ('free', 'z')):
        os.rename(t.m(source), t.m(target))
        sweep(t)
    for name in ('b/.env', 'b/x.key', 'z/app/token'):
        denied(bytes_of, t.m(name))
    fails('ENOENT', os.lstat, t.m('b/ghost'))
    eq((read(t.m('b/pub')), read(t.m('z/app/pub'))), (b'pub\n', b'pub\n'), 'what is free moved along')
    write(t.m('mine'), 'x')
    for call in (lambda p: os.rename(t.m('mine'), p), lambda p: exchange(t.m('mine'), p), os.unlink, lambda p: os.link(p, t.m('alias')), lambda p: os.rename(p, t.m('away'))):
        denied(call, t.m('z/app/token'))  # nothing but the place it came from forbids it
    t.remount()
    for name in ('b/.env', 'b/x.key', 'z/app/token'):
        denied(bytes_of, t.m(name))
    sweep(t)


@ruled
def test_rename_over_a_denied_node(t):
    seed(t)
    yield
    for name in DENIED_FILES:
        write(t.m('mine'), 'x')
        denied(os.rename, t.m('mine'), t.m(name))
    os.mkdir(t.m('dir'))
    for name in DENIED_DIRS:
        denied(os.rename, t.m('dir'), t.m(name))
    for source, name in (('mine', 'ghost'), ('mine', 'a/ghost'), ('dir', 'ghost.d')):
        denied(os.rename, t.m(source), t.m(name))
    fails('ENOENT', os.rename, t.m('mine'), t.m('ghost.d/k'))
    for name in LOCKED + ['shape.cfg']:
        fails(REFUSED, os.rename, t.m('mine'), t.m(name))
    intact(t)


@ruled
def test_rename_exchange(t):
    seed(t)
    yield
    for name in DENIED_FILES + DENIED_DIRS:
        denied(exchange, t.m(name), t.m('pub'))
        denied(exchange, t.m('pub'), t.m(name))
        denied(exchange, t.m('free'), t.m(name))
    for name in LOCKED + ['shape.cfg']:
        fails(REFUSED, exchange, t.m(name), t.m('pub'))
        fails(REFUSED, exchange, t.m('pub'), t.m(name))
    for name in HIDDEN:
        fails('ENOENT', exchange, t.m(name), t.m('pub'))
        fails(DENIED + ('ENOENT',), exchange, t.m('pub'), t.m(name))
    intact(t)


@ruled
def test_rename_exchange_of_parents(t):
    """Two directories change places: the verdicts below follow, whatever was open or cached."""
    seed(t)
    yield
    grow(t.mnt, {'n/app/token': 'mine\n', 'n/app/pub': 'mine\n'})
    inode = os.lstat(t.m('n/app/token')).st_ino
    with opened(t.m('n/app/token'), os.O_RDWR) as fd:
        eq(os.read(fd, 99), b'mine\n', 'my own file')
        exchange(t.m('conf'), t.m('n'))
        denied(bytes_of, t.m('n/app/token'))  # the workspace's: by the place it came from
        # mine, by its name: what was known and read before is dropped
        soon(lambda: errno_of(os.pread, fd, 3, 0) in DENIED, 'reading')
        soon(lambda: errno_of(bytes_of, t.m('conf/app/token')) in DENIED, 'opening')
        denied(os.pwrite, fd, b'x', 0)
        # nothing but its present name forbids it
        denied(os.link, t.m('conf/app/token'), t.m('alias'))
        for other in (fd, *handles(t, inode)):
            denied(linkat, AT_FDCWD, f'/proc/self/fd/{other}', AT_FDCWD, t.m('alias'), AT_SYMLINK_FOLLOW)
        for call in (lambda p: os.rename(p, t.m('away')), lambda p: exchange(p, t.m('pub')), lambda p: exchange(t.m('pub'), p)):
            denied(call, t.m('conf/app/token'))
    sweep(t)
    exchange(t.m('conf'), t.m('n'))
    eq(read(t.m('n/app/token')), b'mine\n', 'back at its place')
    intact(t)


# Making


@ruled
def test_create_at_a_denied_name(t):
    seed(t)
    yield
    for name in FRESH_NAMES:
        for maker in makers(t, t.m(name)):
            denied(maker)
        check(is_gone(t.m(name)), f'{name} is there')
    for name in ('locked/n', 'locked/sub/n', 'free/n.cfg'):
        for maker in makers(t, t.m(name)):
            fails(REFUSED, maker)
    intact(t)


@ruled
def test_create_at_a_hidden_name(t):
    """Whether something hidden is there or not: the same answer to every call."""
    seed(t)
    yield
    answers = {}
    for name in ('ghost', 'free/ghost'):
        answers[name] = [errno_of(maker) for maker in makers(t, t.m(name))]
        answers[name] += [errno_of(call, t.m(name)) for call in (os.unlink, os.rmdir, os.lstat, os.listdir, bytes_of, os.readlink)]
        answers[name] += [errno_of(exchange, t.m(name), t.m('pub')), errno_of(exchange, t.m('pub'), t.m(name)), errno_of(os.open, t.m(name), os.O_WRONLY | os.O_TRUNC)]
        check('OK' not in answers[name], f'made {name}: {answers[name]}')
    eq(answers['ghost'], answers['free/ghost'], 'the answers where there is one, and where there is none')
    intact(t)


@ruled
def test_names_in_a_denied_directory(t):
    """What is not there cannot be told from what is."""
    seed(t)
    yield
    for call in (os.lstat, bytes_of, os.listdir, os.unlink, os.rmdir, os.readlink, create, os.mkdir, lambda p: os.rename(t.m('pub'), p), lambda p: os.chmod(p, 0o777)):
        eq(errno_of(call, t.m('vault/k')), errno_of(call, t.m('vault/nothing')), f'{call}')
        denied(call, t.m('vault/nothing'))
    intact(t)


@ruled
def test_open_names_in_a_closed_directory(t):
    """What may be edited in a directory that may only be read: it is edited there, and no name comes or goes."""
    seed(t)
    yield
    for call in (lambda p: os.unlink(p), lambda p: os.rename(p, t.m('away')), lambda p: os.rename(p, p + '2'), lambda p: os.rename(t.m('pub'), p), lambda p: os.link(p, p + '2'),
                 lambda p: exchange(p, t.m('pub')), lambda p: exchange(t.m('pub'), p)):
        fails(REFUSED, call, t.m('locked/open'))
    for maker in makers(t, t.m('locked/open2')):
        fails(REFUSED, maker)
    eq((names(t.m('locked')), read(t.m('locked/open'))), (['f', 'open', 'sub'], b'edit me\n'), 'the directory')
    append(t.m('locked/open'), 'edited\n')
    os.truncate(t.m('locked/open'), 4)
    eq(read(t.m('locked/open')), b'edit', 'what was edited')
    intact(t)


@ruled
def test_device_nodes_and_whiteouts(t):
    """What means "deleted" or "opaque" to other overlays means nothing here."""
    seed(t)
    yield
    for name in ('.wh.pub', '.wh..wh..opq', 'free/.wh.f'):
        create(t.m(name))
    for name, value in (('trusted.overlay.opaque', b'y'), ('user.overlay.opaque', b'y'), ('trusted.overlay.metacopy', b''), ('trusted.overlay.redirect', b'/.env')):
        errno_of(os.setxattr, t.m('free'), name, value)
        errno_of(os.setxattr, t.m('pub'), name, value)
    errno_of(os.mknod, t.m('white'), stat.S_IFCHR, 0)
    fails('EINVAL', rename2, t.m('a/pub'), t.m('a/pub2'), 4)  # RENAME_WHITEOUT
    for name in FRESH_NAMES:
        denied(os.mknod, t.m(name), stat.S_IFCHR, 0)
    eq((read(t.m('pub')), read(t.m('free/f')), read(t.m('a/pub'))), (b'pub\n', b'free\n', b'pub\n'), 'files beside whiteouts of others')
    t.remount()
    eq((read(t.m('pub')), read(t.m('free/f'))), (b'pub\n', b'free\n'), 'after a remount')
    intact(t)


# Removing


@ruled
def test_unlink_of_a_denied_file(t):
    seed(t)
    yield
    for name in DENIED_FILES + ['vault/link']:
        denied(os.unlink, t.m(name))
    for name in LOCKED + ['shape.cfg']:
        fails(REFUSED, os.unlink, t.m(name))
    for name in HIDDEN_FILES:
        fails('ENOENT', os.unlink, t.m(name))
    intact(t)


@ruled
def test_removal_of_the_directory_that_holds_it(t):
    seed(t)
    t.seed({'d/ghost': MARK, 'e/.env': MARK})
    yield
    for name in DENIED_DIRS:
        denied(os.rmdir, t.m(name), also=('ENOTEMPTY',))
    os.mkdir(t.m('empty'))
    for name in ('d', 'e', 'a'):
        fails(('ENOTEMPTY', 'EEXIST'), os.rmdir, t.m(name))  # d looks empty
        fails(('ENOTEMPTY', 'EEXIST'), os.rename, t.m('empty'), t.m(name))
    t.program('rm', '-rf', *[t.m(name) for name in ('a', 'd', 'e', 'conf', 'vault', 'locked')], code=None)
    for name in ('a/.env', 'a/x.key', 'e/.env', 'conf/app/token', 'vault/k'):
        denied(bytes_of, t.m(name))
    t.rollback()
    intact(t)


# Spelling


@ruled
def test_dots_and_slashes(t):
    seed(t)
    yield
    os.chdir(t.m('a'))
    for path in (t.mnt + '//.env', t.m('./.env'), t.m('a/../.env'), t.m('free/.././a//.././.env'), '../.env', '..//./.env', './.env', t.m('vault/../vault/k'), t.m('vault//k'),
                 t.m('vault/./sub/../k'), t.m('vault/open/../k'), '../vault/k'):
        denied(bytes_of, path)
    denied(bytes_of, t.m('.env/'), also=('ENOTDIR',))
    denied(bytes_of, t.m('.env/.'), also=('ENOTDIR',))
    for path in (t.m('free/../ghost'), '../ghost', 'ghost', t.mnt + '//ghost.d//k'):
        fails('ENOENT', bytes_of, path)
    denied(os.listdir, t.m('vault/'))
    denied(os.listdir, t.m('vault/open/..'))
    os.chdir(t.m('vault/open'))
    for path in ('../k', '../sub/k', '../../.env', '..//../a/.env'):
        denied(bytes_of, path)
    denied(os.listdir, '..')
    os.chdir('/')
    intact(t)


@ruled
def test_proc_names(t):
    seed(t)
    yield
    os.chdir(t.m('free'))
    with opened(t.mnt) as fd, opened(t.m('free')) as free:
        for path in ('/proc/self/root' + t.m('.env'), '/proc/self/cwd/../.env', f'/proc/self/fd/{fd}/.env', f'/dev/fd/{free}/../.env', f'/proc/{os.getpid()}/root' + t.m('vault/k'),
                     '/proc/thread-self/root' + t.m('.env'), '/proc/self/task/%d/cwd/../.env' % os.getpid()):
            denied(bytes_of, path)
            denied(write, path, 'x')
        for name in ('.env', 'vault/k', 'a/.env'):
            denied(lambda: os.read(os.open(name, os.O_RDONLY, dir_fd=fd), 99))
            denied(lambda: os.read(os.open('../' + name, os.O_RDONLY, dir_fd=free), 99))
    os.chdir('/')
    intact(t)


@ruled
def test_trailing_dots_and_spaces(t):
    """Names are bytes: what other systems strip makes another name here, which leads nowhere."""
    seed(t)
    yield
    for name in ('.env.', '.env ', '.env. .', '.env\t', 'a/x.key.', 'a/x.key ', '.env::$DATA', '.env\\', 'vault./k', 'vault /k', 'ghost.', 'GHOST ', 'conf /app/token', 'a\\.env'):
        fails(('ENOENT',) + DENIED, bytes_of, t.m(name))
    intact(t)


@case(policy='[profile cases]\nnocase = yes\n[files cases]\nwrite = **\ndeny = .env, *.key, Café\ndeny = re:token$\nhide = ghost\n')
def test_case_and_unicode(t):
    """Without case means by Unicode's folding, for names that are there and for those that are made. A letter in two code points is another name."""
    sign = '\N{KELVIN SIGN}'
    there = ('.ENV', '.Env', 'a.KEY', 'b.Key', f'c.{sign}ey', f'D.{sign}EY', 'CAFÉ', 'café', 'TOKEN', f'to{sign}en', '\N{LATIN SMALL LETTER LONG S}.KeY')
    t.seed({name: MARK for name in there} | {'GHOST': MARK, 'free/f': 'f'})
    yield
    for name in there:
        denied(bytes_of, t.m(name))
    for name in ('Ghost', 'GHOST', 'ghost'):
        fails('ENOENT', os.lstat, t.m(name))
        denied(create, t.m('free', name))
    for name in ('.eNV', 'x.kEY', f'x.{sign}eY', 'cAfÉ', 'tOkEn', f'TO{sign}EN'):
        denied(create, t.m('free', name))
        denied(os.mkdir, t.m('free', name))
        denied(os.rename, t.m('free/f'), t.m('free', name))
    check('GHOST' not in names(t.mnt), 'a hidden name is listed')
    sweep(t)


@case(policy='[profile cases]\n[files cases]\nwrite = **\ndeny = *.key\ndeny = re:(^|/)id.rsa$\ndeny = re:^conf/.*/token$\nhide = ghost*\n')
def test_newlines_and_stray_bytes(t):
    """No byte of a name makes a pattern stop short, or match what it should not."""
    there = (b'a\n.key', b'\n.key', b'\xff.key', b'x\xc3\x28.key', b'\xed\xa0\x80.key', b'id\nrsa', b'id\xffrsa', b'conf/a\nb/token', b'conf/\xf0/token', b'\r\n\t.key')
    low, mnt = os.fsencode(t.low) + b'/', os.fsencode(t.mnt) + b'/'
    os.makedirs(low + b'conf/a\nb')
    os.makedirs(low + b'conf/\xf0')
    os.mkdir(low + b'free')
    for name in there + (b'ghost\n', b'ghost\xff'):
        write(low + name, MARK)
    for name in (b'id_rsa\n', b'a.key\n'):
        write(low + name, 'another name\n')
    yield
    for name in there:
        denied(bytes_of, mnt + name)
    for name in (b'n\n.key', b'\xfe.key', b'id\nrsa', b'id\xfersa', b'ghost\n\n'):
        denied(create, mnt + b'free/' + name)
    for name in (b'ghost\n', b'ghost\xff'):
        fails('ENOENT', os.lstat, mnt + name)
    for name in (b'id_rsa\n', b'a.key\n'):
        eq(read(mnt + name), b'another name\n', f'{name}')
    check(not [name for name in os.listdir(mnt) if name.startswith(b'ghost')], 'a hidden name is listed')
    for command in (['diff', '--json'], ['log', '--json']):
        check(MARK not in t.sbxfs(command[0], t.name, *command[1:]).bytes, f'{command[0]} shows a secret')
    sweep(t)
