# SPDX-License-Identifier: MIT
"""Operations that wait for a human: who waits for what, who may answer, for whom an answer counts, and what ends the waiting."""
import json
import os
import signal
import stat
import subprocess
import sys
import termios

from harness.kit import *  # noqa: F403
from harness.view import case

RULES = '[profile cases]\n[files cases]\nwrite = **\nask = /secret, **/asks\nask-change = /careful, **/guarded\n'
PATIENCE = 60


def asking(settings='', **options):
    """What asks can't be walked by the harness."""
    return case(policy=RULES + settings, modes=('fresh',), remount=False, **options)


def questions(t):
    return t.sbxfs('ask', 'list', t.name, '--json').json()['questions']


def log(t, *arguments):
    return [json.loads(line) for line in t.sbxfs('log', t.name, '--json', *arguments).out.splitlines()]


def asked(t, count=1):
    """The questions, as soon as there are @count; none can come any more when all that was done has ended."""
    def found():
        over = Doing.all and all(d.process.poll() is not None for d in Doing.all)
        there = questions(t)
        check(not over or len(there) >= count, f'ended with {len(there)} questions, and not {count}')
        return len(there) >= count and there

    return wait_until(found, f'{count} questions')


def nothing_waits(t):
    wait_until(lambda: not questions(t), 'no question any more')


class Doing:
    """A process that runs Python code; what it prints is its result."""

    all = []

    def __init__(self, code, *arguments, cwd='/'):
        prelude = 'import errno, mmap, os, signal, sys\na = sys.argv[1:]\n'
        self.process = subprocess.Popen([sys.executable, '-c', prelude + code, *arguments], stdout=subprocess.PIPE, cwd=cwd)
        self.all.append(self)

    @property
    def pid(self):
        return self.process.pid

    def result(self):
        return self.process.communicate(timeout=PATIENCE)[0].decode().strip()


def trying(code):
    """The code with the name of its error, if it has one, as its result."""
    lines = ''.join(f'    {line}\n' for line in code.splitlines())
    return f'try:\n{lines}except OSError as e:\n    print(errno.errorcode[e.errno])\n'


READ = trying('print(os.read(os.open(a[0], os.O_RDONLY), 100).decode())')
WRITE = trying('fd = os.open(a[0], os.O_WRONLY)\nos.write(fd, b"changed")\nprint("done")')
CREATE = trying('os.close(os.open(a[0], os.O_CREAT | os.O_EXCL | os.O_WRONLY))\nprint("done")')
UNLINK = trying('os.unlink(a[0])\nprint("done")')
# SIGINT as a program sees it that goes on
HANDLED = 'signal.signal(signal.SIGINT, lambda *_: (_ for _ in ()).throw(OSError(errno.EINTR, "")))\n'


def answer(t, verdict, *options, question=None):
    return t.sbxfs('ask', verdict, str((question or asked(t)[0])['id']), t.name, *options)


def reads(t, path):
    return Doing(READ, t.m(path))


@asking()
def test_looking_asks_nothing(t):
    t.seed({'secret': 'mark', 'd/asks': 'mark', 'careful': 'read me', 'asks/below/f': 'mark'})
    os.symlink('secret', t.w('d/guarded'))
    yield
    eq(names(t.mnt), ['asks', 'careful', 'd', 'secret'], 'the listing')
    eq(names(t.m('asks')) + names(t.m('asks/below')), ['below', 'f'], 'of a directory that asks')
    info = os.stat(t.m('secret'))
    eq((stat.S_IMODE(info.st_mode) & 0o444, info.st_size), (0o444, 4), 'stat')
    eq(os.readlink(t.m('d/guarded')), 'secret', 'the target of a link')
    works(os.access, t.m('d/asks'), os.R_OK)
    eq(read(t.m('careful')), b'read me', 'what asks before changes only')
    t.shell('ls -lR .; find . -size +0 >/dev/null')
    eq(questions(t), [], 'questions')
    records = log(t)
    eq([r for r in records if r['kind'] == 'question'], [], 'recorded questions')


