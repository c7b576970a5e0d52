# SPDX-License-Identifier: MIT
"""What `sbxfs fsck` finds: a store is damaged in one place at a time, and it says what is wrong there; a repair takes only what is left over."""
import contextlib
import os
import sqlite3

from harness.kit import *  # noqa: F403
from harness.view import case

once = case(modes=('fresh',), remount=False)
by_itself = case(mount=False, modes=('fresh',))
LARGE = noise(300_000)


def fsck(t, *arguments, code=0):
    answer = t.sbxfs('fsck', t.name, '--json', *arguments, code=code).json()
    eq(answer['sound'], code == 0, 'the verdict')
    return answer


def findings(t, *arguments, code=0):
    """[(check, message)] of what is not fine."""
    return [(f['check'], f['message']) for f in fsck(t, *arguments, code=code)['findings'] if f['level'] != 'ok']


@contextlib.contextmanager
def index(t):
    with contextlib.closing(sqlite3.connect(os.path.join(t.store(), 'store.db'), timeout=30, isolation_level=None)) as database:
        yield database


def fill(t):
    """All kinds of contents, in two snapshots and after them; then nobody serves the view."""
    t.mount()
    write(t.m('small'), 'a few bytes')
    write(t.m('large'), LARGE)
    with opened(t.m('lower-large'), os.O_RDWR) as fd:
        os.pwrite(fd, b'X', 100_000)
    append(t.m('lower-small'), 'more\n')
    t.snapshot('one')
    write(t.m('large'), LARGE[::-1])
    os.rename(t.m('d'), t.m('e'))
    t.snapshot('two')
    os.unlink(t.m('small'))
    append(t.m('e/f'), 'f')
    t.umount()


@by_itself
def test_a_sound_store(t):
    t.seed({'lower-large': noise(2_000_000, 2), 'lower-small': 'text\n', 'd/f': 'f'})
    yield
    fill(t)
    eq(findings(t), [], 'a store that is sound')
    text = t.sbxfs('fsck', t.name).out
    check('damaged' not in text and f'{t.name}: audit: ' in text, f'as text: {short(text)}')
    eq(fsck(t, '--repair')['repaired'], False, 'nothing to repair')
    t.sbxfs('fsck', 'no-such-sandbox', code=7)


@by_itself
def test_each_kind_of_damage_in_the_index(t):
    t.seed({'lower-large': noise(2_000_000, 2), 'lower-small': 'text\n', 'd/f': 'f'})
    yield
    fill(t)
    live = 'died = 9223372036854775807'
    faults = {
        'a node that is gone': (f'DELETE FROM node WHERE ino = (SELECT ino FROM name WHERE {live} AND name = CAST(\'large\' AS BLOB))', 'names'),
        'a node that is gone in a snapshot': ("DELETE FROM node WHERE ino = (SELECT ino FROM name WHERE died < 9 AND ino <> 0 AND name = CAST('small' AS BLOB)) ", 'names'),
        'a directory that is gone': (f"DELETE FROM node WHERE ino = (SELECT ino FROM name WHERE {live} AND name = CAST('e' AS BLOB))", 'names'),
        'a content that is gone': ('DELETE FROM content WHERE kind = 0', 'contents'),
        'a content of another size': ('UPDATE content SET size = size + 1 WHERE kind = 0', 'contents'),
        'a size that is not that of its content': ('UPDATE node SET size = size + 1 WHERE content <> 0', 'contents'),
        'a content that has itself as its base': ('UPDATE content SET base = id WHERE kind = 1', 'contents'),
        'a base that is gone': ('UPDATE content SET base = 999999 WHERE kind = 1', 'contents'),
        'a kind that is none': ('UPDATE content SET kind = 7 WHERE kind = 1', 'contents'),
        'a content of the future': ('UPDATE content SET epoch = 1000', 'epochs'),
        'a version of no time': (f'UPDATE node SET born = died WHERE {live}', 'epochs'),
        'a name of the future': (f'UPDATE name SET born = 1000 WHERE {live}', 'epochs'),
        'a snapshot of the future': ("UPDATE snapshot SET epoch = 1000 WHERE name = 'one'", 'epochs'),
        'two versions at once': ('UPDATE node SET born = 1 WHERE content <> 0', 'versions'),
        'two versions of a name at once': (f'INSERT INTO name SELECT parent, name, died - 1, born, ino, covers FROM name WHERE {live}', 'versions'),
        'origins that are gone': ('DELETE FROM origin', 'origins'),
        'the text of a merge': ("UPDATE base SET data = CAST('other' AS BLOB)", 'merge-texts'),
    }
    with index(t) as database, contextlib.closing(sqlite3.connect(t.path('kept.db'))) as kept:
        database.backup(kept)
        for what, (statement, wanted) in faults.items():
            database.execute('BEGIN')
            changed = database.execute(statement).rowcount
            check(changed > 0, f'{what}: the statement does nothing')
            database.execute('COMMIT' if changed else 'ROLLBACK')
            found = findings(t, code=1)
            check(any(name == wanted for name, _ in found), f'{what}: {short(found)}')
            eq(fsck(t, '--repair', code=1)['repaired'], False, f'{what} is nothing that a repair mends')
            kept.backup(database)
    eq(findings(t), [], 'after all that, with every object: a row that is damaged may still speak of it')


