# SPDX-License-Identifier: MIT
"""Attacks on what surrounds the view: its policy, its controls, its past states, and what the commands print. One trick a test."""
import socket

from guarded import *  # noqa: F403

OPEN = '[profile open]\n[files open]\nwrite = **\n[gate open]\nchecks = none\n'
STRICT = POLICY + '[gate cases]\nchecks = none\n'
CLOSED_LATER = {'x.key': MARK, 'd/x.key': MARK, 'shape.cfg': b'KEY=' + MARK + b'\n', 'ghost': MARK, 'pub': 'pub\n'}
later = case(policy=STRICT, modes=('fresh',), mount=False, workspace_changes=True)


def tightened(t, change):
    """The view of a sandbox in which @change was made while everything was allowed."""
    t.mount(policy=t.path('open.ini'))
    change()
    t.umount()
    t.mount()


def seed_later(t):
    t.seed(CLOSED_LATER)
    write(t.path('open.ini'), OPEN)


def prints(t, *arguments, code=None):
    """What a command prints, after a look for secrets in it."""
    done = t.sbxfs(*arguments, code=code)
    check(MARK not in done.bytes and MARK.decode() not in done.err, f'{short(arguments)} shows a secret')
    return done


def prints_nothing(t, *names_too):
    """No command shows a secret, or names what is denied."""
    for arguments in (['diff', t.name], ['diff', t.name, '--json'], ['diff', t.name, '--stat'], ['diff', t.name, '--name-status', '-z'], ['gate', t.name, '--json'], ['gate', t.name],
                      ['commit', t.name, '-n'], ['commit', t.name, '-n', '--json'], ['rollback', t.name, '-n'], ['status', t.name, '--json'], ['log', t.name, '--json']):
        done = prints(t, *arguments)
        for name in names_too if arguments[0] in ('diff', 'gate', 'commit') else ():
            check(name not in done.out, f'{short(arguments)} names {name}: {short(done.out)}')
    prints(t, 'diff', t.name, '--html', t.path('page.html'), code=0)
    page = read(t.path('page.html')).partition(b'<body')[2]
    for secret in (MARK, *(name.encode() for name in names_too)):
        check(page and secret not in page, f'the web page shows {secret}')
    os.unlink(t.path('page.html'))


# The policy


@case(policy=POLICY + '[gate cases]\nchecks = secrets\n', modes=('fresh',))
def test_workspace_policy_that_loosens(t):
    seed(t)
    t.seed({'.sbxfs.ini': '[profile w]\nextends = writable\n[files w]\nread = pub\nwrite = **\nread = free/\n[gate w]\nchecks = none\nsecret_paths = **\n'})
    yield
    for name in DENIED_FILES:
        denied(bytes_of, t.m(name))
    fails(REFUSED, os.unlink, t.m('locked/f'))
    fails(REFUSED, append, t.m('free/f'), 'x')  # it can close
    write(t.m('token.txt'), 'aws_access_key_id = AKIA' + 'ZQ3DPBX7LMN2RT4K' + '\n')
    eq(t.sbxfs('gate', t.name, '--json', code=1).json()['verdict'], 'refuse', 'the gate')
    os.unlink(t.m('token.txt'))
    intact(t)


@case(policy=STRICT, modes=('fresh',), workspace_changes=True)
def test_policy_made_by_the_agent(t):
    """Neither in the view nor committed does a policy file open anything; one that is no policy means no mount."""
    seed(t)
    yield
    write(t.m('.sbxfs.ini'), '[profile cases]\n[files cases]\nwrite = **\n')
    for name in ('cases.ini', 'policy.ini', 'base.ini'):
        write(t.m(name), '[profile cases]\n[files cases]\nwrite = **\n')
    os.chdir(t.mnt)
    for step in (t.remount, t.commit, t.remount):
        os.chdir('/')
        step()
        intact(t)
    for broken in ('[files w]\n', 'nonsense', '[profile w]\n[files w]\nopen = **\n'):
        write(t.m('.sbxfs.ini'), broken)
        t.commit()
        t.umount()
        t.mount(code=3)
        os.unlink(t.w('.sbxfs.ini'))
        t.mount()
        t.rollback()
    os.symlink('policy.ini', t.m('.sbxfs.ini'))
    t.commit()
    t.umount()
    t.mount(code=3)
    os.unlink(t.w('.sbxfs.ini'))