@asking()
def test_once_counts_for_the_process_that_asked(t):
    t.seed({'secret': 'mark'})
    yield
    first = reads(t, 'secret')
    question = asked(t)[0]
    eq([question[k] for k in ('kind', 'operation', 'subject', 'pid', 'uid')], ['file', 'read', 'secret', first.pid, os.geteuid()], 'the question')
    check('ask = /secret' in question['rule'], f'the rule: {question["rule"]}')
    answer(t, 'allow')
    eq(first.result(), 'mark', 'after a yes')
    # The kernel's pages are no answer to the next. They go as soon as the reader has them.
    second = wait_until(lambda: (p := reads(t, 'secret')) and (wait_until(lambda: p.process.poll() is not None or questions(t), 'an end or a question'), questions(t) and p)[1],
                   'the next process asks')
    answer(t, 'deny')
    eq(second.result(), 'EACCES', 'after a no')
    eq(questions(t), [], 'questions')
    # One process, more than one step.
    many = Doing(trying('fd = os.open(a[0], os.O_RDWR)\nfor i in range(3):\n    os.lseek(fd, 0, 0)\n    print(os.read(fd, 100).decode())\nos.write(fd, b"!")\nprint("done")'), t.m('secret'))
    answer(t, 'allow', '--once')
    wait_until(lambda: questions(t) and questions(t)[0]['operation'] == 'write', 'the change asks for itself')
    answer(t, 'allow')
    eq(many.result().split(), ['mark'] * 3 + ['done'], 'reads and a write of one process')


@asking()
def test_path_until_the_unmount_and_always_for_life(t):
    t.seed({'secret': 'mark', 'd/asks': 'other'})
    yield
    t.snapshot('start')
    for path, scope in (('secret', '--always'), ('d/asks', '--path')):
        first = reads(t, path)
        answer(t, 'allow', scope)
        first.result()
    for path, text in (('secret', 'mark'), ('d/asks', 'other')):
        eq(reads(t, path).result(), text, f'{path} for another process')
    write(t.m('new'), 'x')
    t.rollback('start')
    check(is_gone(t.m('new')), 'not rolled back')
    eq(reads(t, 'secret').result(), 'mark', 'after a rollback')
    t.umount()
    t.mount()
    eq(reads(t, 'secret').result(), 'mark', 'after a remount')
    other = reads(t, 'd/asks')
    answer(t, 'deny')
    eq(other.result(), 'EACCES', 'a path after a remount')
    # A yes to reading is none to changing.
    change = Doing(WRITE, t.m('secret'))
    answer(t, 'deny')
    eq(change.result(), 'EACCES', 'a change')


@asking()
def test_changes_ask(t):
    t.seed({'careful': 'mark', 'd/guarded/f': 'f', 'd/free': 'free', 'x': 'x'})
    yield
    steps = [
        ('write careful', WRITE, 'careful'), ('create d/guarded/new', CREATE, 'd/guarded/new'), ('unlink d/guarded/f', UNLINK, 'd/guarded/f'),
        ('truncate careful', trying('os.truncate(a[0], 1)\nprint("done")'), 'careful'), ('chmod careful', trying('os.chmod(a[0], 0o600)\nprint("done")'), 'careful'),
        ('mkdir guarded', trying('os.mkdir(a[0])\nprint("done")'), 'guarded'), ('symlink d/guarded/l', trying('os.symlink("x", a[0])\nprint("done")'), 'd/guarded/l'),
        ('setxattr careful', trying('os.setxattr(a[0], "user.a", b"b")\nprint("done")'), 'careful'),
        ('rename x -> d/guarded/x', trying('os.rename(a[0], os.path.dirname(a[0]) + "/d/guarded/x")\nprint("done")'), 'x'),
        ('rmdir guarded', trying('os.rmdir(a[0])\nprint("done")'), 'guarded'),
    ]
    for want, code, path in steps:
        before = digest(t.mnt)
        for verdict, result in (('deny', 'EACCES'), ('allow', 'done')):
            doing = Doing(code, t.m(path))
            question = asked(t)[0]
            eq(' '.join([question['operation'], question['subject'], *(['->', question['new_subject']] if 'new_subject' in question else [])]), want, 'the question')
            answer(t, verdict, question=question)
            eq(doing.result(), result, f'{want}: {verdict}')
            check((digest(t.mnt) == before) == (verdict == 'deny'), f'{want}: {verdict}: the view')


