# SPDX-License-Identifier: MIT
"""Real work on a real repository: a clone with its full history and enough files, worked on by the tools of every day.

The workspace is compared before and after to the last time and inode number; then a part is committed and the rest rolled back.
"""
import os
import shutil
import sqlite3
import subprocess
import sys

from harness.kit import *  # noqa: F403
from harness.view import case

POLICY = '[profile cases]\n[files cases]\nwrite = **\ndeny = **/.env\n'
worked = case(policy=POLICY, workspace_changes=True, modes=('fresh',), timeout=600)
GENERATED = 1100


def clone(t):
    """The repository, and as many files as a grown project has, committed."""
    t.program('git', 'clone', '-q', '--no-hardlinks', os.environ['SBXFS_REPOSITORY'], t.low)
    t.shell('git remote remove origin; git checkout -q -b work; git config user.name case; git config user.email case@example.invalid', cwd=t.low)
    t.seed({f'gen/{i // 50:02}/deep/file{i}.txt': f'file {i}\n' + 'line\n' * (1 + i % 40) for i in range(GENERATED)} | {'.env': 'KEY=value\n', '.gitignore': '.env\n*.o\n'})
    t.shell('git add -A; git commit -qm generated', cwd=t.low)


@worked
def test_a_day_of_work(t):
    os.rmdir(t.low)
    clone(t)
    before = digest(t.low, EVERYTHING)
    check(len(before) > 1000, 'files in the workspace')
    yield
    eq(t.shell('git status --porcelain').out, '', 'git status right after the mount')
    t.shell('git log --stat >/dev/null; git fsck --full')
    edit_everywhere(t)
    build(t)
    move_things(t)
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace after all that')
    patch_gives_the_view(t)
    commit_a_part(t)
    t.rollback()
    same_lists(digest(t.mnt, ('owner',), without=('.env',)), digest(t.low, ('owner',), without=('.env',)), 'view and workspace after the rollback')


def edit_everywhere(t):
    """Fifty files in place, fifty by rename, with the tools that do so."""
    for number in range(25):
        append(t.m(f'gen/{number // 50:02}/deep/file{number}.txt'), 'appended\n')
    files = [f'gen/{i // 50:02}/deep/file{i}.txt' for i in range(100, 150)]
    t.program('sed', '-i', 's/line/LINE/', *files, cwd=t.mnt)
    t.program('perl', '-pi', '-e', 's/file/FILE/', *[f'gen/{i // 50:02}/deep/file{i}.txt' for i in range(150, 175)], cwd=t.mnt)
    t.program(sys.executable, '-c', 'import pathlib, sys\nfor p in sys.argv[1:]:\n q = pathlib.Path(p); q.write_text(q.read_text().upper())',
              *[f'gen/{i // 50:02}/deep/file{i}.txt' for i in range(175, 200)], cwd=t.mnt)
    eq((read(t.m(files[0])).count(b'LINE'), read(t.m('gen/03/deep/file180.txt'))[:8]), (21, b'FILE 180'), 'edits')
    eq(len(t.shell('git diff --name-only').out.splitlines()), 125, 'files that git sees changed')


def build(t):
    """A program from several files by make, twice, so that the times must be right."""
    grow(t.m('prog'), {'main.c': 'int f(void);\nint main(void) { return f(); }\n', 'f.c': 'int f(void) { return 42; }\n',
                       'Makefile': 'prog: main.o f.o\n\tcc -o $@ $^\n%.o: %.c\n\tcc -c $<\n'})
    t.program('make', '-C', t.m('prog'))
    eq(t.program(t.m('prog/prog'), code=42).code, 42, 'the program')
    check('up to date' in t.program('make', '-C', t.m('prog')).out, 'make finds nothing to do')
    t.shell("sed -i s/42/43/ prog/f.c; make -C prog")
    t.program(t.m('prog/prog'), code=43)


