# SPDX-License-Identifier: MIT
"""Files with several names: one file in the view is one file in the workspace after a commit, and the other way round after its undo."""
import os

from harness.kit import *  # noqa: F403
from harness.view import case

link_cases = case(workspace_changes=True, remount=False)
BYTES = ('owner', 'xattr')


def groups(top):
    """Which names are one file, of those that have several."""
    found = {}
    for root, directories, files in os.walk(top):
        for name in files + [d for d in directories if os.path.islink(os.path.join(root, d))]:
            path = os.path.join(root, name)
            found.setdefault(os.lstat(path).st_ino, []).append(os.path.relpath(path, top))
    return sorted(sorted(paths) for paths in found.values() if len(paths) > 1)


def counts(top):
    """How many names stat(2) says that each has."""
    return {os.path.relpath(os.path.join(root, name), top): os.lstat(os.path.join(root, name)).st_nlink for root, _, files in os.walk(top) for name in files}


def is_committed(t, want, what):
    """The workspace is what the view is, which stayed the same, and counts the names that it has."""
    eq(groups(t.mnt), want, f'one file in the view {what}')
    eq(groups(t.low), want, f'one file in the workspace {what}')
    same_lists(digest(t.low, BYTES), digest(t.mnt, BYTES), f'the workspace and the view {what}')
    eq(t.name_status(), {}, f'pending {what}')
    names_of = {path: len(paths) for paths in want for path in paths}
    for when in ('', ', mounted again'):
        eq(counts(t.mnt), {path: names_of.get(path, 1) for path in counts(t.mnt)}, f'link counts {what}{when}')
        t.remount()


def commit_and_undo(t, spec, script, want):
    """@script makes of @spec the groups @want; a commit brings them, an undo the former ones, twice."""
    start, before = groups(t.low), digest(t.low, BYTES)
    t.shell(script)
    view = digest(t.mnt, BYTES)
    eq(groups(t.mnt), want, 'one file in the view')
    pending = t.name_status()
    for number in range(2):
        t.commit('--reviewed')
        is_committed(t, want, f'after commit {number}')
        t.commit('--undo')
        eq(groups(t.low), start, f'one file in the workspace after undo {number}')
        same_lists(digest(t.low, BYTES), before, f'the workspace after undo {number}')
        eq(groups(t.mnt), want, f'one file in the view after undo {number}')
        same_lists(digest(t.mnt, BYTES), view, f'the view after undo {number}')
        eq(t.name_status(), pending, f'pending after undo {number}')


GROUP = {'a': 'shared\n', 'b': ('=', 'a'), 'x': 'gives way\n', 'd/y': 'and this\n', 'e/z': 'z\n'}


@link_cases
def test_in_the_place_of_another_file(t):
    t.seed(GROUP)
    yield
    commit_and_undo(t, GROUP, 'ls b; mv a x', [['b', 'x']])


@link_cases
def test_all_names_move(t):
    t.seed(GROUP)
    yield
    commit_and_undo(t, GROUP, 'ls -l a b; mv a x; mv b d/y', [['d/y', 'x']])


@link_cases
def test_names_that_are_given_and_taken(t):
    """One name more, all former ones gone or another file's, and the new ones over a file, over a directory and nowhere."""
    t.seed(GROUP | {'gone/in': 'i\n'})
    yield
    commit_and_undo(t, GROUP, 'ls -l b; ln a c; ln a d/new; rm -r gone; ln a gone; mv -f a x; echo other >a; rm b', [['c', 'd/new', 'gone', 'x']])


@link_cases
def test_two_groups_change_places(t):
    t.seed({'a': 'one\n', 'b': ('=', 'a'), 'x': 'other\n', 'y': ('=', 'x'), 's': ('->', 'a'), 'l': ('->', 'x')})
    yield
    os.link(t.m('l'), t.m('l2'), follow_symlinks=False)
    commit_and_undo(t, None, 'ls -l b y; mv a t; mv x a; mv t x; mv -f l2 s', [['a', 'y'], ['b', 'x'], ['l', 's']])


