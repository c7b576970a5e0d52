# SPDX-License-Identifier: MIT
"""The trees that the workloads work on, each made once, when the first workload asks for it.

Real files where the machine has them (/usr/include, /usr/share/doc), generated ones elsewhere; the generated ones are the same
on every machine.
"""
import hashlib
import io
import os
import random
import shutil
import tarfile
import time

from .proc import command

MIB = 1 << 20
GIT_ENV = dict(GIT_CONFIG_NOSYSTEM='1', GIT_CONFIG_GLOBAL='/dev/null', GIT_CONFIG_COUNT='3', GIT_CONFIG_KEY_0='safe.directory',
               GIT_CONFIG_VALUE_0='*', GIT_CONFIG_KEY_1='advice.detachedHead', GIT_CONFIG_VALUE_1='false',
               GIT_CONFIG_KEY_2='gc.auto', GIT_CONFIG_VALUE_2='0', GIT_AUTHOR_NAME='bench', GIT_AUTHOR_EMAIL='bench@example.org',
               GIT_COMMITTER_NAME='bench', GIT_COMMITTER_EMAIL='bench@example.org', GIT_AUTHOR_DATE='2024-01-01T00:00:00Z',
               GIT_COMMITTER_DATE='2024-01-01T00:00:00Z', LC_ALL='C.UTF-8')
WORDS = 'node path lower upper copy white epoch name inode entry store block rule mask view bind work root time size'.split()


def text(rand, size):
    """Source-like text: it compresses and searches as source does."""
    parts, length = [], 0
    while length < size:
        line = ' '.join(rand.choices(WORDS, k=rand.randint(2, 10))) + '\n'
        parts.append(line)
        length += len(line)
    return ''.join(parts)[:size].encode()


def write(path, content):
    with open(path, 'wb') as file:
        file.write(content)


def git(directory, *arguments):
    return command(['git', '-C', directory, *arguments])


def real_files(count, largest=64 * 1024):
    """An even choice of the system's files, (path, name in the tree)."""
    found = []
    for top, name in (('/usr/include', 'include'), ('/usr/share/doc', 'doc')):
        for directory, directories, names in os.walk(top):
            directories.sort()
            for entry in sorted(names):
                path = os.path.join(directory, entry)
                if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= largest:
                    found.append((path, os.path.join(name, os.path.relpath(path, top))))
    step = max(1.0, len(found) / count)
    return [found[int(i * step)] for i in range(min(count, len(found)))]


def npm_plan(rand):
    """
    What an install does to the file system, recorded once from a real one and rebuilt from its numbers: 2,378 directories, 4,085 files
    averaging 2.7 KB, 18,000 lookups (two of three find nothing), 674 chmods. A list of (operation, path, size).
    """
    directories, plan = ['node_modules'], [('mkdir', 'node_modules', 0)]
    while len(directories) < 2378:
        parent = 'node_modules' if len(directories) % 6 == 1 else rand.choice(directories[-40:])
        if parent.count('/') > 7:
            continue
        directories.append(f'{parent}/{rand.choice(WORDS)}-{len(directories)}')
        plan.append(('mkdir', directories[-1], 0))
    sizes = [min(60000, max(80, int(rand.lognormvariate(7.1, 1.25)))) for _ in range(4085)]
    scale = 4085 * 2700 / sum(sizes)
    files = [(f'{rand.choice(directories)}/{rand.choice(WORDS)}{i}.js', max(1, int(size * scale))) for i, size in enumerate(sizes)]
    steps = [('file', path, size) for path, size in files]
    steps += [('chmod', path, 0) for path, _ in rand.sample(files, 674)]
    # a directory is made before the files in it; a file before its chmod
    for i in range(18000):
        if i % 3:
            steps.append(('miss', f'{rand.choice(directories)}/package{i % 211}.json', 0))
        else:
            steps.append(('look', rand.choice(directories), 0))
    order = {'file': 1, 'miss': 1, 'look': 1, 'chmod': 2}
    made = {path: i / len(directories) for i, path in enumerate(directories)}
    timed = [(made[path], 0, step) for step in plan for path in [step[1]]]
    for step in steps:
        base = made[step[1] if step[0] == 'look' else os.path.dirname(step[1])]
        timed.append((base + rand.random() * 0.02, order[step[0]], step))
    done, waiting, result = set(), [], []
    for _, _, step in sorted(timed):
        if step[0] == 'chmod' and step[1] not in done:
            waiting.append(step)
            continue
        if step[0] == 'file':
            done.add(step[1])
        result.append(step)
    return result + waiting


