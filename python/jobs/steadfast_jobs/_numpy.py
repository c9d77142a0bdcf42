"""Arrays by NumPy."""

import ast
from array import array
from functools import lru_cache
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


def pack(value: Any) -> tuple[str, Any] | None:
    """The form and the memory of an array that is sent; None: it is none, or no plain one."""
    if isinstance(value, (memoryview, array)):
        value = numpy.asarray(value)
    # Arrays of other kinds, such as masked ones, are more than their memory.
    if type(value) not in (numpy.ndarray, numpy.memmap):
        return None
    form = _form(value.dtype, value.shape)
    return None if form is None else (form, _memory(value))


def unpack(form: str, data: bytearray) -> Any:
    """The array of a message, in the message's memory."""
    dtype, shape = _read(form)
    return numpy.ndarray(shape, dtype, data)


def target(value: Any) -> tuple[str, Any, int]:
    """The element type, the memory and the bytes of an array that receives."""
    into = numpy.asarray(value) if isinstance(value, (memoryview, array)) else value
    name = _sent(into.dtype) if isinstance(into, numpy.ndarray) else None
    if name is None or not ((flags := into.flags).c_contiguous and flags.writeable):
        raise ValueError(_plain.NO_TARGET)
    return name, _memory(into), into.nbytes


def raw(memory: Any) -> memoryview:
    """The bytes of such memory."""
    return memoryview(_bytes(memory))


def is_array(value: Any) -> bool:
    """Operations go element by element."""
    return isinstance(value, numpy.ndarray)


def combine(name: str, mine: Any, theirs: Any) -> Any:
    """Two arrays, joined element by element; in the memory of the second one where it fits."""
    mine = numpy.asarray(mine)
    same = mine.dtype == theirs.dtype and mine.shape == theirs.shape
    return _OPERATIONS[name](mine, theirs, out=theirs if same else None)


def flat(buffer: Any, element: str | None) -> Any:
    """The elements of a buffer in a row, as they lie in its memory, of its own or this type."""
    if element is None and type(buffer) is numpy.ndarray and buffer.ndim == 1:
        if buffer.flags.c_contiguous:
            return buffer
    known = isinstance(buffer, (numpy.ndarray, numpy.generic))
    whole = numpy.asarray(buffer if known else memoryview(buffer))
    if not whole.flags.forc:
        raise ValueError(_plain.NOT_CONTIGUOUS)
    row = (whole if whole.flags.c_contiguous else whole.T).reshape(-1)
    return row if element is None else row.view(numpy.uint8).view(element)


_OPERATIONS: dict[str, numpy.ufunc] = {
    "sum": numpy.add,
    "prod": numpy.multiply,
    "min": numpy.minimum,
    "max": numpy.maximum,
    "land": numpy.logical_and,
    "lor": numpy.logical_or,
    "lxor": numpy.logical_xor,
    "band": numpy.bitwise_and,
    "bor": numpy.bitwise_or,
    "bxor": numpy.bitwise_xor,
}


def _memory(array: Any) -> Any:
    """The array itself, where its memory is in one piece and may be looked at as it is."""
    fits = array.ndim > 0 and array.dtype.kind in "biufc" and array.flags.c_contiguous
    return array if fits else _bytes(array)


def _bytes(array: Any) -> Any:
    contiguous = array if array.flags.c_contiguous else array.copy("C")
    return contiguous.reshape(-1).view(numpy.uint8)


@lru_cache(maxsize=1024)
def _form(dtype: numpy.dtype[Any], shape: tuple[int, ...]) -> str | None:
    name = _sent(dtype)
    return None if name is None else f"{name} {shape}"


@lru_cache(maxsize=256)
def _sent(dtype: numpy.dtype[Any]) -> str | None:
    """The name of an element type; None: elements of it are no plain bytes, or lose by the name."""
    if dtype.hasobject or dtype.itemsize == 0:
        return None
    name = _name(dtype)
    return name if _read(f"{name} ()")[0] == dtype else None


@lru_cache(maxsize=256)
def _read(form: str) -> tuple[numpy.dtype[Any], tuple[int, ...]]:
    name, _, shape = form.rpartition(" (")
    described: Any = ast.literal_eval(name) if name.startswith("[") else name
    lengths = (int(axis) for axis in shape.rstrip(",)").split(",") if axis)
    return numpy.lib.format.descr_to_dtype(described), tuple(lengths)


def _dtype(dtype: Any) -> numpy.dtype[Any]:
    kind: numpy.dtype[Any] = numpy.dtype(dtype)
    if kind.hasobject:
        raise TypeError("an array has numbers or bytes; keep Python objects in job.state")
    return kind


def _name(dtype: numpy.dtype[Any]) -> str:
    # As in the head of a file: a string, or a list of fields.
    return str(numpy.lib.format.dtype_to_descr(dtype))