@link_cases
def test_in_directories_that_move(t):
    """Those that were not looked at by another name have no row."""
    t.seed({'d/a': 'one\n', 'd/b': ('=', 'd/a'), 'out': ('=', 'd/a'), 'e/a': 'old\n', 'e/sub/q': 'q\n'})
    yield
    commit_and_undo(t, None, 'rm -r e; mv d e; ls -l out', [['e/a', 'e/b', 'out']])


@link_cases
def test_changed_in_every_way(t):
    """Bytes, mode, times and xattrs of a file with several names, one of them elsewhere."""
    t.seed(GROUP)
    yield
    commit_and_undo(t, GROUP, 'ls -l b; mv a x; chmod 600 x; touch -d 2001-02-03 x; setfattr -n user.t -v 1 x || true', [['b', 'x']])
    commit_and_undo(t, GROUP, 'echo more >>x; ln x c', [['b', 'c', 'x']])


@link_cases
def test_a_name_that_becomes_a_file_of_its_own(t):
    t.seed(GROUP | {'c': ('=', 'a')})
    yield
    commit_and_undo(t, GROUP, 'ls -l a b c; cp a t; echo own >>t; mv t a', [['b', 'c']])


@link_cases
def test_name_by_name(t):
    """Each commit of some names leaves the view as it is, and the last one makes the workspace that."""
    t.seed(GROUP | {'c': ('=', 'a')})
    yield
    start = groups(t.low), digest(t.low, BYTES)
    t.shell('ls -l a b c; echo more >>a; chmod 640 a; mv a x; ln x d/new; rm c')
    want, view = groups(t.mnt), digest(t.mnt, BYTES)
    eq(want, [['b', 'd/new', 'x']], 'one file in the view')
    for parts in ([['x'], ['b'], ['d'], ['.']], [['b'], ['a', 'c'], ['.']], [['d'], ['c'], ['x'], ['.']], [['a', 'x', 'd'], ['.']]):
        commits = 0
        for paths in parts:
            before = digest(t.low, BYTES)
            t.commit('--reviewed', paths=paths)
            commits += digest(t.low, BYTES) != before
            eq(groups(t.mnt), want, f'one file in the view after {paths} of {parts}')
            same_lists(digest(t.mnt, BYTES), view, f'the view after {paths} of {parts}')
        is_committed(t, want, f'after {parts}')
        for _ in range(commits):
            t.commit('--undo')
            same_lists(digest(t.mnt, BYTES), view, f'the view after an undo of {parts}')
        eq((groups(t.low), groups(t.mnt)), (start[0], want), f'after the undos of {parts}')
        same_lists(digest(t.low, BYTES), start[1], f'the workspace after the undos of {parts}')


@link_cases
def test_the_owner_edits_a_name_meanwhile(t):
    """What shows through is the owner's: a name that moves takes the edit along. Where the edit would be lost with a name, it is a conflict."""
    t.seed(GROUP)
    yield
    t.shell('ls -l b; mv a c')
    append(t.w('b'), "owner's\n")
    t.commit('--reviewed')
    eq((read(t.w('c')), groups(t.low)), (b"shared\nowner's\n", [['b', 'c']]), 'the workspace')
    for script in ('mv c x', 'echo mine >>b'):
        t.shell(script)
        append(t.w('b'), "owner's\n")
        before = digest(t.low, BYTES)
        t.commit('--reviewed', code=5)
        same_lists(digest(t.low, BYTES), before, f'the workspace after a conflict: {script}')
        t.rollback()


@link_cases
def test_an_undo_after_an_edit_is_refused(t):
    t.seed(GROUP)
    yield
    t.shell('ls -l b; mv a x')
    t.commit('--reviewed')
    append(t.w('x'), "owner's\n")
    before = digest(t.low, BYTES)
    check('x' in t.program('sbxfs-commit', t.name, '-y', '--undo', code=5).err, 'the path is named')
    same_lists(digest(t.low, BYTES), before, 'the workspace')
