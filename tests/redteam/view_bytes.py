# SPDX-License-Identifier: MIT
"""Attacks on the view by bytes and attributes: every call that reads, changes or describes a file. One trick a test."""
import fcntl
import mmap
import shutil
import signal
import stat
import subprocess

from guarded import *  # noqa: F403

FICLONE, FICLONERANGE, FIDEDUPERANGE = 0x40049409, 0x4020940d, 0xc0189436
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP = 0x80086601, 0x40086602, 0x801c581f, 0xc020660b
IN_ALL_EVENTS = 0xfff
PROTECTED = DENIED_FILES + ['shape.cfg'] + LOCKED


def readers(t, name):
    """Descriptors to read a denied file, which only those have who may override permissions."""
    return descriptors(t, name, os.O_RDONLY)


def gives_nothing(call, *arguments):
    """It fails, or the file looks empty, for the kernel does not ask for bytes behind the end."""
    try:
        result = call(*arguments)
    except OSError as error:
        one_of(name_of(error.errno), DENIED, f'{call.__name__}{short(arguments)}')
    else:
        eq(result, 0, f'what {call.__name__}{short(arguments)} gave')


# Reading


@ruled
def test_open_and_read(t):
    seed(t)
    yield
    for name in DENIED_FILES:
        for flags in (os.O_RDONLY, os.O_RDONLY | os.O_NOFOLLOW, os.O_RDONLY | os.O_DIRECT, os.O_RDONLY | os.O_CREAT, os.O_RDONLY | os.O_NOATIME):
            denied(os.open, t.m(name), flags)  # also root: refused the name
        for fd in readers(t, name):
            denied(os.read, fd, 99)
            denied(os.pread, fd, 99, 0)
            denied(os.preadv, fd, [bytearray(99)], 0)
        for fd in descriptors(t, name, os.O_RDONLY | os.O_DIRECT):  # does not look at the size first
            denied(os.preadv, fd, [mmap.mmap(-1, 4096)], 0)
        for fd in descriptors(t, name):
            fails('EBADF', os.read, fd, 9)
            for flags in (os.O_RDONLY, os.O_RDWR):
                denied(lambda: os.read(os.open(f'/proc/self/fd/{fd}', flags), 99))
    for name in HIDDEN_FILES:
        fails('ENOENT', os.open, t.m(name), os.O_RDONLY)
    intact(t)


@ruled
def test_ordinary_users_are_refused_at_open(t):
    """By the mode that the view shows, for the kernel asks nobody else; whoever reads by other ways meets the second refusal."""
    seed(t)
    yield

    def tries():
        for name in DENIED_FILES:
            for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
                fails('EACCES', os.open, t.m(name), flags)
        for name in LOCKED + ['shape.cfg']:
            for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
                fails('EACCES', os.open, t.m(name), flags)
        for name in DENIED_DIRS:
            fails('EACCES', os.open, t.m(name), os.O_RDONLY | os.O_DIRECTORY)
    t.as_ordinary(tries)
    intact(t)


@ruled
def test_every_program(t):
    seed(t)
    yield
    os.mkdir(t.path('copy'))
    for command in (['grep', '-r', '.', t.mnt], ['tar', '-C', t.mnt, '-cf', '-', '.'], ['find', t.mnt, '-type', 'f', '-exec', 'cat', '{}', '+'], ['cp', '-r', t.mnt, t.path('copy')],
                    ['dd', f'if={t.m(".env")}', 'bs=1'], ['git', 'hash-object', t.m('.env')], ['git', 'diff', '--no-index', t.m('pub'), t.m('.env')]):
        done = t.program(*command, code=None)
        check(MARK not in done.bytes and MARK.decode() not in done.err, f'{command[0]} got at it')
    sweep(t, t.path('copy'))
    intact(t)


