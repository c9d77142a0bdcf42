"""Messages between two ranks."""

import os
import time
from collections.abc import Callable, Iterable
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, SupportsIndex

from ._native import JobError
from ._packets import Target, pack, unpack

if TYPE_CHECKING:
    from typing_extensions import Buffer

ANY = -1
"""As a source: each rank. As a tag: each tag of a program."""

# Programs use the tags below, collectives those from here on.
TAGS = 2**31


class Transport(Protocol):
    """The native half: what the functions of `_native` with these names do."""

    def rank(self) -> int: ...
    def ranks(self) -> int: ...
    def send(self, to: int, tag: int, head: bytes, data: "Buffer") -> None: ...
    def recv(self, source: int, tag: int) -> tuple[int, int, bytes, bytearray]: ...
    def recv_into(self, source: int, tag: int, data: "Buffer") -> tuple[int, int, bytes, int]: ...
    def probe(self, source: int, tag: int) -> bool: ...
    def number(self, value: int) -> int: ...


class Message(NamedTuple):
    """A value that was received."""

    value: Any
    source: int
    tag: int


class Wanted(NamedTuple):
    """The messages that a receive may take."""

    source: int
    tag: int

    def covers(self, other: "Wanted") -> bool:
        """It takes each message that the other takes."""
        return self.source in (ANY, other.source) and self.tag in (ANY, other.tag)

    def meets(self, other: "Wanted") -> bool:
        """Both take some message."""
        sources, tags = zip(self, other)
        return (ANY in sources or len({*sources}) == 1) and (ANY in tags or len({*tags}) == 1)


class Arrived(NamedTuple):
    """A message that was taken from the log. Without data, it is in the array of its target."""

    source: int
    tag: int
    head: bytes
    data: bytearray | None
    length: int

    def wanted_by(self, wanted: Wanted) -> bool:
        return wanted.covers(Wanted(self.source, self.tag))


class Request:
    """A message that is sent or received meanwhile.

    It ends in the turn where it was begun: after a restart nobody knows it any more.
    """

    def wait(self) -> Any:
        """The value that was received, when it is there. None for one that was sent."""
        return None

    def test(self) -> bool:
        """Whether `wait()` would return at once."""
        return True


class Receiving(Request):
    """A receive that was begun."""

    def __init__(self, messages: "Messages", wanted: Wanted, target: Target | None) -> None:
        self.wanted = wanted
        self.target = target
        self.arrived: Arrived | None = None
        self._messages = messages
        self._message: Message | None = None

    def wait(self) -> Any:
        return self.message().value

    def test(self) -> bool:
        return self._messages._progress(self, lambda: self._messages._is_there(self.wanted))

    def message(self) -> Message:
        """The message, when it is there."""
        if self._message is None:
            if self.arrived is None:
                self._messages._progress(self, lambda: True)
            source, tag, head, data, length = self.taken()
            if self.target is not None:
                value = self.target.take(head, data, length)
            else:
                assert data is not None
                value = unpack(head, data)
            self._message = Message(value, source, tag)
        return self._message

    def taken(self) -> Arrived:
        """The message that has arrived."""
        assert self.arrived is not None
        return self.arrived


