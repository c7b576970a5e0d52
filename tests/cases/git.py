# SPDX-License-Identifier: MIT
"""Commits to a git branch, and patches: what gets into the tree, where the branch goes, and that nothing else is touched."""
import os
import shutil

from harness.kit import *  # noqa: F403
from harness.view import case

git_cases = case(workspace_changes=True, remount=False)
in_place = case(workspace_changes=True, remount=False, in_place=True, modes=('fresh',))


def git(t, *arguments, cwd=None, code=0):
    return t.program('git', *arguments, cwd=cwd or t.low, code=code).out.strip()


def repository(t, spec, cwd=None):
    """A repository in the workspace whose first commit has @spec."""
    t.seed(spec)
    git(t, 'init', '-q', cwd=cwd)
    git(t, 'add', '-A', '-f', cwd=cwd)
    git(t, 'commit', '-qm', 'base', cwd=cwd)


def git_commit(t, branch, *arguments, code=0, **named):
    """The id of the commit: the last line of standard output."""
    done = t.commit('--git', branch, '-m', f'to {branch}', *arguments, code=code, **named)
    return done.out.splitlines()[-1] if code == 0 and done.out else done


def tree(t, commit='HEAD', cwd=None):
    """{path: mode and id} of a commit."""
    lines = t.program('git', 'ls-tree', '-rz', '--full-tree', commit, cwd=cwd or t.low).out.split('\0')
    return {line.partition('\t')[2]: line.partition('\t')[0] for line in lines if line}


def by_git(t):
    """The tree that git itself would make of the view: in a copy."""
    copy = t.path('copy')
    shutil.copytree(t.mnt, copy, symlinks=True)
    git(t, 'add', '-A', cwd=copy)
    git(t, 'commit', '-qm', 'view', cwd=copy)
    return tree(t, cwd=copy)


def outside_git(t):
    return [line for line in digest(t.mnt, ()) if not line.startswith('.git/')]


def nothing_else(t, before, status):
    eq(git(t, 'status', '--porcelain'), status, 'git status of the workspace')
    eq(read(t.w('.git/index')), before, 'the index')


@git_cases
def test_the_tree_is_what_git_would_make(t):
    repository(t, {'a': 'a\n', 'd/b': 'b\n', 'd/e/c': 'c\n', 'gone': 'g\n', 'x': '#!/bin/sh\n', 'l': ('->', 'a'), 'f2d': 'f\n', 'd2f/in': 'i\n',
                   'd2l/in': 'i\n', 'move': 'moved\n' * 20, '.gitignore': '*.o\nout/\n!keep.o\n', 'forced.o': 'o\n', 'empty': ''})
    index, before = read(t.w('.git/index')), git(t, 'rev-parse', 'HEAD')
    yield
    t.shell('''echo more >>a; rm gone; chmod +x x; ln -sfn d/b l; rm f2d; mkdir f2d; echo n >f2d/n; rm -r d2f; echo f >d2f; rm -r d2l; ln -s a d2l
        mv move d/moved; echo two >>forced.o; echo o >new.o; mkdir out; echo o >out/keep.o; echo k >keep.o; printf 'sub/*\\n!sub/yes\\n' >d/.gitignore
        mkdir d/sub; echo y >d/sub/yes; echo n >d/sub/no; mkdir nothing; echo "q" >'sp ace "quote"'; printf '\\0bin' >bin; rm d/e/c''')
    view = outside_git(t)
    commit = git_commit(t, 'agent/one')
    eq(tree(t, commit), by_git(t), 'the tree of the commit')
    eq(git(t, 'rev-parse', 'agent/one', 'agent/one^', 'HEAD').split(), [commit, before, before], 'branch and parent')
    eq(git(t, 'log', '-1', '--format=%an %ce %s', commit), 'case case@example.invalid to agent/one', 'the commit')
    nothing_else(t, index, '')
    eq(git(t, 'fsck', '--strict').strip(), '', 'git fsck')
    same_lists(outside_git(t), view, 'the view')
    check('forced.o' in t.name_status() and 'new.o' in t.name_status(), 'the changes are pending')
    check(not os.path.exists(os.path.join(t.store(), 'git')), 'a directory was left in the store')


