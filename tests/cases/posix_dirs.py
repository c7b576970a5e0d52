# SPDX-License-Identifier: MIT
"""Directories: listings under change, positions, link counts, large ones, watchers, processes that stand in them."""
import os
import select
import shutil
import struct
import subprocess
import time

from harness.kit import *  # noqa: F403
from harness.view import case


def subdirectories(path):
    return sum(entry.is_dir(follow_symlinks=False) for entry in os.scandir(path))


@case(plain=True)
def test_link_counts_never_mislead_a_walker(t):
    t.seed({'d/a/x/': None, 'd/b/': None, 'd/c/': None, 'd/f': 'f'})
    yield

    def check_all():
        for directory, _, _ in os.walk(t.m('d')):
            links, below = os.stat(directory).st_nlink, subdirectories(directory)
            check(links in (1, 2 + below), f'nlink of {directory} is {links} with {below} subdirectories')
    check_all()
    for call in (lambda: os.mkdir(t.m('d/new')), lambda: os.rmdir(t.m('d/b')), lambda: os.mkdir(t.m('d/a/y')), lambda: os.rename(t.m('d/new'), t.m('d/a/new')),
                 lambda: os.rmdir(t.m('d/c')), lambda: create(t.m('d/c')), lambda: os.rename(t.m('d/a'), t.m('d/z')), lambda: shutil.rmtree(t.m('d/z/x'))):
        call()
        check_all()
    eq(t.program('find', t.m('d'), '-type', 'd').out.count('\n'), 4, 'directories that find sees')


@case(plain=True)
def test_unlink_while_reading_returns_every_entry_once(t):
    t.seed({f'd/low-{i}': '' for i in range(1000)})
    yield
    for number in range(1000):
        create(t.m(f'd/new-{number}'))
    seen = []
    with os.scandir(t.m('d')) as entries:
        for entry in entries:
            seen.append(entry.name)
            os.unlink(entry.path)
    eq((len(seen), len(set(seen))), (2000, 2000), 'entries, distinct')
    eq(names(t.m('d')), [], 'left after one pass')
    works(os.rmdir, t.m('d'))


@case(plain=True)
def test_create_while_reading_loses_nothing_old(t):
    t.seed({f'd/low-{i:03}': '' for i in range(600)})
    yield
    seen = []
    with os.scandir(t.m('d')) as entries:
        for number, entry in enumerate(entries):
            seen.append(entry.name)
            if number < 300:
                create(t.m(f'd/a-{number}'))
                create(t.m(f'd/z-{number}'))
                os.rename(t.m(f'd/z-{number}'), t.m(f'd/y-{number}'))
    old = [name for name in seen if name.startswith('low-')]
    eq((len(old), len(set(old)), len(set(seen))), (600, 600, len(seen)), 'old entries, distinct, no entry twice')
    eq(len(names(t.m('d'))), 1200, 'entries at the end')


@case(plain=True)
def test_positions_stay_valid_under_deletion(t):
    t.seed({f'd/low-{i:03}': '' for i in range(300)})
    yield
    for number in range(300):
        create(t.m(f'd/new-{number:03}'))
    directory = Directory(t.m('d'))
    positions = {}
    while True:
        position = directory.tell()
        entry = directory.next()
        if entry is None:
            break
        positions[entry.name] = position
    all_names = set(positions) - {b'.', b'..'}
    eq(len(all_names), 600, 'entries')
    for name in sorted(all_names)[::50]:
        directory.seek(positions[name])
        eq(directory.next().name, name, 'the entry at its position')
        rest = directory.rest()
        directory.seek(positions[name])
        eq(directory.rest()[1:], rest, 'the rest, twice')
    half = sorted(all_names)[::2]
    for name in half:
        os.unlink(os.fsencode(t.m('d')) + b'/' + name)
    directory.rewind()
    eq(sorted(directory.rest()), sorted(all_names - set(half)), 'after deletion of every second one')
    kept = sorted(all_names - set(half))[7]
    directory.seek(positions[kept])
    eq(directory.next().name, kept, 'a position from before the deletion')
    directory.close()


@case(plain=True, modes=('fresh',), remount=False, timeout=600)
def test_a_directory_of_100000_entries(t):
    os.mkdir(t.w('d'))
    for number in range(100_000):
        os.close(os.open(t.w(f'd/entry-with-a-rather-long-name-{number:06}'), os.O_CREAT | os.O_WRONLY))
    yield
    for _ in range(2):
        found = os.listdir(t.m('d'))
        eq((len(found), len(set(found))), (100_000, 100_000), 'entries, distinct')
    for number in range(10):
        create(t.m(f'd/extra-{number}'))
        os.unlink(t.m(f'd/entry-with-a-rather-long-name-{number * 9999:06}'))
    found = set(os.listdir(t.m('d')))
    eq((len(found), 'extra-9' in found, 'entry-with-a-rather-long-name-009999' in found), (100_000, True, False), 'after the changes')
    for number in range(1, 60_000, 100):
        os.stat(t.m(f'd/entry-with-a-rather-long-name-{number:06}'))


