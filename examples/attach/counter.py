#!/usr/bin/env python3
"""A replica in Python: a number that is added to. It needs nothing but the standard library.

    steadfast run --group counter --config node.toml -- examples/attach/counter.py
    steadfast describe counter --at 127.0.0.1:7100
    steadfast call counter add '[5]' --at 127.0.0.1:7100
    steadfast call counter add '{"n": 5}' --at 127.0.0.1:7100

docs/protocol/attach.md tells what goes over the socket. As in every language, what a handler answers and leaves
behind may depend on nothing but the state, the call, and the time and seed that come with it: no clock, no
random numbers of one's own.
"""

import json
import os
import socket
import struct
import sys

HELLO, WELCOME, EXECUTE, SNAPSHOT, RESTORE, RESET = 1, 2, 3, 4, 5, 6
ANSWER, STATE, FAILED, RESTORED, FAREWELL = 7, 8, 9, 10, 11
OK, ERROR, REFUSED = 1, 2, 3
NO_SUCH_METHOD, BAD_ARGUMENTS, NOT_READ_ONLY = 3, 4, 10
VERSION = 1
PIECE = 256 * 1024
LONGEST = 1024 * 1024 + 4096
OPTIONAL = 128  # and above: frames of newer nodes, to be skipped


def method_id(name):
    """How a method is known: FNV-1a of its name in 64 bits, the halves folded into one."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return (value ^ value >> 32) % 2**32


def once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name comes twice")
    return dict(pairs)


def read(text):
    """JSON without what other languages would read otherwise."""
    try:
        return json.loads(text.decode(), object_pairs_hook=once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def reason(error):
    """At most 512 bytes of text, whatever the caller's words in it are."""
    return str(error).encode(errors="backslashreplace")[:512].decode(errors="ignore").encode()


# What callers are told: docs/protocol/attach.md, "Contract".
DESCRIBE = "steadfast.describe"
CONTRACT = {
    "service": "Counter",
    "docs": "A number that is added to.",
    "encodings": ["json"],
    "methods": [
        {
            "name": "add",
            "reads": False,
            "docs": "Adds n and returns the sum.",
            "arguments": [{"name": "n", "type": "i64"}],
            "result": "i64",
            "error": "String",
        },
        {"name": "get", "reads": True, "docs": "The sum.", "arguments": [], "result": "i64"},
    ],
}


class ServiceError(Exception):
    """The service's own error: the call was executed, and this is its answer."""


class Counter:
    """The service."""

    def __init__(self):
        self.sum = 0

    def add(self, n):
        if type(n) is not int or not -(2**63) <= n < 2**63:
            raise TypeError("n is not a whole number of 64 bits")
        if not -(2**63) <= self.sum + n < 2**63:
            raise ServiceError(f"the counter stands at {self.sum} and cannot take that much more")
        self.sum += n
        return self.sum

    def get(self):
        return self.sum


class Replica:
    """What the node asks for, done with the service."""

    def __init__(self, stream):
        self.stream = stream
        self.methods = {method_id(method["name"]): method for method in CONTRACT["methods"]}
        self.service = Counter()
        self.arriving = b""
        # Its node spares what a replica that dies had not begun.
        begins = os.environ.get("STEADFAST_BEGINS")
        self.begins = os.open(begins, os.O_WRONLY) if begins else None
        self.begin(0)

    def begin(self, number):
        if self.begins is not None:
            os.pwrite(self.begins, struct.pack("<Q", number), 0)

    def send(self, kind, body):
        self.stream.sendall(struct.pack("<IB3x", len(body), kind) + body)

    def receive(self):
        header = self.read(8)
        if header is None:
            return None, b""
        length, kind = struct.unpack("<IB3x", header)
        if length > LONGEST:
            sys.exit(f"the node writes a frame of {length} bytes: is it of another version?")
        return kind, self.read(length)

    def read(self, length):
        data = b""
        while len(data) < length:
            more = self.stream.recv(length - len(data))
            if not more:
                return None
            data += more
        return data

    def execute(self, body):
        number, _now, _seed, _client, _call, method, flags = struct.unpack_from("<QQQQQIB", body)
        outcome, refusal, answer = self.call(method, flags & 1, flags & 2, body[48:])
        self.send(ANSWER, struct.pack("<QBBBB", number, outcome, refusal, 0, 0) + answer)

    def call(self, method, is_json, is_read, body):
        if not is_json:
            return REFUSED, BAD_ARGUMENTS, b"this service takes JSON (in Rust: client.in_json())"
        if method == method_id(DESCRIBE):
            return OK, 0, json.dumps(CONTRACT).encode()
        if method not in self.methods:
            return REFUSED, NO_SUCH_METHOD, b"no such method: this service has add(n) and get()"
        method = self.methods[method]
        if is_read and not method["reads"]:
            return REFUSED, NOT_READ_ONLY, b"add(n) changes the sum: do not call it as a read"
        try:
            function, arguments = getattr(self.service, method["name"]), read(body)
            # In order, or by name.
            result = function(**arguments) if isinstance(arguments, dict) else function(*arguments)
        except ServiceError as error:
            return ERROR, 0, json.dumps(str(error)).encode()
        except (TypeError, ValueError) as error:
            return REFUSED, BAD_ARGUMENTS, reason(error)
        return OK, 0, json.dumps(result).encode()

    def give_state(self, number):
        state = json.dumps(self.service.sum).encode()
        for start in range(0, len(state), PIECE):
            self.send(STATE, struct.pack("<QQ", number, len(state)) + state[start : start + PIECE])

    def take_state(self, body):
        number, total = struct.unpack_from("<QQ", body)
        self.arriving += body[16:]
        if len(self.arriving) < total:
            return
        state, self.arriving = self.arriving, b""
        try:
            sum = read(state)
            if type(sum) is not int:
                raise TypeError("cannot read the state: it is not a whole number")
            self.service.sum = sum
        except (TypeError, ValueError) as error:
            self.send(FAILED, struct.pack("<Q", number) + reason(error))
        else:
            self.send(RESTORED, struct.pack("<Q", number))

    def serve(self):
        while True:
            kind, body = self.receive()
            if kind in (EXECUTE, SNAPSHOT, RESTORE):
                self.begin(struct.unpack_from("<Q", body)[0])
            if kind == EXECUTE:
                self.execute(body)
            elif kind == SNAPSHOT:
                self.give_state(struct.unpack("<Q", body)[0])
            elif kind == RESTORE:
                self.take_state(body)
            elif kind == RESET:
                self.service = Counter()
            elif kind == FAREWELL and body:
                sys.exit("the node says: " + body.decode())
            elif kind is None or kind == FAREWELL:
                return  # the node has stopped, or needs the replica no more
            elif kind < OPTIONAL:
                sys.exit(f"the node writes a frame of kind {kind}: is it of another version?")


def main():
    try:
        path, group = os.environ["STEADFAST_ATTACH"], os.environ["STEADFAST_GROUP"]
        token = bytes.fromhex(os.environ["STEADFAST_TOKEN"])
    except KeyError:
        sys.exit("this program is started by a node: steadfast run --group NAME -- " + sys.argv[0])
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    replica = Replica(stream)
    replica.send(HELLO, struct.pack("<4sB3xI32s", b"SFAT", VERSION, os.getpid(), token) + group.encode())
    kind, body = replica.receive()
    if kind != WELCOME:
        sys.exit("the node does not let this program in: " + body.decode(errors="replace"))
    print("a counter in Python serves group", group, flush=True)
    replica.serve()


if __name__ == "__main__":
    main()