@git_cases
def test_a_branch_moves_only_if_nothing_is_lost(t):
    repository(t, {'a': 'a\n', 'b': 'b\n'})
    git(t, 'branch', 'behind')
    git(t, 'branch', 'theirs')
    append(t.w('b'), 'head\n')
    git(t, 'commit', '-qam', 'second')
    git(t, 'worktree', 'add', '-q', '-b', 'elsewhere', t.path('tree'))
    git(t, 'checkout', '-q', 'theirs')
    append(t.w('b'), 'theirs\n')
    git(t, 'commit', '-qam', 'theirs')
    git(t, 'checkout', '-q', 'main')
    index = read(t.w('.git/index'))
    yield
    append(t.m('a'), 'one\n')
    head = git(t, 'rev-parse', 'HEAD')
    one = git_commit(t, 'agent')
    eq(git_commit(t, 'refs/heads/agent'), one, 'the same changes again')
    append(t.m('a'), 'two\n')
    two = git_commit(t, 'agent')
    eq(git(t, 'rev-list', 'agent').split()[:3], [two, one, head], 'one commit on top of the other')
    eq(git(t, 'rev-parse', git_commit(t, 'behind') + '^'), head, 'a branch that HEAD contains')
    for branch in ('main', 'elsewhere', 'theirs'):
        refused = git_commit(t, branch, code=8)
        check(branch in refused.err, f'{branch} is named: {refused.err}')
    for branch in ('no..pe', '-x', 'a b'):
        git_commit(t, branch, code=2)
    git(t, 'branch', 'above/below/deep')
    for branch, other in ('agent/sub/deep', 'agent'), ('above', 'above/below/deep'), ('above/below', 'above/below/deep'):
        refused = git_commit(t, branch, code=2)
        check(f'beside the branch {other}:' in refused.err, f'the other branch is named: {refused.err}')
    write(t.w('.git/refs/heads/locked.lock'), '')
    check('is locked' in git_commit(t, 'locked', code=8).err, 'a locked branch')
    os.unlink(t.w('.git/refs/heads/locked.lock'))
    eq(git(t, 'rev-parse', 'main', 'elsewhere'), f'{head}\n{head}', 'branches that are checked out')
    nothing_else(t, index, '')
    git(t, 'commit', '-q', '--allow-empty', '-m', 'HEAD moves on')
    git_commit(t, 'agent', code=8)
    t.rollback()
    eq(t.commit('--git', 'nothing', '-m', 'x').out.count('\n'), 1, 'nothing to commit')
    git(t, 'rev-parse', '--verify', 'nothing', code=128)


@git_cases
def test_without_a_commit_and_without_a_repository(t):
    t.seed({'a': 'a\n'})
    yield
    append(t.m('a'), 'more\n')
    refused = git_commit(t, 'agent', code=7)
    check('git init' in refused.err, f'the remedy: {refused.err}')
    git(t, 'init', '-q')
    commit = git_commit(t, 'main')
    eq((git(t, 'rev-list', '--all').split(), list(tree(t, commit))), ([commit], ['a']), 'the first commit')
    eq(git(t, 'rev-parse', 'HEAD'), commit, 'the branch that is checked out was new')


@git_cases
def test_the_workspace_is_a_part_of_a_repository(t):
    top, view = t.path('top'), t.path('part')
    os.mkdir(top)
    git(t, 'init', '-q', cwd=top)
    grow(top, {'.gitignore': '*.o\n', 'sub/.gitignore': 'local\n', 'sub/deep/a': 'a\n', 'sub/b': 'b\n', 'c': 'c\n'})
    git(t, 'add', '-A', cwd=top)
    git(t, 'commit', '-qm', 'base', cwd=top)
    os.mkdir(view)
    yield
    t.mount(name='part', low=os.path.join(top, 'sub/deep'), mnt=view)
    grow(view, {'n/f': 'n\n', 'x.o': 'o', 'local': 'l'})
    os.unlink(os.path.join(view, 'a'))
    commit = t.program('sbxfs-commit', 'part', '-y', '--git', 'agent', '-m', 'x').out.splitlines()[-1]
    eq(sorted(tree(t, commit, cwd=top)), ['.gitignore', 'c', 'sub/.gitignore', 'sub/b', 'sub/deep/n/f'], 'the tree')
    t.sbxfs('umount', 'part')


