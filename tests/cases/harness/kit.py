# SPDX-License-Identifier: MIT
"""What a case is written with: system calls that Python lacks, checks that say what they saw, digests of trees.

Nothing here knows of sbxfs; every helper works on any file system. A check that fails raises Failed, which ends the case.
Only the standard library is used.
"""
import contextlib
import ctypes
import errno
import hashlib
import os
import stat
import struct
import subprocess
import time

libc = ctypes.CDLL(None, use_errno=True)

AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = -100, 0x1000, 0x400
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_COLLAPSE, FALLOC_ZERO = 1, 2, 8, 16
O_PATH, O_TMPFILE = 0o10000000, 0o20200000
S_IALLUGO = 0o7777


class Failed(Exception):
    """The program under test is wrong."""


class Skipped(Exception):
    """The case says nothing here; the argument is the reason."""


# Checks


def short(value):
    text = repr(value)
    return text if len(text) <= 300 else text[:140] + ' ... ' + text[-140:]


def check(condition, what):
    if not condition:
        raise Failed(what)


def eq(got, want, what):
    if got != want:
        raise Failed(f'{what}: got {short(got)}, want {short(want)}')


def one_of(got, wanted, what):
    if got not in wanted:
        raise Failed(f'{what}: got {short(got)}, want one of {short(wanted)}')


def errno_of(call, *arguments, **named):
    """The name of the error that the call ends with, or 'OK'. An fd that it returns is closed."""
    try:
        result = call(*arguments, **named)
    except OSError as error:
        return name_of(error.errno)
    if type(result) is int and call is os.open:
        os.close(result)
    return 'OK'


def name_of(number):
    return 'EOPNOTSUPP' if number == errno.EOPNOTSUPP else errno.errorcode.get(number, str(number))


def fails(want, call, *arguments, **named):
    """The call fails with @want, a name or a tuple of names."""
    names = (want,) if isinstance(want, str) else tuple(want)
    one_of(errno_of(call, *arguments, **named), names, f'{getattr(call, "__name__", call)}{short(arguments)}')


def works(call, *arguments, **named):
    eq(errno_of(call, *arguments, **named), 'OK', f'{getattr(call, "__name__", call)}{short(arguments)}')


def same_lists(got, want, what):
    """Two lists of lines, with the first differences in the message."""
    if got != want:
        extra = [line for line in got if line not in set(want)][:3]
        missing = [line for line in want if line not in set(got)][:3]
        raise Failed(f'{what}: unexpected {short(extra)}, missing {short(missing)}')


# Files


def wait_until(condition, what):
    """For what another process does by and by: the condition's value, once it is true. The limit is for what never happens."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise Failed(f'never happened: {what}')


def read(path, size=-1):
    with open(path, 'rb') as file:
        return file.read(size)


def write(path, data, mode='wb'):
    with open(path, mode) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def append(path, data):
    write(path, data, 'ab')


def create(path, mode=0o666, flags=0):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | flags, mode))


def names(path):
    """The sorted entries of a directory, as str unless @path is bytes."""
    return sorted(os.listdir(path))


def permissions(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def is_gone(path):
    return not os.path.lexists(path)


@contextlib.contextmanager
def opened(path, flags=os.O_RDONLY, mode=0o666, **named):
    fd = os.open(path, flags, mode, **named)
    try:
        yield fd
    finally:
        os.close(fd)


def noise(size, seed=1):
    """@size reproducible bytes that no one would compress."""
    return hashlib.shake_128(b'noise %d' % seed).digest(size)


# System calls


def _result(value, path=None):
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return value


def rename2(source, target, flags, source_dir=AT_FDCWD, target_dir=AT_FDCWD):
    _result(libc.renameat2(source_dir, os.fsencode(source), target_dir, os.fsencode(target), flags), source)


def exchange(a, b):
    rename2(a, b, RENAME_EXCHANGE)


def linkat(source_dir, source, target_dir, target, flags=0):
    _result(libc.linkat(source_dir, os.fsencode(source), target_dir, os.fsencode(target), flags), target)


def fallocate(fd, mode, offset, length):
    _result(libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def syncfs(fd):
    _result(libc.syncfs(fd))


def record_lock(fd, command, kind, start=0, length=0):
    """fcntl(F_SETLK, F_OFD_SETLK, ...) on a byte range."""
    import fcntl
    fcntl.fcntl(fd, command, struct.pack('hhqqi4x', kind, os.SEEK_SET, start, length, 0))


class Dirent(ctypes.Structure):
    _fields_ = [('ino', ctypes.c_ulong), ('off', ctypes.c_long), ('reclen', ctypes.c_ushort), ('type', ctypes.c_ubyte), ('name', ctypes.c_char * 256)]


class Directory:
    """opendir(3) with its positions, which os.scandir() hides."""

    libc.opendir.restype = ctypes.c_void_p
    libc.telldir.restype = ctypes.c_long
    libc.readdir.restype = ctypes.POINTER(Dirent)

    def __init__(self, path):
        self.stream = libc.opendir(os.fsencode(path))
        _result(0 if self.stream else -1, path)

    def next(self):
        entry = libc.readdir(ctypes.c_void_p(self.stream))
        return entry.contents if entry else None

    def rest(self):
        """Names from here on, without . and .."""
        found = []
        while (entry := self.next()) is not None:
            if entry.name not in (b'.', b'..'):
                found.append(entry.name)
        return found

    def tell(self):
        return libc.telldir(ctypes.c_void_p(self.stream))

    def seek(self, position):
        libc.seekdir(ctypes.c_void_p(self.stream), ctypes.c_long(position))

    def rewind(self):
        libc.rewinddir(ctypes.c_void_p(self.stream))

    def close(self):
        libc.closedir(ctypes.c_void_p(self.stream))


# Other processes


def in_child(call, uid=None, gid=None, groups=()):
    """
    Runs @call in a forked process, as another user if asked for, and hands over what it returned (a short string or None)
    or raised. A child that dies of a signal fails the case.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        answer = 'E\nended early'
        try:
            if uid is not None:
                os.setgroups(list(groups))
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
            answer = f'R\n{call()}'
        except OSError as error:
            answer = f'O\n{error.errno}\n{error}'
        except BaseException as error:
            answer = f'E\n{type(error).__name__}: {error}'
        finally:
            os.write(writer, answer.encode('utf-8', 'surrogateescape')[:60000])
            os._exit(0)
    os.close(writer)
    with open(reader, 'rb') as file:
        answer = file.read().decode('utf-8', 'surrogateescape').split('\n', 2)
    status = os.waitpid(pid, 0)[1]
    if not answer[0]:
        raise Failed(f'a child process ended with status {status:#x}')
    if answer[0] == 'O':
        raise OSError(int(answer[1]), answer[2])
    if answer[0] == 'E':
        raise Failed('in a child process: ' + '\n'.join(answer[1:]))
    return '\n'.join(answer[1:])


