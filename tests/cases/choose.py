# SPDX-License-Identifier: MIT
"""Choosing what to commit, by file and by hunk: `sbxfs commit -i` on a pty, `sbxfs review` in tmux."""
import json
import os
import re
import stat

from harness.kit import *  # noqa: F403
from harness.terminal import Pty, Tmux
from harness.view import OPEN_POLICY, case

chosen = case(workspace_changes=True, remount=False)
gated = case(workspace_changes=True, remount=False, modes=('fresh',),
             policy='[profile cases]\n[files cases]\nwrite = **\n[gate cases]\nchecks = secrets, modes\n')
screen = case(workspace_changes=True, remount=False, modes=('fresh',))

ESCAPES = b'\x1b[31m\x1b]0;owned\x07\x9b2J \xc2\x9b3J \xe2\x80\xae \xff'


def numbers(**changed):
    """Twenty lines; _5='five' changes the fifth."""
    return ''.join(changed.get(f'_{i}', str(i)) + '\n' for i in range(1, 21))


def interactive(t, *arguments):
    return Pty('sbxfs', 'commit', t.name, '-i', *arguments)


def removed_and_added(t, path):
    return [line for line in t.diff('--', t.m(path)).out.splitlines() if line[:1] in '-+' and line[:3] not in ('---', '+++')]


def fake_key():
    return 'gh' + 'p_' + 'x8Kd2mQp7Rt4Wz9Lb3Nv6Yc1Hs5Gf0JaEuTi'


# commit -i


@chosen
def test_hunks(t):
    t.seed({'d/f': numbers(), 'other': 'o\n'})
    yield
    write(t.m('d/f'), numbers(_2='two', _18='eighteen'))
    write(t.m('other'), 'changed\n')
    with interactive(t) as commit:
        commit.expect('(1/2) M d/f').expect('-2').expect('+two').answers('yn').expect('(2/2) M other').answers('n').expect('[y/N] ').say('y')
        check('M d/f (in part)' in commit.end(), 'the summary says that it is a part')
    eq(read(t.w('d/f')), numbers(_2='two').encode(), 'the workspace')
    eq(read(t.m('d/f')), numbers(_2='two', _18='eighteen').encode(), 'the view')
    eq(removed_and_added(t, 'd/f'), ['-18', '+eighteen'], 'the rest')
    eq(t.name_status(), {'d/f': 'M', 'other': 'M'}, 'pending')
    t.remount()
    eq(removed_and_added(t, 'd/f'), ['-18', '+eighteen'], 'the rest after a remount')
    t.commit('--undo')
    eq(read(t.w('d/f')), numbers().encode(), 'the workspace after the undo')
    eq(removed_and_added(t, 'd/f'), ['-2', '+two', '-18', '+eighteen'], 'pending after the undo')
    with interactive(t) as commit:
        commit.answers('aq').expect('[y/N] ').say('y')
        commit.end()
    t.commit()
    eq((read(t.w('d/f')), read(t.w('other'))), (read(t.m('d/f')), b'changed\n'), 'all of it')


@chosen
def test_all_keys(t):
    t.seed({'f': numbers(), 'g': 'g\n'})
    yield
    write(t.m('f'), numbers(_2='two', _5='five', _18='eighteen'))
    write(t.m('g'), 'G\n')
    with interactive(t, '-y') as commit:
        # help; an answer that is none; to the second hunk and back; split; the second of three; the others not
        commit.answers('?').expect('split the hunk').answers('x').expect('split the hunk').answers('j').expect('(2/2)').answers('').answers('k')
        commit.expect('(1/2)').answers('s').expect('(1/3)').answers('n').expect('(2/3)').answers('y').expect('(3/3)').answers('d')
        commit.expect('(2/2) M g').answers('q')
        commit.end()
    eq((read(t.w('f')), read(t.w('g'))), (numbers(_5='five').encode(), b'g\n'), 'the workspace')
    with interactive(t) as commit:
        commit.answers('q')
        check('nothing was chosen' in commit.end(), 'it says so')
    with interactive(t) as commit:
        commit.answers('an').expect('[y/N] ').say('n')
        commit.end(code=4)
    with interactive(t) as commit:
        commit.expect(',?]? ')
        os.write(commit.fd, b'\x04')  # the end of the input
        commit.end()
    eq(read(t.w('f')), numbers(_5='five').encode(), 'the workspace, untouched')


