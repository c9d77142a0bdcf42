"""Arrays by NumPy."""

from typing import Any

import numpy

from . import _plain
from ._native import Memory


def describe(shape: tuple[int, ...], dtype: Any) -> tuple[str, int]:
    """The form of an array, and its bytes."""
    kind = _dtype(dtype)
    length = kind.itemsize
    for axis in shape:
        length *= axis
    return f"{_name(kind)} {shape}", length


def view(memory: Memory, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array over this memory."""
    return numpy.ndarray(shape, _dtype(dtype), memoryview(memory))


def fill(array: Any, value: Any) -> None:
    """Gives an array its first elements."""
    array[...] = value


def flatten(value: Any) -> tuple[str, bytes] | None:
    """The form and the bytes of an array; None: it is none."""
    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        return _plain.flatten(value)
    if value.dtype.hasobject:
        return None
    return f"{_name(value.dtype)} {value.shape}", value.tobytes()


def _dtype(dtype: Any) -> numpy.dtype[Any]:
    kind: numpy.dtype[Any] = numpy.dtype(dtype)
    if kind.hasobject:
        raise TypeError("an array has numbers or bytes; keep Python objects in job.state")
    return kind


def _name(dtype: numpy.dtype[Any]) -> str:
    # As in the head of a file: a string, or a list of fields.
    return str(numpy.lib.format.dtype_to_descr(dtype))