@ruled
def test_mmap(t):
    seed(t)
    yield

    def touch(fd):
        """In a process of its own: a page that cannot be had is a signal."""
        for flags in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            pid = os.fork()
            if pid == 0:
                with contextlib.suppress(OSError, ValueError):
                    address = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, flags, fd, ctypes.c_long(0))
                    os._exit(1 if ctypes.string_at(address, 4) == MARK[:4] else 0)
                os._exit(0)
            status = os.waitpid(pid, 0)[1]
            check(os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGBUS, signal.SIGSEGV) or status == 0, f'mmap gave the secret: {status}')

    libc.mmap.restype = ctypes.c_void_p
    for name in DENIED_FILES:
        denied(lambda: mmap.mmap(os.open(t.m(name), os.O_RDONLY), 4, mmap.MAP_SHARED, mmap.PROT_READ))
        for fd in readers(t, name):
            touch(fd)
    with opened(t.m('shape.cfg')) as fd, mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as mapping:
        eq(mapping[:], SHAPE, 'a masked file')
    intact(t)


@ruled
def test_mmap_to_write(t):
    """A shared mapping of what may only be read changes nothing that stays: not the file, and not what others read."""
    seed(t)
    yield
    for name in LOCKED + ['shape.cfg']:
        before = read(t.m(name))
        try:
            fd = os.open(t.m(name), os.O_RDWR)
        except OSError as error:
            one_of(name_of(error.errno), REFUSED, 'open')
            continue
        with contextlib.suppress(OSError), mmap.mmap(fd, 4, mmap.MAP_SHARED) as mapping:
            mapping[:] = b'EVIL'
            mapping.flush()
        with contextlib.suppress(OSError):
            os.close(fd)
        soon(lambda: read(t.m(name)) == before, f'{name} reads as before')
    t.remount()
    intact(t)


@ruled
def test_copy_file_range(t):
    seed(t)
    yield
    with open(t.m('mine'), 'w+b') as mine:
        for name in DENIED_FILES:
            for fd in readers(t, name):
                gives_nothing(os.copy_file_range, fd, mine.fileno(), 99, 0, 0)
        with opened(t.m('shape.cfg')) as fd:
            os.copy_file_range(fd, mine.fileno(), 99, 0, 0)
        eq(read(t.m('mine')), SHAPE, 'a copy of what is masked')
        for name in PROTECTED:
            for fd in descriptors(t, name, os.O_WRONLY):
                fails(REFUSED, os.copy_file_range, mine.fileno(), fd, 4, 0, 0)
    intact(t)


@ruled
def test_sendfile(t):
    seed(t)
    yield
    with open(t.path('taken'), 'w+b') as taken:
        for name in DENIED_FILES:
            for fd in readers(t, name):
                gives_nothing(os.sendfile, taken.fileno(), fd, 0, 99)
        with opened(t.m('shape.cfg')) as fd:
            os.sendfile(taken.fileno(), fd, 0, 99)
    eq(read(t.path('taken')), SHAPE, 'what was sent')
    intact(t)


@ruled
def test_splice(t):
    seed(t)
    yield
    reader, writer = os.pipe()
    for name in DENIED_FILES:
        for fd in readers(t, name):
            gives_nothing(os.splice, fd, writer, 99, 0)
    with opened(t.m('shape.cfg')) as fd:
        os.splice(fd, writer, 99, 0)
    eq(os.read(reader, 99), SHAPE, 'what came out')
    for name in PROTECTED:
        for fd in descriptors(t, name, os.O_WRONLY):
            os.write(writer, b'EVIL')
            fails(REFUSED, os.splice, reader, fd, 4, None, 0)
            os.read(reader, 4)
    os.close(reader)
    os.close(writer)
    intact(t)


@ruled
def test_clone_and_compare(t):
    """FICLONE and FICLONERANGE copy, FIDEDUPERANGE tells whether bytes are equal."""
    seed(t)
    yield
    refused = REFUSED + ('EOPNOTSUPP', 'ENOTTY', 'EINVAL', 'EXDEV', 'EBADF')
    with open(t.m('mine'), 'w+b') as mine, open(t.path('outside'), 'w+b') as outside:
        mine.write(MARK)
        mine.flush()
        for name in DENIED_FILES + ['shape.cfg']:
            for fd in readers(t, name):
                for target in (mine, outside):
                    fails(refused, fcntl.ioctl, target.fileno(), FICLONE, fd)
                    fails(refused, fcntl.ioctl, target.fileno(), FICLONERANGE, struct.pack('qQQQ', fd, 0, 0, 0))
                same = bytearray(struct.pack('QQHHI', 0, len(MARK), 1, 0, 0) + struct.pack('qQQiI', mine.fileno(), 0, 0, 0, 0))
                if errno_of(fcntl.ioctl, fd, FIDEDUPERANGE, same, True) == 'OK':
                    check(struct.unpack_from('i', same, 24 + 24)[0] < 0, f'{name}: FIDEDUPERANGE compared')
        for name in PROTECTED:
            for fd in descriptors(t, name, os.O_WRONLY):
                fails(refused, fcntl.ioctl, fd, FICLONE, mine.fileno())
    eq(read(t.path('outside')), b'', 'what was cloned')
    os.unlink(t.m('mine'))
    sweep(t)


