"""A replica in Python that keeps the protocol, or breaks it in one way: that of $PLANTED.

It is no example: examples/attach has one. It proves that `steadfast conform` finds what it should.
"""

import json
import os
import socket
import struct
import sys
import time

HELLO, WELCOME, EXECUTE, SNAPSHOT, RESTORE, RESET = 1, 2, 3, 4, 5, 6
ANSWER, STATE, FAILED, RESTORED, FAREWELL = 7, 8, 9, 10, 11
NOTICE, FAULT, DROPPED, MERGE = 128, 1, 3, 132
OK, REFUSED = 1, 3
NO_SUCH_METHOD, BAD_ARGUMENTS, NOT_READ_ONLY = 3, 4, 10
LONGEST, PIECE = (1 << 20) + 4096, 256 << 10
PLANTED = os.environ.get("PLANTED", "")

# Each method with its arguments, its result, and whether it reads.
METHODS = {
    "add": ([("n", "u64")], "u64", False),
    "enter": ([("name", "String")], "bool", False),
    "get": ([], "u64", True),
}
TYPES = {"u64": int, "String": str}


def strict(body):
    """JSON as other languages read it, too."""
    told = json.loads(body.decode())
    if PLANTED != "half-pair":
        json.dumps(told, ensure_ascii=False).encode()
    return told


def method_id(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return (value ^ value >> 32) % 2**32


def contract():
    def method(name, arguments, result, reads):
        arguments = [{"name": name, "type": ty} for name, ty in arguments]
        return {"name": name, "reads": reads, "arguments": arguments, "result": result}

    methods = [method(name, *rest) for name, rest in METHODS.items()]
    return {"service": "Visitors", "encodings": ["json"], "methods": methods}


class Visitors:
    def __init__(self):
        self.sum = 0
        self.names = set()

    def add(self, n):
        self.sum = (self.sum + n) % 2**64
        return int(time.time()) if PLANTED == "clock" else self.sum

    def enter(self, name):
        is_new = name not in self.names
        self.names.add(name)
        return is_new

    def get(self):
        if PLANTED == "read":
            self.sum += 1
        return self.sum

    def snapshot(self):
        if PLANTED == "hash-order":
            names = list(self.names | {"Ada", "Bo", "Cleo", "Dan", "Eve", "Finn", "Gus"})
        else:
            names = sorted(self.names)
        if PLANTED == "cut-text":
            names = [name.encode()[:10].decode() for name in names]
        return json.dumps({"names": names, "sum": self.sum}).encode()

    def restore(self, state):
        """Takes a state on; gives the fields that nobody knows."""
        if PLANTED == "unreadable":
            self.__init__()
        told = json.loads(state)
        if PLANTED == "order-of-names":
            told = dict(zip(("names", "sum"), told.values()))
        for name, kind in (("names", list), ("sum", int)):
            if type(told.get(name)) is not kind:
                raise ValueError("the state does not fit" if PLANTED == "nameless" else f"field {name}")
            if PLANTED == "half-restored":
                self.sum = 0
        if PLANTED != "restore":
            self.sum, self.names = told.pop("sum"), set(told.pop("names"))
        if PLANTED == "rounding":
            self.sum = int(float(self.sum))
        return "" if PLANTED == "silent" else ", ".join(told)


class Stream:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["STEADFAST_ATTACH"])
        self.input = b""

    def fill(self, length):
        """Reads until so many bytes are here; False at the end of the connection."""
        while len(self.input) < length:
            more = self.socket.recv(1 << 16)
            if not more and not (PLANTED == "half-frame" and self.input):
                return False
            self.input += more
        return True

    def receive(self):
        if not self.fill(8):
            return None, b""
        length, kind = struct.unpack_from("<IB3x", self.input)
        if length > LONGEST:
            sys.exit("a frame is too long")
        if not self.fill(8 + length):
            sys.exit("the connection ended within a frame")
        body, self.input = self.input[8 : 8 + length], self.input[8 + length :]
        return kind, body

    def send(self, kind, body):
        self.socket.sendall(struct.pack("<IB3x", len(body), kind) + body)


