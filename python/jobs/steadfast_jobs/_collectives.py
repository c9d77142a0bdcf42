"""Messages among all ranks. Each rank calls the same ones, in the same order.

Values go up and down a binomial tree. They are joined in the order of the ranks, and always by the
same pairs: so a sum of floating-point numbers is the same, bit by bit, at each run.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, SupportsIndex

from ._messages import TAGS, Messages
from ._operations import Function, operation
from ._packets import Target, copied, owned, pack, unpack

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Kind(IntEnum):
    """A kind of message; each has a tag that no program can use."""

    BCAST = TAGS
    REDUCE = TAGS + 1
    GATHER = TAGS + 2
    ALLGATHER = TAGS + 3
    SCATTER = TAGS + 4
    ALLTOALL = TAGS + 5
    BARRIER = TAGS + 6


class Collectives(Messages):
    """This rank's messages, also those that all ranks send together."""

    def bcast(self, value: Any, root: SupportsIndex = 0, into: Any = None) -> Any:
        """The value of the root, at each rank; at others `into` an array, if there is one."""
        target = into if into is None or isinstance(into, Target) else Target(into)
        return self._spread(value, self._named(root), target, Kind.BCAST)

    def reduce(self, value: Any, op: str | Function = "sum", root: SupportsIndex = 0) -> Any:
        """The values of all ranks, joined, at the root; None at others.

        `op` is "sum", "prod", "min", "max", or a function of two values: the first one is of the
        lower ranks. Arrays are joined element by element.
        """
        named = self._named(root)
        # By way of rank 0 the result is the same, bit by bit, at each root.
        result = self._joined(value, operation(op), Kind.REDUCE)
        if named != 0 and self.rank == 0:
            self._tell(named, Kind.REDUCE, *pack(result))
        if self.rank != named:
            return None
        return result if named == 0 else self._hear(0, Kind.REDUCE)

    def allreduce(self, value: Any, op: str | Function = "sum") -> Any:
        """As `reduce`, at each rank."""
        return self.bcast(self._joined(value, operation(op), Kind.REDUCE))

    def gather(self, value: Any, root: SupportsIndex = 0) -> list[Any] | None:
        """The values of all ranks, by rank, at the root; None at others."""
        named, rank = self._named(root), self.rank
        if rank != named:
            self._tell(named, Kind.GATHER, *pack(value))
            return None
        ranks = range(self.ranks)
        return [copied(value) if it == rank else self._hear(it, Kind.GATHER) for it in ranks]

    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks, by rank, at each."""
        packed = pack(value)
        return self._exchanged([packed] * self.ranks, Kind.ALLGATHER)

    def scatter(self, values: Sequence[Any] | None, root: SupportsIndex = 0) -> Any:
        """This rank's one of the root's values, which are one for each rank."""
        named, rank = self._named(root), self.rank
        if rank != named:
            return self._hear(named, Kind.SCATTER)
        for to, value in enumerate(self._one_each(values)):
            if to != rank:
                self._tell(to, Kind.SCATTER, *pack(value))
        return copied(self._one_each(values)[rank])

    def alltoall(self, values: Sequence[Any]) -> list[Any]:
        """The values that all ranks have for this one, by rank; `values` are this one's for all."""
        return self._exchanged([pack(value) for value in self._one_each(values)], Kind.ALLTOALL)

    def barrier(self) -> None:
        """Returns when each rank has come here."""
        self._spread(self._joined(None, lambda a, b: None, Kind.BARRIER), 0, None, Kind.BARRIER)

    def _tree(self, root: int) -> tuple[int | None, list[int]]:
        """In the binomial tree of this root: the rank above, and those below, the nearest first.

        A rank is above those from it on whose places have the lowest bit of its own cleared: so
        each subtree has neighbouring ranks.
        """
        ranks = self.ranks
        place = (self.rank - root) % ranks
        below, reach = [], 1
        while not place & reach and place + reach < ranks:
            below.append((place + reach + root) % ranks)
            reach *= 2
        above = ((place & (place - 1)) + root) % ranks
        return above if place else None, below

    def _spread(self, value: Any, root: int, target: Target | None, kind: Kind) -> Any:
        """The root's value, down its tree."""
        above, below = self._tree(root)
        if above is None:
            head, data = pack(value)
        elif target is None:
            _, _, head, data = self._transport().recv(above, kind)
            value = unpack(head, data)
        else:
            _, _, head, length = self._transport().recv_into(above, kind, target.memory)
            value = target.take(head, None, length)
            data = target.raw()[:length]
        # Those that are the farthest have the most below them.
        for to in reversed(below):
            self._tell(to, kind, head, data)
        return value

    def _joined(self, value: Any, function: Function, kind: Kind) -> Any:
        """The values of all ranks, joined up the tree, at rank 0; None at others."""
        above, below = self._tree(0)
        for source in below:
            value = function(value, self._hear(source, kind))
        if above is not None:
            self._tell(above, kind, *pack(value))
            return None
        return value if below else copied(value)

    def _exchanged(self, packets: "list[tuple[bytes, Buffer]]", kind: Kind) -> list[Any]:
        """The packets that all ranks have for this one, when it has sent its own."""
        rank, ranks = self.rank, self.ranks
        head, data = packets[rank]
        values: list[Any] = [None] * ranks
        values[rank] = unpack(head, owned(data))
        for step in range(1, ranks):
            to, source = (rank + step) % ranks, (rank - step) % ranks
            self._tell(to, kind, *packets[to])
            values[source] = self._hear(source, kind)
        return values

    def _one_each(self, values: Sequence[Any] | None) -> list[Any]:
        found = [] if values is None else list(values)
        if len(found) != self.ranks:
            raise ValueError(f"{len(found)} values for {self.ranks} ranks: one for each is sent")
        return found

    def _tell(self, to: int, kind: Kind, head: bytes, data: "Buffer") -> None:
        self._transport().send(to, kind, head, data)

    def _hear(self, source: int, kind: Kind) -> Any:
        _, _, head, data = self._transport().recv(source, kind)
        return unpack(head, data)
