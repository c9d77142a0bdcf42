"""Values as messages: a head that says what a message is, and bytes.

Arrays are sent as their form and their memory, without a copy where the memory is in one piece. All
other objects but bytes and texts are pickled: only ranks of the same job write these messages.
"""

import pickle
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._native import JobError

if TYPE_CHECKING:
    from typing_extensions import Buffer

# The first byte of a head. An array's form follows.
_ARRAY, _BYTES, _BYTEARRAY, _TEXT, _PICKLE = b"a", b"b", b"m", b"t", b"p"

_WORDS = {_BYTES: "bytes", _BYTEARRAY: "a bytearray", _TEXT: "a text", _PICKLE: "an object"}

# The commonest objects that are no arrays: nobody has to look closer.
_OBJECTS = frozenset((type(None), bool, int, float, complex, tuple, list, dict, set))


@cache
def _arrays() -> ModuleType:
    # NumPy takes its time to be imported: programs without arrays do without.
    from ._arrays import arrays

    return arrays


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
            return _ARRAY + form.encode(), memory
    return _PICKLE, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def unpack(head: bytes, data: bytearray) -> Any:
    """The value of a message. An array lies in `data`, and may be written."""
    kind = head[:1]
    if kind == _ARRAY:
        return _arrays().unpack(head[1:].decode(), data)
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
    return unpack(head, bytearray(data))


class Target:
    """An array that a message is received into.

    The message has to have its element type, and as many elements. Where `whole` is false it may
    have fewer.
    """

    def __init__(self, array: Any, whole: bool = True) -> None:
        self.array = array
        self.whole = whole
        self._element, self.memory = _arrays().target(array)

    def take(self, head: bytes, data: bytearray | None, length: int) -> Any:
        """The array, with a message of this length in it; without `data` it is there already."""
        if head[:1] != _ARRAY:
            word = _WORDS.get(head[:1], "something else")
            raise JobError(f"{word} was sent, and an array awaited: receive it without `into`")
        form = head[1:].decode()
        same = form.rpartition(" (")[0] == self._element
        fits = length == len(self.memory) if self.whole else length <= len(self.memory)
        if not (same and fits):
            why = f'an array "{form}" of {length} bytes was sent, and the one to receive it'
            raise JobError(f'{why} has elements "{self._element}" in {len(self.memory)} bytes')
        if data is not None:
            self.memory[:length] = data
        return self.array