@case(policy=STRICT, modes=('fresh',), mount=False)
def test_profile_named_like_a_file_of_the_workspace(t):
    """A profile's name is looked for where profiles are, not in the directory that somebody happens to stand in."""
    seed(t)
    for name in ('workspace-edit-no-net', 'workspace-edit-no-net.ini', 'base.ini', 'writable.ini', 'mine.ini'):
        t.seed({name: '[profile workspace-edit-no-net]\n[files workspace-edit-no-net]\nwrite = **\n'})
    yield
    allow = ['-o', 'allow_other'] if t.is_root else []
    t.sbxfs('mount', '-n', t.name, '-p', 'workspace-edit-no-net', *allow, t.low, t.mnt, cwd=t.low)
    denied(bytes_of, t.m('.env'))
    denied(create, t.m('free/n.key'))
    t.umount()
    t.sbxfs('mount', '-n', t.name, '-p', 'mine', *allow, t.low, t.mnt, cwd=t.low, code=3)


# What is only used later is read at once, too.
SETTINGS = (('limits', 'memory = lots'), ('ask', 'timeout = soon'), ('ask', 'on_ask = "x'), ('audit', 'file = relative'), ('audit', 'keep = long'), ('run', 'home.read = ../x'),
            ('run', 'home.write = .a, /b'), ('run', 'command_log = perhaps'), ('run', 'output_log = all'), ('gate', 'checks = most'), ('gate', 'max_files = few'), ('gate', 'baseline = x'),
            ('gate', 'allow = re:('), ('network', 'allow = http://h/'))


