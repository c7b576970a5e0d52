# SPDX-License-Identifier: MIT
"""Workloads of programs on files: searching, git, archives, builds, databases."""
import hashlib
import os
import random
import shutil
import sqlite3
import sys
import time

from .data import GIT_ENV, MIB, digest, npm_plan, text
from .proc import Failed, command
from .workload import add

ENV = dict(os.environ, **GIT_ENV)


def lines_of(arguments, cwd, ok=(0,)):
    """A program's work, and how many lines it had to say."""
    return command(arguments, cwd=cwd, env=ENV, ok=ok).count(b'\n')


def need(program):
    if not shutil.which(program):
        raise Failed(f'{program} is not installed')


# Reading

def walk_read(directory):
    total = 0
    for parent, directories, names in os.walk(directory):
        if '.git' in directories:
            directories.remove('.git')
        for name in names:
            fd = os.open(os.path.join(parent, name), os.O_RDONLY)
            while part := os.read(fd, 131072):
                total += len(part)
            os.close(fd)
    return total


def rg(v):
    need('rg')
    return lines_of(['rg', '--no-ignore', '-j2', '-e', 'struct [a-z]+_node', '.'], v.dir, ok=(0, 1))


def grep(v):
    return lines_of(['grep', '-r', '--exclude-dir=.git', 'struct [a-z]*_node', '.'], v.dir, ok=(0, 1))


def find(v):
    return lines_of(['find', '.', '-name', '.git', '-prune', '-o', '-type', 'f', '-size', '+8k', '-print'], v.dir)


def read_all(v):
    """cat of every file, as one program."""
    script = 'find . -name .git -prune -o -type f -print0 | xargs -0 cat | wc -c'
    return int(command(['sh', '-c', script], cwd=v.dir, env=ENV))


def git_status(v):
    return lines_of(['git', 'status', '--porcelain'], v.dir)


def warm_lower(v):
    walk_read(v.lower)
    command(['git', 'status', '--porcelain'], cwd=v.lower, env=dict(ENV, GIT_OPTIONAL_LOCKS='0'))


for name, label, work in (('rg', 'rg', rg), ('grep', 'grep -r', grep), ('find', 'find with stat', find), ('read', 'read all files', read_all),
                          ('status', 'git status', git_status)):
    def twice(v, work=work):
        work(v)
        work(v)
    add(f'{name}-warm', f'{label}, warm', work, data='tree', setup=twice, passes=5, changes=False)
    add(f'{name}-cold', f'{label}, first touch', work, data='tree', before=warm_lower, changes=False)


# Creating

def untar(v):
    command(['tar', '-xf', v.data.get('small.tar'), '-C', v.dir])


def tree_digest(v):
    return digest(v.dir)


def replay(v):
    plan, content, missed = npm_plan(random.Random(6)), text(random.Random(7), 80000), 0
    os.chdir(v.dir)
    start = time.perf_counter()
    for operation, path, size in plan:
        if operation == 'mkdir':
            os.mkdir(path)
        elif operation == 'file':
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.write(fd, content[:size])
            os.close(fd)
        elif operation == 'chmod':
            os.chmod(path, 0o755)
        else:
            try:
                os.stat(path)
            except FileNotFoundError:
                missed += 1
    return {'seconds': time.perf_counter() - start, 'value': missed}


def clone(v):
    command(['git', 'clone', '-q', '--no-hardlinks', v.data.get('bare.git'), os.path.join(v.dir, 'clone')], env=ENV)


def check_clone(v):
    where = os.path.join(v.dir, 'clone')
    return [git_status(type('At', (), {'dir': where})), digest(where)]


def checkout(v):
    command(['git', 'checkout', '-q', 'old'], cwd=v.dir, env=ENV)


def check_checkout(v):
    return [git_status(v), digest(v.dir)]


def copy(v):
    command(['cp', '-r', 'd0', 'd1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7', 'd8', 'd9', 'copy'], cwd=v.dir)


