# SPDX-License-Identifier: MIT
"""The bytes of regular files: reading, writing, sizes, holes, mappings, open files without a name, locks, programs."""
import contextlib
import errno
import fcntl
import mmap
import os
import signal
import stat
import subprocess
import time

from harness.kit import *  # noqa: F403
from harness.view import case

SIZE = 150_000  # more than an inline content, no multiple of a page


class Model:
    """A file beside its bytes in memory; every operation is done to both."""

    def __init__(self, path, data=b''):
        self.path, self.data = path, bytearray(data)
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def write(self, offset, data):
        eq(os.pwrite(self.fd, data, offset), len(data), 'pwrite')
        if offset > len(self.data):
            self.data.extend(bytes(offset - len(self.data)))
        self.data[offset:offset + len(data)] = data

    def truncate(self, size):
        os.ftruncate(self.fd, size)
        del self.data[size:]
        self.data.extend(bytes(size - len(self.data)))

    def check(self, what):
        eq(os.fstat(self.fd).st_size, len(self.data), f'{what}: size')
        check(read(self.path) == self.data, f'{what}: content of {os.path.basename(self.path)}')

    def close(self):
        os.close(self.fd)


@case(plain=True)
def test_partial_writes_and_truncation_keep_the_other_bytes(t):
    steps = {
        'start': [('write', 0, b'#' * 7)], 'middle': [('write', 77_777, b'#' * 5000)], 'end': [('write', SIZE - 3, b'#' * 7)],
        'beyond': [('write', SIZE * 2, b'#' * 7)], 'shorter': [('truncate', 12_345)], 'longer': [('truncate', SIZE + 70_000)],
        'zero': [('truncate', 0), ('write', 10, b'x')], 'cut and regrow': [('truncate', 10), ('write', 5, b'yy'), ('truncate', 131_072), ('write', 131_070, b'#' * 7)],
        'page borders': [('write', 4095, b'ab'), ('write', 8192, b'c' * 4096), ('truncate', 8193), ('write', 65_535, b'de')],
        'cut inside a page': [('truncate', 5000), ('truncate', 6000), ('write', 5500, b'z'), ('truncate', 70_000)],
    }
    base, small = noise(SIZE), noise(700, 2)
    for name in steps:
        t.seed({f'big/{name}': base, f'small/{name}': small})
    os.mkdir(t.w('new'))
    yield
    for name, operations in steps.items():
        for kind, data in (('big', base), ('small', small), ('new', b'')):
            model = Model(t.m(kind, name), data)
            for operation in operations:
                getattr(model, operation[0])(*operation[1:])
            model.check(f'{kind}, {name}')
            model.close()


@case(plain=True)
def test_random_operations_agree_with_memory(t):
    import random
    t.seed({'f': noise(SIZE)})
    yield
    for name, data in (('f', noise(SIZE)), ('g', b'')):
        chance, model = random.Random(7), Model(t.m(name), data)
        for step in range(400):
            offset, size = chance.randrange(400_000), chance.choice((1, 7, 4096, 5000, 66_000))
            if chance.random() < 0.15:
                model.truncate(offset)
            elif chance.random() < 0.7:
                model.write(offset, noise(size, step))
            else:
                got = os.pread(model.fd, size, offset)
                check(got == model.data[offset:offset + size], f'pread({size}, {offset}) after step {step}')
        model.check('after all steps')
        model.close()


@case(plain=True)
def test_append_keeps_what_was_there(t):
    t.seed({'d/log': 'first\n', 'big': noise(SIZE)})
    yield
    for number in range(3):
        t.shell(f'echo line{number} >>d/log; echo new{number} >>d/fresh')
    eq(read(t.m('d/log')), b'first\nline0\nline1\nline2\n', 'workspace file')
    eq(read(t.m('d/fresh')), b'new0\nnew1\nnew2\n', 'new file')
    append(t.m('big'), b'tail')
    check(read(t.m('big')) == noise(SIZE) + b'tail', 'large file')
    with opened(t.m('d/log'), os.O_WRONLY | os.O_APPEND) as fd:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b'end\n')
        os.truncate(t.m('d/log'), 0)
        os.write(fd, b'again\n')
    eq(read(t.m('d/log')), b'again\n', 'append after another truncated the file')