# Changing


@ruled
def test_truncate(t):
    seed(t)
    yield
    for name in PROTECTED:
        for size in (0, 3, 1 << 20):
            fails(REFUSED, os.truncate, t.m(name), size)
        fails(REFUSED, os.open, t.m(name), os.O_RDONLY | os.O_TRUNC)
        for fd in descriptors(t, name, os.O_WRONLY):
            fails(REFUSED, os.ftruncate, fd, 0)
    for name in HIDDEN_FILES:
        fails('ENOENT', os.truncate, t.m(name), 0)
    intact(t)


@ruled
def test_write_and_append(t):
    seed(t)
    yield
    for name in PROTECTED:
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_DSYNC, os.O_WRONLY | os.O_DIRECT):
            for fd in descriptors(t, name, flags):
                fails(REFUSED, os.write, fd, b'EVIL')
                fails(REFUSED, os.pwritev, fd, [b'EVIL'], 1)
        fails(REFUSED, append, t.m(name), 'EVIL')
    intact(t)


@ruled
def test_fallocate(t):
    seed(t)
    yield
    for name in PROTECTED:
        for mode in (0, FALLOC_KEEP_SIZE, FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE, FALLOC_ZERO):
            for fd in descriptors(t, name, os.O_WRONLY):
                fails(REFUSED, fallocate, fd, mode, 0, 4096)
    intact(t)


@ruled
def test_modes_owners_and_times(t):
    seed(t)
    yield
    for name in PROTECTED + DENIED_DIRS + ['locked', 'locked/sub']:
        for call in (lambda p: os.chmod(p, 0o777), lambda p: os.chown(p, os.getuid(), os.getgid()), lambda p: os.utime(p, (1, 1)), os.utime):
            fails(REFUSED, call, t.m(name))
        for fd in descriptors(t, name):
            for call in (lambda p: os.chmod(p, 0o777), lambda p: os.chown(p, os.getuid(), os.getgid()), lambda p: os.utime(p, (1, 1))):
                fails(REFUSED, call, f'/proc/self/fd/{fd}')
    for name in HIDDEN:
        for call in (lambda p: os.chmod(p, 0o777), lambda p: os.chown(p, os.getuid(), os.getgid()), lambda p: os.utime(p, (1, 1))):
            fails('ENOENT', call, t.m(name))
    intact(t)


# Describing


@ruled
def test_extended_attributes_and_lists(t):
    seed(t)
    yield
    def asks(path):
        for attribute in ('user.s', 'user.x'):
            fails(DENIED, os.getxattr, path, attribute)
        for attribute in ('security.capability', 'trusted.overlay.origin', 'system.posix_acl_access', 'system.posix_acl_default'):
            fails(DENIED + ('EOPNOTSUPP', 'ENODATA'), os.getxattr, path, attribute)
        fails(DENIED, os.listxattr, path)
        for call in (lambda p: os.setxattr(p, 'user.s', b'1'), lambda p: os.removexattr(p, 'user.s'), lambda p: os.setxattr(p, 'system.posix_acl_access', b'\2\0\0\0')):
            fails(REFUSED + ('EOPNOTSUPP', 'EINVAL'), call, path)

    for name in ('.env', 'shape.cfg'):
        asks(t.m(name))
        for fd in descriptors(t, name):
            asks(f'/proc/self/fd/{fd}')
    for name in LOCKED:
        fails(REFUSED, os.setxattr, t.m(name), 'user.x', b'1')
    intact(t)


@ruled
def test_access(t):
    seed(t)
    yield

    def asks():
        for name in DENIED_FILES:
            eq([os.access(t.m(name), mode) for mode in (os.R_OK, os.W_OK, os.X_OK)], [False] * 3, f'access to {name}')
        for name in LOCKED + ['shape.cfg']:
            eq([os.access(t.m(name), mode) for mode in (os.R_OK, os.W_OK)], [True, False], f'access to {name}')
        eq([os.access(t.m(name), os.F_OK) for name in HIDDEN], [False] * len(HIDDEN), 'access to what is hidden')
    t.as_ordinary(asks)
    intact(t)