# Trees


def _content(path):
    total = hashlib.sha256()
    with open(path, 'rb') as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()[:32]


def _xattrs(path):
    try:
        found = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return []
    return [f'{n}={os.getxattr(path, n, follow_symlinks=False).hex()}' for n in sorted(found) if n.startswith(('user.', 'trusted.'))]


def _describe(path, parts):
    info = os.lstat(path)
    kind = stat.S_IFMT(info.st_mode)
    words = [f'{info.st_mode:o}' if kind != stat.S_IFLNK else 'link']
    if 'git' in parts:
        words = ['x' if info.st_mode & 0o100 and kind == stat.S_IFREG else f'{kind:o}']
    if kind == stat.S_IFREG:
        words += [str(info.st_size), errno_or(_content, path)]
    elif kind == stat.S_IFLNK:
        words.append(repr(errno_or(os.readlink, path)))
    elif kind in (stat.S_IFCHR, stat.S_IFBLK):
        words.append(str(info.st_rdev))
    if 'owner' in parts:
        words.append(f'{info.st_uid}:{info.st_gid}')
    if 'mtime' in parts:
        words.append(f'mtime={info.st_mtime_ns}')
    if 'ctime' in parts:
        words.append(f'ctime={info.st_ctime_ns}')
    if 'ino' in parts:
        words.append(f'ino={info.st_ino}')
    if 'nlink' in parts:
        words.append(f'nlink={info.st_nlink}')
    if 'xattr' in parts:
        words += _xattrs(path)
    return ' '.join(words), kind


def errno_or(call, path):
    try:
        return call(path)
    except OSError as error:
        return name_of(error.errno)


STATE = ('owner', 'mtime', 'xattr')
EVERYTHING = ('owner', 'mtime', 'ctime', 'ino', 'nlink', 'xattr')


def digest(top, parts=STATE, without=()):
    """
    One line for each object below @top, sorted by path: kind, mode, content and the @parts asked for. What can't be read shows its error
    instead. With the part 'git' it tells what git tells: no directories, no owners, only the x bit of a mode.
    """
    top = os.fsencode(top)
    lines = []

    def visit(path, shown):
        try:
            text, kind = _describe(path, parts)
        except OSError as error:  # a path that is too long, a name that is in the listing only
            lines.append(f'{os.fsdecode(shown)} {name_of(error.errno)}')
            return
        if 'git' not in parts or kind != stat.S_IFDIR:
            lines.append(f'{os.fsdecode(shown)} {text}')
        if kind != stat.S_IFDIR:
            return
        entries = errno_or(os.listdir, path)
        if isinstance(entries, str):
            lines.append(f'{os.fsdecode(shown)} {entries}')
            return
        for name in sorted(entries):
            below = shown + b'/' + name if shown != b'.' else name
            if os.fsdecode(below) not in without:
                visit(path + b'/' + name, below)

    visit(top, b'.')
    return lines


def grow(top, spec):
    """
    Makes a tree: {'a/b': 'content', 'dir/': None, 'link': ('->', 'target'), 'hard': ('=', 'a/b'), 'x': ('content', 0o755)}. In order.
    """
    for name, value in spec.items():
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path.rstrip('/')), exist_ok=True)
        if name.endswith('/'):
            os.makedirs(path, exist_ok=True)
            if value is not None:
                os.chmod(path, value)
        elif isinstance(value, tuple) and value[0] == '->':
            os.symlink(value[1], path)
        elif isinstance(value, tuple) and value[0] == '=':
            os.link(os.path.join(top, value[1]), path)
        elif isinstance(value, tuple):
            write(path, value[0])
            os.chmod(path, value[1])
        else:
            write(path, value)


def remove_tree(path):
    """rm -rf, also of directories without permissions and paths that are too long for one call."""
    for command in (['rm', '-rf', path], ['chmod', '-R', 'u+rwX', path], ['rm', '-rf', path]):
        subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
        if not os.path.lexists(path):
            break
