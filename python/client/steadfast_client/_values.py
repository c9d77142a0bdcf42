"""JSON of calls and of states, and values without a hint.

Calls are strict: what other languages would change or refuse is refused here. A state is given back
as it was, because a state that cannot be given ends its group: halves of surrogate pairs, NaN,
infinities and large numbers are written in a way that Python reads alike.
"""

import json
import math
from typing import Any, Callable, Dict, List, NoReturn, Set, Tuple

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


#: In a state: the number of a value that stands in several places, and in the first the value.
_SHARED, _VALUE = "$", "of"


class Way:
    """How values become JSON and come from it: as those of calls, or as those of a state.

    A list, dictionary or dataclass of a state may stand in several places. JSON would make several
    values of it, of which a later call changes only one.
    """

    __slots__ = ("is_state", "depth", "most", "dropped", "shared", "is_labelled", "_met", "_made")

    def __init__(self, is_state: bool = False, most: int = 0) -> None:
        self.is_state = is_state
        self.depth = 0
        self.most = most or (WRITTEN_DEPTH if is_state else CALL_DEPTH)
        #: Fields that were read and that nobody knows.
        self.dropped: List[str] = []
        #: Values that were met more than once; they are labelled when all is written again.
        self.shared: Set[int] = set()
        self.is_labelled = False
        self._met: Dict[int, int] = {}
        self._made: Dict[Any, Any] = {}

    def labelled(self) -> "Way":
        """The way to write the same values again, each of the shared ones once."""
        again = Way(self.is_state, self.most)
        again.shared, again.is_labelled = self.shared, True
        return again

    def wrap(self, value: Any, told: Callable[[], Any]) -> Any:
        """What stands for a list, a dictionary or a dataclass."""
        self.deeper()
        made = told() if not self.is_state else self._of_state(value, told)
        self.depth -= 1
        return made

    def _of_state(self, value: Any, told: Callable[[], Any]) -> Any:
        place = id(value)
        if not self.is_labelled:
            if place in self._met or type(value) is dict and _SHARED in value:
                self.shared.add(place)
                if place in self._met:
                    return None
            self._met[place] = 0
            return told()
        if place not in self.shared:
            return told()
        if place in self._met:
            if place not in self._made:
                raise TypeError("a value contains itself")
            return {_SHARED: self._met[place]}
        number = self._met[place] = len(self._met) + 1
        made = {_SHARED: number, _VALUE: told()}
        self._made[place] = True
        return made

    def unwrap(self, told: Any, decode: Callable[[Any, "Way"], Any]) -> Any:
        """The value of what `wrap` has made, by what reads one that stands in one place."""
        if not (self.is_labelled and type(told) is dict and _SHARED in told):
            return decode(told, self)
        number = told[_SHARED]
        if _VALUE in told:
            self._made[number] = decode(told[_VALUE], self)
        if number not in self._made:
            raise TypeError("its value stood in a field that is not known any more")
        return self._made[number]

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


def has_labels(state: bytes) -> bool:
    """Whether values of this state may stand in several places."""
    return b'{"$":' in state


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
        return way.wrap(value, lambda: [plain(item, way) for item in value])
    if kind is dict:
        for key in value:
            if type(key) is not str:
                what = f"the key {key}" if type(key) in (int, bool) else f"a key: {shown(key)}"
                raise TypeError(f"JSON would make {what} a text: annotate it, or use text")
        return way.wrap(value, lambda: {key: plain(item, way) for key, item in value.items()})
    raise TypeError(f"JSON would not give back {shown(value)}: annotate it, or use plain values")


def given(value: Any, way: Way) -> Any:
    """A value without a hint, out of JSON."""
    if not way.is_state:
        return plain(value, way)
    return way.unwrap(value, _inner_given) if way.is_labelled else value


def _inner_given(value: Any, way: Way) -> Any:
    if type(value) is list:
        return [given(item, way) for item in value]
    if type(value) is dict:
        return {key: given(item, way) for key, item in value.items()}
    return value


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
