"""Values as messages: a head that says what a message is, and bytes.

Arrays are sent as their form and their memory, without a copy where the memory is in one piece. All
other objects but bytes and texts are pickled: only ranks of the same job write these messages.
"""

import pickle
from functools import cache, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._native import JobError

if TYPE_CHECKING:
    from typing_extensions import Buffer

# The first byte of a head. An array's form follows.
_ARRAY, _BYTES, _BYTEARRAY, _TEXT, _PICKLE = b"a", b"b", b"m", b"t", b"p"

_WORDS = {_BYTES: "bytes", _BYTEARRAY: "a bytearray", _TEXT: "a text", _PICKLE: "an object"}

# The commonest objects that are no arrays: nobody has to look closer.
_SCALARS = frozenset((type(None), bool, int, float, complex))
_OBJECTS = _SCALARS | {tuple, list, dict, set}


@cache
def _arrays() -> ModuleType:
    # NumPy takes its time to be imported: programs without arrays do without.
    from ._arrays import arrays

    return arrays


@lru_cache(maxsize=1024)
def _head(form: str) -> bytes:
    return _ARRAY + form.encode()


@lru_cache(maxsize=1024)
def _form(head: bytes) -> str:
    """The form of an array, by its head."""
    return head[1:].decode()


@lru_cache(maxsize=1024)
def _element(head: bytes) -> str:
    return _form(head).rpartition(" (")[0]


def pack(value: Any) -> "tuple[bytes, Buffer]":
    """The head and the bytes of a value."""
    kind = type(value)
    if kind is bytes:
        return _BYTES, value
    if kind is bytearray:
        return _BYTEARRAY, value
    if kind is str:
        return _TEXT, value.encode("utf-8", "surrogatepass")
    if kind not in _OBJECTS:
        if packed := _arrays().pack(value):
            form, memory = packed
            return _head(form), memory
    return _PICKLE, _pickled(value)


def _pickled(value: Any) -> bytes:
    """Equal values have equal pickles, whichever of their parts are one object by chance: a start
    after a failure has others, and has to send the same. A part that is in it twice arrives twice.
    """
    if type(value) in _SCALARS:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    written = _Written()
    pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True
    try:
        pickler.dump(value)
    except (ValueError, RecursionError, OverflowError):
        # It has itself as a part, or parts that are in it many times.
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return b"".join(written.parts)


class _Written:
    """The parts of a short pickle."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.length = 0

    def write(self, part: Any) -> int:
        self.length += len(part)
        if self.length > 1 << 20:
            raise OverflowError
        self.parts.append(bytes(part))
        return len(part)


def unpack(head: bytes, data: bytearray) -> Any:
    """The value of a message. An array lies in `data`, and may be written."""
    kind = head[:1]
    if kind == _ARRAY:
        return _arrays().unpack(_form(head), data)
    if kind == _BYTES:
        return bytes(data)
    if kind == _BYTEARRAY:
        return data
    if kind == _TEXT:
        return data.decode("utf-8", "surrogatepass")
    if kind == _PICKLE:
        # Only ranks of this job write messages: this is what `pack` made in one of them.
        return pickle.loads(data)
    raise JobError(f"a message with the head {head!r} is none of this version of steadfast_jobs")


def copied(value: Any) -> Any:
    """A value as it would arrive: with memory of its own."""
    head, data = pack(value)
    return unpack(head, owned(data))


def owned(data: "Buffer") -> bytearray:
    """A copy of the bytes of a packet."""
    return bytearray(memoryview(data))


class Target:
    """An array that a message is received into.

    The message has to have its element type, and as many elements. Where `whole` is false it may
    have fewer.
    """

    def __init__(self, array: Any, whole: bool = True) -> None:
        self.array = array
        self.whole = whole
        self._element, self.memory, self.length = _arrays().target(array)

    def take(self, head: bytes, data: bytearray | None, length: int) -> Any:
        """The array, with a message of this length in it; without `data` it is there already."""
        if head[:1] != _ARRAY:
            word = _WORDS.get(head[:1], "something else")
            raise JobError(f"{word} was sent, and an array awaited: receive it without `into`")
        fits = length == self.length if self.whole else length <= self.length
        if not (fits and _element(head) == self._element):
            why = f'an array "{_form(head)}" of {length} bytes was sent, and the one to receive it'
            raise JobError(f'{why} has elements "{self._element}" in {self.length} bytes')
        if data is not None:
            self.raw()[:length] = data
        return self.array

    def raw(self) -> memoryview:
        """The bytes of the array."""
        view: memoryview = _arrays().raw(self.memory)
        return view
