"""Arrays by the standard library."""

import math
import struct
import sys
from collections.abc import Iterable
from typing import Any

from ._native import Memory

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
    return f"{'|' if name[1:] == '1' else _ORDER}{name} {shape}"