@asking()
def test_reading_without_read(t):
    t.seed({'secret': 'mark'})
    os.setxattr(t.w('secret'), 'user.mark', b'note')
    yield
    for what, code, want in (('an attribute', 'os.getxattr(a[0], "user.mark").decode()', 'note'), ('holes', 'os.lseek(os.open(a[0], os.O_RDONLY), 1, os.SEEK_HOLE)', '4')):
        for verdict, result in (('deny', 'EACCES'), ('allow', want)):
            doing = Doing(trying(f'print({code})'), t.m('secret'))
            answer(t, verdict)
            eq(doing.result(), result, f'{what}: {verdict}')


@asking()
def test_an_answer_is_for_one_object(t):
    t.seed({'secret': 'mark', 'd/asks': 'other'})
    yield
    first = reads(t, 'secret')
    answer(t, 'allow', '--always')
    eq(first.result(), 'mark', 'after a yes')
    move = Doing(trying('os.rename(a[0], os.path.dirname(a[0]) + "/../secret")\nprint("done")'), t.m('d/asks'))
    answer(t, 'allow')
    eq(move.result(), 'done', 'a rename')
    other = reads(t, 'secret')
    answer(t, 'deny')
    eq(other.result(), 'EACCES', 'what came to its place')


@asking('[ask cases]\ntimeout = 1\n')
def test_time_runs_out(t):
    t.seed({'secret': 'mark', 'careful': 'x'})
    yield
    eq(reads(t, 'secret').result(), 'EACCES', 'reading')
    eq(Doing(WRITE, t.m('careful')).result(), 'EACCES', 'writing')
    eq(questions(t), [], 'questions')
    records = log(t)
    eq([r['operation'] for r in records if r['kind'] == 'answer'], ['timeout'] * 2, 'answers')


@asking()
def test_a_signal_ends_the_waiting(t):
    t.seed({'secret': 'mark', 'careful': 'x', 'd/guarded/': None})
    yield
    cases = [(READ, 'secret'), (WRITE, 'careful'), (CREATE, 'd/guarded/new'), (trying('m = mmap.mmap(os.open(a[0], os.O_RDONLY), 0, prot=mmap.PROT_READ)\nm[0]'), 'secret')]
    for code, path in cases:
        doing = Doing(code, t.m(path))
        asked(t)
        os.kill(doing.pid, signal.SIGKILL)
        eq(doing.process.wait(PATIENCE), -signal.SIGKILL, f'{path}: killed')
        nothing_waits(t)
    for code, path in cases[:3]:
        doing = Doing(HANDLED + code, t.m(path))
        asked(t)
        os.kill(doing.pid, signal.SIGINT)
        eq(doing.result(), 'EINTR', f'{path}: interrupted')
        nothing_waits(t)
    check(is_gone(t.m('d/guarded/new')), 'created without an answer')