def move_things(t):
    """A renamed directory of hundreds of files, a file in the place of a directory, links, modes."""
    os.mkdir(t.m('moved'))
    for number in range(12, 22):
        os.rename(t.m(f'gen/{number:02}'), t.m(f'moved/{number:02}'))
    os.rename(t.m('moved'), t.m('elsewhere'))
    check(len(t.shell('find elsewhere -type f').out.splitlines()) == 500, 'moved files')
    shutil.rmtree(t.m('gen/11'))
    write(t.m('gen/11'), 'a file now\n')
    os.symlink('../gen/10/deep/file500.txt', t.m('prog/link'))
    os.link(t.m('gen/10/deep/file501.txt'), t.m('prog/hard'))
    os.chmod(t.m('gen/10/deep/file502.txt'), 0o755)


def patch_gives_the_view(t):
    """git apply on a copy of the workspace gives the tree of the view, empty directories and denied files aside."""
    shutil.copytree(t.low, t.path('base'), symlinks=True)
    write(t.path('patch'), t.diff().bytes)
    t.program('git', 'apply', '--whitespace=nowarn', t.path('patch'), cwd=t.path('base'))
    leave = ('.env', '.git')
    same_lists(digest(t.path('base'), ('git',), leave), digest(t.mnt, ('git',), leave), 'the patched copy')


def commit_a_part(t):
    view = digest(t.mnt, ('owner',))
    rest = len(t.name_status()) - len(t.name_status('--', 'prog', 'gen/00'))
    t.commit(paths=['prog', 'gen/00'])
    same_lists(digest(t.mnt, ('owner',)), view, 'the view after the commit of a part')
    same_lists(digest(t.w('prog'), ('owner',)), digest(t.m('prog'), ('owner',)), 'the committed directory')
    eq((os.path.isdir(t.w('gen/11')), is_gone(t.w('elsewhere')), len(t.name_status())), (True, True, rest), 'the rest is pending')


@worked
def test_git_does_all_it_can(t):
    os.rmdir(t.low)
    clone(t)
    before = digest(t.low, EVERYTHING)
    head = t.program('git', '-C', t.low, 'rev-parse', 'HEAD').out
    yield
    t.shell('''
        git switch -qc topic
        echo edit >>gen/00/deep/file1.txt; git rm -q gen/01/deep/file51.txt; git mv gen/02 gen/two; echo new >new; chmod +x new
        git add -A; git commit -qm one
        echo tmp >>gen/03/deep/file160.txt; git stash -q
        git switch -q work; echo m >>gen/04/deep/file201.txt; git commit -qam two
        git switch -q topic; git rebase -q work; git stash pop -q; git commit -qam three
        git checkout -q HEAD~2; git switch -q topic; git merge -q --no-edit work; git tag t
        git gc -q; git fsck --full --strict; git worktree add -q ../tree 2>/dev/null && git worktree remove --force ../tree || true
        git bisect start -q HEAD HEAD~3 2>/dev/null && git bisect reset -q || true
        git clean -qfdx -e .env; git reset -q --hard HEAD~1; git reset -q --hard ORIG_HEAD
        [ -z "$(git status --porcelain)" ]
        git archive HEAD | tar -t | grep -q gen/two/
        git clone -q . ''' + t.path('tmp/again') + '''; git -C ''' + t.path('tmp/again') + ''' fsck
    ''', timeout=300)
    eq((read(t.m('gen/00/deep/file1.txt'))[-5:], read(t.m('gen/04/deep/file201.txt'))[-2:], read(t.m('gen/03/deep/file160.txt'))[-4:]), (b'edit\n', b'm\n', b'tmp\n'), 'contents')
    eq(permissions(t.m('new')) & 0o100, 0o100, 'mode of a committed file')
    eq(t.program('git', '-C', t.low, 'rev-parse', 'HEAD').out, head, 'HEAD of the workspace')
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace')
    t.remount()
    t.shell('git fsck --full --strict; [ -z "$(git status --porcelain)" ]')


@case(plain=True)
def test_git_notices_edits_of_the_same_size_and_second(t):
    t.seed({'r/f': '000000\n'})
    t.shell('git init -q; git add f; git commit -qm base', cwd=t.w('r'))
    yield
    for number in range(100_001, 100_031):
        t.shell(f'git add f; echo {number} >f; ! git diff --quiet', cwd=t.m('r'))
        eq(t.program('git', 'hash-object', 'f', cwd=t.m('r')).out, t.program('git', 'hash-object', '--stdin', data=f'{number}\n'.encode()).out, f'content {number}')