@ruled
def test_size_times_and_links(t):
    seed(t)
    os.utime(t.w('.env'), (1000, 2000))
    os.link(t.w('.env'), t.path('second'))
    yield
    for name in SHOWN:
        info = os.lstat(t.m(name))
        eq((info.st_size, info.st_blocks, info.st_nlink, info.st_mtime_ns, info.st_atime_ns, info.st_ctime_ns), (0, 0, 1, 0, 0, 0), f'stat of {name}')
        # through vault leads the way to what is allowed in it
        eq(stat.S_IMODE(info.st_mode), 0o111 if name == 'vault' else 0, f'mode of {name}')
        eq(t.program('stat', '-c', '%W', t.m(name)).out.strip(), '0', f'birth of {name}')
    for name in ('vault/k', 'vault/sub', 'vault/sub/k', 'vault/nothing'):
        denied(os.lstat, t.m(name))
    for entry in os.scandir(t.mnt):
        check(entry.name != '.env' or entry.stat(follow_symlinks=False).st_size == 0, 'size by a listing')
    eq(os.stat(t.m('shape.cfg')).st_size, len(SHAPE), 'size of what is masked')
    intact(t)


@ruled
def test_listings_and_positions(t):
    """Nothing denied is listed, and what is hidden is in no listing, at whatever position it is entered."""
    seed(t)
    t.seed({f'many/{n}': '' for n in range(300)})
    t.seed({'many/ghost': MARK, 'many/ghost.d/k': MARK})
    yield
    for name in DENIED_DIRS:
        denied(os.listdir, t.m(name))
        for fd in descriptors(t, name, os.O_RDONLY | os.O_DIRECTORY):
            denied(os.listdir, fd)
    directory = Directory(t.m('many'))
    positions, seen = [], set()
    while (entry := directory.next()) is not None:
        seen.add(entry.name)
        positions += [entry.off, entry.off - 1, entry.off + 1]
    for position in positions + [0, 3, 1 << 40, (1 << 62) + 5]:
        directory.seek(position)
        entry = directory.next()
        if entry:
            seen.add(entry.name)
    directory.close()
    check(not {b'ghost', b'ghost.d'} & seen and len(seen) == 302, f'{len(seen)} names')
    for top in ('', 'a', 'many'):
        check(not {'ghost', 'ghost.d'} & set(names(t.m(top))), f'a hidden name in {top or "the root"}')
    check(b'ghost' not in t.program('find', t.mnt, code=None).bytes, 'find')
    intact(t)


@ruled
def test_hidden_files_leave_no_trace(t):
    """Two directories, one with something hidden in it, look the same."""
    for name in ('x', 'y'):
        t.seed({f'{name}/sub/': None, f'{name}/f': 'f'})
    t.seed({'x/ghost': MARK, 'x/ghost.d/k': MARK})
    for name in ('x', 'y'):
        os.utime(t.w(name), (5, 5))
    yield

    def looks(name):
        info = os.stat(t.m(name))
        return info.st_nlink, info.st_size, info.st_blocks, info.st_mtime_ns, names(t.m(name)), [errno_of(create, t.m(name, 'ghost')), errno_of(os.mkdir, t.m(name, 'ghost.d'))]
    eq(looks('x'), looks('y'), 'with and without hidden files')
    sweep(t)


