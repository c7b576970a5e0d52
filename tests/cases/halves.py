# SPDX-License-Identifier: MIT
"""Half of a rename or of an exchange: a commit of it takes nothing from the view, a rollback takes the other half along and says so."""
import ctypes
import os

from harness.kit import *  # noqa: F403
from harness.view import case

SPEC = {'a': 'AAA\n', 'b': 'BB\n', 'large': 'L' * 300_000, 'd/1': 'one\n', 'd/same': 'of d\n', 'e/2': 'two\n', 'e/same': 'and of e\n'}
half_cases = case(workspace_changes=True, remount=False)
libc = ctypes.CDLL(None, use_errno=True)


def exchange(one, other):
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) != 0:
        raise OSError(ctypes.get_errno(), 'renameat2')


def contents(root):
    return digest(root, ())


@half_cases
def test_commit_of_half_keeps_the_view(t):
    """Each half, then its undo; then both. What is open in the view reads on."""
    t.seed(SPEC)
    yield
    start = contents(t.low)
    exchange(t.m('a'), t.m('b'))
    os.rename(t.m('large'), t.m('moved'))
    exchange(t.m('d'), t.m('e'))
    view = contents(t.mnt)
    with opened(t.m('moved')) as fd:
        for paths in (['a'], ['b'], ['large'], ['moved'], ['d'], ['d/1', 'e/2'], ['e/same'], ['a', 'large', 'e']):
            t.commit('--reviewed', paths=paths)
            same_lists(contents(t.mnt), view, f'the view after a commit of {paths}')
            t.commit('--undo')
            same_lists(contents(t.mnt), view, f'the view after the undo of {paths}')
            same_lists(contents(t.low), start, f'the workspace after the undo of {paths}')
            eq(os.pread(fd, 9, 0), b'L' * 9, 'an open file')
        t.commit('--reviewed', paths=['large', 'a'])
        t.commit('--reviewed')
    same_lists(contents(t.low), view, 'the workspace')
    same_lists(contents(t.mnt), view, 'the view')
    eq(t.name_status(), {}, 'pending')
    write(t.w('e/1'), 'by the owner')
    eq(read(t.m('e/1')), b'by the owner', 'the view follows')


@half_cases
def test_commit_of_alike_directories_that_changed_places(t):
    t.seed(SPEC)
    yield
    start = contents(t.low)
    os.rename(t.m('d'), t.m('x'))
    os.rename(t.m('e'), t.m('d'))
    os.rename(t.m('x'), t.m('e'))
    view = contents(t.mnt)
    for _ in range(2):
        t.commit('--reviewed')
        same_lists(contents(t.mnt), view, 'the view')
        same_lists(contents(t.low), view, 'the workspace')
        eq(t.name_status(), {}, 'pending')
        t.commit('--undo')
        same_lists(contents(t.mnt), view, 'the view after the undo')
        same_lists(contents(t.low), start, 'the workspace after the undo')


@case()
def test_rollback_of_half_takes_the_other_along(t):
    t.seed(SPEC)
    yield
    start = contents(t.mnt)
    exchange(t.m('a'), t.m('b'))
    done = t.rollback(paths=['a'])
    check('not named' in done.out and '\n  b\n' in done.out, f'what it says: {done.out}')
    same_lists(contents(t.mnt), start, 'an exchange of files')
    os.rename(t.m('large'), t.m('moved'))
    write(t.m('large'), 'another')
    shown = t.program('sbxfs-rollback', t.name, '-n', '--json', '--', 'moved').json()
    eq([c['path'] for c in shown['along']], ['large'], 'along')
    eq(sorted(c['path'] for c in shown['changes']), ['large', 'moved'], 'changes')
    t.rollback(paths=['moved'])
    same_lists(contents(t.mnt), start, 'a rename whose place was taken')
    exchange(t.m('d'), t.m('e'))
    write(t.m('e/new'), 'new')
    refused = t.rollback(paths=['e/1'], code=2)
    check('directory above it was moved' in refused.err, f'refused: {refused.err}')
    eq(read(t.m('e/1')), b'one\n', 'nothing was done')
    t.rollback(paths=['e'])
    same_lists(contents(t.mnt), start, 'an exchange of directories')
    write(t.m('a'), 'changed')
    alone = t.rollback(paths=['a'])
    check('not named' not in alone.out, f'nothing goes along: {alone.out}')
    same_lists(contents(t.mnt), start, 'a change of one file')
