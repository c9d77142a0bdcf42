"""Operations that join the values of all ranks, two at a time."""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

Function = Callable[[Any, Any], Any]

# By name: what is done with two numbers. Arrays are joined element by element.
FUNCTIONS: dict[str, Function] = {
    "sum": operator.add,
    "prod": operator.mul,
    "min": min,
    "max": max,
    "land": lambda a, b: bool(a) and bool(b),
    "lor": lambda a, b: bool(a) or bool(b),
    "lxor": lambda a, b: bool(a) != bool(b),
    "band": operator.and_,
    "bor": operator.or_,
    "bxor": operator.xor,
}


def operation(op: str | Function) -> Function:
    """The function of this name. It may write its second argument. Other functions stay."""
    if callable(op):
        return op
    if op not in FUNCTIONS:
        names = ", ".join(FUNCTIONS)
        raise ValueError(f"there is no operation {op!r}: take a function of two values, or {names}")
    return partial(_join, op)


def _join(name: str, mine: Any, theirs: Any) -> Any:
    from ._arrays import arrays

    if arrays.is_array(theirs):
        return arrays.combine(name, mine, theirs)
    return FUNCTIONS[name](mine, theirs)
