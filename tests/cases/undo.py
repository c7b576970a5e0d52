# SPDX-License-Identifier: MIT
"""Undo of a commit: the workspace as before it, its changes pending again, and what stands in the way."""
import json
import os
import signal
import subprocess
import time

from harness.kit import *  # noqa: F403
from harness.view import case

undo_cases = case(workspace_changes=True, remount=False)
SPEC = {'edit': 'one\n', 'gone': 'gone\n', 'mode': 'm\n', 'l': ('->', 'edit'), 'd/a': 'a\n', 'd/e/b': 'b\n', 'd/e/c': 'c\n', 'kept': 'k\n',
        'f2d': 'f\n', 'd2f/in': 'i\n', 'move': 'moved\n' * 30, 'h1': 'h\n', 'h2': ('=', 'h1'), 'rm/x/y': 'y\n', 'rm/z': 'z\n'}
CHANGES = '''echo two >>edit; rm gone; chmod 755 mode; ln -sfn kept l; mv d dd; echo more >>dd/a; rm dd/e/c; rm f2d; mkdir -p f2d/n; echo x >f2d/n/x
    rm -r d2f; echo f >d2f; mv move moved; echo 1 >new; mkdir -p empty/e; echo h >>h1; rm -r rm; head -c 200000 /dev/urandom >large'''


def undo(t, *arguments, code=0):
    return t.program('sbxfs-commit', t.name, '-y', '--undo', *arguments, code=code)


def start_and_view(t):
    return digest(t.low, ('owner', 'xattr')), digest(t.mnt, ('owner', 'xattr'))


def is_start(t, start, view, what):
    same_lists(digest(t.low, ('owner', 'xattr')), start, f'the workspace {what}')
    same_lists(digest(t.mnt, ('owner', 'xattr')), view, f'the view {what}')


@undo_cases
def test_commit_and_undo_and_commit(t):
    t.seed(SPEC)
    yield
    t.shell(CHANGES)
    start, view = start_and_view(t)
    changes = t.diff('--json').json()
    for number in range(2):
        t.commit()
        same_lists(digest(t.low, ('owner', 'xattr')), view, 'the workspace after the commit')
        eq(t.name_status(), {}, 'pending after the commit')
        undo(t)
        is_start(t, start, view, f'after undo {number}')
        again = t.diff('--json').json()
        eq((again['changes'], again['digest']), (changes['changes'], changes['digest']), f'pending after undo {number}')
    t.remount()
    is_start(t, start, view, 'after a remount')
    t.rollback()
    same_lists(digest(t.mnt, ('owner',)), digest(t.low, ('owner',)), 'the view after a rollback')
    undo(t, code=7)


@undo_cases
def test_what_was_changed_since_stays_changed(t):
    t.seed(SPEC)
    yield
    t.shell(CHANGES)
    start, _ = start_and_view(t)
    t.commit()
    t.shell('''echo three >>edit; rm new; echo gone again >gone; chmod 700 moved; echo w >>kept; rm -r dd/e; mkdir rm; echo q >rm/q; mv d2f d3f; touch large
        rm l; mkdir l; echo z >later''')
    view = digest(t.mnt, ('owner', 'xattr'))
    undo(t)
    is_start(t, start, view, 'after the undo')
    check('new' not in t.name_status(), 'a new file that was deleted is no change')
    t.remount()
    is_start(t, start, view, 'after a remount')
    t.commit()
    same_lists(digest(t.low, ('owner', 'xattr')), view, 'the workspace after the last commit')


@undo_cases
def test_after_a_rollback_of_the_view(t):
    t.seed(SPEC)
    yield
    t.shell(CHANGES)
    start, view = start_and_view(t)
    t.commit()
    write(t.m('later'), 'x')
    t.rollback()
    undo(t)
    is_start(t, start, view, 'after the undo')
    t.rollback()
    same_lists(digest(t.mnt, ('owner',)), digest(t.low, ('owner',)), 'the view at the start')


@undo_cases
def test_a_changed_workspace_is_left_alone(t):
    t.seed(SPEC)
    yield
    t.shell(CHANGES)
    t.commit()
    append(t.w('edit'), "owner's\n")
    write(t.w('gone'), "owner's\n")
    os.unlink(t.w('new'))
    before, view = start_and_view(t)
    refused = undo(t, code=5)
    for name in ('edit', 'gone', 'new'):
        check(name in refused.err, f'{name} is named: {refused.err}')
    listed = {c['path'] for c in json.loads(undo(t, '--json', code=5).out)['conflicts']}
    eq(listed, {'edit', 'gone', 'new'}, 'paths in the JSON')
    is_start(t, before, view, 'after a refused undo')
    eq(t.name_status(), {}, 'pending')


@undo_cases
def test_one_of_several_commits(t):
    t.seed({'a': 'a\n', 'b': 'b\n'})
    yield
    append(t.m('a'), '1\n')
    one = json.loads(t.commit('--json').out)['id']
    append(t.m('b'), '2\n')
    two = json.loads(t.commit('--json').out)['id']
    undo(t, '99', code=7)
    undo(t, 'x', code=2)
    t.program('sbxfs-commit', t.name, '--undo', '--git', 'x', '-m', 'x', code=2)
    t.program('sbxfs-commit', t.name, '--undo', code=2)
    listed = json.loads(undo(t, one, '-n', '--json').out)
    eq(([p['path'] for p in listed['paths']], read(t.w('a'))), (['a'], b'a\n1\n'), 'a dry run')
    undo(t, one)
    eq((read(t.w('a')), read(t.w('b')), t.name_status()), (b'a\n', b'b\n2\n', {'a': 'M'}), 'the first one undone')
    undo(t, one, code=7)
    undo(t)
    eq((read(t.w('b')), t.name_status()), (b'b\n', {'a': 'M', 'b': 'M'}), f'{two} undone too')
    eq((read(t.m('a')), read(t.m('b'))), (b'a\n1\n', b'b\n2\n'), 'the view')