@asking()
def test_an_unmount_ends_the_waiting(t):
    t.seed({'secret': 'mark', 'careful': 'x', 'd/guarded/': None})
    yield
    waiting = [reads(t, 'secret'), Doing(WRITE, t.m('careful')), Doing(CREATE, t.m('d/guarded/new'))]
    asked(t, 3)
    t.umount()
    eq([w.result() for w in waiting], ['EACCES'] * 3, 'those that waited')
    # The serving process is told to end.
    t.mount()
    waiting = [reads(t, 'secret'), Doing(CREATE, t.m('d/guarded/new'))]
    asked(t, 2)
    t.kill_daemon(signal.SIGTERM)
    # After a refusal the kernel tries to read once more, and may find nobody there.
    one_of(waiting[0].result(), ('EACCES', 'ECONNABORTED', 'ENOTCONN'), 'who read')
    eq(waiting[1].result(), 'EACCES', 'who created')


@asking()
def test_too_many_wait(t):
    t.seed({'free': 'free', **{f'd{i}/guarded/': None for i in range(40)}})
    yield
    waiting = [Doing(CREATE, t.m(f'd{i}/guarded/new')) for i in range(40)]
    # Those beyond the bound are refused at once, and the others do not keep anybody from working.
    asked(t, 32)
    refused = wait_until(lambda: len(found := [w for w in waiting if w.process.poll() is not None]) == 8 and found, '8 are refused')
    eq({w.result() for w in refused}, {'EACCES'}, 'those beyond the bound')
    eq(read(t.m('free')), b'free', 'another file')
    write(t.m('other'), 'other')
    eq(len(questions(t)), 32, 'questions')
    eq(t.status()['questions'][0]['operation'], 'create', 'in the status')
    check('busy' in [r['operation'] for r in log(t)], 'not recorded')
    t.umount()
    eq({w.result() for w in waiting if w not in refused}, {'EACCES'}, 'those that waited')


@asking()
def test_equal_questions_are_one(t):
    t.seed({'careful': 'x'})
    yield
    waiting = [Doing(trying('os.truncate(a[0], 1)\nprint("done")'), t.m('careful')), Doing(trying('os.setxattr(a[0], "user.a", b"b")\nprint("done")'), t.m('careful'))]
    # The kernel lets one change at a time of a file through, so only one of them can be asked about yet.
    first = asked(t)[0]
    answer(t, 'allow', '--path', question=first)
    eq([w.result() for w in waiting], ['done'] * 2, 'both')
    eq(questions(t), [], 'questions')


@asking(workspace_changes=True)
def test_news_pass_those_who_wait(t):
    """While a request waits with the kernel's lock of a directory, what the owner does there and elsewhere is still told."""
    t.seed({'d/guarded/known': '1', 'other/f': 'before', 'secret': 'mark'})
    yield
    eq(read(t.m('d/guarded/known')), b'1', 'before')
    eq(read(t.m('other/f')), b'before', 'before')
    waiting = [Doing(CREATE, t.m('d/guarded/new')), reads(t, 'secret')]
    asked(t, 2)
    write(t.w('d/guarded/owners'), 'x')
    os.rename(t.w('d/guarded/known'), t.w('d/guarded/moved'))
    write(t.w('secret'), 'news')
    write(t.w('other/f'), 'after')
    wait_until(lambda: read(t.m('other/f')) == b'after', 'news of another directory')
    eq(len(questions(t)), 2, 'questions')
    # A rollback does not wait for the human either.
    write(t.m('other/mine'), 'mine')
    t.rollback()
    check(is_gone(t.m('other/mine')), 'not rolled back')
    for question in questions(t):
        answer(t, 'allow', question=question)
    eq([w.result() for w in waiting], ['done', 'news'], 'those that waited')
    wait_until(lambda: names(t.m('d/guarded')) == ['moved', 'new', 'owners'], 'news of that directory')