class Data:
    def __init__(self, directory, say):
        self.dir, self.say, self.facts = directory, say, {}
        os.makedirs(directory, exist_ok=True)

    def get(self, name):
        """The path of a tree or file; makes it when it isn't there."""
        path = os.path.join(self.dir, name)
        stamp = path + '.made'
        if not os.path.exists(stamp):
            self.say(f'making data: {name}')
            if os.path.isdir(path):
                shutil.rmtree(path)
            getattr(self, 'make_' + name.replace('.', '_').replace('-', '_'))(path)
            write(stamp, b'')
        return path

    def make_empty(self, path):
        os.mkdir(path)

    def make_tree(self, path):
        """A git work tree of 5,000 files with a distant older commit, `old`."""
        rand = random.Random(1)
        os.mkdir(path)
        git(path, 'init', '-q', '-b', 'main')
        chosen = real_files(5000)
        if len(chosen) < 4000:
            chosen = [(None, f'made/{i % 200}/{rand.choice(WORDS)}{i}.h') for i in range(5000)]
        for i, (source, name) in enumerate(chosen):
            target = os.path.join(path, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if source:
                with open(source, 'rb') as file:
                    content = file.read()
            else:
                content = text(rand, rand.randint(200, 12000))
            write(target, content)
        git(path, 'add', '-A')
        git(path, 'commit', '-q', '-m', 'now')
        now = git(path, 'rev-parse', 'HEAD').decode().strip()
        for i, (_, name) in enumerate(chosen):
            target = os.path.join(path, name)
            if i % 3 == 0:
                with open(target, 'ab') as file:
                    file.write(b'\nas it was\n')
            elif i % 10 == 1:
                os.unlink(target)
            elif i % 10 == 7:
                os.rename(target, target + '.before')
        git(path, 'add', '-A')
        git(path, 'commit', '-q', '-m', 'then')
        git(path, 'branch', 'old')
        git(path, 'reset', '-q', '--hard', now)
        git(path, 'repack', '-adq')
        time.sleep(1.2)     # an index as old as its files is read again
        git(path, 'update-index', '-q', '--really-refresh')
        git(path, 'status')

    def make_bare_git(self, path):
        command(['git', 'clone', '-q', '--bare', self.get('tree'), path])

    def small_files(self):
        rand = random.Random(2)
        for i in range(5000):
            yield f'd{i % 10}/e{i % 250}/{rand.choice(WORDS)}{i}.c', text(rand, rand.randint(200, 5000)), 0o755 if i % 20 == 0 else 0o644

    def make_small_tar(self, path):
        with tarfile.open(path, 'w') as tar:
            for name, content, mode in self.small_files():
                info = tarfile.TarInfo(name)
                info.size, info.mode, info.mtime, info.uid, info.gid = len(content), mode, 1700000000, os.getuid(), os.getgid()
                tar.addfile(info, io.BytesIO(content))

    def make_small(self, path):
        os.mkdir(path)
        command(['tar', '-xf', self.get('small.tar'), '-C', path])

    def made_of(self, path, directories, per_directory, size=0):
        rand = random.Random(3)
        for d in range(directories):
            parent = os.path.join(path, f'{d // 50}', f'{d}')
            os.makedirs(parent)
            for f in range(per_directory):
                if size:
                    write(os.path.join(parent, f'{f}'), text(rand, size))
                else:
                    os.close(os.open(os.path.join(parent, f'{f}'), os.O_CREAT | os.O_WRONLY))

    def make_few(self, path):
        self.made_of(path, 10, 100)

    def make_many(self, path):
        self.made_of(path, 2000, 100)

    def make_wide(self, path):
        self.made_of(path, 100, 100, 200)

    def random_file(self, path, size):
        rand = random.Random(4)
        os.mkdir(path)
        with open(os.path.join(path, 'big'), 'wb') as file:
            for _ in range(size // MIB):
                file.write(rand.randbytes(MIB))
            os.fsync(file.fileno())

    def make_big64(self, path):
        self.random_file(path, 64 * MIB)

    def make_big256(self, path):
        self.random_file(path, 256 * MIB)

    def make_big1024(self, path):
        self.random_file(path, 1024 * MIB)

    def make_program(self, path):
        """80 sources that include some of 120 headers and the C library's, and a Makefile."""
        rand = random.Random(5)
        os.makedirs(os.path.join(path, 'h'))
        for i in range(120):
            lines = [f'static inline int f{i}_{k}(int x) {{ return x * {k + 1} + {i}; }}' for k in range(40)]
            write(os.path.join(path, 'h', f'h{i}.h'), ('#pragma once\n' + '\n'.join(lines) + '\n').encode())
        for i in range(80):
            used = sorted(rand.sample(range(120), 40))
            lines = ['#include <stdio.h>', '#include <stdlib.h>', '#include <string.h>', '#include <errno.h>', '#include <unistd.h>']
            lines += [f'#include "h/h{u}.h"' for u in used]
            lines += [f'int g{i}_{k}(int x) {{ return {" + ".join(f"f{u}_{k % 40}(x)" for u in used[:12])}; }}' for k in range(40)]
            write(os.path.join(path, f's{i}.c'), ('\n'.join(lines) + '\n').encode())
        objects = ' '.join(f's{i}.o' for i in range(80))
        write(os.path.join(path, 'Makefile'), (f'libp.a: {objects}\n\tar rc $@ $^\n%.o: %.c\n\tcc -O1 -MMD -c -o $@ $<\n').encode())

    def describe(self, name):
        """Files, directories and bytes of a tree, for the report."""
        if name not in self.facts:
            path, files, directories, size = self.get(name), 0, 0, 0
            for _, ds, names in os.walk(path):
                directories += len(ds)
                files += len(names)
            for directory, _, names in os.walk(path):
                size += sum(os.lstat(os.path.join(directory, n)).st_size for n in names)
            self.facts[name] = {'files': files, 'directories': directories, 'bytes': size}
        return self.facts[name]


def digest(directory, contents=True, skip=('.git',)):
    """One value for names, kinds, permissions and contents."""
    total = hashlib.sha256()
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(d for d in directories if d not in skip)
        for name in sorted(names) + directories:
            path = os.path.join(parent, name)
            st = os.lstat(path)
            kind = st.st_mode & (0o170777 if not os.path.islink(path) else 0o170000)
            total.update(f'{os.path.relpath(path, directory)}\0{kind:o}\0'.encode('utf-8', 'surrogateescape'))
            if os.path.islink(path):
                total.update(os.fsencode(os.readlink(path)))
            elif contents and os.path.isfile(path):
                with open(path, 'rb') as file:
                    total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()[:16]
