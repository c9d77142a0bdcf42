"""The program's side of docs/protocol/attach.md: frames, order, states in pieces."""

import os
import socket
import struct
import sys
import time
from collections import deque
from typing import Any, Callable, Deque, NamedTuple, NoReturn, Optional, Tuple

from ._digest import form_of_program
from ._errors import NestedError, Refused, ServiceError, SteadfastError
from ._values import Way, plain, read, written

HELLO, WELCOME, EXECUTE, SNAPSHOT, RESTORE, RESET = 1, 2, 3, 4, 5, 6
ANSWER, STATE, FAILED, RESTORED, FAREWELL, CALL, CALLED = 7, 8, 9, 10, 11, 12, 13
#: Frames of kinds from here on may be skipped.
OPTIONAL = 128
NOTICE, COMPARE, DIGEST, VIEW, MERGE = 128, 129, 130, 131, 132

OK, ERROR, REFUSED = 1, 2, 3
NO_SUCH_METHOD, BAD_ARGUMENTS, FAILED_HANDLER, REPLY_TOO_LARGE, NOT_READ_ONLY = 3, 4, 5, 7, 10
_REFUSALS = (
    "Busy TooLarge NoSuchMethod BadArguments Failed Stale ReplyTooLarge Window Split NotReadOnly "
    "Shed Poisoned Denied KeyReused"
).split()
_NESTED = (
    "Deadline NoReplica NoSuchGroup Diverged Cycle TooDeep TooMany TooLarge Void Unable"
).split()

VERSION = 1
_HEADER = struct.Struct("<IB3s")
_EXECUTE = struct.Struct("<QQQQQIB3x")
_PIECE = struct.Struct("<QQ")
_ANSWER = struct.Struct("<QBBBx")
_CALL = struct.Struct("<QIIBxH")
_CALLED = struct.Struct("<QBBBx")
_WELCOME = struct.Struct("<BBHI")
_NUMBER = struct.Struct("<Q")
_NOTICE = struct.Struct("<B7x")
_DIGEST = struct.Struct("<QQQ")
_VIEW = struct.Struct("<QBB6x")

#: The extension of a Hello: the service merges histories that have parted.
_MERGES = b"\1"

MAX_BODY = 1 << 20
MAX_FRAME = MAX_BODY + 4096
MAX_REASON = 512
PIECE = 256 * 1024
READ_SIZE = 64 * 1024
#: Answers wait for those behind them up to so many bytes, and for at most so many seconds.
BATCH, HELD_BACK = 64 * 1024, 0.0005


class AttachError(SteadfastError):
    """A program cannot serve, or serves no more."""


class _Gone(BaseException):
    """The node has closed the connection while a handler waits: nothing is left to be done."""


class Execute(NamedTuple):
    """A call to be executed."""

    number: int
    now: int
    seed: int
    client: int
    call: int
    method: int
    json: bool
    read: bool
    body: bytes


class View(NamedTuple):
    """A group's view: the nodes of its replicas."""

    #: One more than the last view's.
    number: int
    #: Nodes whose replicas have the state, in order of rank: the first is the primary's.
    members: Tuple[int, ...]
    #: Nodes whose replicas are being given the state.
    joining: Tuple[int, ...]


class Outcome(NamedTuple):
    """How a call ended."""

    outcome: int
    refusal: int
    body: bytes
    panicked: bool = False


def method_id(name: str) -> int:
    """How a method is known: FNV-1a of its name in 64 bits, the halves folded into one."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return (value ^ value >> 32) % 2**32


def _cut(reason: bytes) -> bytes:
    return reason[:MAX_REASON].decode(errors="ignore").encode()


def _words(error: object) -> bytes:
    """A reason: whatever it has of others' texts, it is text."""
    return _cut(str(error).encode(errors="backslashreplace"))


