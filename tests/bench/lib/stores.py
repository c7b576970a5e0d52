# SPDX-License-Identifier: MIT
"""Workloads of what only a sandbox has to do: mounts, snapshots, rollback, diff, commit, rules; and of the daemon's memory."""
import base64
import os
import random
import time

from .data import WORDS, digest, text
from .files import find
from .proc import command
from .workload import add

OURS = ('sbxfs',)


# Mounting and memory

def opened(v):
    """The view was mounted just before; the time counts until its root answered."""
    return {'seconds': v.opened, 'value': len(os.listdir(v.dir))}


def walk(v):
    return command(['find', '.', '-type', 'f', '-size', '0'], cwd=v.dir).count(b'\n')


MOUNTED = ('overlay', 'fuse-overlayfs', 'bare', 'sbxfs')
add('mount-1000', 'mount, 1,000 files', opened, data='few', systems=MOUNTED, changes=False)
add('mount-200000', 'mount, 200,000 files', opened, data='many', systems=MOUNTED, changes=False, long=True)
add('memory', 'walk of 200,000 files', walk, data='many', changes=False, long=True, most=3,
    systems=('native', 'overlay', 'fuse-overlayfs', 'sbxfs'))


# Snapshots

def create(v, count, top='made'):
    for i in range(count):
        if i % 100 == 0:
            os.makedirs(os.path.join(v.dir, top, f'{i // 100}'))
        os.close(os.open(os.path.join(v.dir, top, f'{i // 100}', f'{i}'), os.O_WRONLY | os.O_CREAT, 0o644))


def snapshot(v):
    """In the daemon, without the start of a command; that is in extra."""
    start = time.perf_counter()
    v.call('snapshot', name=('s', 'first'))
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    v.run('snapshot', 'create', 'second', v.name)
    return {'seconds': seconds, 'value': None, 'extra': {'command': time.perf_counter() - start}}


for count in (0, 1000, 100000):
    add(f'snapshot-{count}', f'snapshot at {count:,} changes', snapshot, data='few', setup=lambda v, count=count: create(v, count),
        systems=OURS, long=count > 1000, most=2 if count > 1000 else None)


# Review