@case(plain=True)
def test_tar_and_cp_keep_everything(t):
    t.seed({'t/ro/f': ('r' * 5000, 0o444), 't/h0': ('hard', 0o640), 't/later/file': ('x' * 70_000, 0o755), 't/dangling': ('->', 'later/none'), 't/' + 'n' * 200: 'long'} |
           {f't/later/{i:03}': str(i) for i in range(100)} | {f't/h{i}': ('=', 't/h0') for i in range(1, 5)})
    os.mkfifo(t.w('t/p'))
    os.truncate(t.w('t/later/file'), 5_000_000)
    os.utime(t.w('t/later/file'), ns=(1, 1_000_000_000_123_456_789))
    os.chmod(t.w('t/ro'), 0o555)
    yield
    t.shell('tar -cSf a.tar t; mkdir x; tar -C x -xpf a.tar; tar -C x -df a.tar; cp -a t y; diff -r --no-dereference --exclude=p t y', timeout=300)
    eq((os.stat(t.m('x/t/h3')).st_nlink, os.stat(t.m('y/h3')).st_nlink), (5, 5), 'hard links')
    eq(os.stat(t.m('x/t/later/file')).st_mtime, 1_000_000_000, 'time by tar')
    eq(os.stat(t.m('y/later/file')).st_mtime_ns, 1_000_000_000_123_456_789, 'time by cp')
    t.shell('chmod -R u+w x y t; rm -rf x y t')
    eq(names(t.mnt), ['a.tar'], 'rm -rf')


@case(plain=True)
def test_packages_are_replaced_by_rename(t):
    t.seed({f'node_modules/pkg{i}/lib/f{j}.js': 'v1\n' for i in range(12) for j in range(5)} | {'node_modules/.bin/p': ('->', '../pkg1/lib/f1.js'), 'dpkg/status': 's0', 'dpkg/status-old': 'old'})
    yield
    top = t.m('node_modules')
    for number in range(12):
        os.rename(f'{top}/pkg{number}', f'{top}/.pkg{number}-aside')
        grow(f'{top}/pkg{number}.tmp', {'package.json': '{"v": 2}'})
        os.rename(f'{top}/pkg{number}.tmp', f'{top}/pkg{number}')
    for number in range(6):
        shutil.rmtree(f'{top}/.pkg{number}-aside')
    for number in range(6, 12):
        shutil.rmtree(f'{top}/pkg{number}')
        os.rename(f'{top}/.pkg{number}-aside', f'{top}/pkg{number}')
    eq(names(top), sorted(['.bin'] + [f'pkg{i}' for i in range(12)]), 'listing')
    eq((names(f'{top}/pkg3'), names(f'{top}/pkg8/lib')), (['package.json'], [f'f{j}.js' for j in range(5)]), 'a new and an old package')
    for number in range(15):
        write(t.m('dpkg/status-new'), f's{number + 1}')
        os.unlink(t.m('dpkg/status-old'))
        os.link(t.m('dpkg/status'), t.m('dpkg/status-old'))
        os.rename(t.m('dpkg/status-new'), t.m('dpkg/status'))
    eq((read(t.m('dpkg/status')), read(t.m('dpkg/status-old')), names(t.m('dpkg'))), (b's15', b's14', ['status', 'status-old']), 'status')