@chosen
def test_what_is_offered_whole(t):
    t.seed({'moved': 'm\n' * 5, 'gone/a': 'a\n', 'gone/b': 'b\n', 'link': ('->', 'old'), 'binary': b'a\0', 'mode': 'x\n', 'both': numbers()})
    yield
    os.mkdir(t.m('new'))
    os.rename(t.m('moved'), t.m('new/moved'))
    for name in ('gone/a', 'gone/b', 'link'):
        os.unlink(t.m(name))
    os.rmdir(t.m('gone'))
    os.symlink('new', t.m('link'))
    write(t.m('binary'), b'b\0\n')
    write(t.m('text'), 'one\ntwo\n')
    os.chmod(t.m('mode'), 0o755)
    write(t.m('both'), numbers(_2='two'))
    os.chmod(t.m('both'), 0o700)
    with interactive(t, '-y') as commit:
        commit.expect('D gone/a').expect('(1/1)').answers('y').expect('D gone/b').answers('n').expect('M binary').expect('binary: ')
        commit.answers('y').expect('M both').expect('mode 0644 -> 0700').expect('change of attributes').answers('yn').expect('M link').expect('-old').expect('+new').answers('n')
        commit.expect('P mode').expect('mode 0644 -> 0755').answers('y').expect('R moved -> new/moved').answers('y').expect('A text').answers('n')
        commit.end()
    eq(sorted(os.listdir(t.low)), ['binary', 'both', 'gone', 'link', 'mode', 'new'], 'the workspace')
    eq((read(t.w('binary')), read(t.w('new/moved')), os.listdir(t.w('gone')), os.readlink(t.w('link'))), (b'b\0\n', b'm\n' * 5, ['b'], 'old'), 'contents')
    eq([oct(stat.S_IMODE(os.stat(t.w(name)).st_mode)) for name in ('mode', 'both')], ['0o755', '0o700'], 'modes')
    eq(read(t.w('both')), numbers().encode(), 'only its mode')
    eq(t.name_status(), {'both': 'M', 'gone/b': 'D', 'link': 'M', 'text': 'A'}, 'pending')
    t.commit()
    eq(sorted(os.listdir(t.low)), ['binary', 'both', 'link', 'mode', 'new', 'text'], 'the workspace in the end')


@chosen
def test_digest_of_what_was_chosen(t):
    t.seed({'f': numbers()})
    yield
    write(t.m('f'), numbers(_2='two', _18='eighteen'))
    with interactive(t, '-n', '--json') as commit:
        commit.answers('yn')
        shown = json.loads(next(line for line in commit.end().splitlines() if line.startswith('{')))
    eq([(c['path'], c['partial']) for c in shown['changes']], [('f', True)], 'the JSON')
    with interactive(t, '-y', '--expect', shown['digest']) as commit:
        commit.answers('ny').end(code=6)
    eq(read(t.w('f')), numbers().encode(), 'the workspace, untouched')
    with interactive(t, '-n') as commit:
        commit.answers('yy')
        whole = re.search('digest: (.*)', commit.end()).group(1)
    eq(whole, t.diff('--json').json()['digest'], 'everything chosen is what diff says')
    with interactive(t, '-y', '--expect', shown['digest']) as commit:
        commit.answers('yn').end()
    eq(read(t.w('f')), numbers(_2='two').encode(), 'the workspace')


@chosen
def test_conflicts(t):
    t.seed({'f': numbers()})
    yield
    write(t.m('f'), numbers(_2='two', _18='eighteen'))
    with interactive(t) as commit:
        commit.answers('yn').expect('[y/N] ')
        write(t.w('f'), numbers(_10='by the owner'))
        commit.say('y')
        check('conflict: f' in commit.end(code=5), 'the conflict is named')
    eq(read(t.w('f')), numbers(_10='by the owner').encode(), 'the workspace')
    with interactive(t, '-y') as commit:
        commit.answers('n').answers('a').end(code=5)
    eq(read(t.w('f')), numbers(_10='by the owner').encode(), 'the workspace')


