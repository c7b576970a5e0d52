# SPDX-License-Identifier: MIT
"""Commits with --merge: texts that the sandbox and the owner of the workspace both changed."""
import os
import time

from harness.kit import *  # noqa: F403
from harness.view import case

merges = case(workspace_changes=True, remount=False)


def numbers(*, first='1', last='20'):
    return '\n'.join([first] + [str(i) for i in range(2, 20)] + [last]) + '\n'


@merges
def test_changes_that_do_not_touch(t):
    t.seed({'in place': numbers(), 'renamed over': numbers(), 'cut': numbers(), 'mode': (numbers(), 0o644), 'plain': 'p\n'})
    yield
    t.shell('''sed -i 's/^1$/sandbox/' 'renamed over'; printf x >plain''')
    for name in ('in place', 'mode'):
        with opened(t.m(name), os.O_RDWR) as fd:
            data = os.pread(fd, 10_000, 0)
            os.pwrite(fd, data.replace(b'1\n', b'sandbox\n', 1), 0)
    write(t.m('cut'), numbers(first='sandbox'))  # O_TRUNC
    os.chmod(t.m('mode'), 0o755)
    for name in ('in place', 'renamed over', 'cut', 'mode'):
        write(t.w(name), numbers(last='owner'))
    before = digest(t.low, EVERYTHING)
    refused = t.commit(code=5)
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace without --merge')
    check('--merge' in refused.err, f'the remedy: {refused.err}')
    done = t.commit('--merge')
    check('merged' in done.err, f'what was merged is told: {done.err}')
    want = numbers(first='sandbox', last='owner').encode()
    for name in ('in place', 'renamed over', 'cut', 'mode'):
        eq((read(t.w(name)), read(t.m(name))), (want, want), f'{name}: workspace and view')
    eq((permissions(t.w('mode')), read(t.w('plain')), t.name_status()), (0o755, b'x', {}), 'the rest')
    t.program('sbxfs-commit', t.name, '-y', '--undo')
    eq((read(t.w('cut')), read(t.m('cut'))), (numbers(last='owner').encode(), numbers(first='sandbox').encode()), 'after an undo')
    t.commit(code=5)
    t.commit('--merge')
    eq(read(t.w('cut')), want, 'merged again')


@merges
def test_changes_that_touch(t):
    t.seed({'f': numbers(), 'other': 'o\n', 'empty': ''})
    yield
    write(t.m('empty'), 'sandbox\n')
    write(t.w('empty'), 'owner\n')
    write(t.m('f'), numbers(first='sandbox'))
    write(t.m('other'), 'sandbox\n')
    write(t.w('f'), numbers(first='owner'))
    before = digest(t.low, EVERYTHING)
    refused = t.commit('--merge', code=5)
    check('f' in refused.err, f'the path is named: {refused.err}')
    check('--merge=markers' in refused.err, f'the remedy: {refused.err}')
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace')
    done = t.commit('--merge=markers')
    check('conflict markers' in done.err, f'it is told: {done.err}')
    eq(read(t.w('f')).split(b'\n2\n')[0], b'<<<<<<< workspace\nowner\n=======\nsandbox\n>>>>>>> sandbox', 'the markers')
    eq(read(t.w('empty')), b'<<<<<<< workspace\nowner\n=======\nsandbox\n>>>>>>> sandbox\n', 'both sides filled an empty file')
    eq((read(t.m('f')), read(t.w('other')), t.name_status()), (read(t.w('f')), b'sandbox\n', {}), 'view and the rest')


@merges
def test_what_cannot_be_merged(t):
    t.seed({'binary': b'a\0b' * 100, 'long': 'line\n' * 40_000, 'again': numbers(), 'kind': numbers(), 'gone': numbers()})
    yield
    for name in ('binary', 'long', 'kind', 'gone'):
        append(t.m(name), 'sandbox')
    os.unlink(t.m('again'))
    write(t.m('again'), numbers(first='sandbox'))
    for name in ('binary', 'long'):
        write(t.w(name), b'owner\n' + read(t.w(name)))
    write(t.w('again'), numbers(last='owner'))
    os.unlink(t.w('kind'))
    os.symlink('gone', t.w('kind'))
    os.unlink(t.w('gone'))
    write(t.m('new'), 'sandbox\n')
    write(t.w('new'), 'owner\n')
    before = digest(t.low, EVERYTHING)
    for how in ('--merge', '--merge=markers'):
        refused = t.commit(how, code=5)
        for name in ('binary', 'long', 'again', 'kind', 'gone', 'new'):
            check(name in refused.err, f'{name} is named: {refused.err}')
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace')


@merges
def test_a_second_round(t):
    t.seed({'f': numbers()})
    yield
    for number in range(3):
        text = read(t.m('f')).decode()
        write(t.m('f'), f'sandbox {number}\n' + text)
        with opened(t.w('f'), os.O_WRONLY | os.O_APPEND) as fd:
            os.write(fd, b'owner %d\n' % number)
        t.commit('--merge')
        want = f'sandbox {number}\n' + text + f'owner {number}\n'
        eq(read(t.w('f')).decode(), want, f'the workspace in round {number}')
        time.sleep(0.2)
        eq(read(t.m('f')).decode(), want, f'the view in round {number}')