class Connection:
    """The stream to the node."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._input = bytearray()
        self._output = bytearray()
        self._oldest = 0.0

    def put(self, kind: int, body: bytes) -> None:
        """Queues a frame."""
        if not self._output:
            self._oldest = time.monotonic()
        self._output += _HEADER.pack(len(body), kind, bytes(3)) + body

    def is_due(self) -> bool:
        """What is queued has waited long enough."""
        if not self._output:
            return False
        return len(self._output) >= BATCH or time.monotonic() - self._oldest > HELD_BACK

    def flush(self) -> bool:
        """Writes what is queued. False if nobody reads it any more."""
        try:
            self._stream.sendall(self._output)
        except (BrokenPipeError, ConnectionResetError):
            return False
        finally:
            self._output.clear()
        return True

    def take(self) -> Optional[Tuple[int, bytes]]:
        """The next frame, if it is here already: its kind and its body."""
        while len(self._input) >= _HEADER.size:
            length, kind, zeros = _HEADER.unpack_from(self._input)
            if length > MAX_FRAME or zeros != bytes(3) or kind == 0 or CALLED < kind < OPTIONAL:
                raise AttachError(
                    f"the node's words are not understood (a frame of kind {kind} and {length} "
                    "bytes): use a version of steadfast-client nearer to the node's"
                )
            end = _HEADER.size + length
            if len(self._input) < end:
                return None
            body = bytes(self._input[_HEADER.size : end])
            del self._input[:end]
            if kind < OPTIONAL or kind in (COMPARE, VIEW, MERGE):
                return kind, body
        return None

    def receive(self) -> Optional[Tuple[int, bytes]]:
        """Waits for the next frame; None at the end."""
        while True:
            frame = self.take()
            if frame is not None:
                return frame
            try:
                read = self._stream.recv(READ_SIZE)
            except ConnectionResetError:
                return None
            if not read:
                return None
            self._input += read


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise AttachError(
            "this program serves a replica and has to be started by a node: "
            f"steadfast run --group NAME -- PROGRAM (the variable {name} is not set)"
        )
    return value


def _begin_closer() -> None:
    """So that the node sees this program's death at once, however much memory it has.

    Without the compiled half, or on an old kernel, it sees it when the memory has been freed.
    """
    try:
        from ._native import begin_closer

        reason = begin_closer()
    except ImportError as error:
        reason = f"steadfast_client has no compiled half here: {error}"
    if reason is not None:
        effect = "the node learns of this program's death later, by 60 to 230 ms for each GiB"
        print(f"there is no closer: {reason}; {effect}", file=sys.stderr)


def _connected(merges: bool) -> Connection:
    """The connection, after the node has let this program in."""
    path, group = _variable("STEADFAST_ATTACH"), _variable("STEADFAST_GROUP").encode()
    try:
        token = struct.pack("32s", bytes.fromhex(_variable("STEADFAST_TOKEN")))
        _begin_closer()
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(path)
    except (OSError, ValueError) as error:
        raise AttachError(
            f"the node's socket {path}: {error}; does the node that started this program still run?"
        ) from None
    node = Connection(stream)
    hello = struct.pack("<4sBBHI32s", b"SFAT", VERSION, VERSION, len(group), os.getpid(), token)
    node.put(HELLO, hello + group + (_MERGES if merges else b""))
    node.flush()
    kind, body = node.receive() or (FAREWELL, b"nothing, and ends the connection")
    if kind == FAREWELL:
        raise AttachError(f"the node says: {body.decode(errors='replace')}")
    if kind != WELCOME or len(body) < _WELCOME.size:
        _not_understood(kind)
    version = body[0]
    if version != VERSION:
        raise AttachError(
            f"the node speaks version {version}, this program {VERSION}: upgrade the older one"
        )
    return node


def _not_understood(kind: int) -> NoReturn:
    raise AttachError(
        f"the node's words are not understood (a frame of kind {kind} that is out of place or too "
        "short): use a version of steadfast-client nearer to the node's"
    )


class Begins:
    """The file in which the node looks for what this program has begun."""

    def __init__(self) -> None:
        path = os.environ.get("STEADFAST_BEGINS")
        self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC) if path else None
        self.note(0)

    def note(self, number: int) -> None:
        if self._file is None:
            return
        try:
            os.pwrite(self._file, _NUMBER.pack(number), 0)
        except OSError:
            # An older number would be taken for true if this call killed the program.
            os.ftruncate(self._file, 0)


class Program:
    """Executes the node's commands one after the other."""

    def __init__(self, replica: Any) -> None:
        self._replica = replica
        self._begins, self._form = Begins(), form_of_program()
        self._node = _connected(replica.kept.merges)
        self._waiting: Deque[Tuple[int, bytes]] = deque()
        self._arriving = bytearray()

    def serve(self) -> None:
        """Returns when the node has stopped, or needs the replica no more."""
        try:
            self._tell()
            while True:
                frame = self._next()
                if frame is None or not self._handle(*frame):
                    return
                self._tell()
                if self._node.is_due() and not self._node.flush():
                    return self._last_words()
        except _Gone:
            return
        except struct.error:
            raise AttachError("the node has written a frame that is too short") from None

    def _next(self) -> Optional[Tuple[int, bytes]]:
        if self._waiting:
            return self._waiting.popleft()
        frame = self._node.take()
        if frame is None:
            # A node that is gone may have said why before.
            self._node.flush()
            frame = self._node.receive()
        return frame

    def _last_words(self) -> None:
        while True:
            frame = self._node.receive()
            if frame is None or not self._handle_farewell(*frame):
                return

    def _handle_farewell(self, kind: int, body: bytes) -> bool:
        if kind == FAREWELL and body:
            raise AttachError(f"the node says: {body.decode(errors='replace')}")
        return kind != FAREWELL

    def _handle(self, kind: int, body: bytes) -> bool:
        """Does what a frame asks for; False if it was the last one."""
        if kind == EXECUTE:
            self._execute(body)
        elif kind == SNAPSHOT:
            self._give_state(*_NUMBER.unpack(body))
        elif kind in (RESTORE, MERGE):
            self._take_piece(kind, body)
        elif kind == COMPARE:
            self._compare(*_NUMBER.unpack(body))
        elif kind == VIEW:
            self._replica.view(_view_of(body))
        elif kind == RESET:
            self._replica.kept.reset()
        elif kind == FAREWELL:
            return self._handle_farewell(kind, body)
        else:
            _not_understood(kind)
        return True

    def _execute(self, body: bytes) -> None:
        number, now, seed, client, call, method, flags = _EXECUTE.unpack_from(body)
        self._begins.note(number)
        is_json, is_read, arguments = bool(flags & 1), bool(flags & 2), body[_EXECUTE.size :]
        execute = Execute(number, now, seed, client, call, method, is_json, is_read, arguments)
        self._answer(number, self._replica.execute(execute, self._nested(number)))

    def _answer(self, number: int, outcome: Outcome) -> None:
        told = outcome.body
        if len(told) > MAX_BODY:
            reason = f"the reply has {len(told)} bytes, at most {MAX_BODY} fit"
            outcome, told = Outcome(REFUSED, REPLY_TOO_LARGE, b""), reason.encode()
        if outcome.outcome == REFUSED:
            told = _cut(told)
        head = _ANSWER.pack(number, outcome.outcome, outcome.refusal, outcome.panicked)
        self._node.put(ANSWER, head + told)
        if self._replica.kept.is_trial_due():
            # No caller waits for it.
            self._node.flush()
            self._replica.kept.try_state()

    def _compare(self, number: int) -> None:
        """Tells a digest of the state, if there is one. The node does not wait for it."""
        value = self._replica.kept.digest()
        if value is not None:
            self._node.put(DIGEST, _DIGEST.pack(number, self._form, value))

    def _tell(self) -> None:
        """Tells the node how the state is."""
        for code, text in self._replica.kept.notices:
            self._node.put(NOTICE, _NOTICE.pack(code) + _words(text))
        self._replica.kept.notices.clear()

    def _nested(self, number: int) -> Callable[..., Any]:
        def call(
            group: str, method: str, arguments: Any, named: Any, deadline: Optional[float]
        ) -> Any:
            if arguments and named:
                raise TypeError("give all arguments in order, or all by name")
            body = written(plain(_listed(named or arguments), Way()))
            if len(body) > MAX_BODY:
                raise NestedError("TooLarge", f"{len(body)} bytes of arguments do not fit")
            most = 2**32 - 1
            timeout = most if deadline is None else min(most, max(0, round(deadline * 1e6)))
            name = group.encode()
            head = _CALL.pack(number, method_id(method), timeout, 1, len(name))
            self._node.put(CALL, head + name + body)
            return self._called(number)

        return call

    def _called(self, number: int) -> Any:
        """Waits for what came of a call; what comes before it is done later."""
        if not self._node.flush():
            raise _Gone
        while True:
            frame = self._node.receive()
            if frame is None:
                raise _Gone
            if frame[0] == CALLED:
                break
            self._waiting.append(frame)
        told, outcome, refusal, error = _CALLED.unpack_from(frame[1])
        if told != number:
            _not_understood(CALLED)
        body = frame[1][_CALLED.size :]
        if outcome == OK:
            return read(body)
        if outcome == ERROR:
            raise ServiceError(read(body))
        text = body.decode(errors="replace")
        if error == 0:
            raise Refused(_name(_REFUSALS, refusal), text)
        raise NestedError(_name(_NESTED, error), text)

    def _give_state(self, number: int) -> None:
        self._begins.note(number)
        try:
            state = self._replica.kept.snapshot()
        except Exception as error:
            return self._node.put(FAILED, _NUMBER.pack(number) + _words(error))
        for start in range(0, len(state), PIECE) or [0]:
            head = _PIECE.pack(number, len(state))
            self._node.put(STATE, head + state[start : start + PIECE])

    def _take_piece(self, kind: int, body: bytes) -> None:
        number, total = _PIECE.unpack_from(body)
        self._arriving += body[_PIECE.size :]
        if len(self._arriving) > total:
            raise AttachError("the node has given a state that is longer than it said")
        if len(self._arriving) < total:
            return
        state = bytes(self._arriving)
        self._arriving.clear()
        self._begins.note(number)
        if kind == MERGE:
            return self._answer(number, self._replica.merge(state))
        try:
            self._replica.kept.restore(state)
        except Exception as error:
            reason = f"cannot read the state: {error}"
            self._node.put(FAILED, _NUMBER.pack(number) + _words(reason))
        else:
            self._node.put(RESTORED, _NUMBER.pack(number))


def _view_of(body: bytes) -> View:
    number, members, joining = _VIEW.unpack_from(body)
    nodes = struct.unpack_from(f"<{members + joining}I", body, _VIEW.size)
    return View(number, nodes[:members], nodes[members:])


def _listed(value: Any) -> Any:
    """Tuples are arrays in what another group is given."""
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return value


def _name(names: Any, number: int) -> str:
    return names[number - 1] if 0 < number <= len(names) else str(number)