class Messages:
    """This rank's messages to and from others.

    `transport` returns the native half, connected.
    """

    def __init__(self, transport: Callable[[], Transport]) -> None:
        self._transport = transport
        self._many = 0
        # Receives that were begun and have no message yet, the first one first.
        self._begun: list[Receiving] = []
        # Messages that were looked at and not received yet, with what was looked for.
        self._seen: list[tuple[Wanted, Arrived]] = []

    @property
    def rank(self) -> int:
        """Which rank this is, from 0."""
        return self._transport().rank()

    @property
    def ranks(self) -> int:
        """How many ranks the job has."""
        return self._transport().ranks()

    def send(self, value: Any, to: SupportsIndex, tag: SupportsIndex = 0) -> None:
        """Sends a value to a rank, or to this one. It returns when the value is in the log.

        Arrays, bytes and texts go as they are, other objects as a pickle.
        """
        head, data = pack(value)
        self._transport().send(self._named(to), _tag(tag), head, data)

    def recv(
        self, source: SupportsIndex = ANY, tag: SupportsIndex = ANY, into: Any = None
    ) -> Any:
        """The next value from this rank with this tag, when it is there.

        From one rank with one tag, values come in the order in which they were sent. An array has
        memory of its own, or comes straight `into` an array of its element type and size.
        """
        if self._begun or self._seen:
            return self.recv_message(source, tag, into).value
        # Nothing has to be told apart: this is what `recv_message` does then.
        return self._next(source, tag, _target(into))[0]

    def recv_message(
        self, source: SupportsIndex = ANY, tag: SupportsIndex = ANY, into: Any = None
    ) -> Message:
        """As `recv`, with the rank that has sent the value, and its tag."""
        return self._receive(source, tag, into).message()

    def sendrecv(
        self,
        value: Any,
        to: SupportsIndex,
        source: SupportsIndex | None = None,
        tag: SupportsIndex = 0,
        into: Any = None,
    ) -> Any:
        """Sends a value, and receives one from the same rank, or from another `source`."""
        self.send(value, to, tag)
        return self.recv(to if source is None else source, tag, into)

    def isend(self, value: Any, to: SupportsIndex, tag: SupportsIndex = 0) -> Request:
        """As `send`. The value may be changed at once."""
        self.send(value, to, tag)
        return Request()

    def irecv(
        self, source: SupportsIndex = ANY, tag: SupportsIndex = ANY, into: Any = None
    ) -> Request:
        """Begins a receive. It takes messages before those that begin after it."""
        return self._begin(source, tag, into)

    def wait_all(self, requests: Iterable[Request]) -> list[Any]:
        """The values of all these requests."""
        return [request.wait() for request in requests]

    def probe(self, source: SupportsIndex = ANY, tag: SupportsIndex = ANY) -> bool:
        """Whether such a message is there now. The answer is recorded, also in vain: a loop that
        only asks fills the record."""
        wanted = self._wanted(source, tag)
        while self._is_there(wanted):
            others = [it for it in self._begun if it.wanted.meets(wanted)]
            # Receives that were begun take theirs first. It is there if that leaves it.
            if not any([other.test() for other in others]):
                return True
        return False

    def now(self) -> float:
        """Seconds since 1970. Unlike `time.time()`, a turn that is done again has the same ones."""
        return self._transport().number(time.time_ns()) / 1e9

    def random_seed(self) -> int:
        """64 random bits. A turn that is done again has the same ones."""
        return self._transport().number(int.from_bytes(os.urandom(8), "little"))

    def _next(
        self, source: SupportsIndex, tag: SupportsIndex, target: Target | None
    ) -> tuple[Any, int, int, int]:
        """The next message in the log: value, source, tag, bytes."""
        rank, number = self._checked(source, tag)
        if target is None:
            rank, number, head, data = self._transport().recv(rank, number)
            return unpack(head, data), rank, number, len(data)
        rank, number, head, length = self._transport().recv_into(rank, number, target.memory)
        return target.take(head, None, length), rank, number, length

    def _receiving(self, source: SupportsIndex, tag: SupportsIndex, into: Any) -> Receiving:
        return Receiving(self, self._wanted(source, tag), _target(into))

    def _begin(self, source: SupportsIndex, tag: SupportsIndex, into: Any) -> Receiving:
        receiving = self._receiving(source, tag, into)
        self._begun.append(receiving)
        return receiving

    def _receive(self, source: SupportsIndex, tag: SupportsIndex, into: Any) -> Receiving:
        """A receive, with its message."""
        if not self._begun:
            receiving = self._receiving(source, tag, into)
            receiving.arrived = self._take(receiving.wanted, receiving.target)
            return receiving
        receiving = self._begin(source, tag, into)
        try:
            self._progress(receiving, lambda: True)
        finally:
            # It has ended, also by an error.
            if receiving in self._begun:
                self._begun.remove(receiving)
        return receiving

    def _progress(self, receiving: Receiving, may_take: Callable[[], bool]) -> bool:
        """Takes messages for it, and for those begun before it, as long as it may: has it one?"""
        while receiving.arrived is None:
            before = self._before(receiving)
            # One that takes all that this one takes gets a message no later than this one.
            wider = next((it for it in before if it.wanted.covers(receiving.wanted)), None)
            if wider is not None:
                if not self._progress(wider, may_take):
                    return False
                continue
            if not may_take():
                return False
            arrived = self._take(receiving.wanted, None if before else receiving.target)
            takers = (it for it in before if arrived.wanted_by(it.wanted))
            taker = next(takers, receiving)
            taker.arrived = arrived
            self._begun.remove(taker)
        return True

    def _before(self, receiving: Receiving) -> list[Receiving]:
        """The receives begun before this one that may take the same messages."""
        wanted = receiving.wanted
        begun = self._begun[: self._begun.index(receiving)]
        before = [it for it in begun if it.wanted.meets(wanted)]
        for it in before:
            # Its message may come before the one of this tag that the log hands out.
            if it.wanted.tag == ANY != wanted.tag and it.wanted.source != ANY == wanted.source:
                what = f"a receive of any tag from rank {it.wanted.source} was begun"
                raise JobError(f"{what}: wait for it before one of tag {wanted.tag} from anybody")
        return before

    def _take(self, wanted: Wanted, target: Target | None) -> Arrived:
        """The next message of these."""
        for place, (looked_for, arrived) in enumerate(self._seen):
            if arrived.wanted_by(wanted):
                if wanted.tag == ANY != looked_for.tag:
                    what = f"a message with tag {looked_for.tag} was looked at"
                    raise JobError(f"{what}: receive it by its tag before one of any tag")
                del self._seen[place]
                return arrived
        if target is not None:
            source, tag, head, length = self._transport().recv_into(*wanted, target.memory)
            return Arrived(source, tag, head, None, length)
        source, tag, head, data = self._transport().recv(*wanted)
        return Arrived(source, tag, head, data, len(data))

    def _look(self, source: SupportsIndex, tag: SupportsIndex) -> Arrived:
        """Waits for such a message, and leaves it to the receive that follows in this turn."""
        receiving = self._receive(source, tag, None)
        arrived = receiving.taken()
        self._seen.insert(0, (receiving.wanted, arrived))
        return arrived

    def _is_there(self, wanted: Wanted) -> bool:
        seen = any(arrived.wanted_by(wanted) for _, arrived in self._seen)
        return seen or self._transport().probe(*wanted)

    def _all_received(self) -> None:
        """A message that was only looked at would not be in what is saved now."""
        for _, arrived in self._seen:
            what = f"the message with tag {arrived.tag} from rank {arrived.source}"
            raise JobError(f"{what} was probed for: receive it in the same turn")

    def _wanted(self, source: SupportsIndex, tag: SupportsIndex) -> Wanted:
        return Wanted(*self._checked(source, tag))

    def _checked(self, source: SupportsIndex, tag: SupportsIndex) -> tuple[int, int]:
        rank, number = index(source), index(tag)
        if rank != ANY:
            self._named(rank)
        if number != ANY:
            _tag(number)
        return rank, number

    def _named(self, rank: SupportsIndex) -> int:
        # It is asked for at each message, and stays the same.
        self._many = self._many or self._transport().ranks()
        number = index(rank)
        if not 0 <= number < self._many:
            raise ValueError(f"there is no rank {number}: the job has {self._many}, from 0")
        return number


def _target(into: Any) -> Target | None:
    return into if into is None or isinstance(into, Target) else Target(into)


def _tag(tag: SupportsIndex) -> int:
    number = index(tag)
    if not 0 <= number < TAGS:
        raise ValueError(f"the tag {number} is not a number from 0 to {TAGS - 1}")
    return number