@asking()
def test_mapping_and_running_ask(t):
    t.seed({'secret': ('#!/bin/sh\necho ran\n', 0o755)})
    yield
    mapped = Doing('m = mmap.mmap(os.open(a[0], os.O_RDONLY), 0, prot=mmap.PROT_READ)\nprint(m[:2].decode())', t.m('secret'))
    eq(asked(t)[0]['operation'], 'read', 'the question')
    answer(t, 'allow')
    eq(mapped.result(), '#!', 'a mapping')
    mapped = Doing('m = mmap.mmap(os.open(a[0], os.O_RDONLY), 0, prot=mmap.PROT_READ)\nprint(m[:2].decode())', t.m('secret'))
    answer(t, 'deny')
    mapped.result()
    eq(mapped.process.returncode, -signal.SIGBUS, 'a mapping that was refused')
    run = Doing('os.execv(a[0], a)', t.m('secret'))
    answer(t, 'allow', '--path')
    eq(run.result(), 'ran', 'a program')


# To the control socket, by a process whose namespaces a process of the same user may not look at.
HIDDEN = """
import ctypes, socket, sys
ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    try:
        s.sendall(b'\\x09\\0\\0\\0status\\0\\0\\7')  # its length, and ("status", {}) of the type "(sa{sv})"
        print(bool(s.recv(1)))
    except ConnectionError:
        print(False)
"""


@asking()
def test_who_is_confined_cannot_answer(t):
    t.seed({'secret': 'mark'})
    yield
    waiting = reads(t, 'secret')
    number = str(asked(t)[0]['id'])
    # The whole system is there, the socket too, with the owner's user number; but from namespaces of its own.
    inside = ['bwrap', '--dev-bind', '/', '/', '--unshare-user', '--unshare-pid', '--proc', '/proc', '--']
    t.program(*inside, 'sbxfs', 'ask', 'allow', number, t.name, code=(7, 8, 70))
    t.program(*inside, 'sbxfs', 'ask', 'list', t.name, code=(7, 8, 70))
    for one in (['--unshare-pid', '--proc', '/proc'], ['--unshare-user']):
        t.program('bwrap', '--dev-bind', '/', '/', *one, '--', 'sbxfs', 'ask', 'allow', number, t.name, code=(7, 8, 70))
    hidden = [sys.executable, '-c', HIDDEN, t.path('run/sbxfs', t.name + '.sock')]
    eq(t.program(*hidden).out, f'{t.is_root}\n', 'from outside, hidden')
    eq(t.program(*inside, *hidden).out, 'False\n', 'from inside, hidden')
    eq([str(q['id']) for q in questions(t)], [number], 'the question')
    answer(t, 'deny')
    eq(waiting.result(), 'EACCES', 'who asked')