def make_copy_directory(v):
    os.mkdir(os.path.join(v.dir, 'copy'))


def remove(v):
    command(['rm', '-rf', *[f'd{i}' for i in range(10)]], cwd=v.dir)


def entries(v):
    return sorted(os.listdir(v.dir))


add('untar', 'untar 5,000 small files', untar, check=tree_digest, store=True)
add('npm', 'npm install replay', replay, check=tree_digest, store=True)
add('clone', 'git clone, 5,000 files', clone, check=check_clone, store=True)
add('checkout', 'git checkout, distant commit', checkout, data='tree', setup=git_status, check=check_checkout)
add('cp', 'cp -r of 5,000 files', copy, data='small', setup=make_copy_directory, check=tree_digest)
add('rm', 'rm -rf of 5,000 lower files', remove, data='small', check=entries)
add('rm-own', 'rm -rf of 5,000 new files', remove, setup=untar, check=entries)


# Building

def compile_all(v):
    need('make')
    need('cc')
    command(['make', '-s', '-j2', 'libp.a'], cwd=v.dir, env=ENV)


def check_compile(v):
    return lines_of(['ar', 't', 'libp.a'], v.dir)


def venv(v):
    command([sys.executable, '-m', 'venv', os.path.join(v.dir, 'venv')])


def check_venv(v):
    return sum(len(names) for parent, _, names in os.walk(os.path.join(v.dir, 'venv')))


add('compile', 'make -j2, 80 C files', compile_all, data='program', check=check_compile)
add('venv', 'python -m venv', venv, check=check_venv, most=3)


# Editing

def save_all(v, count, sync):
    content = text(random.Random(8), 6000)
    for i in range(count):
        path = os.path.join(v.dir, f'd{i % 10}', 'saved')
        fd = os.open(path + '.tmp', os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, content[:6000 - i % 1000])
        if sync:
            os.fsync(fd)
        os.close(fd)
        os.rename(path + '.tmp', path)


def saves(v):
    save_all(v, 1000, False)


def saves_fsync(v):
    save_all(v, 100, True)


def appends(v):
    for i in range(4000):
        fd = os.open(os.path.join(v.dir, f'd{i % 10}', 'log'), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, b'%08d one line of a log, as long as those are which programs write\n' % i)
        os.close(fd)


add('saves', '1,000 atomic saves', saves, data='small', check=tree_digest)
add('saves-fsync', '100 atomic saves with fsync', saves_fsync, data='small', check=tree_digest)
add('appends', '4,000 appends', appends, data='small', check=tree_digest)


# Databases

def transactions(v, *pragmas):
    with sqlite3.connect(os.path.join(v.dir, 'db'), isolation_level=None) as db:
        for pragma in pragmas:
            db.execute(f'PRAGMA {pragma}')
        db.execute('CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)')
        start = time.perf_counter()
        for i in range(1000):
            db.execute('INSERT INTO t VALUES (?, ?)', (i, 'value %d' % i))
        seconds = time.perf_counter() - start
    db.close()
    return {'seconds': seconds, 'value': None}


def sqlite(v):
    return transactions(v)


def sqlite_wal(v):
    return transactions(v, 'journal_mode = WAL', 'synchronous = NORMAL')


def check_sqlite(v):
    db = sqlite3.connect(os.path.join(v.dir, 'db'))
    result = db.execute('SELECT count(*), sum(k) FROM t').fetchone() + db.execute('PRAGMA integrity_check').fetchone()
    db.close()
    return list(result)


add('sqlite', 'SQLite, 1,000 transactions', sqlite, check=check_sqlite, most=5)
add('sqlite-wal', 'SQLite, 1,000 in WAL mode', sqlite_wal, check=check_sqlite)


# Large files

def sequential(v, sync=False):
    block = random.Random(9).randbytes(MIB)
    start = time.perf_counter()
    fd = os.open(os.path.join(v.dir, 'new'), os.O_WRONLY | os.O_CREAT, 0o644)
    for _ in range(256):
        os.write(fd, block)
    if sync:
        os.fsync(fd)
    os.close(fd)
    return {'seconds': time.perf_counter() - start, 'value': None}