@chosen
def test_the_view_goes_on(t):
    t.seed({'f': numbers()})
    yield
    write(t.m('f'), numbers(_2='two', _18='eighteen'))
    with interactive(t) as commit:
        commit.answers('yn').expect('[y/N] ')
        write(t.m('f'), numbers(_2='zwei', _18='eighteen'))
        commit.say('y')
        commit.end()
    eq(read(t.w('f')), numbers(_2='two').encode(), 'what was chosen')
    eq(removed_and_added(t, 'f'), ['-two', '+zwei', '-18', '+eighteen'], 'pending')
    t.commit()
    eq(read(t.w('f')), numbers(_2='zwei', _18='eighteen').encode(), 'all of it')


@chosen
def test_line_ends_and_empty_files(t):
    before = {'crlf': b'a\r\nb\r\n' + b'x\r\n' * 10 + b'c\r\n', 'last': b'1\n' + b'y\n' * 10 + b'2', 'empty': b'', 'emptied': b'e\nf'}
    t.seed(before)
    yield
    after = {'crlf': b'A\r\nb\r\n' + b'x\r\n' * 10 + b'C\r\n', 'last': b'one\n' + b'y\n' * 10 + b'2\nthree', 'empty': b'no line end', 'emptied': b''}
    for name, data in after.items():
        write(t.m(name), data)
    with interactive(t, '-y') as commit:
        commit.answers('yn' + 'y' + 'n' + 'ny')  # crlf, emptied, empty, last
        commit.end()
    eq([read(t.w(name)) for name in ('crlf', 'last', 'empty', 'emptied')],
       [b'A\r\nb\r\n' + b'x\r\n' * 10 + b'c\r\n', b'1\n' + b'y\n' * 10 + b'2\nthree', b'', b''], 'the workspace')
    t.commit()
    eq([read(t.w(name)) for name in after], list(after.values()), 'the rest')


@gated
def test_gate_of_what_was_chosen(t):
    t.seed({'f': numbers(), 's': '#!/bin/sh\n'})
    yield
    write(t.m('f'), numbers(_2='two', _18=f'key = {fake_key()}'))
    os.chmod(t.m('s'), 0o755)
    with interactive(t, '-y') as commit:
        commit.answers('yyn')
        check(fake_key() not in commit.end(code=1).split('secrets/')[-1], 'the refusal shows the key')
    with interactive(t, '-y') as commit:
        commit.answers('yny').end(code=4)
    eq(read(t.w('f')), numbers().encode(), 'the workspace, untouched')
    with interactive(t) as commit:  # who is asked hunk by hunk may say that this was the review
        commit.answers('yny').expect('modes/executable').expect('as reviewed? [y/N] ').say('y')
        commit.end()
    eq(read(t.w('f')), numbers(_2='two').encode(), 'the workspace')
    eq(t.name_status(), {'f': 'M'}, 'pending')


@chosen
def test_patch_and_git(t):
    t.seed({'f': numbers()})
    t.program('git', 'init', '-q', cwd=t.low)
    t.shell('git add . && git commit -qm start', cwd=t.low)
    yield
    write(t.m('f'), numbers(_2='two', _18='eighteen'))
    with interactive(t, '-y', '--patch', t.path('patch')) as commit:
        commit.answers('ny').end()
    eq([line for line in read(t.path('patch')).decode().splitlines() if line[:1] in '-+'], ['--- a/f', '+++ b/f', '-18', '+eighteen'], 'the patch')
    with interactive(t, '-y', '--git', 'chosen', '-m', 'a part') as commit:
        commit.answers('yn').end()
    eq(t.shell('git show chosen:f', cwd=t.low).out, numbers(_2='two'), 'the git commit')
    eq((read(t.w('f')), t.name_status('--', t.m('f'))), (numbers().encode(), {'f': 'M'}), 'all is pending')


@chosen
def test_nothing_hostile_reaches_the_terminal(t):
    name = b'n\x1b[2J\x1b]0;owned\x07\x9b\xff'
    t.seed({'f': b'one\n' * 30})
    yield
    write(os.fsencode(t.m()) + b'/' + name, ESCAPES + b'\n')
    write(t.m('f'), b'one\n' * 15 + ESCAPES + b'\n' + b'one\n' * 15)
    with interactive(t) as commit:
        commit.answers('yy').expect('[y/N] ').say('y')
        commit.end()
    hostile = [byte for byte in commit.out if byte < 0x20 and byte not in b'\r\n'] + [c for c in commit.out.decode('utf-8') if 0x7f <= ord(c) < 0xa0 or c == '\u202e']
    eq(hostile, [], 'control characters in the output')
    check(b'^[]0;owned^G' in commit.out and b'<U+202E>' in commit.out and b'<FF>' in commit.out, 'they are written out')
    eq(read(t.w('f')), read(t.m('f')), 'and committed as they are')


