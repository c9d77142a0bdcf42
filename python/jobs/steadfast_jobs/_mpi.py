"""A communicator as mpi4py has it, over a rank's messages."""

from collections.abc import Sequence
from typing import Any

from ._collectives import Collectives
from ._messages import ANY, Receiving
from ._messages import Request as Begun
from ._mpi_types import (
    IN_PLACE,
    Datatype,
    Op,
    blocks,
    elementwise,
    fill,
    function_of,
    refused,
    row,
)
from ._operations import Function
from ._packets import Target

ANY_SOURCE = ANY_TAG = ANY
PROC_NULL = -2
UNDEFINED = -32766

SUM = Op("SUM", "sum")
BYTE = Datatype("BYTE", "u1")

_INSTEAD = {
    "Abort": "raise an exception, or exit with a status",
    "Dup": "use tags to tell messages apart",
    "Split": "send to the ranks that are meant",
    "ssend": "a message is sent when it is in the log; let the receiver answer",
    "Ssend": "a message is sent when it is in the log; let the receiver answer",
}


class Status:
    """The rank that has sent a message, its tag and its length."""

    def __init__(self) -> None:
        self.source = ANY_SOURCE
        self.tag = ANY_TAG
        self.count = 0

    def Get_source(self) -> int:
        return self.source

    def Get_tag(self) -> int:
        return self.tag

    def Get_count(self, datatype: Datatype = BYTE) -> int:
        """Elements of this type; UNDEFINED: it is not so many whole ones."""
        count, rest = divmod(self.count, datatype.size)
        return UNDEFINED if rest else count


def _tell(status: Status | None, source: int, tag: int, count: int) -> None:
    if status is not None:
        status.source, status.tag, status.count = source, tag, count


class Request:
    """A message that is sent or received meanwhile."""

    def __init__(self, begun: Begun | None) -> None:
        # None: with no other rank.
        self._begun = begun

    def wait(self, status: Status | None = None) -> Any:
        value = None if self._begun is None else self._begun.wait()
        if isinstance(self._begun, Receiving):
            source, tag, _, _, length = self._begun.taken()
            _tell(status, source, tag, length)
        elif self._begun is None:
            _tell(status, PROC_NULL, ANY_TAG, 0)
        return value

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        if self._begun is None or self._begun.test():
            return True, self.wait(status)
        return False, None

    def Wait(self, status: Status | None = None) -> bool:
        self.wait(status)
        return True

    def Test(self, status: Status | None = None) -> bool:
        return self.test(status)[0]

    @staticmethod
    def waitall(requests: Sequence["Request"], statuses: list[Status] | None = None) -> list[Any]:
        if statuses is not None:
            statuses += [Status() for _ in requests[len(statuses) :]]
        filled = [None] * len(requests) if statuses is None else statuses
        return [request.wait(status) for request, status in zip(requests, filled)]

    @staticmethod
    def Waitall(requests: Sequence["Request"], statuses: list[Status] | None = None) -> bool:
        Request.waitall(requests, statuses)
        return True