def sequential_fsync(v):
    return sequential(v, True)


def new_size(v):
    return os.stat(os.path.join(v.dir, 'new')).st_size


def read_big(v, name='big'):
    total, buffer = 0, bytearray(MIB)
    fd = os.open(os.path.join(v.dir, name), os.O_RDONLY)
    while size := os.readv(fd, [buffer]):
        total += size
    os.close(fd)
    return total


def read_new(v):
    return read_big(v, 'new')


def write_and_read(v):
    sequential(v)
    read_new(v)


def drop_pages(v):
    """Only this file's, so that the rest of the machine keeps its own."""
    fd = os.open(os.path.join(v.lower, 'big'), os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


add('write-256', '256 MiB write', sequential, check=new_size)
add('write-256-fsync', '256 MiB write and fsync', sequential_fsync, check=new_size, most=5)
add('read-256-cold', '256 MiB read, cold', read_big, data='big256', before=drop_pages, changes=False)
add('read-256-warm', '256 MiB read, warm', read_big, data='big256', setup=read_big, changes=False, passes=5)
add('read-256-own', '256 MiB read of a new file, warm', read_new, setup=write_and_read, passes=5)


def random_reads(v):
    rand, size = random.Random(10), os.stat(os.path.join(v.dir, 'big')).st_size // 4096
    places = [rand.randrange(size) * 4096 for _ in range(10000)]
    fd = os.open(os.path.join(v.dir, 'big'), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    start = time.perf_counter()
    total = sum(len(os.pread(fd, 4096, place)) for place in places)
    seconds = time.perf_counter() - start
    os.close(fd)
    return {'seconds': seconds, 'value': total}


def random_writes(v):
    rand = random.Random(11)
    places, block = [rand.randrange(64 * 256) * 4096 for _ in range(5000)], b'x' * 4096
    fd = os.open(os.path.join(v.dir, 'big'), os.O_WRONLY)
    start = time.perf_counter()
    for place in places:
        os.pwrite(fd, block, place)
    seconds = time.perf_counter() - start
    os.close(fd)
    return {'seconds': seconds, 'value': None}


def warm_big(v):
    return read_big(type('At', (), {'dir': v.lower}))


add('random-read', '10,000 random 4 KiB reads', random_reads, data='big64', before=warm_big, changes=False)
add('random-write', '5,000 random 4 KiB writes', random_writes, data='big64', before=warm_big, check=tree_digest)


def first_write(v):
    path = os.path.join(v.dir, 'big')
    start = time.perf_counter()
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, b'y' * 4096, 512 * MIB + 8192)
    os.close(fd)
    return {'seconds': time.perf_counter() - start, 'value': None}


def check_first_write(v):
    with open(os.path.join(v.dir, 'big'), 'rb') as file:
        file.seek(512 * MIB)
        return [digest_of(file.read(16384)), os.stat(file.name).st_size]


def digest_of(data):

    return hashlib.sha256(data).hexdigest()[:16]


add('first-write', 'first write into 1 GiB', first_write, data='big1024', check=check_first_write, store=True, most=3)


def writers(v, count):
    content, pids = text(random.Random(12), 4096), []
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            top = os.path.join(v.dir, f'w{number}')
            os.mkdir(top)
            for i in range(2400 // count):
                fd = os.open(os.path.join(top, f'{i}'), os.O_WRONLY | os.O_CREAT, 0o644)
                os.write(fd, content)
                os.close(fd)
            os._exit(0)
        pids.append(pid)
    return [os.waitpid(pid, 0)[1] for pid in pids]


def writers_2(v):
    return writers(v, 2)


def writers_8(v):
    return writers(v, 8)


add('writers-2', '2 writers, 2,400 files', writers_2, check=tree_digest)
add('writers-8', '8 writers, 2,400 files', writers_8, check=tree_digest)