@ruled
def test_open_by_handle(t):
    """A handle needs no lookup, so that each operation has to refuse by itself. Handles of what a caller has seen are easily made."""
    t.needs_root()
    seed(t)
    yield
    for name in SHOWN[:-1]:
        fd = Handle(t.mnt, os.lstat(t.m(name)).st_ino).open(os.O_RDWR)
        denied(os.read, fd, 99)
        for call in (lambda: os.write(fd, b'x'), lambda: os.ftruncate(fd, 0), lambda: os.fchmod(fd, 0o777), lambda: os.fchown(fd, 1, 1), lambda: os.utime(fd, (1, 1)),
                     lambda: os.getxattr(fd, 'user.s'), lambda: os.listxattr(fd), lambda: os.setxattr(fd, 'user.s', b''), lambda: fallocate(fd, 0, 0, 99)):
            denied(call)
        eq(os.fstat(fd).st_size, 0, 'its size')
        os.close(fd)
    fd = Handle(t.mnt, os.lstat(t.m('vault')).st_ino).open(os.O_RDONLY | os.O_DIRECTORY)
    denied(os.listdir, fd)
    denied(lambda: os.read(os.open('k', os.O_RDONLY, dir_fd=fd), 99))
    denied(lambda: os.open('n', os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    intact(t)


@ruled
def test_seek_data(t):
    """Holes have a shape too."""
    seed(t)
    for name in ('.env', 'shape.cfg'):
        with open(t.w(name), 'r+b') as file:
            file.truncate(1 << 20)
            file.seek((1 << 20) - 1)
            file.write(b'\n')
    yield
    for whence in (os.SEEK_DATA, os.SEEK_HOLE):
        for fd in readers(t, '.env'):
            one_of(errno_of(os.lseek, fd, 0, whence), DENIED, 'holes of a denied file')
        with opened(t.m('shape.cfg')) as fd:
            fails('EOPNOTSUPP', os.lseek, fd, 0, whence)


@ruled
def test_ioctl(t):
    seed(t)
    yield
    for name in PROTECTED:
        for fd in descriptors(t, name, os.O_RDONLY):
            for request, size in ((FS_IOC_GETFLAGS, 8), (FS_IOC_SETFLAGS, 8), (FS_IOC_FSGETXATTR, 28), (FS_IOC_FIEMAP, 88)):
                one_of(errno_of(fcntl.ioctl, fd, request, bytes(size)), REFUSED + ('ENOTTY', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL'), f'{request:#x} of {name}')
    intact(t)


@ruled
def test_watching(t):
    """inotify wants what read(2) wants."""
    seed(t)
    yield

    def watch():
        fd = libc.inotify_init1(os.O_CLOEXEC)
        for name in DENIED_FILES + DENIED_DIRS:
            check(libc.inotify_add_watch(fd, os.fsencode(t.m(name)), IN_ALL_EVENTS) < 0, f'{name} is watched')
        check(libc.inotify_add_watch(fd, os.fsencode(t.m('a')), IN_ALL_EVENTS) >= 0, 'a directory beside it')
        os.close(fd)
    t.as_ordinary(watch)
    intact(t)


@ruled
def test_a_look_opens_nothing(t):
    """What stat(2) has shown is not kept for an open(2) that asks nobody."""
    seed(t)
    yield
    for name in SHOWN[:-1]:
        for look in (os.lstat, lambda p: os.access(p, os.F_OK), lambda p: t.program('stat', p), lambda p: list(os.scandir(os.path.dirname(t.m('a/pub'))))):
            look(t.m(name))
            denied(os.open, t.m(name), os.O_RDONLY)
    intact(t)


# Namespaces

IN_A_NAMESPACE = r'''
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
mnt, low, uid, gid = sys.argv[1], sys.argv[2], os.geteuid(), os.getegid()
if libc.unshare(0x10000000 | 0x20000):
    print("no namespaces here")
    sys.exit(0)
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    with open("/proc/self/" + name, "w") as file:
        file.write(text)
def at(what, call):
    try:
        print(what, "got", repr(call()))
    except OSError as error:
        print(what, os.strerror(error.errno))
for name in (".env", "vault/k", "conf/app/token"):
    at(name, lambda: open(os.path.join(mnt, name), "rb").read())
    at(name, lambda: os.read(os.open(os.path.join(mnt, name), os.O_RDWR), 99))
at("list", lambda: os.listdir(os.path.join(mnt, "vault")))
for flags in (0x1000, 0x1000 | 0x4000):  # MS_BIND, MS_REC
    for source in (mnt + "/vault", mnt, os.path.dirname(mnt)):
        if libc.mount(source.encode(), sys.argv[3].encode(), None, flags, None) == 0:
            below = sys.argv[3] + ("/m" if source == os.path.dirname(mnt) else "")
            for name in (".env", "k", "vault/k"):
                at(f"bind {source} {name}", lambda: open(os.path.join(below, name), "rb").read())
            libc.umount2(sys.argv[3].encode(), 2)
libc.umount2(mnt.encode(), 2)
at("under the view", lambda: open(os.path.join(mnt, ".env"), "rb").read())
'''


def in_a_namespace(t, mnt):
    os.makedirs(t.path('bind'), exist_ok=True)
    command = ['/usr/bin/python3', '-c', IN_A_NAMESPACE, mnt, t.low, t.path('bind')]
    done = t.as_ordinary(lambda: subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if 'no namespaces here' in done:
        t.skip('no user namespaces here')
    check('.env Permission denied' in done, f'nothing was tried: {done}')
    check(MARK.decode() not in done and ' got [' not in done, f'a namespace has it: {done}')


@fresh
def test_root_of_a_user_namespace(t):
    """Its capabilities count for one's own files, so modes are no bar to it; and it may mount."""
    seed(t)
    yield
    in_a_namespace(t, t.mnt)
    intact(t)


@case(policy=POLICY, modes=('fresh',), in_place=True)
def test_what_lies_under_a_view_in_place(t):
    seed(t)
    yield
    in_a_namespace(t, t.mnt)
    fails('EACCES', bytes_of, t.mnt + '/.env')


# What is masked or scratch


@ruled
def test_masked_files(t):
    seed(t)
    t.seed({'list.cfg': b'["' + MARK + b'"]\n', 'one.cfg': b'[prod] password=' + MARK + b'\n', 'json.cfg': b'[{"a": "' + MARK + b'"}]\n', 'binary.cfg': b'KEY=1\n\0' + MARK,
            'long.cfg': b'A=\\\n' + MARK + b'=\n', 'more.cfg': b'[a]\npassword = x\n   ' + MARK + b'=\n', 'url.cfg': b'[a]\nremote = https://me:' + MARK + b'@example.org/\n',
            'd/k.cfg': b'KEY=' + MARK})
    yield
    for name in ('shape.cfg', 'list.cfg', 'one.cfg', 'json.cfg', 'binary.cfg', 'long.cfg', 'more.cfg', 'url.cfg', 'd/k.cfg'):
        eq(MARK in read(t.m(name)), False, f'the secret in {name}')
        eq(os.stat(t.m(name)).st_size, len(read(t.m(name))), f'the size of {name}')
        with opened(t.m(name)) as fd:
            check(MARK not in os.pread(fd, 99, 3), 'pread')
    os.rename(t.m('d'), t.m('e'))
    eq(read(t.m('e/k.cfg')), SHAPE, 'in a directory that moved')
    shutil.copy(t.m('shape.cfg'), t.m('copy'))
    os.chmod(t.m('copy'), 0o644)
    eq(read(t.m('copy')), SHAPE, 'a copy')
    fails(REFUSED, os.rename, t.m('copy'), t.m('shape.cfg'))  # would write the mask back
    fails(REFUSED, os.rename, t.m('copy'), t.m('new.cfg'))
    os.unlink(t.m('copy'))
    os.rename(t.m('e'), t.m('d'))
    intact(t)


SCRATCH = '[profile cases]\n[files cases]\nwrite = **\nscratch = build/\ndeny = .env\nread = locked/\n'


@case(policy=SCRATCH, modes=('fresh',), workspace_changes=True)
def test_scratch_is_no_way_around_review(t):
    """What is denied stays so in there; what moves out of it is reviewed, and what moves in is a deletion."""
    t.seed({'build/.env': MARK, 'build/old': 'old\n', 'src/f': 'f\n', 'locked/f': 'l\n'})
    yield
    denied(bytes_of, t.m('build/.env'))
    fails(REFUSED, os.rename, t.m('locked/f'), t.m('build/f'))
    os.mkdir(t.m('build/x'))
    denied(create, t.m('build/x/.env'))
    write(t.m('build/x/made'), 'made\n')
    os.rename(t.m('build/x/made'), t.m('src/made'))
    os.rename(t.m('src/f'), t.m('build/f'))
    os.link(t.m('src/made'), t.m('build/linked'))
    eq(t.name_status(), {'src/f': 'D', 'src/made': 'A'}, 'the difference')
    t.commit()
    eq((names(t.w('src')), names(t.w('build'))), (['made'], ['.env', 'old']), 'the workspace')
    denied(bytes_of, t.m('build/.env'))