@case(plain=True)
def test_sqlite_in_both_modes(t):
    os.mkdir(t.w('db'))
    for mode in ('wal', 'delete'):
        database = sqlite3.connect(t.w(f'db/{mode}.db'))
        database.execute(f'PRAGMA journal_mode = {mode}')
        database.execute('CREATE TABLE t (k INTEGER PRIMARY KEY, v INT)')
        database.execute('INSERT INTO t VALUES (1, 0)')
        database.commit()
        database.close()
    yield

    def worker(mode):
        database = sqlite3.connect(t.m(f'db/{mode}.db'), timeout=60, isolation_level=None)
        for _ in range(40):
            database.execute('BEGIN IMMEDIATE')
            database.execute('UPDATE t SET v = v + 1 WHERE k = 1')
            database.execute('INSERT INTO t (v) VALUES (0)')
            database.execute('COMMIT')
    for mode in ('wal', 'delete'):
        pids = []
        for _ in range(4):
            if (pid := os.fork()) == 0:
                code = 1
                try:
                    worker(mode)
                    code = 0
                finally:
                    os._exit(code)
            pids.append(pid)
        for pid in pids:
            eq(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, f'a writer in {mode} mode')
        database = sqlite3.connect(t.m(f'db/{mode}.db'))
        eq([database.execute(q).fetchone()[0] for q in ('PRAGMA journal_mode', 'SELECT count(*) FROM t', 'SELECT v FROM t WHERE k = 1', 'PRAGMA integrity_check')],
           [mode, 161, 160, 'ok'], f'{mode} mode')
        database.close()


@case(plain=True)
def test_python_compiles_and_copies(t):
    t.seed({f'pk/m{i}.py': f'X = {i}\n' for i in range(40)} | {'pk/__init__.py': '', 'pk/secret.py': ('Y = 1\n', 0o600), 'pk/link.py': ('->', 'm1.py')})
    yield
    t.program(sys.executable, '-m', 'compileall', '-q', '-j', '2', t.m('pk'))
    done = t.program(sys.executable, '-v', '-c', 'import sys; sys.path.insert(0, sys.argv[1]); import pk.m7; print(pk.m7.X)', t.mnt)
    check('matches' in done.err and done.out == '7\n', 'the compiled module is used')
    shutil.copytree(t.m('pk'), t.m('pk2'), symlinks=True)
    same_lists(digest(t.m('pk2'))[1:], digest(t.m('pk'))[1:], 'a copied tree')
    t.program(sys.executable, '-m', 'venv', '--without-pip', t.m('venv'), code=None)
    if os.path.exists(t.m('venv/bin/python')):
        eq(t.program(t.m('venv/bin/python'), '-c', 'import sys; print(sys.prefix != sys.base_prefix)').out, 'True\n', 'the environment')


@case(plain=True)
def test_logs_are_rotated(t):
    t.seed({'app.log': 'old\n'})
    yield
    path = t.m('app.log')
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, b'one\n')
    shutil.copy(path, path + '.1')
    os.truncate(path, 0)
    os.write(fd, b'two\n')
    eq((read(path), read(path + '.1')), (b'two\n', b'old\none\n'), 'copied and truncated')
    os.rename(path, path + '.2')
    os.write(fd, b'three\n')
    eq((read(path + '.2'), is_gone(path)), (b'two\nthree\n', True), 'renamed')
    again = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(again, b'four\n')
    os.write(fd, b'five\n')
    eq((read(path), read(path + '.2')), (b'four\n', b'two\nthree\nfive\n'), 'opened again')
    os.close(fd)
    os.close(again)


@worked
def test_this_repository_builds_in_its_view(t):
    """meson and ninja in the view of a project: the times, the many small files and the programs that run from it."""
    if not shutil.which('meson'):
        t.skip('no meson')
    t.seed({'meson.build': "project('p', 'c')\nlib = static_library('l', 'l.c')\nexe = executable('e', 'e.c', link_with: lib)\ntest('runs', exe)\n",
            'l.c': 'int l(void);\nint l(void) { return 0; }\n', 'e.c': 'int l(void);\nint main(void) { return l(); }\n'})
    before = digest(t.low, EVERYTHING)
    yield
    t.shell('meson setup -Dwarning_level=0 b; meson compile -C b; meson test -C b', timeout=300)
    check('no work to do' in t.shell('ninja -C b').out, 'ninja finds nothing to do')
    append(t.m('l.c'), '/* edited */\n')
    check('no work to do' not in t.shell('ninja -C b').out, 'ninja sees an edit')
    t.shell('touch meson.build; ninja -C b', timeout=300)
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace')
    subprocess.run(['rm', '-rf', t.m('b')], check=True)