def change(v, count=10000):
    """Of ten changes six are new files, three rewritten ones, one is a deletion."""
    content = text(random.Random(13), 300)
    for i in range(count * 6 // 10):
        parent = os.path.join(v.dir, 'new', f'{i // 100}')
        os.makedirs(parent, exist_ok=True)
        with open(os.path.join(parent, f'{i}'), 'wb') as file:
            file.write(content[i % 100:])
    for i in range(count * 4 // 10):
        path = os.path.join(v.dir, f'{i // 5000}', f'{i // 100}', f'{i % 100}')
        if i % 4 == 3:
            os.unlink(path)
        else:
            with open(path, 'wb') as file:
                file.write(content[i % 50:])


def marked(v):
    return os.path.join(v.scratch, f'before-{v.name}')


def keep_state(v, epoch):
    with open(marked(v), 'w') as file:
        file.write(f'{epoch} {digest(v.dir)}')


def state_is_back(v):
    with open(marked(v)) as file:
        return digest(v.dir) == file.read().split()[1]


def prepare_rollback_10(v):
    create(v, 1000)
    keep_state(v, v.call('snapshot', name=('s', 'base'))['epoch'])
    change(v, 10)


def rollback_10(v):
    with open(marked(v)) as file:
        epoch = int(file.read().split()[0])
    start = time.perf_counter()
    v.call('rollback', to=('x', epoch), name=('s', 'dropped'))
    return {'seconds': time.perf_counter() - start, 'value': None}


def prepare_rollback(v):
    keep_state(v, 0)
    change(v)


def rollback(v):
    v.run('rollback', '-y', v.name)


def diff(v):
    return v.run('diff', v.name).count(b'\ndiff --git ')


def name_status(v):
    return v.run('diff', '--name-status', v.name).count(b'\n')


def html(v):
    return v.run('diff', '--html', '-', v.name).count(b'<details open class=file')


GATE_FILES, GATE_BYTES = 2000, 100_000_000


def added_code(rand, size):
    """Lines that a search for secrets has to look at: assignments, hashes, addresses, base64."""
    shapes = ('    {w} = compute({w}, 0x{h:.8}, "{w} {w}");\n', '  "{w}": "sha512-{b}==",\n', '# {w} {w}: see https://example.org/{w}/{h:.12}\n',
              'const {w}_token = {w}.get("{w}_key");\n', '{h}  {w}/{w}.tar.gz\n', '\treturn {w}({w}->{w}, {w});\n')
    parts, length = [], 0
    while length < size:
        h = f'{rand.getrandbits(256):064x}'
        b = base64.b64encode(rand.randbytes(48)).decode()
        line = shapes[len(parts) % len(shapes)].replace('{w}', WORDS[len(parts) % len(WORDS)]).format(h=h, b=b)
        parts.append(line)
        length += len(line)
    return ''.join(parts)[:size].encode()


def prepare_gate(v):
    """100 MB in new files; a key in each hundredth of them."""
    rand = random.Random(17)
    blocks = [added_code(rand, GATE_BYTES // GATE_FILES) for _ in range(50)]
    for i in range(GATE_FILES):
        parent = os.path.join(v.dir, 'added', f'{i // 100}')
        os.makedirs(parent, exist_ok=True)
        key = b'\nkey = "gh' + b'p_' + f'{rand.getrandbits(256):064x}'[:36].encode() + b'"\n' if i % 100 == 50 else b''
        with open(os.path.join(parent, f'{i}.c'), 'wb') as file:
            file.write(f'file {i}\n'.encode() + blocks[i % 50] + key)


def gate(v):
    return v.run('gate', '--checks', 'all', v.name, ok=(1,)).count(b'secrets/github-token')


def commit(v):
    v.run('commit', '-y', '--reviewed', v.name, timeout=300)


def check_commit(v):
    """The workspace is now what the view is."""
    return digest(v.lower) == digest(v.dir)


add('rollback-10', 'rollback of 10 changes, in the daemon', rollback_10, data='wide', setup=prepare_rollback_10, check=state_is_back, systems=OURS)
add('rollback-10000', 'rollback of 10,000 changes', rollback, data='wide', setup=prepare_rollback, check=state_is_back, systems=OURS, most=3)
add('diff-10000', 'diff of 10,000 changes', diff, data='wide', setup=change, systems=OURS, passes=3, most=3)
add('names-10000', 'name-status of 10,000 changes', name_status, data='wide', setup=change, systems=OURS, passes=3, most=3)
add('html-10000', 'web page of 10,000 changes', html, data='wide', setup=change, systems=OURS, passes=3, most=3)
add('gate-100m', 'gate over 100 MB of new files', gate, data='few', setup=prepare_gate, systems=OURS, passes=3, most=3, long=True)
add('commit-10000', 'commit of 10,000 changes', commit, data='wide', setup=change, check=check_commit, systems=OURS, most=3, own=True)


# Rules

def rules(count):
    """A policy with so many rules before the one that opens everything, none of them matching."""
    shapes = ('deny = **/secret-{}/*.pem', 'read = /generated/{}/', 'deny = *.extension{}', 'hide = build-{}/**', 'mask = re:(^|/)settings-{}\\.ini$',
              'deny = private{}', 'scratch = **/node_modules/package-{}/', 'read = vendor/*/lib{}')

    def policy(directory):
        path = os.path.join(directory, f'rules-{count}.ini')
        lines = [shapes[i % len(shapes)].format(i) for i in range(count)]
        with open(path, 'w') as file:
            file.write('[profile rules]\ndescription = many rules\n\n[files rules]\nwrite = **\n' + '\n'.join(lines) + '\n')
        return path
    return policy


def walk_twice(v):
    find(v)
    find(v)


def start_of_command(v):
    v.run('--version')


for count in (0, 100, 1000):
    add(f'rules-{count}-warm', f'find under {count:,} rules, warm', find, data='tree', setup=walk_twice, systems=OURS, policy=rules(count),
        changes=False, passes=5, group='rules')
for count in (0, 100, 1000):
    add(f'rules-{count}-cold', f'find under {count:,} rules, first touch', find, data='tree', systems=OURS, policy=rules(count), changes=False,
        group='rules')
add('command', 'start of a command (sbxfs --version)', start_of_command, data='few', systems=OURS, changes=False, passes=10, most=2)