@case(policy=STRICT, modes=('fresh',), mount=False)
def test_mistakes_in_a_policy(t):
    """Whatever is not understood: no mount, with the place of the mistake. So is a stored policy that somebody cut."""
    seed(t)
    yield
    head = '[profile cases]\n[files cases]\nwrite = **\n'
    for text in (head + 'denny = .env\n', head + 'deny = [a\n', head + 'deny = re:(\n', head + 'deny = re:a, b(\n', head + 'deny =\n', head + 'deny = a,,b\n', head + 'deny = ../x\n',
                 head + '[profile cases]\n', head + '[limit cases]\n', head + '[files other]\ndeny = x\n', '[profile cases]\nnocase = maybe\n', '[profile cases]\nextends = nothing\n',
                 head + 'deny = ' + 'x' * 70000 + '\n', head + 'deny .env\n', head.replace(']', '', 1), head + '\0', '',
                 *(f'{head}[{line[0]} cases]\n{line[1]}\n' for line in SETTINGS)):
        write(t.path('bad.ini'), text)
        done = t.mount(policy=t.path('bad.ini'), code=3)
        check('bad.ini' in done.err, f'no place: {done.err}')
        check('bad.ini' in t.sbxfs('profile', 'check', t.path('bad.ini'), code=3).err, 'profile check finds it, too')
    t.mount()
    t.umount()
    stored = os.path.join(t.store(), 'policy.ini')
    text = read(stored)
    for cut in (text[:len(text) // 2], text[:-20], b'', text.replace(b'deny', b'dony', 1)):
        write(stored, cut)
        t.sbxfs('mount', '-n', t.name, t.low, t.mnt, code=3)
    check(not t.is_mounted(), 'mounted')


@case(policy=STRICT, modes=('fresh',), mount=False)
def test_ten_thousand_rules(t):
    """Each of them counts, the last and an exception too."""
    lines = [f'deny = d{n}/*.secret-{n}' if n % 3 else f'deny = re:^d{n}/.*[.]secret-{n}$' for n in range(10000)]
    lines[5000] = 'deny = .env'
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n' + '\n'.join(lines) + '\nwrite = d9999/open.secret-9999\n')
    some = (0, 1, 2, 3, 4999, 5001, 7777, 9998, 9999)
    t.seed({f'd{n}/x.secret-{n}': MARK for n in some} | {f'd{n}/x.secret-{n + 1}': 'free' for n in some} | {'.env': MARK, 'd9999/open.secret-9999': 'free'})
    yield
    t.mount()
    for n in some:
        denied(bytes_of, t.m(f'd{n}/x.secret-{n}'))
        denied(create, t.m(f'd{n}/y.secret-{n}'))
        eq(read(t.m(f'd{n}/x.secret-{n + 1}')), b'free', 'what no rule names')
    denied(bytes_of, t.m('.env'))
    eq(read(t.m('d9999/open.secret-9999')), b'free', 'the exception')
    sweep(t)


@case(policy='[profile cases]\n[files cases]\nwrite = **\nread = slow-write*\nwrite = re:^slow-write(a|aa|aaa)+$\ndeny = re:^slow-deny(a|aa|aaa)+$\n')
def test_expressions_that_backtrack(t):
    """At the limit of steps an expression counts as a match where that closes, and as none where it would open."""
    slow = 'a' * 60 + '!'
    t.seed({'slow-deny' + slow: MARK, 'slow-write' + slow: 'read-only', 'slow-denyaaa': MARK, 'slow-writeaaa': 'free', 'slow-deny!': 'free'})
    yield
    denied(bytes_of, t.m('slow-deny' + slow))
    denied(bytes_of, t.m('slow-denyaaa'))
    fails(REFUSED, append, t.m('slow-write' + slow), 'x')
    fails(REFUSED, os.unlink, t.m('slow-write' + slow))
    append(t.m('slow-writeaaa'), 'x')
    append(t.m('slow-deny!'), 'x')
    denied(create, t.m('slow-deny' + 'a' * 70 + '?'))
    sweep(t)


# The controls


@fresh
def test_controls_are_not_in_the_view(t):
    seed(t)
    yield
    socket_path = t.path('run/sbxfs', t.name + '.sock')
    check(os.path.exists(socket_path), 'the socket is there')
    eq([oct(permissions(path)) for path in (socket_path, t.path('run/sbxfs'), t.store())], ['0o600', '0o700', '0o700'], 'modes')
    for directory, directories, files in os.walk(t.mnt):
        found = [name for name in directories + files if name.endswith(('.sock', '.db', '.db-wal', '.spool')) or name in ('policy.ini', 'objects')]
        check(not found, f'{found} in {directory}')
    for name in ('.sbxfs', '.snapshot', '.snapshots', '.zfs', 'proc', '@', '.control'):
        fails('ENOENT', os.lstat, t.m(name))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(t.m('mine.sock'))  # a name in the view is the view's own
    os.unlink(t.m('mine.sock'))
    intact(t)


@case(policy=STRICT, modes=('fresh',), mount=False)
def test_controls_inside_of_the_workspace(t):
    """Where the store or the socket would lie in the workspace, and so in the view, there is no sandbox."""
    seed(t)
    os.makedirs(t.w('inside'))
    os.chmod(t.w('inside'), 0o700)
    os.symlink(t.w('inside'), t.path('link'))
    yield
    allow = ['-o', 'allow_other'] if t.is_root else []
    for variable, places in (('XDG_STATE_HOME', (t.w('inside'), t.path('link'))), ('XDG_RUNTIME_DIR', (t.w('inside'),))):  # whose links are not followed
        for place in places:
            done = t.sbxfs('mount', '-n', 'x', '-p', t.policy_file, *allow, t.low, t.mnt, env={variable: place}, code=None)
            check(done.code == 2 and variable in done.err, f'{variable} in the workspace: {done.code}, {done.err}')
            check(not t.is_mounted(), 'mounted')
    t.sbxfs('mount', '-n', 'x', '-p', t.policy_file, *allow, t.path('run'), t.mnt, code=2)


@fresh
def test_control_socket_of_another_user(t):
    """Whoever gets to the socket, by a directory that is open by mistake, is not heard."""
    t.needs_root()
    seed(t)
    yield
    path = t.path('run/sbxfs', t.name + '.sock')
    for directory in (t.path('run'), t.path('run/sbxfs')):
        os.chmod(directory, 0o755)
    os.chmod(path, 0o666)

    def ask():
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(path)
            request = b'status\0' + bytes(1)  # (sa{sv}): a string and no arguments, with the offset of the string's end
            with contextlib.suppress(ConnectionError, BrokenPipeError):
                client.sendall(struct.pack('I', 9) + request + b'\x07')
                return str(len(client.recv(4096)))
        return '0'
    eq(ask() == '0', False, 'root is not heard: the test says nothing')
    eq(t.as_other(ask), '0', 'bytes that another user got')
    for directory in (t.path('run'), t.path('run/sbxfs')):
        os.chmod(directory, 0o700)


# Past states


@later
def test_denied_file_in_an_older_snapshot(t):
    """What was written when it was allowed is as closed as the rest, in each state and between them."""
    seed_later(t)
    yield

    def change():
        append(t.m('x.key'), MARK)
        write(t.m('new.key'), MARK)
        append(t.m('shape.cfg'), b'MORE=' + MARK + b'\n')
        append(t.m('ghost'), b'more')
        os.rename(t.m('d/x.key'), t.m('d/moved'))
        t.snapshot('older')
        os.unlink(t.m('x.key'))
        write(t.m('free'), 'free\n')
    tightened(t, change)
    prints_nothing(t, 'x.key', 'new.key', 'd/moved', 'ghost')
    for arguments in (['--to', 'older'], ['--from', 'older'], ['--from', 'older', '--json'], ['--to', 'older', '--', 'new.key']):
        prints(t, 'diff', t.name, *arguments)
    t.rollback('older')
    for name in ('x.key', 'new.key'):
        denied(bytes_of, t.m(name))
    denied(bytes_of, t.m('d/moved'))  # by the place it came from
    eq(read(t.m('shape.cfg')), SHAPE + b'MORE=<masked>\n', 'what is masked')
    check('ghost' not in names(t.mnt), 'what is hidden is listed')
    sweep(t)
    prints_nothing(t, 'x.key', 'new.key', 'd/moved', 'ghost')


@case(policy=STRICT.replace('hide = ghost,', 'hide = ghost*,'), modes=('fresh',), mount=False, workspace_changes=True)
def test_hidden_names_that_were_made(t):
    """In a directory so large that it is listed in pieces."""
    seed_later(t)
    yield
    tightened(t, lambda: grow(t.mnt, {f'many/{kind}{n}': '' for n in range(300) for kind in ('f', 'ghost')}))
    for _ in range(2):
        eq(names(t.m('many')), sorted(f'f{n}' for n in range(300)), 'the names')
    fails('ENOENT', os.lstat, t.m('many/ghost7'))


@later
def test_rollback_to_denied_contents(t):
    seed_later(t)
    yield
    tightened(t, lambda: [write(t.m(name), 'harmless\n') for name in ('x.key', 'd/x.key', 'shape.cfg', 'ghost')])
    t.rollback()
    for name in ('x.key', 'd/x.key'):
        denied(bytes_of, t.m(name))
    fails('ENOENT', bytes_of, t.m('ghost'))
    eq(read(t.m('shape.cfg')), SHAPE, 'what is masked')
    sweep(t)
    prints_nothing(t, 'x.key', 'new.key', 'd/moved', 'ghost')


@later
def test_names_of_deleted_denied_files(t):
    seed_later(t)
    yield
    tightened(t, lambda: ([os.unlink(t.m(name)) for name in ('x.key', 'd/x.key', 'ghost', 'shape.cfg')], write(t.m('pub'), 'new\n')))
    prints_nothing(t, 'x.key', 'ghost', 'shape')
    eq(t.name_status(), {'pub': 'M'}, 'the difference')
    t.commit()
    eq([read(t.w(name)) for name in CLOSED_LATER], [MARK, MARK, b'KEY=' + MARK + b'\n', MARK, b'new\n'], 'the workspace')


@later
def test_commit_of_what_may_not_be_changed(t):
    """Not by its name, not by a pattern, not with its directory."""
    seed_later(t)
    yield
    tightened(t, lambda: [append(t.m(name), 'more\n') for name in CLOSED_LATER])
    for paths in (['x.key'], ['shape.cfg'], ['ghost'], ['*.key'], ['d'], []):
        t.commit(paths=paths, code=None)
    eq([read(t.w(name)) for name in CLOSED_LATER], [MARK, MARK, b'KEY=' + MARK + b'\n', MARK, b'pub\nmore\n'], 'the workspace')


@case(policy=STRICT, modes=('fresh',), workspace_changes=True)
def test_commit_of_a_directory_that_holds_it(t):
    """A directory moved in the view takes nothing denied to a place where it is not, when that becomes real."""
    seed(t)
    yield
    os.rename(t.m('conf'), t.m('moved'))
    os.rename(t.m('a'), t.m('b'))
    write(t.m('moved/app/new'), 'new\n')
    prints_nothing(t, 'token', '.env')
    t.commit(code=None)
    for name in ('moved/app/token', 'conf/app/token', 'b/.env', 'a/.env', 'b/x.key', 'a/x.key'):
        fails(DENIED + ('ENOENT',), bytes_of, t.m(name))
    eq([os.path.exists(t.w(f'conf/app/{n}')) or os.path.exists(t.w(f'moved/app/{n}')) for n in ('token', 'pub')], [True] * 2, 'the files of the workspace')
    sweep(t)
    t.remount()
    sweep(t)


@case(policy=STRICT, modes=('fresh',))
def test_output_of_the_commands(t):
    """After all kinds of changes and refusals: patches, JSON, plans, the gate's report, excerpts of the audit."""
    seed(t)
    yield
    for name in DENIED_FILES + ['shape.cfg', 'ghost']:
        for call in (bytes_of, os.unlink, lambda p: append(p, 'x'), lambda p: os.rename(p, t.m('away'))):
            errno_of(call, t.m(name))
    os.rename(t.m('conf'), t.m('moved'))
    os.rename(t.m('a'), t.m('b'))
    append(t.m('b/pub'), 'more\n')
    append(t.m('vault/open/f'), 'more\n')
    t.snapshot('s')
    os.rename(t.m('moved'), t.m('conf'))
    prints_nothing(t, 'token', '.env', 'x.key', 'ghost')
    for arguments in (['diff', t.name, '--from', 's'], ['diff', t.name, '--to', 's', '--json'], ['log', t.name], ['log', t.name, '--denied', '--json'], ['why', '.env', t.name], ['list']):
        prints(t, *arguments)
    check('vault/open/f' in t.diff('--name-status').out, 'what is allowed again in a denied directory')
    t.rollback()
    intact(t)


@case(policy=STRICT, modes=('fresh',))
def test_names_that_steer_a_terminal(t):
    """A name, of a file or a program, moves no cursor and makes no line of its own in what a human reads."""
    seed(t)
    steering = 'a\x1b[2K\r\nM\tpub\x07\x9b1m\x7f'
    t.seed({steering + '.key': MARK})
    yield
    libc.prctl(15, ctypes.create_string_buffer(b'\x1b[31m\nM\tpub'))  # PR_SET_NAME
    write(t.m('free', steering), 'x\n')
    os.rename(t.m('pub'), t.m(steering + '2'))
    os.mkdir(t.m(steering + '.d'))
    for call in (bytes_of, os.unlink):
        errno_of(call, t.m(steering + '.key'))
    errno_of(create, t.m('free', steering + '.key'))
    t.snapshot('s')
    for arguments in (['diff', t.name], ['diff', t.name, '--stat'], ['diff', t.name, '--name-status'], ['gate', t.name, '--checks', 'all'], ['commit', t.name, '-n'], ['rollback', t.name, '-n'],
                      ['log', t.name], ['log', t.name, '--denied'], ['status', t.name], ['why', steering + '.key', t.name], ['snapshot', 'list', t.name],
                      ['diff', t.name, '--', 'nothing\x1b[2K'], ['rollback', t.name, '--to', 'x\x1b[2K'], ['why', 'x', 'no\x1b[2K']):
        done = t.sbxfs(*arguments, code=None)
        for stream in (done.bytes, done.err.encode('utf-8', 'surrogateescape')):
            check(not set(stream) & {0x1b, 0x07, 0x0d, 0x7f, 0x9b}, f'{short(arguments)} prints a control character: {short(stream)}')
            check(b'M\tpub' not in stream.splitlines(), f'{short(arguments)} prints a line that a name made: {short(stream)}')
    os.rename(t.m(steering + '2'), t.m('pub'))
    intact(t)


# In namespaces of its own, where /etc can have a managed profile that nobody else sees.
MANAGED = '''set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work
mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work none /etc || exit 77
mkdir -p /etc/sbxfs
run() {{ sbxfs run -q -n {name} {low} -- cat secret || echo refused; }}
sbxfs run -q -n {name} -p {policy} {low} -- cat secret
printf '[profile m]\\n[files m]\\nwrite = **\\ndeny = secret\\n' >/etc/sbxfs/m.ini
run
printf '[profile m' >/etc/sbxfs/m.ini
run
rm /etc/sbxfs/m.ini
run
'''


@case(policy='[profile cases]\n[files cases]\nwrite = **\n', modes=('fresh',), mount=False, root=True)
def test_a_managed_policy_made_later(t):
    """It holds for the sandboxes that were there before; one with a mistake is no mount for them, too."""
    t.seed({'secret': MARK + b'\n'})
    yield
    done = t.program('unshare', '-m', 'bash', '-c', MANAGED.format(name=t.name, low=t.low, policy=t.policy_file), code=None)
    if done.code == 77:
        t.skip('no overlay on /etc here')
    eq(done.out.split(), [MARK.decode(), 'refused', 'refused', MARK.decode()], f'what it could read: {done.err}')


@case(policy='[profile cases]\n[files cases]\nwrite = **\n', modes=('fresh',), mount=False, workspace_changes=True)
def test_a_workspace_policy_made_later(t):
    """The workspace's own file holds as it is at each mount, for runs and views; one with a mistake is no mount. What changed is said."""
    t.seed({'secret': MARK + b'\n', 'open': 'open\n'})
    yield
    def mount(code=0):
        return t.sbxfs('mount', '-n', t.name, t.low, t.mnt, code=code).err
    t.mount()
    eq(read(t.m('secret')), MARK + b'\n', 'what no rule closes')
    t.umount()
    write(t.w('.sbxfs.ini'), '[profile w]\n[files w]\nwrite = **\ndeny = secret\n[limits w]\nmemory = 1G\n')
    eq(t.sbxfs('run', '-q', '-n', t.name, t.low, '--', 'cat', 'open', 'secret', code=None).out, 'open\n', 'what a run reads')
    eq(mount(), '', 'what a mount says that changes nothing')
    fails('EACCES', read, t.m('secret'))
    t.umount()
    write(t.w('.sbxfs.ini'), '[profile w]\n[files w]\ndeny = secret, open\n[limits w]\nmemory = 1G\n')
    said = mount()
    for line in ('.sbxfs.ini', '+ [files] deny = open', '- [files] write = **'):
        check(line in said, f'{line} is missing: {said}')
    check('secret' not in said and 'memory' not in said, f'what did not change: {said}')
    fails('EACCES', read, t.m('open'))
    eq(t.sbxfs('why', 'open', t.name, '--json').json()['action'], 'deny', 'the rule in force')
    t.umount()
    for text in ('[files w]\ndeny = re:(\n', '[limits w]\nmemory = lots\n', '[gate w]\nchecks = some\n', '[ask w]\ntimeout = 1s\n'):
        write(t.w('.sbxfs.ini'), '[profile w]\n' + text)
        mount(code=3)
    write(t.w('.sbxfs.ini'), '[profile w]\n[files w]\ndeny = x\x1bc\n')
    said = mount()
    check('\x1b' not in said and 'x^[c' in said, f'what a terminal would obey: {said!r}')
    eq(read(t.m('secret')), MARK + b'\n', 'what the file no longer closes')
    t.umount()
    os.unlink(t.w('.sbxfs.ini'))
    check('- [files] deny = x' in mount(), 'a file that is gone is not told')
    t.umount()
    eq(mount(), '', 'what a mount says that changes nothing')