@git_cases
def test_a_repository_that_libgit2_cannot_read(t):
    t.seed({'a': 'a\n'})
    git(t, 'init', '-q', '--object-format=sha256')
    yield
    append(t.m('a'), 'more\n')
    # Of a configuration with extensions libgit2 1.5 (git_regexp_match() with PCRE2) leaks the match data of each key that is none.
    no_leaks = {'ASAN_OPTIONS': os.environ['ASAN_OPTIONS'] + ':detect_leaks=0'}
    refused = t.program('sbxfs-commit', t.name, '-y', '--git', 'agent', '-m', 'to agent', code=10, env=no_leaks)
    check('--patch' in refused.err, f'the remedy: {refused.err}')


@git_cases
def test_submodules_nested_repositories_and_worktrees(t):
    other = t.path('other')
    os.mkdir(other)
    git(t, 'init', '-q', cwd=other)
    grow(other, {'s': 's\n'})
    git(t, 'add', '-A', cwd=other)
    git(t, 'commit', '-qm', 'sub', cwd=other)
    main = t.path('main')
    os.mkdir(main)
    git(t, 'init', '-q', cwd=main)
    grow(main, {'a': 'a\n', '.gitignore': ''})
    git(t, 'add', '-A', cwd=main)
    git(t, 'submodule', '--quiet', 'add', other, 'mod', cwd=main)
    git(t, 'commit', '-qm', 'base', cwd=main)
    git(t, 'worktree', 'add', '-q', '-b', 'work', t.low, cwd=main)
    git(t, 'submodule', '--quiet', 'update', '--init')
    link = tree(t)['mod']
    yield
    append(t.m('a'), 'more\n')
    append(t.m('mod/s'), 'inside\n')
    git(t, 'init', '-q', t.m('nested'))
    grow(t.m('nested'), {'x': 'x\n', 'd/y': 'y\n'})
    done = t.commit('--git', 'agent', '-m', 'x')
    commit = done.out.splitlines()[-1]
    eq((sorted(tree(t, commit)), tree(t, commit)['mod']), (['.gitignore', '.gitmodules', 'a', 'mod'], link), 'the tree')
    check('submodule' in done.err and 'repository of its own' in done.err, f'what was left out is told: {done.err}')
    git_commit(t, 'work', code=8)
    git_commit(t, 'main', code=8)
    shutil.rmtree(t.m('mod'))
    check('mod' not in tree(t, git_commit(t, 'agent')), 'a deleted submodule goes')


@git_cases
def test_filters_and_ends_of_lines(t):
    repository(t, {'.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n*.txt text\n*.raw -text\n', 'a.bin': 'pointer\n', 'a.txt': 'a\n', 'a.raw': 'r\n'})
    yield
    write(t.m('a.txt'), b'one\r\ntwo\r\n')
    write(t.m('a.raw'), b'one\r\n')
    commit = git_commit(t, 'agent')
    eq(tree(t, commit), by_git(t), 'the tree')
    write(t.m('a.bin'), noise(50_000))
    refused = git_commit(t, 'filtered', code=10)
    check('a.bin' in refused.err, f'the path is named: {refused.err}')
    git(t, 'rev-parse', '--verify', 'filtered', code=128)
    git_commit(t, 'filtered', paths=['a.txt'])
    t.commit()
    eq(read(t.w('a.bin')), noise(50_000), 'a commit to the workspace has the exact bytes')


