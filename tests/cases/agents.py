# SPDX-License-Identifier: MIT
"""What agents are handed: the MCP server over a pipe, as a client of it speaks, and the hooks."""
import json
import os
import shutil
import subprocess

from harness.kit import *  # noqa: F403
from harness.view import case

POLICY = '[profile cases]\n[files cases]\nwrite = **\ndeny = *.deny\nhide = *.hid\nmask = *.mask\nscratch = tmp/\nread = /locked\n'
ruled = case(policy=POLICY, modes=('fresh',), remount=False)
once = case(modes=('fresh',), remount=False)
SECRET = 'MARK-not-a-real-secret'


class Client:
    """The smallest client there is: a line out, a line in."""

    def __init__(self, t, *target, version='2025-06-18', **named):
        self.process = subprocess.Popen(['sbxfs', 'mcp', *target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **{'cwd': '/', **named})
        self.number = 0
        self.start = self.ask('initialize', protocolVersion=version, capabilities={}, clientInfo={'name': 'case', 'version': '1'})
        self.send(jsonrpc='2.0', method='notifications/initialized')

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        code = self.process.wait(60)
        check(not rest and code == 0, f'at the end of the input: exit {code}, {short(rest)}')

    def send(self, **message):
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, line):
        self.process.stdin.write(line + b'\n')
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        self.number += 1
        self.send(jsonrpc='2.0', id=self.number, method=method, params=params)
        answer = self.receive()
        eq((answer['jsonrpc'], answer['id']), ('2.0', self.number), f'the frame of the answer to {method}')
        return answer

    def tool(self, name, /, **arguments):
        """The result of a call."""
        return self.ask('tools/call', name=name, arguments=arguments)['result']

    def object(self, name, /, **arguments):
        """What a tool answers as an object; and the text says the same."""
        result = self.tool(name, **arguments)
        eq(result['isError'], False, f'{name} {short(result)}')
        eq(json.loads(result['content'][0]['text']), result['structuredContent'], f'the text of {name}')
        return result['structuredContent']

    def diff(self, **arguments):
        """The head and the page of text."""
        result = self.tool('diff', **arguments)
        eq(result['isError'], False, f'diff {short(result)}')
        return json.loads(result['content'][0]['text']), result['content'][1]['text']


@once
def test_mcp_start_and_revisions(t):
    for wanted, got in (('2025-06-18', '2025-06-18'), ('2025-03-26', '2025-03-26'), ('2024-11-05', '2024-11-05'), ('2099-01-01', '2025-06-18')):
        with Client(t, t.name, version=wanted) as client:
            eq(client.start['result']['protocolVersion'], got, f'the revision for {wanted}')
            eq((client.start['result']['serverInfo']['name'], client.start['result']['capabilities']), ('sbxfs', {'tools': {}}), 'who answers')
    with Client(t, t.name) as client:
        eq(client.ask('initialize')['error']['code'], -32602, 'without a revision')
        eq(client.ask('ping')['result'], {}, 'ping')


@once
def test_mcp_tools_look_and_keep_and_do_no_more(t):
    with Client(t, t.name) as client:
        tools = {tool['name']: tool for tool in client.ask('tools/list')['result']['tools']}
        eq(sorted(tools), ['diff', 'snapshot', 'status', 'why'], 'the tools')
        for name, tool in tools.items():
            check(tool['description'] and tool['inputSchema']['type'] == 'object', f'{name} is described')
            eq(tool['annotations']['readOnlyHint'], name != 'snapshot', f'the hint of {name}')
        for name in ('commit', 'rollback', 'allow', 'log', 'destroy', 'umount', '', '--help'):
            eq(client.ask('tools/call', name=name, arguments={})['error']['code'], -32602, f'the tool {name!r}')


