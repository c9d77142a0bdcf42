"""JSON of calls and of states, and values without a hint.

Calls are strict: what other languages would change or refuse is refused here. A state is given back
as it was, because a state that cannot be given ends its group: halves of surrogate pairs, NaN,
infinities and large numbers are written in a way that Python reads alike.
"""

import json
import math
from typing import Any, Dict, List, NoReturn, Tuple

#: How deep arrays and objects of arguments, results and errors are nested at most.
CALL_DEPTH = 64
#: The same of a state; a call that exceeds it is refused.
STATE_DEPTH = 100
# A state that was too large to be looked at after each call is written all the same.
WRITTEN_DEPTH = 200

#: A state of at most so many values, and so many letters, is tried after each call.
SMALL_VALUES, SMALL_TEXT = 128, 16 * 1024

# Python reads and writes numbers of some more digits.
_MOST_BITS = 8192
_INTEGERS = range(-(2**63), 2**63)

_encode_call = json.JSONEncoder(
    separators=(",", ":"), allow_nan=False, ensure_ascii=False
).encode
_encode_state = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Way:
    """How values become JSON and come from it: as those of calls, or as those of a state."""

    __slots__ = ("is_state", "depth", "most", "dropped")

    def __init__(self, is_state: bool = False, most: int = 0) -> None:
        self.is_state = is_state
        self.depth = 0
        self.most = most or (WRITTEN_DEPTH if is_state else CALL_DEPTH)
        #: Fields that were read and that nobody knows.
        self.dropped: List[str] = []

    def deeper(self) -> None:
        """Enters an array or an object; `depth` is decreased at its end."""
        self.depth += 1
        if self.depth > self.most:
            raise TypeError(f"nested more than {self.most} deep")

    def drop(self, field: str) -> None:
        """Notes a field once, however many values have it."""
        if field not in self.dropped:
            self.dropped.append(field)


def written(told: Any) -> bytes:
    """JSON of a call. Raises ValueError for a text that is not Unicode."""
    try:
        return _encode_call(told).encode()
    except UnicodeEncodeError as error:
        _no_unicode(error)


def written_state(told: Any) -> bytes:
    """JSON of a state, with all that Python's texts and numbers may be."""
    return _encode_state(told).encode("utf-8", "surrogatepass")


def read(body: bytes) -> Any:
    """JSON of a call. Raises ValueError."""
    text = body.decode()
    try:
        told = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
        if "\\ud" in text or "\\uD" in text:
            _encode_call(told).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError as error:
        _no_unicode(error)
    return told


def read_state(state: bytes) -> Any:
    """JSON of a state. Raises ValueError."""
    try:
        return json.loads(state.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_unicode(error: UnicodeEncodeError) -> NoReturn:
    letter = ord(error.object[error.start])
    raise ValueError(f"a text has half a pair of surrogates, U+{letter:04X}") from None


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    told = dict(pairs)
    if len(told) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} comes twice")
    return told


def shown(value: Any) -> str:
    """A value by its type: its text may differ between replicas."""
    return f"a value of type {type(value).__name__}"


def plain(value: Any, way: Way) -> Any:
    """A value without a hint: it must be as JSON would give it back."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return text(value, way)
    if kind is int:
        return integer(value, way)
    if kind is float:
        return number(value, way)
    if kind is list:
        way.deeper()
        items = [plain(item, way) for item in value]
        way.depth -= 1
        return items
    if kind is dict:
        way.deeper()
        for key in value:
            if type(key) is not str:
                what = f"the key {key}" if type(key) in (int, bool) else f"a key: {shown(key)}"
                raise TypeError(f"JSON would make {what} a text: annotate it, or use text")
        table = {text(key, way): plain(item, way) for key, item in value.items()}
        way.depth -= 1
        return table
    raise TypeError(f"JSON would not give back {shown(value)}: annotate it, or use plain values")


def text(value: Any, way: Way) -> str:
    """What is not Unicode is found where the JSON is read or written."""
    if type(value) is not str:
        raise TypeError(f"{shown(value)} is no str")
    return value


def integer(value: Any, way: Way) -> int:
    """An integer: of 64 bits in calls, as contracts say."""
    if type(value) is not int:
        raise TypeError(f"{shown(value)} is no integer of 64 bits")
    if value in _INTEGERS:
        return value
    if not way.is_state:
        raise TypeError("the integer does not fit into 64 bits")
    if value.bit_length() > _MOST_BITS:
        raise TypeError(f"an integer has more than {_MOST_BITS} bits")
    return value


def number(value: Any, way: Way) -> float:
    """A float; of an integer, if that changes nothing."""
    kind = type(value)
    if kind is float:
        if way.is_state or math.isfinite(value):
            return float(value)
    elif kind is int and value in _INTEGERS:
        if int(float(value)) != value:
            raise TypeError(f"{value} is rounded as a float: give it another type")
        return float(value)
    raise TypeError(f"{shown(value)} is no finite number")


def is_small(values: List[Any]) -> bool:
    """Whether these have so few values that they can be looked at after each call. It follows from
    the values alone, so that every replica says the same. Raises TypeError if they are too deep."""
    room, letters = SMALL_VALUES, SMALL_TEXT
    waiting = [(value, 2) for value in values]
    while waiting:
        value, depth = waiting.pop()
        room -= 1
        kind = type(value)
        if kind is str or kind is bytes:
            letters -= len(value)
        elif kind is not int and kind is not float:
            inner = _inner(value, kind)
            if inner is not None and depth > STATE_DEPTH:
                raise TypeError(f"nested more than {STATE_DEPTH} deep")
            if inner and len(inner) > room:
                return False
            if kind is dict:
                letters -= sum(len(key) for key in value if type(key) is str)
            waiting.extend((item, depth + 1) for item in inner or ())
        if room < 0 or letters < 0:
            return False
    return True


def _inner(value: Any, kind: type) -> Any:
    """What an array or an object of the state has within; None for other values."""
    if kind is list or kind is tuple:
        return value
    if kind is dict:
        return value.values()
    fields = getattr(value, "__dataclass_fields__", None)
    return None if fields is None else [getattr(value, name, None) for name in fields]