@case(modes=('fresh',))
def test_usage(t):
    for arguments in (['-i'], ['-i', '-y'], ['-i', '--merge'], ['-i', '--undo']):
        wrong = t.sbxfs('commit', t.name, *arguments, code=2)
        check('-i' in wrong.err, f'{arguments}: {wrong.err}')


# review


def review(t, *arguments, **named):
    return Tmux(t, ' '.join(['sbxfs', 'review', t.name, *arguments]), **named)


def records(t):
    lines = t.sbxfs('log', t.name, '--json').out.splitlines()
    return [(r['operation'], r['path'], r.get('detail')) for r in map(json.loads, lines) if r['kind'] == 'review']


@screen
def test_review(t):
    t.seed({'f': numbers(), 'bad': 'b\n', 'gone': 'g\n', 'later': 'l\n'})
    yield
    write(t.m('f'), numbers(_2='two', _18='eighteen'))
    write(t.m('bad'), 'worse\n')
    os.unlink(t.m('gone'))
    write(t.m('later'), 'later\n')
    write(t.m('new'), 'new\n')
    with review(t) as tmux:
        first = tmux.wait('D gone', 'M bad', 'M f', 'M later', 'A new')
        check(all(counts in first for counts in ('+0 -1', '+1 -1', '+2 -2', '5 changes: 0 accepted')), first)
        tmux.keys('a').wait('[+]     D gone')  # and the cursor moves on
        tmux.keys('r').wait('[-]     M bad')
        tmux.keys('Enter').wait('(3/5) M f', '-2', '+two', '-18', '+eighteen', '(1/2) open')
        tmux.keys('a').wait('(1/2) accepted')
        tmux.keys('n').wait('note:')
        tmux.type('the rest is wrong').keys('Enter').wait('note: the rest is wrong')
        tmux.keys('r').wait('(2/2) rejected')
        tmux.keys('Left').wait('[~]   * M f')
        tmux.keys('End').keys('a').wait('[+]     A new')
        tmux.keys('c').wait('accepted: D gone', 'rejected: M bad', 'in part: M f', 'note: the rest is wrong', 'accepted: A new', 'Commit 3, roll back 2?')
        eq((read(t.w('f')), os.path.exists(t.w('gone'))), (numbers().encode(), True), 'nothing is done yet')
        end = tmux.keys('y').end()
    for text in ('accepted  D gone', 'rejected  M bad', 'in part   M f', 'note: the rest is wrong', 'committed: 2 written, 1 deleted', 'left in the sandbox: 1',
                 'undo: sbxfs rollback'):
        check(text in end, f'{text} is not in {end}')
    eq((read(t.w('f')), read(t.w('bad')), os.path.exists(t.w('gone')), read(t.w('new'))), (numbers(_2='two').encode(), b'b\n', False, b'new\n'), 'the workspace')
    eq((read(t.m('f')), read(t.m('bad'))), (numbers(_2='two').encode(), b'b\n'), 'the view: what was rejected is rolled back')
    eq(t.name_status(), {'later': 'M'}, 'what was left open')
    eq(records(t), [('accept', 'gone', None), ('reject', 'bad', None), ('part', 'f', 'the rest is wrong'), ('accept', 'new', None)], 'the audit')
    t.rollback(to='@before-rollback-1')
    eq((read(t.m('f')), read(t.m('bad'))), (numbers(_2='two', _18='eighteen').encode(), b'worse\n'), 'the rollback taken back')


@screen
def test_review_of_what_was_moved(t):
    """A part of a moved directory cannot go back alone; of an exchange both halves do, and the end says so before it asks."""
    t.seed({'d/a': 'a\n' * 9, 'd/b': 'b\n' * 9, 'x': 'x\n', 'y': 'yy\n', 'z': 'z\n'})
    yield
    os.rename(t.m('d'), t.m('e'))
    rename2(t.m('x'), t.m('y'), RENAME_EXCHANGE)
    with review(t, '--', t.m('d'), t.m('e')) as tmux:
        tmux.wait('R d/a -> e/a')
        tmux.keys('r').keys('c').wait('rejected: R d/a -> e/a', 'd/a differs as a directory above it was moved', 'This cannot be done')
        tmux.keys('Enter').wait('[-]     R d/a -> e/a')
        tmux.keys('q').wait('Leave, with nothing done?')
        tmux.keys('y').end(4)
    eq((read(t.m('e/a')), read(t.m('e/b'))), (b'a\n' * 9, b'b\n' * 9), 'nothing was rolled back')
    with review(t, '--', t.m('x')) as tmux:
        tmux.wait('M x')
        tmux.keys('r').keys('c').wait('rejected: M x', 'goes along, as one change with what was rejected: y', 'roll back 1?')
        tmux.keys('y')
        tmux.end()
    eq((read(t.m('x')), read(t.m('y'))), (b'x\n', b'yy\n'), 'both are back')