@once
def test_mcp_answers_bad_input_and_goes_on(t):
    with Client(t, t.name) as client:
        for line, code in ((b'{', -32700), (b'\xff', -32700), (b'[' * 500_000 + b']' * 500_000, -32700), (b'x' * 2_000_000, -32600), (b'{}', -32600), (b'[]', -32600)):
            client.send_bytes(line)
            eq(client.receive()['error']['code'], code, f'for {short(line)}')
        for method in ('no/such', 'resources/list', 'tools/Call', ''):
            eq(client.ask(method)['error']['code'], -32601, f'the method {method}')
        client.send(jsonrpc='2.0', method='no/such')
        client.send(jsonrpc='2.0', method='notifications/cancelled', params={'requestId': 1})
        for name, arguments in (('why', {}), ('why', {'path': 5}), ('why', {'path': 'f', 'more': 1}), ('diff', {'paths': 'f'}), ('diff', {'paths': [1]}), ('diff', {'format': 'html'}),
                                ('diff', {'offset': -1}), ('diff', {'limit': 1}), ('diff', {'limit': 10**9}), ('diff', {'limit': '5000'}), ('diff', {'from': {}}), ('status', {'target': 'other'}),
                                ('snapshot', {}), ('snapshot', {'action': 'delete', 'name': 's'}), ('snapshot', {'action': 'create'}), ('snapshot', {'action': 'create', 'name': '--help'}), ('status', [])):
            eq(client.ask('tools/call', name=name, arguments=arguments)['error']['code'], -32602, f'{name} {arguments}')
        eq(client.ask('ping')['result'], {}, 'ping after all that')


@once
def test_mcp_status_snapshot_and_why(t):
    t.seed({'f': 'f'})
    yield
    with Client(t, t.name) as client:
        eq(client.object('status')['changes'], 0, 'changes')
        write(t.m('f'), 'changed')
        status = client.object('status')
        live = ('messages', 'disk')  # grow with each look
        eq({k: v for k, v in status.items() if k not in live}, {k: v for k, v in t.status().items() if k not in live}, 'the status against the command')
        eq(client.object('snapshot', action='create', name='kept')['created'], 'kept', 'the snapshot')
        eq([s['name'] for s in client.object('snapshot', action='list')['snapshots']], ['kept'], 'snapshots')
        eq([s['name'] for s in t.sbxfs('snapshot', 'list', t.name, '--json').json()['snapshots']], ['kept'], 'snapshots of the command')
        again = client.tool('snapshot', action='create', name='kept')
        check(again['isError'] and 'kept' in again['content'][0]['text'], f'a name that is taken: {short(again)}')
        eq((client.object('why', path='f', op='write')['allowed'], client.object('why', path='-x')['path']), (True, '-x'), 'why')
        check(client.tool('why', path='../out')['isError'], 'a path outside')
        check(client.tool('why', path='f', op='mount')['isError'], 'no such operation')


@once
def test_mcp_pages_of_a_diff(t):
    t.seed({f'gone/{i:04}': 'x\n' for i in range(600)} | {'text': 'old\n'})
    yield
    t.shell('rm -r gone')
    write(t.m('text'), ''.join(f'{i} \u00e9\u20ac\U0001f600\n' for i in range(4000)))
    write(t.m('long'), '\U0001f600' * 3000)
    want = t.diff().bytes.decode()
    with Client(t, t.name) as client:
        for limit in (1024, 5001, 262144):
            head, page = client.diff(limit=limit)
            eq(head['digest'], t.diff('--json').json()['digest'], 'the digest')
            eq([path for path in head['deleted'] if path != 'gone'], [f'gone/{i:04}' for i in range(600)], 'every deletion is told')
            eq(head['size'], len(want.encode()), 'the size')
            pages = [page]
            while 'next_offset' in head:
                check(0 < len(page.encode()) <= limit, f'{len(page.encode())} bytes of at most {limit}')
                head, page = client.diff(limit=limit, offset=head['next_offset'])
                check('deleted' not in head, 'only the first page has the list')
                pages.append(page)
            check(''.join(pages) == want, f'the pages of {limit} bytes make the patch')
        head, page = client.diff(limit=1024, offset=10**9)
        eq((page, 'next_offset' in head), ('', False), 'behind the end')
        eq(client.diff(format='stat', limit=262144)[1], t.diff('--stat').out, 'the table')
        eq(client.diff(format='name-status', limit=262144)[1], t.diff('--name-status').out, 'the names')
        head, page = client.diff(paths=['text'])
        eq((head['deleted'], head['summary']['changes']), ([], 1), 'one path')
        t.snapshot('s')
        eq(client.diff(**{'from': 's'})[0]['summary']['changes'], 0, 'since a snapshot')
        check(client.tool('diff', paths=['no-such'])['isError'], 'a path that is nowhere')
        check(client.tool('diff', to='no-such')['isError'], 'a snapshot that is none')