@asking()
def test_who_is_confined_asks(t):
    t.seed({'secret': 'mark'})
    yield
    script = f'ls -d {t.path("run", "sbxfs")} {t.path("state", "sbxfs")} 2>/dev/null; cat secret'
    run = subprocess.Popen(['sbxfs', 'run', t.name, '--', 'sh', '-c', script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    question = asked(t)[0]
    eq((question['program'], question['subject']), ('cat', 'secret'), 'the question')
    answer(t, 'allow', question=question)
    eq(run.communicate(timeout=PATIENCE)[0], b'mark', 'in a run, which sees no socket and no store')


@asking()
def test_the_record(t):
    t.seed({'secret': 'mark', 'careful': 'x'})
    yield
    first = reads(t, 'secret')
    answer(t, 'deny')
    first.result()
    second = Doing(WRITE, t.m('careful'))
    answer(t, 'allow', '--path')
    second.result()
    records = log(t)
    found = [r for r in records if r['kind'] in ('question', 'answer')]
    eq([(r['kind'], r['operation'], r['path'], r['errno']) for r in found],
       [('question', 'read', 'secret', 0), ('answer', 'deny', 'secret', 13), ('question', 'write', 'careful', 0), ('answer', 'allow', 'careful', 0)], 'the record')
    eq([found[0]['pid'], found[2]['pid']], [first.pid, second.pid], 'who asked')
    for record in (found[1], found[3]):
        eq((record['uid'], record['program']), (os.geteuid(), 'sbxfs'), 'who answered')
        check(record['pid'] not in (first.pid, second.pid), 'answered by itself')
    check('path' in found[3]['detail'] and str(second.pid) in found[3]['detail'], f'scope and asker: {found[3]["detail"]}')
    check('ask-change = /careful' in found[2]['rule'], f'the rule: {found[2]["rule"]}')
    denied = log(t, '--denied')
    check(denied and {(r['operation'], r['path'], r['verdict']) for r in denied} == {('read', 'secret', 'ask')}, f'denials: {denied}')
    t.sbxfs('log', t.name, '--verify')
    why = t.sbxfs('why', 'secret', t.name, '--op', 'read', '--json').json()
    eq((why['action'], why['asks'], why['allowed']), ('ask', True, False), 'why')
    why = t.sbxfs('why', 'careful', t.name, '--op', 'read', '--json').json()
    eq((why['action'], why['asks'], why['allowed']), ('ask-change', False, True), 'why')
    check('waits for a human' in t.sbxfs('why', 'careful', t.name, '--op', 'write').out, 'why in words')


@asking()
def test_the_command(t):
    t.seed({'secret': 'mark'})
    yield
    waiting = reads(t, 'secret')
    number = str(asked(t)[0]['id'])
    t.sbxfs('ask', 'allow', '999', t.name, code=7)
    t.sbxfs('ask', 'allow', 'x', t.name, code=2)
    t.sbxfs('ask', 'allow', number, t.name, '--path', '--always', code=2)
    t.sbxfs('ask', 'deny', number, t.name, '--path', code=2)
    t.sbxfs('ask', 'guess', code=2)
    check('secret' in t.sbxfs('ask', 'list', t.name).out, 'not listed')
    watch = subprocess.Popen(['sbxfs', 'ask', 'watch', t.name], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    eq(json.loads(watch.stdout.readline())['id'], int(number), 'watched')
    eq(t.sbxfs('ask', 'allow', number, t.name, '--json').json()['scope'], 'once', 'the answer')
    eq(waiting.result(), 'mark', 'who asked')
    t.sbxfs('ask', 'deny', number, t.name, code=7)
    t.umount()
    eq(watch.wait(PATIENCE), 0, 'watching ends with the view')
    t.sbxfs('ask', 'list', t.name, code=7)


@asking()
def test_watch_on_a_terminal(t):
    t.seed({'secret': 'mark', 'd/asks': 'other', 'e/asks': 'third'})
    yield
    ours, theirs = os.openpty()
    watch = subprocess.Popen(['sbxfs', 'ask', 'watch', t.name], stdin=theirs, stdout=theirs, stderr=theirs)
    shown = b''

    def seen(text):
        nonlocal shown
        while text not in shown:
            shown += os.read(ours, 1000)
        shown = shown.partition(text)[2]

    for path, key, want in (('secret', b'y', 'mark'), ('d/asks', b'n', 'EACCES'), ('e/asks', b'xa', 'third')):
        waiting = reads(t, path)
        seen(path.encode())
        seen(b'quit: ')
        os.write(ours, key)
        eq(waiting.result(), want, path)
    eq(reads(t, 'e/asks').result(), 'third', 'for life')
    os.write(ours, b'\x03')
    eq(watch.wait(PATIENCE), 0, 'Ctrl-C')
    check(termios.tcgetattr(theirs)[3] & termios.ECHO, 'the terminal is left without echo')
    os.close(theirs)


HOOK = """cat >>{log}; case $(tail -n 1 {log}) in *d/asks*) echo allow path;; *e/asks*) echo deny;; *f/asks*) echo allow everything;; *g/asks*) echo allow once; exit 1;;
*h/asks*) echo $$ >{log}.pid; sleep 1000;; esac"""


@case(mount=False, modes=('fresh',), remount=False)
def test_hook(t):
    t.seed({f'{name}/asks': name for name in 'defgh'} | {"i'; echo allow always; '/asks": 'i'})
    yield
    told, script = t.path('tmp/hook.log'), t.path('tmp/hook')
    write(script, HOOK.format(log=told))
    write(t.policy_file, RULES + f'[ask cases]\ntimeout = 60\non_ask = sh {script}\n')
    t.mount()
    eq(reads(t, 'd/asks').result(), 'd', 'allow path')
    eq(reads(t, 'd/asks').result(), 'd', 'for all')
    eq(reads(t, 'e/asks').result(), 'EACCES', 'deny')
    for name in ('f', 'g', "i'; echo allow always; '"):
        waiting = reads(t, f'{name}/asks')
        question = asked(t)[0]
        wait_until(lambda: question['subject'] in read(told).decode(), 'the hook is told')  # noqa: B023
        answer(t, 'deny', question=question)
        eq(waiting.result(), 'EACCES', f'no answer of the hook: {name}')
    seen = [json.loads(line) for line in read(told).decode().splitlines()]
    eq([q['subject'] for q in seen][:2], ['d/asks', 'e/asks'], 'what the hook was told')
    eq((seen[0]['schema'], seen[0]['sandbox'], seen[0]['operation'], seen[0]['kind']), ('sbxfs.question/1', t.name, 'read', 'file'), 'the question')
    # Answered by another, it is ended.
    waiting = reads(t, 'h/asks')
    pid = int(wait_until(lambda: os.path.exists(told + '.pid') and read(told + '.pid'), 'the hook waits'))
    answer(t, 'allow')
    eq(waiting.result(), 'h', 'who asked')
    wait_until(lambda: not os.path.exists(f'/proc/{pid}'), 'the hook is ended')
    t.umount()
    records = log(t)
    eq([(r['operation'], r['program']) for r in records if r['kind'] == 'answer'][:2], [('allow', 'sh'), ('deny', 'sh')], 'who answered')


@case(mount=False, modes=('fresh',), remount=False)
def test_hook_that_reads_nothing(t):
    """It has answered when it ends, whether it wanted to know the question or not."""
    t.seed({f'{n}/asks': 'x' for n in range(20)})
    yield
    for answer_given, expected in (('allow once', 'x'), ('deny', 'EACCES')):
        write(t.policy_file, RULES + f'[ask cases]\ntimeout = 5\non_ask = sh -c "echo {answer_given}"\n')
        t.mount()
        eq([reads(t, f'{n}/asks').result() for n in range(20)], [expected] * 20, answer_given)
        t.umount()
    eq({r['operation'] for r in log(t) if r['kind'] == 'answer'}, {'allow', 'deny'}, 'the answers')


@case(mount=False, modes=('fresh',), remount=False)
def test_hook_that_is_not_there(t):
    """It is said up front, and not when the first question reaches nobody. So is one that goes away later."""
    t.seed({'asks': 'x'})
    yield
    write(t.path('plain'), 'no program\n')
    os.makedirs(t.path('bin'))
    program = t.path('bin/a-hook')
    found = {'PATH': t.path('bin') + ':' + os.environ['PATH']}
    def tried(code):
        """By everything that takes a profile."""
        for command in (['mount', '-n', t.name, '-p', t.policy_file, t.low, t.mnt], ['run', '-n', t.name, '-p', t.policy_file, t.low, '--', 'true'], ['profile', 'check', t.policy_file]):
            done = t.sbxfs(*command, code=code, env=found, cwd=t.dir)
            check(not code or f'{t.policy_file}:{RULES.count(chr(10)) + 2}' in done.err and 'on_ask' in done.err, f'where: {done.err}')
            if command[0] == 'mount' and not code:
                t.umount()
    for hook in ('/nonexistent', '"/nonexistent it" asks', 'nonexistent-hook --asks', t.path('plain'), t.path('bin'), 'bin/a-hook', 'a-hook'):
        write(t.policy_file, RULES + f'[ask cases]\non_ask = {hook}\n')
        tried(3)
    check(not os.path.exists(t.store()), 'a refused mount left a store')
    write(program, '#!/bin/sh\n')
    os.chmod(program, 0o755)
    for hook in (program + ' it', 'a-hook', program.lstrip('/')):
        write(t.policy_file, RULES + f'[ask cases]\non_ask = {hook}\n')
        tried(0)
    os.unlink(program)
    check('on_ask' in t.sbxfs('mount', '-n', t.name, t.low, t.mnt, code=3).err, 'a hook that was removed')
    write(t.policy_file, RULES)
    t.mount()


@case(mount=False, modes=('fresh',), remount=False)
def test_the_workspace_has_no_say(t):
    t.seed({'secret': 'mark', '.sbxfs.ini': '[profile w]\n[files w]\nask = more\n[ask w]\non_ask = sh -c "echo allow always"\n'})
    yield
    write(t.policy_file, RULES)
    check('[ask]' in t.mount(code=3).err, 'no reason given')


@asking('[ask cases]\ntimeout = 1\n')
def test_a_yes_opens_no_other_layer(t):
    """What is read-only for the workspace's own file stays so, and nobody is asked in vain."""
    t.seed({'secret': 'mark', '.sbxfs.ini': '[profile w]\n[files w]\nread = /secret\n'})
    yield
    eq(Doing(WRITE, t.m('secret')).result(), 'EROFS' if t.is_root else 'EACCES', 'a change')
    eq([r for r in log(t) if r['kind'] == 'question'], [], 'questions')
    eq(reads(t, 'secret').result(), 'EACCES', 'reading')
    eq([r['operation'] for r in log(t) if r['kind'] == 'question'], ['read'], 'questions')


@asking('[limits cases]\ndeletions_per_minute = 4\n')
def test_bulk_deletions_ask(t):
    t.seed({f'd/{i:02}': str(i) for i in range(12)})
    yield
    removing = Doing(trying('for n in sorted(os.listdir(a[0])):\n    os.unlink(a[0] + "/" + n)\nprint("done")'), t.m('d'))
    question = asked(t)[0]
    eq((question['kind'], question['operation'], question['subject']), ('deletions', 'unlink', 'd/04'), 'the fifth asks')
    check('deletions_per_minute = 4' in question['rule'], f'the reason: {question["rule"]}')
    answer(t, 'allow', question=question)
    # One yes is worth as many again.
    question = asked(t)[0]
    eq(question['subject'], 'd/08', 'the ninth asks')
    answer(t, 'deny', question=question)
    eq(removing.result(), 'EACCES', 'after a no')
    eq(names(t.m('d')), ['08', '09', '10', '11'], 'left')
    write(t.m('new'), 'x')
    over = Doing(trying('os.rename(a[0], a[1])\nprint("done")'), t.m('new'), t.m('d/08'))
    eq(asked(t)[0]['operation'], 'rename', 'a rename over a file')
    answer(t, 'allow', '--path')
    eq(over.result(), 'done', 'a rename over a file')
    t.shell('rm -r d')
    denied = log(t, '--denied')
    check([r['path'] for r in denied] == ['d/08'] and 'deletions_per_minute' in denied[0]['rule'], f'denials: {denied}')


@case(mount=False, modes=('fresh',), remount=False)
def test_privileged_manual(t):
    t.seed({'f': 'text', '.env': 'KEY=mark', '.git/config': 'c'})
    yield
    t.mount(policy='privileged-manual')
    eq(read(t.m('f')), b'text', 'reading is free')
    fails(('EACCES', 'EPERM'), read, t.m('.env'))
    changing = Doing(WRITE, t.m('f'))
    answer(t, 'deny')
    eq(changing.result(), 'EACCES', 'a change')
    changing = Doing(CREATE, t.m('new'))
    answer(t, 'allow')
    eq(changing.result(), 'done', 'a new file')
    eq(Doing(WRITE, t.m('.git/config')).result(), 'EROFS' if t.is_root else 'EACCES', 'what cannot be changed asks nothing')
    t.umount()