@by_itself
def test_objects_that_are_gone_or_left_over(t):
    t.seed({'lower-large': noise(2_000_000, 2), 'lower-small': 'text\n', 'd/f': 'f'})
    yield
    fill(t)
    objects = os.path.join(t.store(), 'objects')
    known = names(objects)
    check(len(known) >= 2, f'large contents: {known}')
    write(os.path.join(objects, '00000000000fffff'), 'left by a killed process')
    write(os.path.join(objects, 'notes.txt'), 'somebody else put it here')
    with index(t) as database:
        database.execute("INSERT INTO page VALUES (1048575, 0, x'01')")
    found = findings(t)
    eq(sorted(name for name, _ in found), ['objects', 'objects', 'pages'], f'left over: {short(found)}')
    eq(names(objects), sorted(known + ['00000000000fffff', 'notes.txt']), 'looking takes nothing')
    eq(fsck(t, '--repair')['repaired'], True, 'repaired')
    eq(names(objects), sorted(known + ['notes.txt']), 'what was left over is gone, and nothing else')
    eq([message for _, message in findings(t)], ['objects/notes.txt is none of ours and is left alone'], 'after the repair')
    os.unlink(os.path.join(objects, 'notes.txt'))
    os.rename(os.path.join(objects, known[0]), t.path('kept'))
    found = findings(t, code=1)
    eq([(name, int(known[0], 16) in map(int, filter(str.isdigit, message.replace(':', ' ').split()))) for name, message in found], [('objects', True)], 'a missing file')
    os.rename(t.path('kept'), os.path.join(objects, known[0]))
    t.mount()
    eq((read(t.m('large')), read(t.m('e/f'))), (LARGE[::-1], b'ff'), 'the contents after the repair')
    t.umount()


@by_itself
def test_a_damaged_database_policy_and_audit(t):
    t.seed({'lower-large': noise(2_000_000, 2), 'lower-small': 'text\n', 'd/f': 'f'})
    yield
    fill(t)
    for name, wanted in (('store.db', ('store', 'database')), ('policy.ini', ('policy',)), ('audit.db', ('audit',))):
        path = os.path.join(t.store(), name)
        kept = read(path)
        write(path, kept[:100] + b'\xff' * 9000 + kept[9100:])
        found = findings(t, code=1)
        check(any(check_name in wanted for check_name, _ in found), f'{name}: {short(found)}')
        write(path, kept)
    eq(findings(t), [], 'put back')


@once
def test_a_view_that_is_in_use(t):
    write(t.m('f'), LARGE)
    found = findings(t)
    eq([name for name, _ in found], ['objects'], f'what cannot be looked at: {short(found)}')
    with index(t) as database:
        database.execute('UPDATE content SET base = 999999')
    check(('contents', 'content 1: there is no content 999999 under it') in findings(t, code=1), 'damage is seen all the same')
    with index(t) as database:
        database.execute('UPDATE content SET base = 0')
    t.sbxfs('fsck', t.name, '--repair', code=8)
