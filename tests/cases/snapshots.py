# SPDX-License-Identifier: MIT
"""Snapshots and rollback under a live view: exact states in any order, and no cache that remembers another one."""
import mmap
import os
import shutil

from harness.kit import *  # noqa: F403
from harness.view import case

TREE = {f'd/f{i}': f'low{i}\n' for i in range(1, 8)} | {'del': 'd\n', 'big': 'L' * 300_000, 'dir/k': 'k\n', 'dir/sub/deep': 'deep\n', 's': ('->', 'del'), 'h1': 'h', 'h2': ('=', 'h1')}
PARTS = ('owner', 'mtime', 'ctime', 'ino', 'nlink', 'xattr')


@case(modes=('fresh',))
def test_states_are_exact_in_any_order(t):
    t.seed(TREE)
    yield
    states = {'start': digest(t.mnt, PARTS)}

    def take(name):
        t.snapshot(name)
        states[name] = digest(t.mnt, PARTS)
    append(t.m('d/f1'), 's1\n')
    os.rename(t.m('d/f2'), t.m('d/g2'))
    os.link(t.m('d/f3'), t.m('d/h3'))
    take('s1')
    shutil.rmtree(t.m('d'))
    grow(t.m('d'), {'f1': 'new\n', 'h3': 'other\n'})
    append(t.m('big'), 'tail')
    append(t.m('h2'), '+')
    take('s2')
    os.chmod(t.m('d'), 0o700)
    os.symlink('x', t.m('d/l'))
    os.rename(t.m('d/f1'), t.m('d/f9'))
    os.truncate(t.m('d/h3'), 0)
    os.rename(t.m('dir'), t.m('d/dir'))
    with opened(t.m('big'), os.O_RDWR) as fd:
        os.pwrite(fd, b'!', 150_000)
    take('s3')
    os.unlink(t.m('h1'))
    write(t.m('d/dir/k'), 'changed again')
    take('s4')
    for name in ('s3', 's1', 's4', 's2', 's1', 'start', 's4', 'start', 's3'):
        write(t.m('noise'), name)
        for victim in ('d/f9', 'd/f1', 'big', 'h2'):
            if not is_gone(t.m(victim)):
                append(t.m(victim), 'noise')
        t.rollback(None if name == 'start' else name)
        same_lists(digest(t.mnt, PARTS), states[name], f'state {name}')
    t.remount()
    same_lists(digest(t.mnt, PARTS), states['s3'], 'state s3 after a remount')
    t.rollback('s1')
    same_lists(digest(t.mnt, PARTS), states['s1'], 'state s1 after a remount')


@case()
def test_caches_forget_what_was_rolled_back(t):
    t.seed(TREE)
    yield
    write(t.m('big'), 'AGENT')
    eq(read(t.m('big')), b'AGENT', 'before')
    os.unlink(t.m('del'))
    check(is_gone(t.m('del')), 'deleted')
    fails('ENOENT', os.stat, t.m('never'))
    write(t.m('new'), 'n')
    os.stat(t.m('new'))
    shutil.rmtree(t.m('dir'))
    write(t.m('dir'), 'a file now')
    os.unlink(t.m('s'))
    os.symlink('elsewhere', t.m('s'))
    eq((names(t.mnt), os.readlink(t.m('s'))), (['big', 'd', 'dir', 'h1', 'h2', 'new', 's'], 'elsewhere'), 'before')
    t.rollback()
    eq((os.stat(t.m('big')).st_size, read(t.m('del')), os.readlink(t.m('s'))), (300_000, b'd\n', 'del'), 'size, a file that came back, a link')
    check(read(t.m('big')) == b'L' * 300_000, 'content')
    fails('ENOENT', os.stat, t.m('new'))
    eq((names(t.m('dir')), names(t.mnt)), (['k', 'sub'], ['big', 'd', 'del', 'dir', 'h1', 'h2', 's']), 'listings')
    with opened(t.m('big')) as fd, mmap.mmap(fd, 300_000, mmap.MAP_SHARED, mmap.PROT_READ) as mapping:
        eq(mapping[:5], b'LLLLL', 'a mapping')
    write(t.m('new'), 'again')
    eq(read(t.m('new')), b'again', 'a new file of a dropped name')