@undo_cases
def test_while_nothing_is_mounted(t):
    t.seed(SPEC)
    yield
    t.shell(CHANGES)
    start, view = start_and_view(t)
    t.commit()
    t.umount()
    undo(t)
    same_lists(digest(t.low, ('owner', 'xattr')), start, 'the workspace')
    t.mount()
    same_lists(digest(t.mnt, ('owner', 'xattr')), view, 'the view')


@undo_cases
def test_large_files(t):
    data = noise(4 << 20)
    write(t.w('big'), data)
    write(t.w('other'), data)
    yield
    for name in ('big', 'other'):
        with opened(t.m(name), os.O_RDWR) as fd:
            os.pwrite(fd, b'X', 3 << 20)
    changed = read(t.m('big'))
    t.commit()
    with opened(t.m('other'), os.O_RDWR) as fd:
        os.pwrite(fd, b'Y', 1 << 20)
    refused = undo(t, code=5)
    check('other' in refused.err and read(t.w('big')) == changed, f'the file that is still read is named: {refused.err}')
    t.rollback(paths=['other'])
    t.remount()
    refused = undo(t, code=(0, 5))
    if refused.code == 5:  # until gc the dropped content counts as a reader
        return
    eq((read(t.w('big')), read(t.m('big')), t.name_status()), (data, changed, {'big': 'M', 'other': 'M'}), 'after the undo')


@case(workspace_changes=True, modes=('fresh',), remount=False)
def test_the_view_shows_the_same_all_the_while(t):
    count = 1000
    t.seed({f'e/f{i}': 'old\n' for i in range(count)} | {f'x/g{i}': 'gone\n' for i in range(count)} | {f'd/s/m{i}': f'moved {i}\n' for i in range(count)} |
           {f'a/m{i}': f'moved {i}\n' for i in range(100)} | {f'o/m{i}': 'gives way\n' for i in range(100)})
    yield
    os.makedirs(t.m('new/deep'))
    os.rename(t.m('d'), t.m('moved'))
    for number in range(100):
        os.rename(t.m(f'a/m{number}'), t.m(f'o/m{number}'))
    for number in range(count):
        write(t.m(f'e/f{number}'), b'edited')
        write(t.m(f'new/deep/n{number}'), b'new')
    t.shell('rm -r x')
    t.commit()
    process = subprocess.Popen(['sbxfs-commit', t.name, '-y', '--undo'], stdout=subprocess.DEVNULL)
    polls = 0
    while process.poll() is None:
        number = polls * 7919 % count
        eq(sorted(names(t.m('.'))), ['a', 'e', 'moved', 'new', 'o'], f'the root at poll {polls}')
        eq((len(names(t.m('new/deep'))), len(names(t.m('e'))), len(names(t.m('moved/s'))), names(t.m('a'))), (count, count, count, []), f'names at poll {polls}')
        eq(read(t.m(f'moved/s/m{number}')), b'moved %d\n' % number, f'what was moved at poll {polls}')
        eq(read(t.m(f'o/m{number % 100}')), b'moved %d\n' % (number % 100), f'what was moved into a place at poll {polls}')
        eq((read(t.m(f'e/f{number}')), read(t.m(f'new/deep/n{number}'))), (b'edited', b'new'), f'contents at poll {polls}')
        fails('EEXIST', os.open, t.m(f'new/deep/n{count - 1 - number}'), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        fails('ENOENT', os.stat, t.m(f'x/g{number}'))
        polls += 1
    eq(process.returncode, 0, 'the undo')
    check(polls > 0 and not os.path.exists(t.w('new')) and len(names(t.w('x'))) == count, f'undone, {polls} polls')


@case(workspace_changes=True, modes=('fresh',), remount=False)
def test_an_undo_killed_at_any_moment_is_whole(t):
    count = 60
    t.seed({f'f{i}': b'O' * 30_000 for i in range(count)})
    yield
    for number in range(count):
        write(t.m(f'f{number}'), b'N' * 30_000)
    os.mkdir(t.m('d'))
    write(t.m('d/new'), 'n')
    start, view = start_and_view(t)
    t.commit()
    done = False
    for milliseconds in (5, 20, 40, 60, 80, 100, 130, 160, 200, 300):
        process = subprocess.Popen(['sbxfs-commit', t.name, '-y', '--undo'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(milliseconds / 1000)
        process.send_signal(signal.SIGKILL)
        process.wait()
        t.diff()  # finishes what was begun
        done = read(t.w('f0')) == b'O' * 30_000
        same_lists(digest(t.low, ('owner', 'xattr')), start if done else view, f'the workspace after {milliseconds} ms')
        same_lists(digest(t.mnt, ('owner', 'xattr')), view, f'the view after {milliseconds} ms')
        if done:
            t.commit()
    undo(t)
    is_start(t, start, view, 'after the last undo')