@case(plain=True)
def test_parallel_appenders_lose_and_tear_nothing(t):
    t.seed({'log': 'first\n'})
    yield

    def appender(writer):
        with opened(t.m('log'), os.O_WRONLY | os.O_APPEND) as fd:
            for number in range(300):
                os.write(fd, b'%d:%06d:%s\n' % (writer, number, b'x' * 90))
    pids = []
    for writer in range(4):
        if (pid := os.fork()) == 0:
            appender(writer)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        eq(os.waitpid(pid, 0)[1], 0, 'status of a writer')
    lines = read(t.m('log')).split(b'\n')[:-1]
    eq((lines[0], len(lines), len(set(lines))), (b'first', 1201, 1201), 'lines')
    check(all(len(line) == 99 for line in lines[1:]), 'a torn line')


@case(plain=True)
def test_open_flags(t):
    t.seed({'f': 'content', 'd/x': 'x', 'l': ('->', 'f'), 'dangling': ('->', 'nowhere')})
    yield
    fails('EEXIST', os.open, t.m('f'), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fails('EEXIST', os.open, t.m('dangling'), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fails('ELOOP', os.open, t.m('l'), os.O_RDONLY | os.O_NOFOLLOW)
    fails('ENOTDIR', os.open, t.m('f'), os.O_RDONLY | os.O_DIRECTORY)
    fails('EISDIR', os.open, t.m('d'), os.O_WRONLY)
    fails('EISDIR', os.open, t.m('d'), os.O_RDONLY | os.O_CREAT)
    with opened(t.m('f'), os.O_RDONLY) as fd:
        fails('EBADF', os.write, fd, b'x')
    with opened(t.m('f'), os.O_WRONLY) as fd:
        fails('EBADF', os.read, fd, 1)
    with opened(t.m('f'), os.O_RDWR | os.O_TRUNC):
        eq((os.stat(t.m('f')).st_size, read(t.m('f'))), (0, b''), 'O_TRUNC')
    write(t.m('f'), b'new')
    with opened(t.m('f'), os.O_RDWR | os.O_CREAT | os.O_TRUNC):
        eq(read(t.m('f')), b'', 'O_CREAT|O_TRUNC of an existing file')
    write(t.m('dangling'), b'made through the link')
    eq(read(t.m('nowhere')), b'made through the link', 'create through a dangling link')
    with opened(t.m('f'), os.O_WRONLY | os.O_SYNC) as fd:
        eq(os.write(fd, b'synced'), 6, 'O_SYNC write')
    with contextlib.suppress(OSError), opened(t.m('f'), os.O_RDONLY | os.O_DIRECT) as fd:
        buffer = mmap.mmap(-1, 4096)
        eq((os.readv(fd, [buffer]), buffer[:6]), (6, b'synced'), 'O_DIRECT read')


@case(plain=True)
def test_file_over_four_gibibytes(t):
    yield
    far = 5 << 30
    with opened(t.m('f'), os.O_RDWR | os.O_CREAT) as fd:
        os.pwrite(fd, b'far', far)
        eq((os.fstat(fd).st_size, os.pread(fd, 9, far), os.pread(fd, 3, far - 3)), (far + 3, b'far', bytes(3)), 'beyond 4 GiB')
        check(os.fstat(fd).st_blocks < 1 << 20, 'the hole takes no room')
        os.ftruncate(fd, (4 << 30) + 1)
        eq(os.fstat(fd).st_size, (4 << 30) + 1, 'size after ftruncate')
        os.ftruncate(fd, 0)


@case(plain=True)
def test_holes_are_found(t):
    t.seed({'plain': noise(SIZE)})
    with open(t.w('sparse'), 'wb') as file:
        file.truncate(1 << 20)
        file.seek(512 << 10)
        file.write(b'island' * 1000)
    yield
    for name in ('sparse', 'new'):
        if name == 'new':
            with open(t.m(name), 'wb') as file:
                file.truncate(1 << 20)
                file.seek(512 << 10)
                file.write(b'island' * 1000)
        with opened(t.m(name), os.O_RDWR) as fd:
            size = os.fstat(fd).st_size
            data = os.lseek(fd, 0, os.SEEK_DATA)
            one_of(data, range(0, (512 << 10) + 1), f'{name}: first data')
            one_of(os.lseek(fd, 0, os.SEEK_HOLE), (0, 516_096, 528_384, 530_288, size) + tuple(range(516_096, size + 1, 4096)), f'{name}: first hole')
            eq(os.lseek(fd, size - 1, os.SEEK_HOLE), size if data == 0 else os.lseek(fd, size - 1, os.SEEK_HOLE), f'{name}: hole at the end')
            fails('ENXIO', os.lseek, fd, size, os.SEEK_DATA)
            fails('ENXIO', os.lseek, fd, size + 1, os.SEEK_HOLE)
            os.pwrite(fd, b'x', 1000)
            check(os.lseek(fd, 0, os.SEEK_DATA) <= 1000, f'{name}: data after a write into the hole')
        eq(read(t.m(name))[512 << 10:(512 << 10) + 6], b'island', f'{name}: content')
    with opened(t.m('plain')) as fd:
        eq((os.lseek(fd, 0, os.SEEK_DATA), os.lseek(fd, 5, os.SEEK_HOLE)), (0, SIZE), 'a file without holes')


@case(plain=True)
def test_fallocate_changes_exactly_its_range(t):
    t.seed({'f': noise(65_536), 'small': noise(3000)})
    yield
    for name in ('f', 'small', 'new'):
        if name == 'new':
            write(t.m(name), noise(65_536))
        data = bytearray(read(t.m(name)))
        with opened(t.m(name), os.O_RDWR) as fd:
            works(os.posix_fallocate, fd, 0, len(data) + 5000)
            data.extend(bytes(5000))
            eq(os.fstat(fd).st_size, len(data), f'{name}: size after posix_fallocate')
            one_of(errno_of(fallocate, fd, FALLOC_KEEP_SIZE, 0, 1 << 20), ('OK', 'EOPNOTSUPP'), 'KEEP_SIZE')
            eq(os.fstat(fd).st_size, len(data), f'{name}: size after KEEP_SIZE')
            for mode, offset, length in ((FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 1000, 1500), (FALLOC_ZERO, 300, 77), (FALLOC_ZERO, len(data) - 10, 100)):
                outcome = errno_of(fallocate, fd, mode, offset, length)
                one_of(outcome, ('OK', 'EOPNOTSUPP'), f'{name}: fallocate {mode}')
                if outcome == 'OK':
                    data.extend(bytes(max(0, offset + length - len(data)) if not mode & FALLOC_KEEP_SIZE else 0))
                    data[offset:offset + length] = bytes(min(length, len(data) - offset))
                check(read(t.m(name)) == data, f'{name}: content after fallocate {mode}')
            fails('EINVAL', fallocate, fd, 0, 0, 0)
            fails(('EOPNOTSUPP', 'EINVAL'), fallocate, fd, FALLOC_COLLAPSE, 1, 1)
            fails('EOPNOTSUPP', fallocate, fd, FALLOC_PUNCH_HOLE, 0, 4096)
        with opened(t.m(name)) as fd:
            fails('EBADF', fallocate, fd, 0, 0, 10)


@case(plain=True)
def test_shared_mappings_and_writes_see_each_other(t):
    t.seed({'f': b'a' * 8192, 'g': b'a' * SIZE})
    yield
    write(t.m('n'), b'a' * 8192)
    for name in ('f', 'g', 'n'):
        reader = os.open(t.m(name), os.O_RDONLY)
        early = mmap.mmap(reader, 8192, mmap.MAP_SHARED, mmap.PROT_READ)
        eq(early[:2], b'aa', f'{name}: before')
        with opened(t.m(name), os.O_RDWR) as fd:
            os.pwrite(fd, b'ZZ', 0)
            os.pwrite(fd, b'YY', 5000)
            eq((early[:2], early[5000:5002]), (b'ZZ', b'YY'), f'{name}: a mapping made before the first write')
            mapping = mmap.mmap(fd, 8192)
            mapping[100:103] = b'map'
            eq(os.pread(fd, 3, 100), b'map', f'{name}: read of what was written through a mapping')
            mapping.flush()
            mapping.close()
        eq((read(t.m(name))[100:103], early[100:103]), (b'map', b'map'), f'{name}: after msync and close')
        early.close()
        os.close(reader)
    with opened(t.m('f')) as fd, mmap.mmap(fd, 8192, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as private:
        private[0:2] = b'pp'
    eq(read(t.m('f'))[:2], b'ZZ', 'a private mapping changes no file')


@case(plain=True)
def test_open_file_without_a_name_keeps_working(t):
    t.seed({'low': 'lowerfile\n', 'ro': 'lowerfile\n', 'big': noise(SIZE)})
    yield
    write(t.m('new'), 'lowerfile\n')
    for name in ('low', 'new', 'big'):
        path = t.m(name)
        fd = os.open(path, os.O_RDWR)
        start = os.pread(fd, 5, 0)
        os.unlink(path)
        check(is_gone(path), f'{name}: still there')
        eq((os.fstat(fd).st_nlink, os.pread(fd, 5, 0)), (0, start), f'{name}: nlink and content')
        works(os.pwrite, fd, b'WRITE', 0)
        works(os.ftruncate, fd, 3)
        works(os.fchmod, fd, 0o600)
        works(os.utime, fd, (5, 5))
        works(os.fsync, fd)
        info = os.fstat(fd)
        eq((info.st_size, stat.S_IMODE(info.st_mode), info.st_mtime, os.pread(fd, 9, 0)), (3, 0o600, 5, b'WRI'), f'{name}: after the changes')
        write(path, 'another')
        eq((os.pread(fd, 9, 0), read(path)), (b'WRI', b'another'), f'{name}: beside a new file of that name')
        os.close(fd)
    with opened(t.m('ro')) as fd:
        os.unlink(t.m('ro'))
        eq((os.pread(fd, 99, 0), os.fstat(fd).st_nlink), (b'lowerfile\n', 0), 'opened only for reading')
        eq(read(f'/proc/self/fd/{fd}'), b'lowerfile\n', 'opened again through /proc')
    os.link(t.m('low'), t.m('low2'))
    with opened(t.m('low'), os.O_RDWR) as fd:
        os.unlink(t.m('low'))
        os.pwrite(fd, b'A', 0)
        eq((read(t.m('low2')), os.fstat(fd).st_nlink), (b'Another', 1), 'the other name of an unlinked file')


@case(plain=True)
def test_replaced_file_stays_readable_through_its_descriptor(t):
    t.seed({'f': 'old\n', 'g': 'old\n'})
    yield
    for name in ('f', 'g'):
        with opened(t.m(name), os.O_RDWR) as fd:
            write(t.m('.tmp'), 'new\n')
            os.rename(t.m('.tmp'), t.m(name))
            eq((os.pread(fd, 9, 0), read(t.m(name))), (b'old\n', b'new\n'), 'both')
            os.pwrite(fd, b'X', 0)
            eq((os.pread(fd, 9, 0), read(t.m(name)), os.fstat(fd).st_nlink), (b'Xld\n', b'new\n', 0), 'both after a write')


@case(plain=True)
def test_copy_file_range_copies_every_byte(t):
    t.seed({'src': noise(300_001), 'dst': noise(300_001, 2)})
    yield
    with opened(t.m('src')) as source, opened(t.m('new'), os.O_RDWR | os.O_CREAT) as target, opened(t.m('dst'), os.O_RDWR) as old:
        def copy(into, size, start=None, to=None):
            done = 0
            while done < size:
                moved = os.copy_file_range(source, into, size - done, None if start is None else start + done, None if to is None else to + done)
                if moved == 0:
                    break
                done += moved
            return done
        try:
            total = copy(target, 1 << 30)
        except OSError as error:
            one_of(error.errno, (errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS), 'the errors that programs fall back on')
            t.skip('no copy_file_range here')
        eq(total, 300_001, 'bytes')
        check(read(t.m('new')) == noise(300_001), 'content')
        eq(copy(old, 5000, 100, 200_000), 5000, 'bytes with offsets')
    wanted = bytearray(noise(300_001, 2))
    wanted[200_000:205_000] = noise(300_001)[100:5100]
    check(read(t.m('dst')) == wanted, 'content with offsets')
    t.shell('cp --sparse=always src c1; cp --reflink=auto src c2; cmp src c1; cmp src c2')


@case(plain=True)
def test_sync_calls_succeed(t):
    t.seed({'d/f': 'x'})
    yield
    for path in (t.mnt, t.m('d'), t.m('d/f')):
        with opened(path) as fd:
            works(os.fsync, fd)
            works(os.fdatasync, fd)
    with opened(t.m('d/f'), os.O_RDWR) as fd:
        os.write(fd, b'y')
        for call in (os.fsync, os.fdatasync, syncfs):
            works(call, fd)
        eq(libc.sync_file_range(fd, 0, 0, 7), 0, 'sync_file_range')
    with opened(t.m('n'), os.O_RDWR | os.O_CREAT) as fd:
        os.unlink(t.m('n'))
        works(os.fsync, fd)
    with opened(t.m('d'), os.O_RDONLY | os.O_DIRECTORY) as fd:
        works(os.fsync, fd)


@case(plain=True)
def test_vectored_and_zero_sized_io(t):
    t.seed({'f': 'abcdef'})
    yield
    with opened(t.m('f'), os.O_RDWR) as fd:
        before = os.fstat(fd)
        eq(os.write(fd, b''), 0, 'empty write')
        eq(os.pread(fd, 10, 6), b'', 'read at the end')
        eq(os.pread(fd, 10, 1 << 40), b'', 'read far beyond the end')
        eq(os.fstat(fd).st_mtime_ns, before.st_mtime_ns, 'an empty write moves no time')
        eq(os.pwritev(fd, [b'1', b'', b'22', b'333'], 2), 6, 'pwritev')
        buffers = [bytearray(3), bytearray(9)]
        eq((os.preadv(fd, buffers, 0), bytes(buffers[0]), bytes(buffers[1][:5])), (8, b'ab1', b'22333'), 'preadv')


@case(plain=True)
def test_size_limit_of_a_process(t):
    import resource
    t.seed({'f': 'x' * 100})
    yield

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        fails('EFBIG', os.truncate, t.m('f'), 6000)
        with opened(t.m('f'), os.O_RDWR) as fd:
            eq(os.pwrite(fd, b'y' * 100, 4950), 50, 'a write up to the limit')
            fails('EFBIG', os.pwrite, fd, b'y', 5000)
    in_child(limited)
    eq(os.stat(t.m('f')).st_size, 5000, 'size')


@case(plain=True)
def test_file_without_a_name_from_the_start(t):
    t.seed({'d/f': 'x'})
    yield
    try:
        fd = os.open(t.m('d'), O_TMPFILE | os.O_RDWR, 0o640)
    except OSError as error:
        eq(name_of(error.errno), 'EOPNOTSUPP', 'O_TMPFILE where there is none')
        eq(names(t.m('d')), ['f'], 'nothing was left')
        return
    os.write(fd, b'anonymous')
    eq((names(t.m('d')), os.fstat(fd).st_nlink), (['f'], 0), 'no name yet')
    works(linkat, AT_FDCWD, f'/proc/self/fd/{fd}', AT_FDCWD, t.m('d/named'), AT_SYMLINK_FOLLOW)
    eq((read(t.m('d/named')), os.fstat(fd).st_nlink, permissions(t.m('d/named'))), (b'anonymous', 1, 0o640), 'with a name')
    os.close(fd)


@case(plain=True)
def test_whole_file_locks(t):
    t.seed({'f': 'x'})
    yield
    exclusive, shared, now = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB

    def other(kind):
        def attempt():
            with opened(t.m('f'), os.O_RDWR) as fd:
                fcntl.flock(fd, kind | now)
        return errno_of(in_child, attempt)
    first = os.open(t.m('f'), os.O_RDONLY)
    fcntl.flock(first, exclusive)
    eq((other(exclusive), other(shared)), ('EAGAIN', 'EAGAIN'), 'another process while locked')
    append(t.m('f'), b'y')
    with opened(t.m('f'), os.O_RDWR) as second:
        fails('EAGAIN', fcntl.flock, second, exclusive | now)
        os.close(first)
        works(fcntl.flock, second, exclusive | now)
        fcntl.flock(second, shared)
        eq((other(shared), other(exclusive)), ('OK', 'EAGAIN'), 'under a shared lock')
    eq(other(exclusive), 'OK', 'after close')


@case(plain=True)
def test_record_locks(t):
    t.seed({'f': 'x' * 100, 'g': 'y'})
    yield
    setlk, ofd = fcntl.F_SETLK, 37

    def other(start):
        def attempt():
            with opened(t.m('f'), os.O_RDWR) as fd:
                record_lock(fd, setlk, fcntl.F_WRLCK, start, 10)
        return errno_of(in_child, attempt)
    with opened(t.m('f'), os.O_RDWR) as fd:
        record_lock(fd, setlk, fcntl.F_WRLCK, 0, 10)
        one_of(other(5), ('EAGAIN', 'EACCES'), 'an overlapping range')
        eq(other(10), 'OK', 'the range behind')
        record_lock(fd, setlk, fcntl.F_UNLCK)
        eq(other(5), 'OK', 'after the unlock')
    with opened(t.m('f'), os.O_RDWR) as a:
        b = os.open(t.m('f'), os.O_RDWR)
        record_lock(b, ofd, fcntl.F_WRLCK, 0, 10)
        fails('EAGAIN', record_lock, a, ofd, fcntl.F_WRLCK, 5, 10)
        os.close(b)
        works(record_lock, a, ofd, fcntl.F_WRLCK, 5, 10)
    pid = os.fork()
    if pid == 0:
        record_lock(os.open(t.m('f'), os.O_RDWR), setlk, fcntl.F_WRLCK)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    eq(other(0), 'OK', 'the lock of a killed process')


@case(plain=True)
def test_waiting_for_a_lock_stops_nobody_else(t):
    t.seed({'f': 'x', 'g': 'g'})
    yield
    with opened(t.m('f'), os.O_RDWR) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        pids = []
        for _ in range(12):
            if (pid := os.fork()) == 0:
                fcntl.flock(os.open(t.m('f'), os.O_RDWR), fcntl.LOCK_EX)
                os._exit(0)
            pids.append(pid)
        time.sleep(0.1)
        eq(read(t.m('g')), b'g', 'another file while processes wait')
        create(t.m('h'))
        fcntl.flock(fd, fcntl.LOCK_UN)  # the children hold the open file too
    for pid in pids:
        eq(os.waitpid(pid, 0)[1], 0, 'a waiter')


@case(plain=True)
def test_programs_run_and_are_protected_while_they_do(t):
    t.seed({'script': ('#!/bin/sh\necho script-$1\n', 0o755)})
    t.program('cp', '/bin/sleep', t.w('sleep'))
    yield
    t.program('cp', '/bin/echo', t.m('echo'))
    eq(t.program(t.m('echo'), 'hi').out, 'hi\n', 'a new program')
    eq(t.program(t.m('script'), '1').out, 'script-1\n', 'a script of the workspace')
    append(t.m('script'), 'echo more\n')
    eq(t.program(t.m('script'), '2').out, 'script-2\nmore\n', 'after a change')
    sleeper = subprocess.Popen([t.m('sleep'), '60'])
    while os.path.basename(os.readlink(f'/proc/{sleeper.pid}/exe')) != 'sleep':
        time.sleep(0.01)
    fails('ETXTBSY', os.open, t.m('sleep'), os.O_WRONLY)
    sleeper.kill()
    sleeper.wait()
    works(os.open, t.m('sleep'), os.O_WRONLY)
    os.rename(t.m('echo'), t.m('echo2'))
    eq(t.program(t.m('echo2'), 'x').out, 'x\n', 'after a rename')
    os.chmod(t.m('script'), 0o644)
    fails('EACCES', os.execv, t.m('script'), ['script'])


@case(plain=True)
def test_descriptors_follow_the_file_not_the_name(t):
    t.seed({'f': 'low\n', 'd/x': 'x'})
    yield
    fd = os.open(t.m('f'), O_PATH)
    os.rename(t.m('f'), t.m('f2'))
    write(t.m('f'), 'impostor')
    eq(read(f'/proc/self/fd/{fd}'), b'low\n', 'opened again after a rename')
    eq(os.readlink(f'/proc/self/fd/{fd}'), os.path.realpath(t.m('f2')), 'its path')
    with opened(f'/proc/self/fd/{fd}', os.O_RDWR) as again:
        os.pwrite(again, b'LOW', 0)
    eq((read(t.m('f2')), read(t.m('f'))), (b'LOW\n', b'impostor'), 'a write through it')
    works(os.chmod, f'/proc/self/fd/{fd}', 0o600)
    eq((permissions(t.m('f2')), os.fstat(fd).st_ino), (0o600, os.stat(t.m('f2')).st_ino), 'attributes')
    os.close(fd)


@case(plain=True)
def test_reading_while_another_writes_gives_whole_blocks(t):
    block = 4096
    t.seed({'f': b'A' * block})
    yield
    pid = os.fork()
    if pid == 0:
        with opened(t.m('f'), os.O_WRONLY) as fd:
            for number in range(400):
                os.pwrite(fd, (b'A', b'B')[number % 2] * block, 0)
        os._exit(0)
    with opened(t.m('f')) as fd:
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            eq(len(os.pread(fd, block, 0)), block, 'size of a read')
            check(os.fstat(fd).st_size == block, 'size of the file')
    one_of(read(t.m('f')), (b'A' * block, b'B' * block), 'content at the end')


@case(plain=True)
def test_interrupted_calls_start_over_cleanly(t):
    yield
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for number in range(200):
            with opened(t.m(f'c{number}'), os.O_CREAT | os.O_EXCL | os.O_WRONLY) as fd:
                os.write(fd, b'%d' % number)
            os.rename(t.m(f'c{number}'), t.m(f'd{number}'))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    eq((len(names(t.mnt)), read(t.m('d199'))), (200, b'199'), 'files')