@screen
def test_review_left(t):
    t.seed({'f': numbers()})
    yield
    write(t.m('f'), numbers(_2='two'))
    with review(t) as tmux:
        tmux.wait('M f')
        tmux.keys('q').end(code=4)
    with review(t) as tmux:
        tmux.wait('M f')
        tmux.keys('a').wait('[+]')
        tmux.keys('q').wait('Leave, with nothing done?')
        tmux.keys('n').wait('Enter: look')
        tmux.keys('c').wait('Commit 1')
        tmux.keys('n').wait('Enter: look')
        tmux.keys('C-c').wait('Leave, with nothing done?')
        tmux.keys('y').end(code=4)
    eq((read(t.w('f')), t.name_status(), records(t)), (numbers().encode(), {'f': 'M'}, []), 'nothing was done')


@screen
def test_review_of_what_changed_meanwhile(t):
    t.seed({'f': numbers(), 'g': 'g\n'})
    yield
    write(t.m('f'), numbers(_2='two'))
    with review(t) as tmux:
        tmux.wait('M f')
        tmux.keys('a').wait('[+]')
        write(t.m('g'), 'sneaked in\n')
        check('not those that were shown' in tmux.keys('c').end(code=6), 'it says so')
    with review(t) as tmux:
        tmux.wait('M f')
        tmux.keys('a', 'r').wait('[+]', '[-]')
        tmux.keys('c').wait('Commit 1, roll back 1?')
        write(t.m('f'), numbers(_2='TWO'))
        check('not those that were shown' in tmux.keys('y').end(code=6), 'it says so')
    eq((read(t.w('f')), read(t.w('g')), read(t.m('g'))), (numbers().encode(), b'g\n', b'sneaked in\n'), 'nothing was done')
    eq(records(t), [], 'the audit')


@screen
def test_review_meets_a_conflict(t):
    t.seed({'f': numbers(), 'g': 'g\n'})
    yield
    write(t.m('f'), numbers(_2='two'))
    write(t.m('g'), 'G\n')
    write(t.w('f'), numbers(_10='by the owner'))
    with review(t) as tmux:
        tmux.wait('M f')
        tmux.keys('A').wait('2 accepted')
        tmux.keys('c').wait('conflict: f: changed in the workspace too', 'This cannot be done')
        tmux.keys('y').wait('Enter: look')
        tmux.keys('Home', 'u').wait('1 accepted')
        tmux.keys('c').wait('Commit 1, roll back 0?')
        tmux.keys('y').end()
    eq((read(t.w('f')), read(t.w('g'))), (numbers(_10='by the owner').encode(), b'G\n'), 'the workspace')


@case(workspace_changes=True, remount=False, modes=('fresh',), policy=OPEN_POLICY.replace('none', 'secrets, modes, tests') + 'test = test -e good\n')
def test_review_and_gate(t):
    t.seed({'f': numbers(), 's': 'x\n'})
    yield
    write(t.m('f'), numbers(_2='two', _18=f'key = {fake_key()}'))
    os.chmod(t.m('s'), 0o755)
    with review(t) as tmux:
        tmux.wait('[ ] !!  M f', '[ ]  !  P s', 'gate: refuse')
        tmux.keys('Enter').wait('gate: refuse: f:18', '(1/2) open')
        tmux.keys('A').wait('M f - accepted')
        tmux.keys('c').wait('The gate refuses what was accepted', 'This cannot be done')
        tmux.keys('y').wait('Enter: look')
        tmux.keys('Enter').wait('(2/2) accepted')
        tmux.keys('Tab', 'u').wait('M f - in part')
        tmux.keys('Left').wait('Enter: look')
        tmux.keys('c').wait('the tests fail', 'This cannot be done')
        tmux.keys('y').wait('Enter: look')
        tmux.keys('q').wait('Leave')
        tmux.keys('y').end(code=4)
    with review(t, '--reason', 'later') as tmux:
        tmux.wait('M f')
        tmux.keys('Enter').wait('(1/2) open')
        tmux.keys('a').wait('(1/2) accepted')
        tmux.keys('c').wait('Reviewed, as the gate wants? Commit 1')
        tmux.keys('y').end()
    eq(read(t.w('f')), numbers(_2='two').encode(), 'the workspace')


