# SPDX-License-Identifier: MIT
"""The audit: every change and every denial leaves its record, nothing takes a record away, and what is not recorded does not happen."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from harness.kit import *  # noqa: F403
from harness.view import case

once = case(modes=('fresh',))
POLICY = '[profile cases]\n[files cases]\nwrite = **\ndeny = **/.env\nhide = **/*.hid\nread = **/locked\n'
ruled = case(policy=POLICY, modes=('fresh',))


def log(t, *arguments):
    """Its records, as dictionaries."""
    lines = t.sbxfs('log', t.name, '--json', *arguments).out.splitlines()
    return [json.loads(line) for line in lines]


def settled(t):
    """All records of now, read ones too: they are taken over within a moment."""
    time.sleep(0.15)
    return log(t)


def brief(records):
    return [' '.join(filter(None, (r['operation'], r.get('path'), r.get('new_path')))) for r in records]


def changes(t):
    return brief(r for r in log(t) if r['kind'] == 'change')


def verify(t, code=0):
    return t.sbxfs('log', t.name, '--verify', '--json', code=code).json()


@contextlib.contextmanager
def database(t):
    with contextlib.closing(sqlite3.connect(os.path.join(t.store(), 'audit.db'), timeout=30, isolation_level=None)) as connection:
        yield connection


@case(policy=POLICY)
def test_each_kind_of_change_has_its_record(t):
    t.seed({'f': 'base', 'd/g': 'g', 'x': 'x', 'y': 'y', 'gone': '1', 'dir/': None})
    yield
    steps = [
        ('create new', lambda: create(t.m('new'))),
        ('create fifo', lambda: os.mkfifo(t.m('fifo'))),
        ('mkdir md', lambda: os.mkdir(t.m('md'))),
        ('symlink sl', lambda: os.symlink('f', t.m('sl'))),
        ('link y hl', lambda: os.link(t.m('y'), t.m('hl'))),
        ('write f', lambda: write(t.m('f'), 'z', 'r+b')),
        ('truncate f', lambda: os.truncate(t.m('f'), 1)),
        ('fallocate f', lambda: t.program('fallocate', '-l', '9000', t.m('f'))),
        ('chmod f', lambda: os.chmod(t.m('f'), 0o600)),
        ('chown f', lambda: os.chown(t.m('f'), os.getuid(), os.getgid())),
        ('utimes f', lambda: os.utime(t.m('f'), (5, 5))),
        ('setxattr f', lambda: os.setxattr(t.m('f'), 'user.a', b'1')),
        ('removexattr f', lambda: os.removexattr(t.m('f'), 'user.a')),
        ('rename d moved', lambda: os.rename(t.m('d'), t.m('moved'))),
        ('write moved/g', lambda: write(t.m('moved/g'), 'z', 'r+b')),
        ('exchange x y', lambda: exchange(t.m('x'), t.m('y'))),
        ('unlink gone', lambda: os.unlink(t.m('gone'))),
        ('rmdir dir', lambda: os.rmdir(t.m('dir'))),
    ]
    for want, step in steps:
        before = len(log(t))
        step()
        records = [r for r in log(t)[before:] if r['kind'] == 'change']
        eq(brief(records), [want], 'the record of one step')
        record = records[0]
        eq((record['errno'], record['uid'], record['verdict']), (0, os.getuid(), 'write'), want)
        check(f'{os.path.basename(t.policy_file)}:3: write = **' in record['rule'], f'the rule in {short(record)}')
        if not want.startswith('fallocate'):
            eq((record['pid'], record['program']), (os.getpid(), read('/proc/self/comm').decode().strip()), 'the process')
    check(verify(t)['intact'], 'the chain')


@ruled
def test_each_kind_of_denial_has_its_record(t):
    t.seed({'.env': 's', 'a/.env': 's', 'v.hid': 'h', 'locked/f': 'l', 'pub': 'p', 'p2': 'p'})
    yield
    locked = t.m('locked/f')
    steps = [
        ('lookup .env', 'deny', lambda: os.open(t.m('.env'), os.O_RDONLY)),
        ('lookup a/.env', 'deny', lambda: os.open(t.m('a/.env'), os.O_RDONLY)),
        ('lookup v.hid', 'hide', lambda: os.stat(t.m('v.hid'))),
        ('create b.hid', 'hide', lambda: create(t.m('b.hid'))),
        ('create a2/.env', 'deny', lambda: (os.mkdir(t.m('a2')), create(t.m('a2/.env')))),
        ('mkdir a2/.env', 'deny', lambda: os.mkdir(t.m('a2/.env'))),
        ('symlink a2/.env', 'deny', lambda: os.symlink('x', t.m('a2/.env'))),
        ('link pub a2/.env', 'deny', lambda: os.link(t.m('pub'), t.m('a2/.env'))),
        ('rename pub a2/.env', 'deny', lambda: os.rename(t.m('pub'), t.m('a2/.env'))),
        ('rename pub locked/f', 'read', lambda: os.rename(t.m('pub'), locked)),
        ('exchange pub locked/f', 'read', lambda: exchange(t.m('pub'), locked)),
        ('rename locked/f away', 'read', lambda: os.rename(locked, t.m('away'))),
        ('unlink locked/f', 'read', lambda: os.unlink(locked)),
        ('rmdir locked', 'read', lambda: os.rmdir(t.m('locked'))),
        ('create locked/n', 'read', lambda: create(t.m('locked/n'))),
        ('chmod locked/f', 'read', lambda: os.chmod(locked, 0o777)),
        ('utimes locked/f', 'read', lambda: os.utime(locked, (1, 1))),
    ]
    for want, verdict, step in steps:
        before = len(log(t, '--denied'))
        check(errno_of(step) != 'OK', f'{want} is refused')
        found = log(t, '--denied')[before:]
        check(want in brief(found), f'{want}: recorded are {brief(found)}')
        record = found[brief(found).index(want)]
        eq((record['verdict'], record['kind'], record['pid']), (verdict, 'denial', os.getpid()), want)
        check(f'{verdict} = **/' in record['rule'] and 'policy.ini:' in record['rule'], f'the rule in {short(record)}')
        if not want.startswith('lookup'):
            check(record['errno'] > 0, f'the error of {want}')
    for path in ('nothere', 'a/nothere'):
        fails('ENOENT', os.stat, t.m(path))
    check(not [r for r in log(t, '--denied') if 'nothere' in r['path']], 'an ordinary error is no denial')


@ruled
def test_what_root_is_refused_at_the_read_is_recorded(t):
    t.needs_root()
    t.seed({'.env': 's', 'locked': 'l'})
    yield
    fails(('EACCES', 'EPERM'), read, t.m('.env'))
    fails('EROFS', lambda: write(t.m('locked'), 'x', 'r+b'))
    found = brief(log(t, '--denied'))
    check('lookup .env' in found and 'write locked' in found, f'recorded are {found}')


@once
def test_the_first_read_of_each_version(t):
    t.seed({'f': 'one', 'g': 'two'})
    yield

    def reads():
        return brief(r for r in settled(t) if r['kind'] == 'read')
    for _ in range(3):
        read(t.m('f'))
    eq(reads(), ['read f'], 'one file')
    read(t.m('g'))
    eq(reads(), ['read f', 'read g'], 'another')
    write(t.m('f'), 'three')
    t.snapshot('s')
    t.remount()
    read(t.m('f'))
    eq(reads(), ['read f', 'read g', 'read f'], 'a new version')


@case(modes=('fresh',), workspace_changes=True)
def test_what_the_tools_do_is_recorded(t):
    t.seed({'f': 'one', 'd/g': 'two'})
    yield
    eq([r['operation'] for r in log(t)], ['mount'], 'at the start')
    write(t.m('f'), 'new')
    t.snapshot('named')
    t.sbxfs('snapshot', 'delete', 'named', t.name)
    write(t.m('d/g'), 'new')
    t.rollback(paths=['f'])
    t.commit('--reviewed')
    t.umount()
    t.rollback()  # by the command itself: nobody serves the view
    records = [r for r in log(t) if r['kind'] not in ('change', 'read')]
    eq([r['operation'] for r in records], ['mount', 'snapshot', 'snapshot-delete', 'snapshot', 'rollback', 'rollback', 'commit', 'commit', 'umount', 'snapshot', 'rollback'],
       'the operations')
    eq([r.get('path') for r in records if r['kind'] in ('rollback', 'commit')], [None, 'f', None, 'd/g', None], 'their paths')
    eq({r['uid'] for r in records}, {os.getuid()}, 'who')
    for r in records:
        check(r['program'].startswith('sbxfs'), f'the program in {short(r)}')
    check(len({r['pid'] for r in records}) > 4, 'each command is a process of its own')
    check(verify(t)['intact'], 'the chain')
    t.mount()


@once
def test_a_rollback_takes_no_record_away(t):
    t.seed({'f': 'x'})
    yield
    for number in range(20):
        write(t.m(f'n{number}'), 'x')
    before = settled(t)
    t.rollback()
    eq(log(t)[:len(before)], before, 'the records after a rollback')
    t.umount()
    t.rollback()
    t.mount()
    eq(log(t)[:len(before)], before, 'the records after a rollback of an unmounted view')
    check(verify(t)['intact'], 'the chain')


WORKER = r'''
import os, sys
top = sys.argv[1]
number = 0
while True:
    number += 1
    path = f'{top}/k{number}'
    os.mkdir(path) if number % 5 == 0 else os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    os.write(1, f'{"mkdir" if number % 5 == 0 else "create"} k{number}\n'.encode())
    if number % 3 == 0 and number % 5:
        os.unlink(path)
        os.write(1, f'unlink k{number}\n'.encode())
    try:
        os.open(f'{top}/n{number}.hid', os.O_CREAT | os.O_WRONLY)
    except PermissionError:
        os.write(1, f'create n{number}.hid\n'.encode())
'''


@ruled
def test_kill_9_loses_no_change_and_no_denial(t):
    reported = []
    for round_ in range(4):
        os.makedirs(t.m(str(round_)))
        worker = subprocess.Popen([sys.executable, '-c', WORKER, t.m(str(round_))], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(0.4 + 0.11 * round_)
        t.kill_daemon()
        out = worker.communicate(timeout=60)[0].decode()
        reported += [f'{op} {round_}/{name}' for op, name in (line.split() for line in out.splitlines())]
        check(len(out.splitlines()) > 5, 'the worker did something')
        found = set(brief(log(t)))
        eq([r for r in reported if r not in found][:3], [], 'reported and not recorded, before anybody mounts again')
        t.mount()
        found = brief(log(t))
        eq([r for r in reported if r not in set(found)][:3], [], 'reported and not recorded')
        eq(len(found), len(set(found) - {'mount', 'recover', 'umount'}) + sum(r in ('mount', 'recover', 'umount') for r in found), 'no record is there twice')
    check('recover' in brief(log(t)), 'what was taken over is told')
    check(verify(t)['intact'], 'the chain')


@once
def test_verify_finds_tampering(t):
    for number in range(30):
        write(t.m(f'f{number}'), 'x')
    eq(verify(t)['intact'], True, 'while mounted')
    t.umount()
    whole = verify(t)
    eq((whole['intact'], whole['records']), (True, whole['last']), 'not mounted')
    path = os.path.join(t.store(), 'audit.db')
    with database(t) as db:
        db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    shutil.copyfile(path, t.path('good.db'))
    columns = 'time, kind, pid, uid, result, operation, program, path, new_path, verdict, rule, detail, hash'
    for what, edit in (
            ('an edited path', "UPDATE record SET path = 'other' WHERE seq = 9"),
            ('a row that is gone', 'DELETE FROM record WHERE seq = 9'),
            ('rows that changed places', 'UPDATE record SET seq = -1 WHERE seq = 9; UPDATE record SET seq = 9 WHERE seq = 12; UPDATE record SET seq = 12 WHERE seq = -1'),
            ('a cut end', 'DELETE FROM record WHERE seq > 20'),
            ('a cut start', 'DELETE FROM record WHERE seq < 5'),
            ('one row more', f'INSERT INTO record (seq, {columns}) SELECT {whole["last"] + 1}, {columns} FROM record WHERE seq = 3')):
        with database(t) as db:
            db.executescript(edit)
        found = verify(t, code=1)
        check(not found['intact'] and found['fault'], what)
        check('tampered' in t.sbxfs('log', t.name, '--verify', code=1).out, what)
        for name in ('-wal', '-shm'):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + name)
        shutil.copyfile(t.path('good.db'), path)
    data = bytearray(read(path))
    data[data.rindex(b'create')] ^= 1
    write(path, data)
    check(not verify(t, code=1)['intact'], 'a flipped byte')
    shutil.copyfile(t.path('good.db'), path)
    t.mount()
    check(verify(t)['intact'], 'the chain goes on')


@case()
def test_names_of_all_kinds(t):
    paths = [b'new\nline', b'\xff\xfe', 'ünï'.encode(), b'tab\t', b'"quote"', b'-rf', b' ', b'\x1b[31m', b'x' * 255]
    for path in paths:
        create(os.path.join(os.fsencode(t.mnt), path))
    found = {}
    for r in log(t, '--op', 'create'):
        exact = r.get('path_b64')
        found[__import__('base64').b64decode(exact) if exact else r['path'].encode()] = r
    eq([p for p in paths if p not in found], [], 'names that are not recorded')
    text = t.sbxfs('log', t.name, '--op', 'create').out
    check('\x1b' not in text and 'new\\nline' in text, 'the text shows no control characters')
    check(verify(t)['intact'], 'the chain')


@ruled
def test_filters_and_follow(t):
    t.seed({'.env': 's'})
    yield
    os.makedirs(t.m('a/b'))
    write(t.m('a/b/f'), 'x')
    write(t.m('ab'), 'x')
    errno_of(create, t.m('x.hid'))
    eq(brief(log(t, '--path', 'a')), ['mkdir a', 'mkdir a/b', 'create a/b/f', 'write a/b/f'], '--path')
    eq(brief(log(t, '--path', t.m('a/b/f'), '--op', 'write')), ['write a/b/f'], 'an absolute path, and --op')
    eq(brief(log(t, '--denied')), ['create x.hid'], '--denied')
    eq(log(t, '--since', '2999-01-01'), [], '--since a day')
    eq(len(log(t, '--since', '1h')), len(log(t)), '--since so long ago')
    t.sbxfs('log', t.name, '--since', 'yesterday-ish', code=2)
    t.sbxfs('log', 'no-such-sandbox', code=7)
    follower = subprocess.Popen(['sbxfs', 'log', t.name, '--follow', '--json', '--path', 'later'], stdout=subprocess.PIPE)
    try:
        write(t.m('later'), 'x')
        lines = [json.loads(follower.stdout.readline())['operation'] for _ in range(2)]
        eq(lines, ['create', 'write'], '--follow')
    finally:
        follower.kill()
        follower.wait()


@once
def test_what_cannot_be_recorded_does_not_happen(t):
    t.seed({'f': 'base', 'g': 'base', 'gone': 'x'})
    yield
    write(t.m('f'), 'ok')
    with database(t) as db:
        db.execute('ALTER TABLE record RENAME TO away')
        errno_of(write, t.m('f'), 'noticed')  # refused already, if what was written before had not reached the table
        deadline = time.monotonic() + 20
        while errno_of(write, t.m('f'), 'refused') == 'OK' and time.monotonic() < deadline:
            time.sleep(0.02)
        for call in (lambda: create(t.m('n')), lambda: os.mkdir(t.m('n')), lambda: os.rename(t.m('f'), t.m('n')), lambda: os.chmod(t.m('g'), 0o600)):
            check(errno_of(call) not in ('OK', 'ENOENT'), 'a change is refused')
        eq((read(t.m('g')), names(t.mnt)), (b'base', ['f', 'g', 'gone']), 'reading goes on')
        os.unlink(t.m('gone'))
        db.execute('ALTER TABLE away RENAME TO record')
    while errno_of(create, t.m('n')) != 'OK' and time.monotonic() < deadline:
        time.sleep(0.02)
    write(t.m('f'), 'again')
    time.sleep(0.3)
    found = changes(t)
    check('unlink gone' in found and found[-1] == 'write f' and 'chmod g' not in found, f'recorded are {found[-6:]}')
    check(verify(t)['intact'], 'the chain')


@case(modes=('fresh',), root=True, mount=False, remount=False)
def test_a_full_disk(t):
    os.makedirs(t.path('disk'))
    t.program('mount', '-t', 'tmpfs', '-o', 'size=12m', 'none', t.path('disk'))
    try:
        os.environ['XDG_STATE_HOME'] = t.path('disk')
        t.mount()
        made = []
        for number in range(4000):
            if errno_of(write, t.m(f'n{number}'), b'x' * 20000) != 'OK':
                break
            made.append(f'n{number}')
        check(10 < len(made) < 4000, f'the disk is full after {len(made)} files')
        time.sleep(0.5)
        present = [name for name in names(t.mnt) if name in made]
        eq(len(present), len(made), 'what was made is there')
        found = set(changes(t))
        eq([name for name in made if f'create {name}' not in found or f'write {name}' not in found], [], 'made and not recorded')
        removed = [name for name in made if errno_of(os.unlink, t.m(name)) == 'OK']
        check(removed, 'deleting is possible')
        found = set(changes(t))
        eq([name for name in removed if f'unlink {name}' not in found], [], 'removed and not recorded')
        check(verify(t)['intact'], 'the chain')
        t.umount()
    finally:
        os.environ['XDG_STATE_HOME'] = t.path('state')
        t.program('umount', '-l', t.path('disk'), code=None)


@once
def test_the_audit_is_out_of_reach(t):
    create(t.m('f'))
    for directory, directories, files in os.walk(t.mnt):
        check(not [n for n in directories + files if 'audit' in n], f'the audit shows in {directory}')
    check(signal.SIGKILL and os.stat(t.store()).st_mode & 0o077 == 0, 'its directory is private')


def copies(t, policy, managed=None):
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[audit cases]\n' + policy)


@case(mount=False, modes=('fresh',))
def test_copies_of_the_audit(t):
    """Into a file and to a command: the same records as in the chain, in order, over several mounts."""
    t.seed({'f': 'f', '.sbxfs.ini': f'[profile w]\n[files w]\nread = x\n[audit w]\nfile = {t.path("workspace-was-here")}\nkeep = 1s\n'})
    copies(t, f'file = {t.path("copy-%n.jsonl")}\ncommand = sh -c "cat >>{t.path("piped")}"\n')
    yield
    for n in range(3):
        t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low)
        write(t.path('run/sbxfs', t.name, 'mnt', f'n{n}'), 'x')
        t.sbxfs('umount', t.name)
    want = [(r['seq'], r['hash']) for r in log(t)]
    check(len(want) >= 9, f'recorded: {want}')
    for name in (f'copy-{t.name}.jsonl', 'piped'):
        for _ in range(500):
            got = [(r['seq'], r['hash']) for r in map(json.loads, read(t.path(name)).decode().splitlines())] if os.path.exists(t.path(name)) else []
            if len(got) == len(want):
                break
            time.sleep(0.02)
        eq(got, want, name)
    check(is_gone(t.path('workspace-was-here')), 'the workspace said where a copy goes')
    t.sbxfs('rollback', t.name, '-y')
    check(len(read(t.path(f'copy-{t.name}.jsonl')).splitlines()) > len(want), 'what is done without a mount is copied, too')


@case(mount=False, modes=('fresh',))
def test_copies_that_cannot_be(t):
    """An error before anything is mounted; never into the view, whose writes would be recorded in turn."""
    yield
    os.symlink(t.low, t.path('way'))
    for policy in ('file = relative', f'file = {t.low}/log', f'file = {t.path("way")}/log', 'file = /no/such/dir/log', 'syslog = maybe', 'command = "open', 'keep = long', 'keep_size = 1d'):
        copies(t, policy + '\n')
        t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low, code=3)
    copies(t, f'file = {t.dir}\n')
    check('[audit]' in t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low, code=3).err, 'who asks for it')
    copies(t, 'command = /no/such/program\n')
    t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low, code=3)


@case(mount=False, modes=('fresh',))
def test_how_long_records_are_kept(t):
    yield
    copies(t, 'keep_size = 10K\n')
    for n in range(2):
        t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low)
        for i in range(300):
            create(t.path('run/sbxfs', t.name, 'mnt', f'n{n}-{i}'))
        t.sbxfs('umount', t.name)
    records = log(t)
    check('retain' in [r['operation'] for r in records] and records[0]['seq'] > 200, f'nothing was dropped: {records[0]}')
    check(verify(t)['intact'], 'the chain')