class Replica:
    def __init__(self):
        self.stream = Stream()
        self.service = Visitors()
        self.arriving = b""
        self.held = []
        self.begins = os.open(os.environ["STEADFAST_BEGINS"], os.O_WRONLY)
        self.begin(0)
        token = bytes.fromhex(os.environ["STEADFAST_TOKEN"])
        hello = struct.pack("<4sB3xI32s", b"SFAT", 1, os.getpid(), token)
        if PLANTED == "hello":
            hello = hello[:12] + bytes(32)
        group = os.environ["STEADFAST_GROUP"].encode()
        if PLANTED == "merge-unread":  # it says that it merges
            hello, group = hello[:6] + struct.pack("<H", len(group)) + hello[8:], group + b"\x01"
        self.stream.send(HELLO, hello + group)
        kind, body = self.stream.receive()
        if kind != WELCOME:
            sys.exit("not welcome: " + body.decode())

    def begin(self, number):
        os.pwrite(self.begins, struct.pack("<Q", number), 0)

    def call(self, method, flags, body):
        if not flags & 1:
            return REFUSED, BAD_ARGUMENTS, b"only JSON"
        if method == method_id("steadfast.describe"):
            return OK, 0, json.dumps(contract()).encode()
        if PLANTED == "merge" and method == method_id("steadfast.merge"):
            return OK, 0, b""
        name = {method_id(name): name for name in METHODS}.get(method)
        if name is None:
            return REFUSED, NO_SUCH_METHOD, b"no such method"
        arguments, _, reads = METHODS[name]
        if flags & 2 and not reads and PLANTED != "read-allowed":
            return REFUSED, NOT_READ_ONLY, b"it changes the state"
        try:
            values = strict(body)
            if isinstance(values, dict):
                values = [values.pop(name) for name, _ in arguments] + list(values)
            for (_, ty), value in zip(arguments, values, strict=True):
                if not isinstance(value, TYPES[ty]):
                    raise TypeError(f"{value!r} is no {ty}")
                if ty == "u64" and not 0 <= value < 2**64:
                    raise TypeError(f"{value!r} does not fit")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            return REFUSED, BAD_ARGUMENTS, repr(error)[:200].encode()
        return OK, 0, json.dumps(getattr(self.service, name)(*values)).encode()

    def execute(self, body):
        number, method, flags = struct.unpack_from("<Q32xIB", body)
        outcome, refusal, answer = self.call(method, flags, body[48:])
        shown = number + 1 if PLANTED == "number" else number
        self.held.insert(0, struct.pack("<QBBBB", shown, outcome, refusal, 0, 0) + answer)
        if PLANTED == "order" and self.stream.input:
            return
        for answer in self.held:
            self.stream.send(ANSWER, answer)
        self.held = []

    def give_state(self, body):
        number, state = struct.unpack("<Q", body)[0], self.service.snapshot()
        total = len(state) + 1 if PLANTED == "total" else len(state)
        for start in range(0, len(state), PIECE):
            piece = state[start : start + PIECE]
            self.stream.send(STATE, struct.pack("<QQ", number, total) + piece)

    def take_state(self, body):
        number, total = struct.unpack_from("<QQ", body)
        self.arriving += body[16:]
        if len(self.arriving) < total:
            return
        state, self.arriving = self.arriving, b""
        try:
            dropped = self.service.restore(state)
        except ValueError as error:
            self.stream.send(FAILED, struct.pack("<Q", number) + repr(error)[:200].encode())
        else:
            self.stream.send(RESTORED, struct.pack("<Q", number))
            if dropped:
                self.stream.send(NOTICE, struct.pack("<B7x", DROPPED) + dropped.encode())
            if PLANTED == "fault":
                self.stream.send(NOTICE, struct.pack("<B7x", FAULT) + b"it has a hole")

    def merge(self, body):
        number, total = struct.unpack_from("<QQ", body)
        self.arriving += body[16:]
        if len(self.arriving) == total:
            self.arriving = b""
            self.stream.send(ANSWER, struct.pack("<QBBBB", number, OK, 0, 0, 0))

    def serve(self):
        commands = {EXECUTE: self.execute, SNAPSHOT: self.give_state, RESTORE: self.take_state}
        commands |= {MERGE: self.merge} if PLANTED == "merge-unread" else {}
        while True:
            kind, body = self.stream.receive()
            if kind in commands:
                number = struct.unpack_from("<Q", body)[0]
                if PLANTED != "begun":
                    self.begin(number)
                commands[kind](body)
                if PLANTED == "begun":
                    self.begin(number)
            elif kind == RESET:
                self.service = Visitors()
            elif kind is None or kind == FAREWELL:
                sys.exit(body.decode() or 0)
            elif kind < 128 or PLANTED == "optional":
                sys.exit(f"a frame of kind {kind}")


Replica().serve()