@screen
def test_review_of_hostile_names(t):
    name = b'n\x1b[2J\x1b]0;owned\x07\x9b\xff\nline'
    t.seed({'f': b'one\n' * 30})
    yield
    write(os.fsencode(t.m()) + b'/' + name, ESCAPES + b'\n')
    write(t.m('f'), b'one\n' * 15 + ESCAPES + b'\n' + b'one\n' * 15)
    write(t.m('wide'), '漢字' * 60 + '\n')
    with review(t) as tmux:
        title = tmux.title()
        tmux.wait('M f', 'A n^[[2J^[]0;owned^G<9B><FF>^Jline')
        tmux.keys('Enter').wait('+^[[31m^[]0;owned^G<9B>2J <U+009B>3J <U+202E> <FF>')
        tmux.keys('>').wait('(2/3)', '+^[[31m')
        text = tmux.keys('>').wait('(3/3)', '漢字')
        eq(text.count('漢') + text.count('字'), 120, 'all characters of the long line')
        tmux.resize(31, 12).wait('(3/3)')
        text = tmux.wait('漢字')
        check('漢' * 2 not in text, 'wrapped between characters')
        tmux.resize(5, 2)
        tmux.resize(100, 30).wait('(3/3) A wide', 'Left: list')
        eq(tmux.title(), title, 'the title of the terminal')
        tmux.keys('Left').wait('Enter: look')
        tmux.keys('A').wait('3 accepted')
        tmux.keys('c').wait('Commit 3')
        end = tmux.keys('y').end()
        eq(tmux.title(), title, 'the title of the terminal')
    check('\\033[2J' in end, f'the summary quotes names: {end}')
    eq(read(t.w('f')), read(t.m('f')), 'committed')


@screen
def test_review_of_many(t):
    yield
    for i in range(60):
        write(t.m(f'f{i:02}'), 'x\n')
    with review(t, rows=12) as tmux:
        tmux.wait('f00', 'f09', gone=('f10',))
        tmux.keys('PageDown', 'PageDown').wait('f09', gone=('f00 ',))
        tmux.keys('End').wait('f59')
        tmux.keys('r', 'k', 'a', 'Home', 'a').wait('2 accepted', '1 rejected', 'f00')
        tmux.keys('c').wait('f00', 'f58', 'rejected: A f59', 'Commit 2, roll back 1?')
        tmux.keys('y').end()
    eq((sorted(os.listdir(t.low)), os.path.exists(t.m('f59')), len(os.listdir(t.m()))), (['f00', 'f58'], False, 59), 'what is where')


@case(workspace_changes=True, modes=('fresh',), mount=False)
def test_review_without_a_mount(t):
    t.seed({'f': numbers()})
    yield
    t.mount()
    write(t.m('f'), numbers(_2='two', _18='eighteen'))
    t.umount()
    with review(t) as tmux:
        tmux.wait('M f')
        tmux.keys('Enter').wait('(1/2) open')
        tmux.keys('a').wait('(1/2) accepted')
        tmux.keys('c').wait('Commit 1')
        tmux.keys('y').end()
    eq(read(t.w('f')), numbers(_2='two').encode(), 'the workspace')
    t.mount()
    eq(removed_and_added(t, 'f'), ['-18', '+eighteen'], 'pending')
    t.umount()


@case(modes=('fresh',))
def test_review_usage(t):
    check('nothing to review' in t.sbxfs('review', t.name).out, 'without changes')
    write(t.m('f'), 'x\n')
    check('needs a terminal' in t.sbxfs('review', t.name, code=2).err, 'without a terminal')
    with Pty('sbxfs', 'review', t.name, env={'TERM': 'no-such-terminal'}) as unknown:
        check('TERM=no-such-terminal' in unknown.end(code=10), 'with one that nobody knows')