@ruled
def test_mcp_shows_nothing_that_the_view_does_not(t):
    """What the owner commits to the rules after it was in a diff is gone from it, too."""
    t.seed({'a.deny': SECRET, 'b.hid': SECRET, 'c.mask': f'KEY={SECRET}\n', 'd': 'd\n', 'tmp/t': SECRET, 'locked': 'l\n'})
    yield
    write(t.m('d'), 'changed\n')
    write(t.m('tmp/t'), SECRET + ' again')
    with Client(t, t.name) as client:
        for arguments in ({}, {'format': 'stat'}, {'format': 'name-status'}, {'paths': ['d', 'tmp']}):
            head, page = client.diff(**arguments)
            check(SECRET not in page and 'tmp' not in page and '.hid' not in page and head['summary']['changes'] == 1, f'{arguments}: {short(page)}')
        for path, action in (('a.deny', 'deny'), ('b.hid', 'hide'), ('c.mask', 'mask'), ('locked', 'read')):
            answer = client.object('why', path=path, op='write')
            eq((answer['action'], answer['allowed']), (action, False), path)
            check(SECRET not in json.dumps(answer), path)
        for name in ('a.deny', 'c.mask', 'b.hid'):
            check(SECRET not in json.dumps(client.tool('diff', paths=[name])), f'the diff of {name}')


@once
def test_mcp_finds_its_sandbox_and_says_when_there_is_none(t):
    with Client(t, cwd=t.mnt) as client:
        eq(client.object('status')['sandbox'], t.name, 'by the current directory')
    with Client(t, 'no-such-sandbox') as client:
        result = client.tool('status')
        check(result['isError'] and 'no-such-sandbox' in result['content'][0]['text'], short(result))
    inside = t.sbxfs('mcp', t.name, code=10, env={'SBXFS': '1'})
    check('confined' in inside.err and 'outside' in inside.err and not inside.out, f'in a confined run: {short(inside.err)}')


@once
def test_mcp_outlives_the_view(t):
    with Client(t, t.name) as client:
        write(t.m('n'), 'n')
        t.umount()
        eq(client.object('status')['state'], 'unmounted', 'the state')
        check('n\n' in client.diff(format='name-status')[1], 'the changes that are kept')
        t.mount()
        eq(client.object('status')['state'], 'mounted', 'the state after another mount')


# Hooks and what else is shipped for agents


def shipped(*parts):
    """What `meson install` has put beside the program."""
    return os.path.join(os.path.dirname(os.path.dirname(shutil.which('sbxfs'))), 'share/sbxfs', *parts)


def hook(t, event, cwd, code=0, data=None, env=None, **fields):
    text = data if data is not None else json.dumps({'session_id': 's', 'hook_event_name': event, 'cwd': cwd, **fields}).encode()
    return t.program(shipped('hooks/sbxfs-hook'), data=text, cwd=cwd if data is not None else '/', code=code, env=env)


def snapshots(t):
    return [s['name'] for s in t.sbxfs('snapshot', 'list', t.name, '--json').json()['snapshots']]


@once
def test_the_hook_keeps_the_state_before_a_tool(t):
    t.seed({'d/e/f': 'before'})
    yield
    for event, tool in (('PreToolUse', 'Bash'), ('BeforeTool', 'write_file'), ('PreToolUse', 'mcp__x/y z')):
        done = hook(t, event, t.m('d/e'), tool_name=tool, tool_input={'command': 'rm -rf "tool_name": "none"'})
        check(not done.out and not done.err, f'silent: {short(done.out + done.err)}')
    made = snapshots(t)
    eq([name.split('-2')[0] for name in made], ['before-Bash', 'before-write_file', 'before-mcp__x-y-z'], f'the snapshots {made}')
    write(t.m('d/e/f'), 'after')
    t.rollback(made[0])
    eq(read(t.m('d/e/f')), b'before', 'what was kept')


