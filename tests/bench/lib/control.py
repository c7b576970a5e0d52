# SPDX-License-Identifier: MIT
"""Talks to a mounted view over its control socket: what `sbxfs` itself does, without the start of a process around it.

The wire format is fs/control.h's: a 32-bit length and a serialised GVariant. Only the types that occur there are known here.
"""
import socket
import struct

FIXED = {'y': ('B', 1), 'b': ('B', 1), 'n': ('h', 2), 'q': ('H', 2), 'i': ('i', 4), 'u': ('I', 4), 'x': ('q', 8), 't': ('Q', 8), 'd': ('d', 8)}


def split(types):
    """The complete types that a string of types consists of."""
    found = []
    while types:
        end = 0
        while types[end] in 'am':
            end += 1
        if types[end] in '({':
            depth, start = 0, end
            for end in range(start, len(types)):
                depth += {'(': 1, '{': 1, ')': -1, '}': -1}.get(types[end], 0)
                if depth == 0:
                    break
        found.append(types[:end + 1])
        types = types[end + 1:]
    return found


def alignment(kind):
    if kind[0] in FIXED:
        return FIXED[kind[0]][1]
    if kind[0] == 'a':
        return alignment(kind[1:])
    if kind[0] in '({':
        return max([alignment(k) for k in split(kind[1:-1])] or [1])
    return 8 if kind[0] == 'v' else 1


def fixed_size(kind):
    """None where the size depends on the value. A tuple of fixed members does not occur in this protocol."""
    return FIXED[kind[0]][1] if kind[0] in FIXED else None


def aligned(position, kind):
    return -(-position // alignment(kind)) * alignment(kind)


def offset_width(size):
    return 0 if size == 0 else 1 if size < 1 << 8 else 2 if size < 1 << 16 else 4 if size < 1 << 32 else 8


def offset_at(data, index, width):
    """The index-th framing offset, counted from the end of the container."""
    end = len(data) - index * width
    return int.from_bytes(data[end - width:end], 'little')


def decode_members(kinds, data):
    width, position, used, values = offset_width(len(data)), 0, 0, []
    for number, kind in enumerate(kinds):
        start, size = aligned(position, kind), fixed_size(kind)
        if size is not None:
            end = start + size
        elif number == len(kinds) - 1:
            end = len(data) - used * width
        else:
            end, used = offset_at(data, used, width), used + 1
        values.append(decode(kind, data[start:end]))
        position = end
    return values


def decode_array(kind, data):
    size = fixed_size(kind)
    if size is not None:
        return [decode(kind, data[i:i + size]) for i in range(0, len(data), size)]
    if not data:
        return []
    width = offset_width(len(data))
    table = offset_at(data, 0, width)
    values, position = [], 0
    for at in range(table, len(data), width):
        end = int.from_bytes(data[at:at + width], 'little')
        values.append(decode(kind, data[aligned(position, kind):end]))
        position = end
    return values


def decode(kind, data):
    if kind == 's':
        return data[:-1].decode('utf-8', 'replace')
    if kind == 'ay':
        return bytes(data).rstrip(b'\0')
    if kind in FIXED:
        return struct.unpack('<' + FIXED[kind][0], data)[0]
    if kind == 'v':
        value, _, inner = data.rpartition(b'\0')
        return decode(inner.decode(), value)
    if kind.startswith('a{'):
        return dict(decode_array(kind[1:], data))
    if kind[0] == 'a':
        return decode_array(kind[1:], data)
    return tuple(decode_members(split(kind[1:-1]), data))


def encode_entry(key, kind, value):
    name = key.encode() + b'\0'
    body = value.encode() + b'\0' if kind == 's' else struct.pack('<' + FIXED[kind][0], value)
    data = name + b'\0' * (-len(name) % 8) + body + b'\0' + kind.encode()
    return data + bytes([len(name)])


def encode_request(operation, arguments):
    """(sa{sv}); short enough for framing offsets of one byte."""
    entries, ends = b'', []
    for key, (kind, value) in arguments.items():
        entries += b'\0' * (-len(entries) % 8) + encode_entry(key, kind, value)
        ends.append(len(entries))
    name = operation.encode() + b'\0'
    data = name + b'\0' * (-len(name) % 8) + entries + bytes(ends) + bytes([len(name)])
    if len(data) > 255:
        raise ValueError(f'{operation}: the request is too long')
    return data


class ControlError(Exception):
    pass


class Control:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(path)

    def receive(self, size):
        data = b''
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ControlError('the view ended')
            data += part
        return data

    def call(self, operation, **arguments):
        """call('snapshot', name=('s', 'first')) -> the answer as a dict"""
        data = encode_request(operation, arguments)
        self.socket.sendall(struct.pack('=I', len(data)) + data)
        done, answer = decode('(ba{sv})', self.receive(struct.unpack('=I', self.receive(4))[0]))
        if not done:
            raise ControlError(f'{operation}: {answer.get("message")}')
        return answer

    def close(self):
        self.socket.close()
