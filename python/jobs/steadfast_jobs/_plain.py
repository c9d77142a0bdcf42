"""Arrays by the standard library."""

import math
import struct
import sys
from array import array
from collections.abc import Iterable
from typing import Any

from ._native import Memory
from ._operations import FUNCTIONS

_ORDER = "<" if sys.byteorder == "little" else ">"

# By NumPy's name without the order of bytes: the code of struct and memoryview.
_CODES = {
    "b1": "?",
    **{f"i{struct.calcsize(code)}": code for code in "bhiq"},
    **{f"u{struct.calcsize(code)}": code for code in "BHIQ"},
    **{f"f{struct.calcsize(code)}": code for code in "fd"},
}
_NAMES = {code: name for name, code in _CODES.items()}
_NAMES["l"], _NAMES["L"] = (f"{kind}{struct.calcsize('l')}" for kind in "iu")
_WORDS = {"bool": "b1", "float32": "f4", "float64": "f8"}
_WORDS |= {f"{word}{8 * n}": f"{word[0]}{n}" for word in ("int", "uint") for n in (1, 2, 4, 8)}


def describe(shape: tuple[int, ...], dtype: Any) -> tuple[str, int]:
    """The form of an array, and its bytes."""
    name = _name(dtype)
    return _form(name, shape), int(name[1:]) * math.prod(shape)


def view(memory: Memory, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array over this memory."""
    return memoryview(memory).cast(_CODES[_name(dtype)], shape)  # type: ignore[call-overload]


def fill(array: Any, value: Any) -> None:
    """Gives an array its first elements, row by row."""
    flat = array.cast("B").cast(array.format)
    elements = list(_elements(value))
    if len(elements) != len(flat):
        raise ValueError(f"init has {len(elements)} elements, and the array {len(flat)}")
    for place, element in enumerate(elements):
        flat[place] = element


def flatten(value: Any) -> tuple[str, bytes] | None:
    """The form and the bytes of an array; None: it is none."""
    try:
        view = memoryview(value)
    except TypeError:
        return None
    name = _NAMES.get(view.format)
    return None if name is None else (_form(name, view.shape or ()), view.tobytes())


NO_TARGET = (
    "what receives has to be an array of numbers in one piece of memory that may be written: "
    "receive a new array, and copy it: a[...] = job.recv(...)"
)
NOT_CONTIGUOUS = "the buffer is not in one piece of memory: send or receive a copy of it"


def pack(value: Any) -> tuple[str, Any] | None:
    """The form and the memory of an array that is sent; None: it is none."""
    if not isinstance(value, (memoryview, array)):
        return None
    view = memoryview(value)
    name = _NAMES.get(view.format)
    if name is None:
        return None
    whole = view.c_contiguous and view.nbytes
    return _form(name, view.shape or ()), view.cast("B") if whole else view.tobytes()


def unpack(form: str, data: bytearray) -> Any:
    """The array of a message, in the message's memory."""
    name, _, shape = form.rpartition(" (")
    lengths = tuple(int(axis) for axis in shape.rstrip(",)").split(",") if axis)
    code = _CODES[_name(name)]
    # A memoryview without elements has one axis.
    shaped = (code, lengths) if data else (code,)
    return memoryview(data).cast(*shaped)


def target(value: Any) -> tuple[str, Any, int]:
    """The element type, the memory and the bytes of an array that receives."""
    view = memoryview(value) if isinstance(value, (memoryview, array)) else None
    name = None if view is None else _NAMES.get(view.format)
    if view is None or name is None or view.readonly or not view.c_contiguous:
        raise ValueError(NO_TARGET)
    return _element(name), view.cast("B"), view.nbytes


def raw(memory: Any) -> memoryview:
    """The bytes of such memory."""
    return memoryview(memory)


def is_array(value: Any) -> bool:
    """Operations go element by element."""
    return isinstance(value, memoryview)


def combine(name: str, mine: Any, theirs: Any) -> Any:
    """Two arrays, joined element by element in the memory of the second one."""
    function = FUNCTIONS[name]
    forms = [(_NAMES.get(view.format), view.shape) for view in (memoryview(mine), theirs)]
    if forms[0] != forms[1]:
        raise ValueError(f"arrays that differ cannot be joined without NumPy: {forms}")
    left = memoryview(memoryview(mine).tobytes()).cast(theirs.format)
    right = theirs.cast("B").cast(theirs.format)
    for place, element in enumerate(left):
        right[place] = function(element, right[place])
    return theirs


def flat(buffer: Any, element: str | None) -> Any:
    """The elements of a buffer in a row, of its own or this type."""
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise ValueError(NOT_CONTIGUOUS)
    code = view.format if element is None else _CODES[_name(element)]
    return view.cast("B").cast(code)  # type: ignore[call-overload]


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, memoryview):
        value = value.tolist()
    for element in value if isinstance(value, Iterable) else (value,):
        if isinstance(element, Iterable):
            yield from _elements(element)
        else:
            yield element


def _name(dtype: Any) -> str:
    name = _WORDS.get(str(dtype), str(dtype)).lstrip("|=" + _ORDER)
    if name not in _CODES:
        raise TypeError(f"an array of {dtype!r} needs NumPy; without it: {', '.join(_CODES)}")
    return name


def _form(name: str, shape: tuple[int, ...]) -> str:
    return f"{_element(name)} {shape}"


def _element(name: str) -> str:
    return f"{'|' if name[1:] == '1' else _ORDER}{name}"