@git_cases
def test_author_message_and_sign_off(t):
    repository(t, {'a': 'a\n'})
    yield
    append(t.m('a'), 'more\n')
    commit = git_commit(t, 'one', '--author', 'A U Thor <a.u@thor.invalid>', '-s')
    eq(git(t, 'log', '-1', '--format=%an <%ae> %cn%n%B', commit),
       'A U Thor <a.u@thor.invalid> case\nto one\n\nSigned-off-by: case <case@example.invalid>', 'author and message')
    message = 'subject  \n\nbody\n\nSigned-off-by: case <case@example.invalid>\n'
    commit = t.commit('--git', 'two', '-s', '-m', message).out.splitlines()[-1]
    eq(git(t, 'log', '-1', '--format=%B', commit), 'subject\n\nbody\n\nSigned-off-by: case <case@example.invalid>', 'a sign-off that is there')
    for wrong in (['--git', 'x'], ['-m', 'x'], ['--git', 'x', '-m', ' \n'], ['--git', 'x', '-m', 'x', '--author', 'nobody'], ['--git', 'x', '-m', 'x', '--patch', 'f']):
        t.commit(*wrong, code=2)
    nobody = {f'GIT_{who}_{what}': None for who in ('AUTHOR', 'COMMITTER') for what in ('NAME', 'EMAIL')}
    env = [arg for name in nobody for arg in ('-u', name)]
    done = t.program('env', *env, 'sbxfs-commit', t.name, '-y', '--git', 'x', '-m', 'x', code=2)
    check('user.name' in done.err, f'the remedy: {done.err}')
    git(t, 'config', 'user.name', 'Configured')
    git(t, 'config', 'user.email', 'c@example.invalid')
    done = t.program('env', *env, 'sbxfs-commit', t.name, '-y', '--git', 'x', '-m', 'x', '--json').json()
    eq((git(t, 'log', '-1', '--format=%an %ce', done['git_commit']), done['git_branch']), ('Configured c@example.invalid', 'refs/heads/x'), 'from the configuration')


@git_cases
def test_the_workspaces_own_edits_are_told(t):
    repository(t, {'a': 'a\n', 'b': 'b\n'})
    append(t.w('a'), "owner's\n")
    yield
    append(t.m('a'), "sandbox's\n")
    append(t.m('b'), "sandbox's\n")
    done = t.commit('--git', 'agent', '-m', 'x')
    notes = [line for line in done.err.splitlines() if 'since HEAD' in line]
    check(len(notes) == 1 and ' a:' in notes[0], f'the note: {done.err}')
    eq(git(t, 'show', 'agent:a'), "a\nowner's\nsandbox's", 'the content')


@in_place
def test_in_place_the_real_repository_is_used(t):
    repository(t, {'a': 'a\n'})
    yield
    append(t.m('a'), 'more\n')
    write(t.m('.git/config'), '[core]\n\trepositoryformatversion = 99\n')
    write(t.m('.git/HEAD'), 'ref: refs/heads/of-the-sandbox\n')
    commit = git_commit(t, 'agent')
    t.umount()
    eq((git(t, 'rev-parse', 'agent'), git(t, 'show', 'agent:a'), read(t.w('a'))), (commit, 'a\nmore', b'a\n'), 'the branch')
    check('refs/heads/of-the-sandbox' not in git(t, 'for-each-ref'), 'a branch from the view')


@git_cases
def test_patch_to_a_file(t):
    t.seed({'a': 'a\n', 'gone': 'g\n'})
    shutil.copytree(t.low, t.path('base'))
    before = digest(t.low, EVERYTHING)
    yield
    append(t.m('a'), 'more\n')
    os.unlink(t.m('gone'))
    write(t.path('patch'), 'old')
    t.commit('--patch', t.path('patch'))
    eq(read(t.path('patch')), t.diff().bytes, 'the patch')
    eq(t.commit('--patch', '-').bytes, t.diff().bytes, 'the patch on standard output')
    t.program('git', 'apply', t.path('patch'), cwd=t.path('base'))
    same_lists(digest(t.path('base'), ('git',)), digest(t.mnt, ('git',)), 'the patched copy')
    t.commit('--patch', t.path('no/such/dir'), code=7)
    t.commit('--patch', t.path('other'), '--expect', '0' * 64, code=6)
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace')
    eq((names(t.path('tmp')), t.name_status()), ([], {'a': 'M', 'gone': 'D'}), 'what is left')