@case()
def test_open_files_and_mappings_across_a_rollback(t):
    t.seed(TREE)
    yield
    t.snapshot('clean')
    low = os.open(t.m('big'), os.O_RDWR)
    mapping = mmap.mmap(low, 300_000)
    mapping[0:5] = b'AGENT'
    os.pwrite(low, b'AGENT', 200_000)
    new = os.open(t.m('new'), os.O_RDWR | os.O_CREAT)
    os.write(new, b'new file')
    removed = os.open(t.m('d/f1'), os.O_RDONLY)
    os.unlink(t.m('d/f1'))
    mapping.flush()
    os.chdir(t.m('d'))
    t.rollback('clean')
    old, agent = b'L' * 300_000, b'AGENT' + b'L' * 199_995 + b'AGENT' + b'L' * 99_995
    check(os.pread(low, 300_000, 0) in (old, agent), 'an open file shows a mixture')
    check(mapping[:] in (old, agent), 'a mapping shows a mixture')
    check(read(t.m('big')) == old, 'opened anew')
    one_of(errno_or(lambda fd: os.pread(fd, 99, 0), new), (b'new file', b'', 'ESTALE', 'ENOENT', 'EIO'), 'a file that is no more')
    one_of(errno_or(lambda fd: os.pread(fd, 99, 0), removed), (b'low1\n', 'ESTALE', 'ENOENT'), 'a removed file that came back')
    eq((names('.'), read('f1')), ([f'f{i}' for i in range(1, 8)], b'low1\n'), 'from within a directory')
    mapping.close()
    for fd in (low, new, removed):
        os.close(fd)
    append(t.m('big'), '+')
    eq(os.stat(t.m('big')).st_size, 300_001, 'a change after the rollback')


@case()
def test_a_directory_one_stands_in_may_vanish(t):
    t.seed(TREE)
    yield
    os.makedirs(t.m('n/m'))
    os.chdir(t.m('n/m'))
    write('f', 'f')
    t.rollback()
    check(is_gone(t.m('n')), 'the directory is gone')
    one_of(errno_of(create, 'g'), ('ENOENT', 'ESTALE'), 'create in it')
    os.chdir('/')
    os.makedirs(t.m('n/m'))
    eq(names(t.m('n/m')), [], 'made anew')


@case()
def test_rollback_of_a_part(t):
    t.seed(TREE)
    yield
    write(t.m('d/f1'), 'changed')
    os.unlink(t.m('d/f2'))
    write(t.m('d/new'), 'n')
    write(t.m('del'), 'changed')
    write(t.m('dir/sub/deep'), 'changed')
    t.rollback(paths=['d', 'dir/sub/deep'])
    eq((read(t.m('d/f1')), names(t.m('d')), read(t.m('dir/sub/deep'))), (b'low1\n', [f'f{i}' for i in range(1, 8)], b'deep\n'), 'what was named')
    eq((read(t.m('del')), t.name_status()), (b'changed', {'del': 'M'}), 'what was not')
    t.snapshot('s')
    write(t.m('del'), 'more')
    write(t.m('d/f3'), 'more')
    t.rollback('s', paths=['del'])
    eq((read(t.m('del')), read(t.m('d/f3'))), (b'changed', b'more'), 'to a snapshot')
    t.rollback(paths=['no-such-path'], code=(0, 7))


@case()
def test_what_a_rollback_dropped_can_be_had_again(t):
    t.seed(TREE)
    yield
    write(t.m('d/f1'), 'precious')
    shutil.rmtree(t.m('dir'))
    state = digest(t.mnt, ('owner', 'ino'))
    t.rollback()
    eq((read(t.m('d/f1')), read(t.m('dir/k'))), (b'low1\n', b'k\n'), 'rolled back')
    automatic = [s['name'] for s in t.status()['snapshots'] if s['name'].startswith('@')]
    check(automatic, 'an automatic snapshot')
    t.rollback(automatic[-1])
    same_lists(digest(t.mnt, ('owner', 'ino')), state, 'the state before the rollback')


@case(remount=False)
def test_snapshots_are_kept_in_order_and_by_name(t):
    t.seed(TREE)
    yield
    for name in ('one', 'two', 'three'):
        t.snapshot(name)
        write(t.m('f'), name)
    listed = [s['name'] for s in t.status()['snapshots'] if s['name'] in ('one', 'two', 'three')]
    eq(listed, ['one', 'two', 'three'], 'of the status')
    out = t.sbxfs('snapshot', 'list', t.name).out
    check(out.index('one') < out.index('two') < out.index('three'), 'snapshot list')
    check(t.sbxfs('snapshot', 'create', 'two', t.name, code=None).code != 0, 'a name that is taken')
    t.sbxfs('snapshot', 'delete', 'two', t.name)
    t.sbxfs('snapshot', 'delete', 'two', t.name, code=7)
    t.rollback('two', code=7)
    t.rollback('three')
    eq(read(t.m('f')), b'two', 'state three')
    t.umount()
    t.sbxfs('snapshot', 'create', 'unmounted', t.name)
    t.rollback('one')
    t.mount()
    check(is_gone(t.m('f')), 'a rollback while nothing is mounted')
    t.rollback('unmounted')
    eq(read(t.m('f')), b'two', 'to a snapshot made while nothing was mounted')