@once
def test_the_hook_stops_a_tool_that_it_cannot_secure(t):
    t.seed({'f': 'f'})
    yield
    for where in (t.low, t.path('tmp')):
        done = hook(t, 'PreToolUse', where, tool_name='Bash', code=2)
        check(where in done.err and 'view' in done.err, f'the reason: {short(done.err)}')
        warned = hook(t, 'PreToolUse', where, tool_name='Bash', env={'SBXFS_HOOK': 'open'})
        check(where in warned.err, f'the warning: {short(warned.err)}')
    for data in (b'', b'no json', b'[]', b'{}', b'{"hook_event_name": 5}', b'\xff'):
        check('no JSON' in hook(t, None, t.mnt, data=data, code=2).err, f'for {data}')
    bin_without = t.path('bin')
    os.mkdir(bin_without)
    os.symlink('/usr/bin/python3', os.path.join(bin_without, 'python3'))
    check('sbxfs' in hook(t, 'PreToolUse', t.mnt, tool_name='Bash', code=2, env={'PATH': bin_without}).err, 'without the program')
    eq(snapshots(t), [], 'none of these made a snapshot')
    hook(t, 'PreToolUse', t.low, tool_name='Bash', env={'SBXFS': '1'})
    eq(snapshots(t), [], 'in a confined run it does nothing')


@once
def test_the_hook_tells_what_changed_and_stops_nobody(t):
    t.seed({f'gone{i:02}': 'g' for i in range(60)} | {'kept': 'k', 'moved': 'this file is moved\n'})
    yield
    t.shell('rm gone*; mv moved new-name; echo more >>kept; echo x >new')
    for event in ('Stop', 'SessionEnd', 'AfterAgent'):
        message = json.loads(hook(t, event, t.mnt).out)['systemMessage']
        check(message.startswith('sbxfs: 63 changed paths'), f'the count: {short(message)}')
        eq([line.split(': ')[1] for line in message.splitlines() if 'deleted' in line], [f'gone{i:02}' for i in range(60)], 'every deletion is told')
        check(f'sbxfs commit {t.name}' in message, 'how to go on')
    done = hook(t, 'Stop', t.path('tmp'))
    check(not done.out and 'view' in done.err, f'elsewhere: {short(done.err)}')


@case(mount=False, modes=('fresh',))
def test_what_is_shipped_for_agents_is_sound(t):
    yield
    directory = shipped('integrations')
    files = names(directory)
    for name in files:
        text = read(os.path.join(directory, name)).decode()
        if name.endswith('.ini'):
            done = t.sbxfs('profile', 'check', os.path.join(directory, name))
            profile = name[:-len('.ini')]
            check(f'[run {profile}]' in text and f'[network {profile}]' in text, f'{name} says what it opens')
            shown = t.sbxfs('profile', 'show', profile, env={'SBXFS_CONFIG': os.path.join(directory, name)}).out
            check('.env' in shown and 'default = deny' in shown, f'{name} keeps the denials of the shipped profiles: {short(shown)} {done.err}')
        elif name.endswith('.json') and name != 'vscode.tasks.json':
            json.loads(text)
        for command in [line.split('"command": "')[1].split('"')[0] for line in text.splitlines() if '"command": "/' in line]:
            check(os.access(shipped('hooks', os.path.basename(command)), os.X_OK), f'{name} calls {command}')
    eq(sum(name.endswith('.ini') for name in files), 4, 'profiles')
    comments = [line for line in read(os.path.join(directory, 'vscode.tasks.json')).decode().splitlines() if not line.strip().startswith('//')]
    eq([task['command'] for task in json.loads('\n'.join(comments))['tasks']], ['sbxfs'] * 4, 'the tasks of VS Code')
