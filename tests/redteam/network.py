# SPDX-License-Identifier: MIT
"""The network of a confined run: what the profile lets through arrives, with real programs, and nothing else does.

The servers listen on the host's loopback. "localhost" stands for any name that leads to an address which is nobody's on the internet: it is
in every hosts(5), so nothing needs to be told to the proxy, which has no such way in. What takes a resolver that lies (rebinding), or the ports
80 and 443, is in tests/unit/test-net-proxy.c.
"""
import base64
import contextlib
import hashlib
import http.server
import io
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness.kit import *  # noqa: F403,E402
from harness.view import case, is_dead  # noqa: E402
from redteam import attack, nothing_left, once, run, stopped, succeeds, wait_until, without  # noqa: E402

# The programs go to the proxy for localhost, too.
DIRECT = 'export no_proxy= NO_PROXY= npm_config_noproxy=; '


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with a mark; keeps what it was asked."""

    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        body = self.server.answer(self)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        length = int(self.headers['Content-Length'])
        self.posted = self.rfile.read(length)
        self.do_GET()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """The default queue of 5 makes the kernel drop what comes at once, which a slow machine takes for minutes to repeat."""

    daemon_threads = True
    request_queue_size = 512


@contextlib.contextmanager
def serving(answer=lambda request: b'MARK of ' + request.path.encode(), certificate=None):
    server = Server(('127.0.0.1', 0), Handler)
    server.answer, server.seen, server.port = answer, [], server.server_port
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def policy(t, *lines):
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\n[network cases]\n' + ''.join(line + '\n' for line in lines))
    if os.path.exists(t.path('state/sbxfs', t.name)):
        t.sbxfs('destroy', '--force', t.name)


def open_to(t, server):
    policy(t, f'allow = localhost:{server.port}', f'allow = 127.0.0.1:{server.port}')


def shell(t, script, **named):
    return run(t, 'bash', '-c', DIRECT + script, **named)


def requests(t, operation='request'):
    lines = t.sbxfs('log', t.name, '--op', operation, '--json').out.splitlines()
    return [json.loads(line) for line in lines]


def needs(t, program):
    if not shutil.which(program, path='/usr/bin:/bin:/usr/local/bin'):
        t.skip(f'there is no {program}')


# What is let through


@once
def test_curl(t):
    needs(t, 'curl')
    yield
    with serving() as server:
        open_to(t, server)
        url = f'http://localhost:{server.port}/x'
        for options in ('', '-p', '--socks5-hostname 127.0.0.1:3128', '--proxy socks5h://127.0.0.1:3128', '-X POST -d a=b', '-H "Transfer-Encoding: chunked" -d a=b -X POST -H "Content-Length;"'):
            if 'chunked' in options:
                continue
            eq(shell(t, f'curl -sS {options} {url}').out, 'MARK of /x', f'curl {options}')
        done = shell(t, f'curl -sS {url} {url}')
        eq(done.out, 'MARK of /xMARK of /x', 'two requests of one curl')
        check('network: requests: 2, refused: 0' in done.err, f'summary: {done.err}')
        records, ends = requests(t), requests(t, 'request-end')
        eq({r['path'] for r in records}, {f'localhost:{server.port}'}, 'where to')
        eq({(r['verdict'], r['errno'], r['program']) for r in records}, {('allow', 0, 'curl')}, 'verdict and program')
        check(all(r['rule'].endswith(f'policy.ini:6: allow = 127.0.0.1:{server.port}') and r['pid'] > 1 for r in records), f'rule: {records[0]}')
        check(all('address=127.0.0.1' in r['detail'] and 'client=curl' in r['detail'] for r in records), f'detail: {records[0]}')
        eq(sorted({r['detail'].split()[0] for r in records}), ['protocol=connect', 'protocol=http', 'protocol=socks5'], 'protocols')
        eq(len(ends), len(records), 'ends')
        check(all(' up=' in r['detail'] and ' down=0 ' not in r['detail'] and ' ms=' in r['detail'] for r in ends), f'end: {ends[0]}')
    nothing_left(t)


@once
def test_git(t):
    """A smart clone over HTTP, and one from a host that no rule has."""
    backend = os.path.join(t.program('git', '--exec-path').out.strip(), 'git-http-backend')
    if not os.path.exists(backend):
        t.skip('there is no git-http-backend')
    t.program('git', 'init', '-q', t.path('origin'))
    write(t.path('origin/file'), 'content\n')
    t.program('git', '-C', t.path('origin'), 'add', 'file')
    t.program('git', '-C', t.path('origin'), 'commit', '-q', '-m', 'first')

    def answer(request):
        path, _, query = request.path.partition('?')
        env = {**os.environ, 'GIT_PROJECT_ROOT': t.dir, 'GIT_HTTP_EXPORT_ALL': '1', 'PATH_INFO': path, 'QUERY_STRING': query, 'REQUEST_METHOD': request.command,
               'CONTENT_TYPE': request.headers.get('Content-Type', ''), 'GIT_PROTOCOL': request.headers.get('Git-Protocol', ''),
               'HTTP_CONTENT_ENCODING': request.headers.get('Content-Encoding', '')}
        done = subprocess.run([backend], input=getattr(request, 'posted', b''), env=env, capture_output=True, check=True)
        head, _, body = done.stdout.partition(b'\r\n\r\n')
        request.send_header = lambda key, value, send=request.send_header: send(key, value)
        request.content_type = dict(line.split(': ', 1) for line in head.decode().split('\r\n'))['Content-Type']
        return body

    class GitHandler(Handler):
        def end_headers(self):
            if hasattr(self, 'content_type'):
                self.send_header('Content-Type', self.content_type)
            super().end_headers()

    yield
    with serving(answer) as server:
        server.RequestHandlerClass = GitHandler
        open_to(t, server)
        done = shell(t, f'git clone -q http://localhost:{server.port}/origin copy && cat copy/file')
        eq(done.out, 'content\n', 'a clone')
        check(any('client=git' in r['detail'] for r in requests(t)), 'git is known')
        done = shell(t, f'git clone -q http://other.example:{server.port}/origin other', code=128)
        check('403' in done.err, f'what git says: {done.err}')
        check(f'network: refused other.example:{server.port} by no rule of profile cases' in done.err, f'the summary: {done.err}')
    nothing_left(t)


@once
def test_npm(t):
    """An install from a registry; the same with its host left out names the rule, and is in the audit."""
    needs(t, 'npm')
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w:gz') as tar:
        for name, content in (('package/package.json', b'{"name": "small-thing", "version": "1.2.3"}'), ('package/index.js', b'module.exports = 7\n')):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    tarball = data.getvalue()
    integrity = 'sha512-' + base64.b64encode(hashlib.sha512(tarball).digest()).decode()

    def answer(request):
        if request.path.endswith('.tgz'):
            return tarball
        url = f'http://localhost:{request.server.port}/small-thing/-/small-thing-1.2.3.tgz'
        version = {'name': 'small-thing', 'version': '1.2.3', 'dist': {'tarball': url, 'integrity': integrity}}
        return json.dumps({'name': 'small-thing', 'dist-tags': {'latest': '1.2.3'}, 'versions': {'1.2.3': version}}).encode() if request.path == '/small-thing' else None

    yield
    with serving(answer) as server:
        install = f'npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --registry http://localhost:{server.port}/ small-thing'
        open_to(t, server)
        shell(t, f'{install} && node -e "process.exit(require(\'small-thing\') === 7 ? 0 : 1)"')
        check(any('client=npm' in r['detail'] for r in requests(t)), f'npm is known: {requests(t)}')
        policy(t, 'allow = registry.example')
        done = shell(t, install, code=1)
        check('403 Refused by sbxfs (no rule of profile cases)' in done.err, f'what npm says: {done.err}')
        check(f'network: refused localhost:{server.port} by no rule of profile cases' in done.err, f'the rule: {done.err}')
        eq({(r['path'], r['verdict'], r['rule'], r['errno']) for r in requests(t)}, {(f'localhost:{server.port}', 'deny', 'no rule of profile cases', 13)}, 'the audit')
    nothing_left(t)


@once
def test_tls(t):
    """What TLS asks for is what CONNECT asked for."""
    needs(t, 'curl')
    needs(t, 'openssl')
    t.program('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', t.path('key.pem'), '-out', t.path('cert.pem'))
    write(t.path('both.pem'), read(t.path('key.pem')) + read(t.path('cert.pem')))
    yield
    with serving(certificate=t.path('both.pem')) as server:
        open_to(t, server)
        eq(shell(t, f'curl -sSk https://localhost:{server.port}/x').out, 'MARK of /x', 'TLS')
        done = shell(t, f'curl -sSk --connect-to evil.example:443:localhost:{server.port} https://evil.example/x', code=35)
        check('unrecognized name' in done.err, f'what curl says: {done.err}')
        eq(len(server.seen), 1, 'requests that arrived')
        eq([(r['verdict'], r['errno']) for r in requests(t, 'request-end')], [('allow', 0), ('deny', 13)], 'the audit')


# What is not


@once
def test_attacks_through_the_proxy(t):
    yield
    with serving() as server:
        policy(t, f'allow = localhost:{server.port}, *.example:{server.port}, 10.0.0.0/8:{server.port}, 0.0.0.0/0:*')
        results = attack(t, 'proxy', server.port)
        stopped(results, 'http 127.0.0.1', 'connect localhost', 'connect [::ffff:127.0.0.1]', 'socks ipv4', 'metadata', 'port 22', 'itself', 'another Host')
        eq({what: result for what, result in results.items() if result not in ('EACCES', 'ECONNREFUSED')}, {}, 'refused by')
        eq(server.seen, [], 'what arrived')
        records = requests(t)
        allowed = [r for r in records if r['errno'] != 13]
        eq([r['path'] for r in allowed], ['93.184.216.34:443'] * len(allowed), 'let through')
        eq(len(records), len(results), 'each of them is in the audit')
        check(any('the-secret-is-hunter2.evil.example:443' == r['path'] and r['rule'] == 'no rule of profile cases' for r in records), 'the name that tells')
        check(any(r['path'].startswith('2130706433') for r in records), f'what is no host is named: {short(sorted(r["path"] for r in records))}')
        eq(len(t.sbxfs('log', t.name, '--denied').out.splitlines()), len(records) - len(allowed), 'log --denied')
        open_to(t, server)
        results = attack(t, 'proxy', server.port)
        succeeds(results, 'http 127.0.0.1', 'http localhost', 'connect localhost', 'socks ipv4', 'socks localhost', 'http [::ffff:127.0.0.1]')
        stopped({what: result for what, result in results.items() if 'Host' in what or '@' in what or '2130706433' in what or what in ('port 22', 'itself', 'two requests')}, 'another Host', 'two requests')


@once
def test_ways_beside_the_proxy(t):
    yield
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(('192.0.2.1', 9)) if os.path.exists('/proc/net/route') and len(read('/proc/net/route').splitlines()) > 1 else None
        address = s.getsockname()[0]
    with serving() as server:
        open_to(t, server)
        arguments = ('beside_the_proxy', server.port, address)
        stopped(attack(t, *arguments), 'loopback', 'address', 'internet', 'metadata', 'name server 8.8.8.8', 'a name', 'name servers')
        script = 'import socket; s = socket.create_connection(("127.0.0.1", int(__import__("sys").argv[1]))); print("got")'
        succeeds({'loopback': t.program('/usr/bin/python3', '-c', script, str(server.port)).out}, 'loopback')


@once
def test_without_a_namespace(t):
    """Where the proxy's socket cannot be made in a namespace of the run's own, nothing is run."""
    yield
    policy(t, 'allow = a.example')
    done = run(t, 'touch', t.w('ran'), code=10, env=without(t, '--unshare-net'))
    check('its way to the network could not be made' in done.err, f'the reason: {done.err}')
    eq(t.diff('--name-status').out, '', 'it ran in the view')
    nothing_left(t)


@once
def test_off(t):
    """Without anything to let through, or with --net off, nobody listens inside."""
    needs(t, 'curl')
    yield
    script = 'env | grep -i proxy; exec 3<>/dev/tcp/127.0.0.1/3128'
    with serving() as server:
        policy(t, 'default = deny')
        check('Connection refused' in run(t, 'bash', '-c', script, code=1).err, 'no rule lets through')
        open_to(t, server)
        done = run(t, 'bash', '-c', script, options=('--net', 'off'), code=1)
        check('Connection refused' in done.err and not done.out, f'--net off: {done.out}{done.err}')
        check('http_proxy=http://127.0.0.1:3128' in run(t, 'bash', '-c', script).out, 'by the profile')
        policy(t, 'default = deny')
        done = run(t, 'bash', '-c', DIRECT + f'curl -sS http://localhost:{server.port}/', options=('--net', 'allowlist'))
        check('lets nothing through' in done.err and 'default = deny' in done.out, f'allowlist without one: {done.out}{done.err}')
        eq(server.seen, [], 'what arrived')


@once
def test_a_human_is_asked(t):
    """By the questions of the view, with the same answers as for a file."""
    needs(t, 'curl')
    yield
    with serving() as server:
        policy(t, f'ask = localhost:{server.port}', f'ask = 127.0.0.1:{server.port}')
        where = f'localhost:{server.port}'
        for verdict, options, want in (('deny', (), '403'), ('allow', (), '200'), ('allow', ('--always',), '200'), (None, (), '200')):
            command = ['sbxfs', 'run', '-n', t.name, *(['-p', t.policy_file] if not t.is_mounted(t.path('run/sbxfs', t.name, 'mnt')) else []), t.low, '--', 'bash', '-c', DIRECT + f'curl -s -o /dev/null -w "%{{http_code}}" http://{where}/x']
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            subjects = set()
            while verdict and process.poll() is None:
                asked = t.sbxfs('ask', 'list', t.name, '--json', code=None)
                for question in asked.json()['questions'] if asked.code == 0 else ():
                    subjects.add(question['subject'])
                    t.sbxfs('ask', verdict, str(question['id']), t.name, *options, code=(0, 7))
                time.sleep(0.05)
            out, err = process.communicate(timeout=60)
            eq(out.decode(), want, f'{verdict} {options}: {err.decode()[-300:]}')
            check(not verdict or where in subjects, f'asked about {subjects}')
        eq(len(server.seen), 3, 'requests that arrived')
        answers = [json.loads(line) for line in t.sbxfs('log', t.name, '--json').out.splitlines()]
        eq({r['operation'] for r in answers if r['kind'] == 'answer'}, {'allow', 'deny'}, 'answers in the audit')


@once
def test_a_mistake_is_no_run(t):
    yield
    for entry in ('https://a.example', '127.1', '10.0.0.1/8', 'a..b', 'a.example:http'):
        policy(t, f'allow = {entry}')
        check('policy.ini:5: ' in run(t, 'true', code=3).err, f'{entry}: no line')


@case(mount=False, modes=('fresh',), workspace_changes=True, timeout=240)
def test_workspace_can_only_close(t):
    t.seed({'.sbxfs.ini': ''})
    needs(t, 'curl')
    yield
    with serving() as server:
        write(t.w('.sbxfs.ini'), f'[profile w]\n[network w]\nallow = localhost:{server.port}, 127.0.0.1:{server.port}\n')
        policy(t, 'allow = other.example')
        check('no rule of profile cases' in shell(t, f'curl -sS http://localhost:{server.port}/').out, 'a workspace that opens')
        write(t.w('.sbxfs.ini'), '[profile w]\n[network w]\ndeny = localhost\n')
        open_to(t, server)
        check('.sbxfs.ini:3: deny = localhost' in shell(t, f'curl -sS http://localhost:{server.port}/').out, 'a workspace that closes')


def children(pid):
    return [int(p) for task in os.listdir(f'/proc/{pid}/task') for p in read(f'/proc/{pid}/task/{task}/children').split()]


def proxy_of(pid):
    for child in children(pid):
        with contextlib.suppress(OSError):
            if read(f'/proc/{child}/comm') == b'sbxfs-net\n':
                return child
    return None


@once
def test_the_process_of_the_proxy(t):
    """It has as little as can be, and ends with the run, however that ends; open connections are in the audit."""
    needs(t, 'curl')
    yield
    held = threading.Event()

    def answer(_):
        held.wait(60)
        return b''

    with serving(answer) as server:
        open_to(t, server)
        command = ['sbxfs', 'run', '-n', t.name, '-p', t.policy_file, t.low, '--', 'bash', '-c', DIRECT + f'exec curl -s http://localhost:{server.port}/']
        for number in (signal.SIGKILL, signal.SIGTERM):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            arrived = len(server.seen)
            wait_until(lambda: len(server.seen) > arrived, 'the request arrives')
            proxy = proxy_of(process.pid)
            status = dict(line.split(':\t', 1) for line in read(f'/proc/{proxy}/status').decode().splitlines() if ':\t' in line)
            eq((status['NoNewPrivs'], status['Seccomp'], status['CapEff'], status['CapPrm']), ('1', '2', '0' * 16, '0' * 16), 'what the proxy may')
            check(not t.is_root or status['Uid'].split()[1] == '65534', f'its user: {status["Uid"]}')
            process.send_signal(number)
            process.wait()
            wait_until(lambda: is_dead(proxy), f'the end of the proxy after signal {number}')
            nothing_left(t)
        eq(len(requests(t)), 2, 'requests in the audit')
        check(requests(t, 'request-end'), 'an end in the audit, where there was time for it')
        held.set()


@once
def test_many_connections(t):
    """More than the proxy takes at once wait, and all are answered; each ends by itself."""
    yield
    script = '''
import socket, sys
port, count = int(sys.argv[1]), 300
all = [socket.create_connection(("127.0.0.1", 3128), 60) for _ in range(count)]
good = 0
for s in reversed(all[250:]): s.close()
for s in all[:250]:
    s.settimeout(60)
    s.sendall(f"GET http://localhost:{port}/ HTTP/1.1\\r\\nHost: localhost:{port}\\r\\n\\r\\n".encode())
for s in all[:250]:
    answer = b""
    while (data := s.recv(4096)): answer += data
    good += b"MARK" in answer
print(good)'''
    with serving() as server:
        open_to(t, server)
        eq(run(t, '/usr/bin/python3', '-c', script, str(server.port)).out, '250\n', 'answers')