class Objects:
    """Messages of objects: the methods with small letters."""

    def __init__(self, name: str, job: Collectives) -> None:
        self._name = name
        self._job = job

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        whole = f"{self._name}.{name}"
        raise refused(whole, _INSTEAD[name]) if name in _INSTEAD else refused(whole)

    @property
    def rank(self) -> int:
        return self._job.rank

    @property
    def size(self) -> int:
        return self._job.ranks

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Get_name(self) -> str:
        return f"MPI_{self._name}"

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        if dest != PROC_NULL:
            self._job.send(obj, dest, tag)

    def recv(
        self,
        buf: Any = None,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """The next such object. `buf` is for mpi4py's pickles, and not needed."""
        return self._received(source, tag, None, status)

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        self.send(sendobj, dest, sendtag)
        return self.recv(recvbuf, source, recvtag, status)

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        self.send(obj, dest, tag)
        return Request(Begun())

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        return Request(None if source == PROC_NULL else self._job.irecv(source, tag))

    def probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Waits until there is such a message. It has to be received in the same turn."""
        if source == PROC_NULL:
            _tell(status, PROC_NULL, ANY_TAG, 0)
        else:
            found = self._job._look(source, tag)
            _tell(status, found.source, found.tag, found.length)
        return True

    def iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Whether there is such a message. With a status, as `probe` where there is one."""
        if source != PROC_NULL and not self._job.probe(source, tag):
            return False
        return True if status is None else self.probe(source, tag, status)

    def bcast(self, obj: Any, root: int = 0) -> Any:
        return self._job.bcast(obj, root)

    def reduce(self, sendobj: Any, op: Op | Function = SUM, root: int = 0) -> Any:
        return self._job.reduce(sendobj, function_of(op), root)

    def allreduce(self, sendobj: Any, op: Op | Function = SUM) -> Any:
        return self._job.allreduce(sendobj, function_of(op))

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        return self._job.gather(sendobj, root)

    def allgather(self, sendobj: Any) -> list[Any]:
        return self._job.allgather(sendobj)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        return self._job.scatter(sendobj, root)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        return self._job.alltoall(sendobj)

    def barrier(self) -> None:
        self._job.barrier()

    def _received(
        self, source: int, tag: int, target: Target | None, status: Status | None
    ) -> Any:
        if source == PROC_NULL:
            _tell(status, PROC_NULL, ANY_TAG, 0)
            return None
        if not (self._job._begun or self._job._seen):
            value, came_from, its, length = self._job._next(source, tag, target)
            _tell(status, came_from, its, length)
            return value
        receiving = self._job._receive(source, tag, target)
        _tell(status, receiving.taken().source, receiving.taken().tag, receiving.taken().length)
        return receiving.message().value


class Comm(Objects):
    """Messages of objects, and of buffers: the methods with capital letters."""

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        self.send(row(buf), dest, tag)

    def Recv(
        self,
        buf: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """The message may have fewer elements than the buffer."""
        self._received(source, tag, Target(row(buf), whole=False), status)

    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        self.Send(sendbuf, dest, sendtag)
        self.Recv(recvbuf, source, recvtag, status)

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        self.Send(buf, dest, tag)
        return Request(Begun())

    def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        if source == PROC_NULL:
            return Request(None)
        return Request(self._job.irecv(source, tag, Target(row(buf), whole=False)))

    def Probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        return self.probe(source, tag, status)

    def Iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        return self.iprobe(source, tag, status)

    def Bcast(self, buf: Any, root: int = 0) -> None:
        elements = row(buf)
        into = None if self.rank == root else Target(elements)
        self._job.bcast(elements, root, into)

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        mine = row(recvbuf if sendbuf is IN_PLACE else sendbuf)
        joined = self._job.reduce(mine, elementwise(op), root)
        if self.rank == root:
            fill(row(recvbuf), joined)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        mine = row(recvbuf if sendbuf is IN_PLACE else sendbuf)
        fill(row(recvbuf), self._job.allreduce(mine, elementwise(op)))

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        gathered = self._job.gather(self._own(sendbuf, recvbuf), root)
        if gathered is not None:
            self._fill_blocks(recvbuf, gathered)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        self._fill_blocks(recvbuf, self._job.allgather(self._own(sendbuf, recvbuf)))

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        all_of_them = blocks(row(sendbuf), self.size) if self.rank == root else None
        mine = self._job.scatter(all_of_them, root)
        if recvbuf is not IN_PLACE:
            fill(row(recvbuf), mine)

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        mine = row(recvbuf if sendbuf is IN_PLACE else sendbuf)
        self._fill_blocks(recvbuf, self._job.alltoall(blocks(mine, self.size)))

    def Barrier(self) -> None:
        self.barrier()

    def _own(self, sendbuf: Any, recvbuf: Any) -> Any:
        """This rank's elements, which are in their place where nothing is sent."""
        if sendbuf is IN_PLACE:
            return blocks(row(recvbuf), self.size)[self.rank]
        return row(sendbuf)

    def _fill_blocks(self, recvbuf: Any, values: list[Any]) -> None:
        for block, value in zip(blocks(row(recvbuf), self.size), values):
            fill(block, value)


class Alone:
    """A transport without others: its only rank sends nothing."""

    def rank(self) -> int:
        return 0

    def ranks(self) -> int:
        return 1

    def number(self, value: int) -> int:
        return value

    def _refuse(self, *_: Any) -> Any:
        raise refused("a message on COMM_SELF", "send it to yourself on COMM_WORLD")

    send = recv = recv_into = probe = _refuse
