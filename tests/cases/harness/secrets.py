# SPDX-License-Identifier: MIT
"""What must not leak, and the ways to look for it: shared by the cases of the rules and by the attacks on the view.

Every protected file carries MARK; sweep() reads all that can be reached.
"""
import contextlib
import ctypes
import os
import stat
import struct

from .kit import AT_FDCWD, Failed, _result, check, libc, name_of, one_of, short

MARK = b'MARK-not-a-real-secret'
DENIED = ('EACCES', 'EPERM')
REFUSED = DENIED + ('EROFS',)


def bytes_of(path):
    """The start of a file by open(2) and read(2). Whoever may override permissions is refused at the read."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)


def denied(call, *arguments, also=()):
    """The call fails as a denial does; if it returns bytes, they are no secret."""
    try:
        result = call(*arguments)
    except OSError as error:
        one_of(name_of(error.errno), DENIED + tuple(also), f'{getattr(call, "__name__", call)}{short(arguments)}')
        return
    raise Failed(f'allowed: {getattr(call, "__name__", call)}{short(arguments)} gave {short(result)}')


def sweep(t, top=None):
    """Reads whatever can be reached; no mark may be in it."""
    for directory, directories, files in os.walk(os.fsencode(top or t.mnt)):
        for name in directories + files:
            path = os.path.join(directory, name)
            with contextlib.suppress(OSError):
                info = os.lstat(path)
                found = os.readlink(path) if stat.S_ISLNK(info.st_mode) else bytes_of(path) if stat.S_ISREG(info.st_mode) else b''
                check(MARK not in found, f'the secret can be read at {path!r}')


class Handle:
    """
    A file opened by open_by_handle_at(2): whoever has CAP_DAC_READ_SEARCH needs no walk for it, so that no lookup can refuse it. What cannot be
    walked to gives no handle either, but one is easily made: it is an inode number, which stat(2) shows, in the handle of another file.
    """

    def __init__(self, mount, ino):
        self.mount = mount
        self.data = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
        _result(libc.name_to_handle_at(AT_FDCWD, os.fsencode(mount), self.data, ctypes.byref(ctypes.c_int()), 0), mount)
        struct.pack_into('=II', self.data, 8, ino >> 32, ino & 0xffffffff)

    def open(self, flags):
        mount = os.open(self.mount, os.O_RDONLY)
        try:
            return _result(libc.open_by_handle_at(mount, self.data, flags))
        finally:
            os.close(mount)
