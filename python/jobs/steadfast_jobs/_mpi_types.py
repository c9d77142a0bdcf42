"""Element types, operations, and buffers as programs for mpi4py name them."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ._operations import Function, operation


def refused(name: str, why: str = "the page docs/jobs-messages.md lists what is") -> AttributeError:
    """The error for a part of MPI that is not here."""
    return AttributeError(f"{name} is not in steadfast_jobs.MPI: {why}")


class InPlace:
    """Says that a buffer that receives has this rank's elements, too."""

    def __repr__(self) -> str:
        return "MPI.IN_PLACE"


IN_PLACE = InPlace()


class Datatype(NamedTuple):
    """The type of a buffer's elements."""

    name: str
    element: str
    """As NumPy names it: a letter, and the bytes."""

    @property
    def size(self) -> int:
        return int(self.element[1:])

    def Get_size(self) -> int:
        return self.size

    def Get_name(self) -> str:
        return f"MPI_{self.name}"


class Op:
    """An operation that joins the values of all ranks."""

    def __init__(self, name: str, function: str | Function) -> None:
        self.name = name
        self.function = function

    def __call__(self, a: Any, b: Any) -> Any:
        return operation(self.function)(a, b)

    def __repr__(self) -> str:
        return f"MPI.{self.name}"


def function_of(op: Op | Function) -> str | Function:
    """The operation for objects."""
    return op.function if isinstance(op, Op) else op


def elementwise(op: Op) -> str:
    """The operation for buffers."""
    if isinstance(op, Op) and isinstance(op.function, str):
        return op.function
    raise refused(f"{op!r} on buffers", "use reduce() or allreduce() of objects")


def better_of(better: Callable[[Any, Any], bool]) -> Function:
    """Joins pairs of a value and a place: the better value; of equal ones, the lower place."""

    def join(a: Any, b: Any) -> Any:
        if a[0] == b[0]:
            return a if a[1] <= b[1] else b
        return a if better(a[0], b[0]) else b

    return join


def row(buffer: Any) -> Any:
    """The elements of a buffer in a row: of `a`, `[a, type]`, `[a, count]`, `[a, count, type]`."""
    from ._arrays import arrays

    if not isinstance(buffer, (list, tuple)):
        return arrays.flat(buffer, None)
    array, *told = buffer
    element = told.pop().element if told and isinstance(told[-1], Datatype) else None
    elements = arrays.flat(array, element)
    if not told:
        return elements
    if len(told) > 1 or not hasattr(told[0], "__index__"):
        raise refused(f"a buffer with {told}", "it takes [array, count, type], and one count")
    count = told[0].__index__()
    if not 0 <= count <= len(elements):
        raise ValueError(f"the buffer has {len(elements)} elements, and not {count}")
    return elements[:count]


def blocks(elements: Any, ranks: int) -> list[Any]:
    """A row in as many blocks as there are ranks."""
    length, rest = divmod(len(elements), ranks)
    if rest:
        raise ValueError(f"{len(elements)} elements cannot be divided among {ranks} ranks")
    return [elements[length * rank : length * (rank + 1)] for rank in range(ranks)]


def fill(elements: Any, value: Any) -> None:
    """Gives a row its elements."""
    if len(elements) != len(value):
        raise ValueError(f"a buffer of {len(elements)} elements gets {len(value)}")
    elements[:] = value