@case()
def test_a_dry_run_changes_nothing(t):
    t.seed(TREE)
    yield
    write(t.m('d/f1'), 'changed')
    os.unlink(t.m('del'))
    before = digest(t.mnt, PARTS)
    out = t.program('sbxfs-rollback', t.name, '-n').out
    check('d/f1' in out and 'del' in out, f'the dry run names what it would do: {short(out)}')
    same_lists(digest(t.mnt, PARTS), before, 'after rollback -n')
    check(t.program('sbxfs-rollback', t.name, code=None).code != 0, 'without -y and without a terminal')
    same_lists(digest(t.mnt, PARTS), before, 'after a refused rollback')


@case()
def test_old_state_survives_many_changes(t):
    t.seed({f'd/f{i}': f'{i}' * 50 for i in range(60)})
    yield
    write(t.m('d/f0'), 'kept')
    state = digest(t.mnt, PARTS)
    t.snapshot('s')
    for round_ in range(5):
        for number in range(60):
            write(t.m(f'd/f{number}'), f'{round_} {number}' * (round_ * 500 + 1))
        os.rename(t.m('d'), t.m(f'd{round_}'))
        os.rename(t.m(f'd{round_}'), t.m('d'))
    shutil.rmtree(t.m('d'))
    t.rollback('s')
    same_lists(digest(t.mnt, PARTS), state, 'state s')


@case()
def test_readers_during_a_rollback_see_one_state_or_the_other(t):
    t.seed({'f': 'A' * 50_000})
    yield
    pid = os.fork()
    if pid == 0:
        good = (b'A' * 50_000, b'B' * 50_000)
        for _ in range(3000):
            with opened(t.m('f')) as fd:
                if os.pread(fd, 50_000, 0) not in good:
                    os._exit(9)
        os._exit(0)
    for _ in range(6):
        write(t.m('.new'), 'B' * 50_000)
        os.rename(t.m('.new'), t.m('f'))
        t.rollback()
    eq(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, 'the reader')


@case(remount=False)
def test_rollback_leaves_the_files_of_the_workspace_current(t):
    t.seed(TREE)
    t.options.workspace_changes = True
    yield
    write(t.m('d/f1'), 'ours')
    write(t.w('d/f1'), 'the owner wrote this')
    t.rollback()
    t.remount()
    eq(read(t.m('d/f1')), b'the owner wrote this', 'content after the rollback')


def gc(t, *options):
    return t.sbxfs('gc', t.name, '--json', *options).json()


@case(modes=('fresh',), workspace_changes=True)
def test_gc_takes_what_nothing_shows(t):
    """Snapshots stay as they are, and so does the undo of a commit; what a rollback dropped goes."""
    t.seed(TREE)
    yield
    objects = t.path('state/sbxfs', t.name, 'objects')
    write(t.m('kept'), 'K' * 200_000)
    append(t.m('d/f1'), 'kept')
    t.snapshot('s')
    kept = digest(t.mnt, PARTS)
    write(t.m('dropped'), 'D' * 300_000)
    write(t.m('kept'), 'L' * 200_000)
    write(t.m('d/f1'), 'dropped')
    t.rollback('s')
    eq(len(names(objects)), 3, 'objects before')
    t.sbxfs('gc', t.name, code=2)  # nobody is there to be asked
    announced = gc(t, '-n')
    eq(announced['snapshots'], ['@before-rollback-1'], 'the automatic snapshot')
    check(announced['contents'] == 3 and announced['bytes'] >= 500_000, f'announced: {announced}')
    eq(gc(t, '-n', '--keep-automatic')['contents'], 0, 'what the automatic snapshot shows')
    eq(len(names(objects)), 3, 'objects after a dry run')
    eq({**gc(t, '-y'), 'dry_run': True}, announced, 'done')
    eq(len(names(objects)), 1, 'objects afterwards')
    same_lists(digest(t.mnt, PARTS), kept, 'the view')
    eq(gc(t, '-y')['contents'], 0, 'a second time')
    write(t.m('kept'), 'M' * 200_000)
    t.rollback('s')
    same_lists(digest(t.mnt, PARTS), kept, 'the snapshot')
    t.commit('--reviewed')
    committed = read(t.w('kept'))
    write(t.m('kept'), 'N' * 200_000)
    t.sbxfs('snapshot', 'delete', 's', t.name)
    t.umount()
    check(gc(t, '-y')['contents'] > 0, 'unmounted')
    t.sbxfs('commit', t.name, '--undo', '-y')
    check(is_gone(t.w('kept')) and committed == b'K' * 200_000, 'the undo')
    t.mount()
    eq(read(t.m('kept')), b'N' * 200_000, 'the view after the undo')