@case(plain=True)
def test_entries_tell_the_kind_and_number_of_their_files(t):
    t.seed({'d/f': 'f', 'd/s': ('->', 'f'), 'd/e/': None, 'd/g': 'g'})
    os.mkfifo(t.w('d/p'))
    yield
    grow(t.m('d'), {'nf': 'n', 'ne/': None, 'ns': ('->', 'x'), 'f2': ('=', 'g')})
    append(t.m('d/f'), 'x')
    directory = Directory(t.m('d'))
    seen = {}
    while (entry := directory.next()) is not None:
        seen[entry.name.decode()] = (entry.type, entry.ino)
    directory.close()
    kinds = {name: kind for name, (kind, _) in seen.items() if not name.startswith('.')}
    eq(kinds, {'f': 8, 'g': 8, 's': 10, 'e': 4, 'p': 1, 'nf': 8, 'ne': 4, 'ns': 10, 'f2': 8}, 'kinds')
    for name, (_, number) in seen.items():
        if name != '..':
            eq(number, os.lstat(t.m('d', name)).st_ino, f'number of {name}')


@case(plain=True)
def test_a_process_follows_its_renamed_directory(t):
    t.seed({'a/b/c/f': 'f', 'z/': None})
    yield
    for start in ('a/b/c', 'n'):
        os.makedirs(t.m(start), exist_ok=True)
        write(t.m(start, 'f'), 'f')
        os.chdir(t.m(start))
        with opened('.') as fd:
            target = t.m('z', os.path.basename(start) + '2')
            os.rename(t.m(start), target)
            os.mkdir(t.m(start))
            write('relative', 'r')
            os.close(os.open('by-descriptor', os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        eq((names(target), names(t.m(start))), (['by-descriptor', 'f', 'relative'], []), 'listings')
        eq((os.getcwd(), os.stat('..').st_ino), (os.path.realpath(target), os.stat(t.m('z')).st_ino), 'getcwd and ..')
        os.unlink('f')
        os.rename(t.m('z'), t.m('z9'))
        eq((names('.'), os.getcwd()), (['by-descriptor', 'relative'], os.path.realpath(t.m('z9', os.path.basename(target)))), 'after a rename above')
        os.rename(t.m('z9'), t.m('z'))
        os.chdir('/')


@case(plain=True)
def test_open_files_survive_a_rename_above_them(t):
    t.seed({f'a/b/c/f{i}': f'low{i}\n' for i in (1, 2, 3, 4)})
    yield
    fds = [os.open(t.m(f'a/b/c/f{i}'), os.O_RDWR if i < 3 else os.O_RDONLY) for i in (1, 2, 3, 4)]
    os.rename(t.m('a'), t.m('z'))
    os.pwrite(fds[0], b'W', 0)
    os.ftruncate(fds[1], 2)
    os.fchmod(fds[2], 0o600)
    os.unlink(t.m('z/b/c/f4'))
    eq(os.pread(fds[3], 9, 0), b'low4\n', 'the unlinked one')
    eq((read(t.m('z/b/c/f1')), read(t.m('z/b/c/f2')), permissions(t.m('z/b/c/f3'))), (b'Wow1\n', b'lo', 0o600), 'effects')
    eq((is_gone(t.m('a')), names(t.m('z/b/c'))), (True, ['f1', 'f2', 'f3']), 'names')
    for fd in fds:
        os.close(fd)


@case(plain=True)
def test_a_removed_directory_is_a_dead_end(t):
    t.seed({'low/': None})
    yield
    os.mkdir(t.m('new'))
    for name in ('low', 'new'):
        with opened(t.m(name), os.O_RDONLY | os.O_DIRECTORY) as fd:
            os.rmdir(t.m(name))
            eq(os.listdir(fd), [], f'{name}: listing')
            fails('ENOENT', os.open, 'x', os.O_CREAT | os.O_WRONLY, dir_fd=fd)
            fails('ENOENT', os.mkdir, 'x', dir_fd=fd)
            fails('ENOENT', os.symlink, 'x', 'y', dir_fd=fd)
            one_of(os.fstat(fd).st_nlink, (0, 1), f'{name}: nlink')
            os.mkdir(t.m(name))
            create(t.m(name, 'fresh'))
            eq(os.listdir(fd), [], f'{name}: beside a new one of that name')


@case(plain=True)
def test_deep_trees(t):
    t.seed({'/'.join(f'l{i}' for i in range(100)) + '/f': 'bottom'})
    yield
    deep = '/'.join(f'l{i}' for i in range(100))
    eq(read(t.m(deep, 'f')), b'bottom', 'read')
    append(t.m(deep, 'f'), '+')
    os.makedirs(t.m('n', deep))
    os.rename(t.m('l0/l1'), t.m('n/moved'))
    eq(read(t.m('n/moved', '/'.join(f'l{i}' for i in range(2, 100)), 'f')), b'bottom+', 'after a rename near the top')
    shutil.rmtree(t.m('n'))
    eq(names(t.mnt), ['l0'], 'rm -rf')


@case(plain=True)
def test_remove_and_make_again_in_a_loop(t):
    t.seed({f'd/f{i}': str(i) for i in range(20)})
    yield
    for round_ in range(15):
        shutil.rmtree(t.m('d'))
        check(is_gone(t.m('d')), 'removed')
        os.mkdir(t.m('d'))
        eq(names(t.m('d')), [], f'round {round_}')
        for number in range(20):
            fails('ENOENT', os.stat, t.m(f'd/f{number}'))
            write(t.m(f'd/f{number}'), f'{round_}')
    eq({read(t.m(f'd/f{i}')) for i in range(20)}, {b'14'}, 'contents')


@case(plain=True)
def test_watchers_see_changes(t):
    t.seed({'d/f': '1\n', 'log': '1\n'})
    yield
    fd = libc.inotify_init1(os.O_NONBLOCK)
    file, directory = (libc.inotify_add_watch(fd, os.fsencode(t.m(p)), 0xfff) for p in ('d/f', 'd'))
    t.shell('cd d; echo 2 >>f; chmod 600 f; echo n >n; mv n m; rm m; mkdir s')
    seen, end = {}, time.monotonic() + 20
    while not seen.get((directory, b's')) and time.monotonic() < end:
        select.select([fd], [], [], 1)
        buffer = os.read(fd, 1 << 16)
        while buffer:
            watch, mask, _, size = struct.unpack_from('iIII', buffer)
            name = buffer[16:16 + size].rstrip(b'\0')
            seen[watch, name] = seen.get((watch, name), 0) | mask
            buffer = buffer[16 + size:]
    for key, mask in (((file, b''), 2 | 4), ((directory, b'f'), 2 | 8), ((directory, b'n'), 0x140), ((directory, b'm'), 0x280), ((directory, b's'), 0x100)):
        eq(seen.get(key, 0) & mask, mask, f'events of {key}')
    tail = subprocess.Popen(['tail', '-n1', '-f', t.m('log')], stdout=subprocess.PIPE)
    eq(tail.stdout.readline(), b'1\n', 'tail -f, first line')
    append(t.m('log'), 'hello\n')
    check(select.select([tail.stdout], [], [], 20)[0], 'tail -f saw nothing')
    eq(tail.stdout.readline(), b'hello\n', 'tail -f')
    tail.kill()
    tail.wait()


@case(plain=True)
def test_many_processes_in_one_directory(t):
    t.seed({f'd/low{i}': 'x' for i in range(50)})
    yield

    def worker(number):
        for step in range(60):
            path = t.m(f'd/w{number}-{step}')
            write(path, f'{number} {step}')
            os.rename(path, path + '.r')
            if step % 3 == 0:
                os.unlink(path + '.r')
            os.listdir(t.m('d'))
            os.stat(t.m(f'd/low{step % 50}'))
    pids = []
    for number in range(4):
        if (pid := os.fork()) == 0:
            worker(number)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        eq(os.waitpid(pid, 0)[1], 0, 'a worker')
    eq(len(names(t.m('d'))), 50 + 4 * 40, 'entries')
    eq(read(t.m('d/w3-58.r')), b'3 58', 'content')


@case(plain=True)
def test_exclusive_creation_has_one_winner(t):
    yield
    winners = []
    for round_ in range(20):
        pids = []
        for number in range(4):
            if (pid := os.fork()) == 0:
                make = (create, os.mkdir)[round_ % 2]
                os._exit(0 if errno_of(make, t.m(f'r{round_}')) == 'OK' else 1)
            pids.append(pid)
        winners.append(sum(os.waitpid(pid, 0)[1] == 0 for pid in pids))
    eq(winners, [1] * 20, 'winners of each round')
