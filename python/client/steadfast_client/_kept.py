"""The object of a service, as a state that can be given to other replicas.

A state is tried before it is needed. After each call that may change it, a small one is written; a
call that leaves one that cannot be written is undone and refused. What is small follows from the
state alone, so that all replicas refuse the same calls. Larger ones are written and read back after
the first calls and now and then. That differs between replicas, so it only tells.
"""

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ._digest import digest_of_bytes
from ._types import Form, of_field, placed
from ._values import (
    STATE_DEPTH,
    WRITTEN_DEPTH,
    Way,
    given,
    has_labels,
    is_small,
    plain,
    read_state,
    written_state,
)

#: Codes of a notice.
FAULT, WELL, DROPPED = 1, 2, 3

#: A state of more bytes is not tried beside the calls.
_TRIED_BYTES = 1 << 20
#: Seconds between two trials at least, and what share of the time they may cost.
_PAUSE, _SHARE = 60.0, 1000
#: The same as long as the state is not well.
_PAUSE_ILL, _SHARE_ILL = 1.0, 100

#: In a state: attributes that the class does not announce, or that have another type than at first.
_FREE = "$free"


class Shape(NamedTuple):
    """How a class's objects become states."""

    name: str
    #: False: it has methods snapshot() and restore().
    is_plain: bool
    #: Of attributes with a hint, by present names.
    fields: Dict[str, Form]
    #: Former names of attributes, with the present ones.
    former: Dict[str, str]


class Kept:
    """An object, and what is known of its state."""

    def __init__(self, shape: Shape, make: Callable[[], Any]) -> None:
        self._shape, self._make = shape, make
        self.object = make()
        self._kinds = {name: _kind(value) for name, value in self._attributes().items()}
        #: The last small state, to which a call is undone.
        self._good: Optional[bytes] = None
        self._trial = _Schedule()
        self._fault: Optional[str] = None
        self.merges = hasattr(self.object, "on_merge")
        #: What the node is to be told: codes and texts.
        self.notices: List[Tuple[int, str]] = []

    def begin(self) -> None:
        """Tries the initial state. Raises what tells why it cannot be given."""
        self._read_back()
        self._look()

    def reset(self) -> None:
        """Begins anew."""
        self.object = self._make()
        self._look()

    def restore(self, state: bytes) -> None:
        """Takes this state on, or keeps its own and raises."""
        self.object = self.read(state)
        self._trial.changed()
        try:
            self._look()
        except Exception as error:
            self._fail(str(error))

    def read(self, state: bytes) -> Any:
        """Another object, which has this state. Raises what tells why there is none."""
        way = Way(is_state=True)
        read = self._restored(state, way)
        if way.dropped:
            self.notices.append((DROPPED, ", ".join(f"`{name}`" for name in way.dropped)))
        return read

    def undo(self, before: bytes) -> None:
        """Goes back to a state that the object had."""
        try:
            self.object = self._restored(before, Way(is_state=True))
            self._look()
        except Exception as error:
            self._fail(str(error))

    def after_call(self, before: Optional[bytes] = None) -> Optional[str]:
        """Looks at the state after a call. If it cannot be given, undoes the call and says why."""
        self._trial.changed()
        good = self._good if before is None else before
        try:
            self._look()
        except Exception as error:
            if good is None:
                # It was large before, so nothing is there to go back to.
                self._fail(str(error))
                return None
            self.undo(good)
            return str(error)
        return None

    def after_view(self) -> None:
        """Looks at the state after a view, which nothing undoes."""
        self._trial.changed()
        try:
            self._look()
        except Exception as error:
            self._fail(str(error))

    def snapshot(self) -> bytes:
        """The state. Raises what tells why there is none."""
        try:
            state = self._written(self.object)
        except Exception as error:
            self._fail(str(error))
            raise
        self._trial.size = len(state)
        return state

    def digest(self) -> Optional[int]:
        """A digest of the state, for a comparison of the replicas; None: it is large, or has none."""
        if self._trial.size > _TRIED_BYTES:
            return None
        try:
            state = self._written(self.object)
        except Exception:
            # The trial of the state tells it.
            return None
        # Labels are numbered in the order in which values are met.
        labelled = self._shape.is_plain and has_labels(state)
        return None if labelled or len(state) > _TRIED_BYTES else digest_of_bytes(state)

    def is_trial_due(self) -> bool:
        """Whether the state is to be tried before the next call."""
        return self._trial.is_due()

    def try_state(self) -> None:
        """Writes the state, reads it back and writes it again."""
        began = time.monotonic()
        try:
            self._read_back()
        except MemoryError:
            # It says something of this host alone.
            pass
        except Exception as error:
            self._fail(str(error))
        else:
            if self._fault is not None:
                self._fault = None
                self.notices.append((WELL, ""))
        self._trial.tried(began, self._fault is not None)

    def _fail(self, reason: str) -> None:
        if reason != self._fault:
            self._fault = reason
            self.notices.append((FAULT, reason))

    def _read_back(self) -> None:
        # Strict in its depth, so that it warns while the state can still be given.
        state = self._written(self.object, STATE_DEPTH)
        self._trial.size = len(state)
        if len(state) > _TRIED_BYTES:
            return
        again = self._written(self._restored(state, Way(is_state=True)))
        if again != state:
            raise TypeError(f"what is written is not what is read back{self._difference(state, again)}")

    def _difference(self, state: bytes, again: bytes) -> str:
        if not self._shape.is_plain:
            return ": snapshot() and restore() do not fit"
        first, second = read_state(state), read_state(again)
        differs = (name for name in {**first, **second} if first.get(name) != second.get(name))
        return "".join(f": field `{name}`" for name in list(differs)[:1])

    def _attributes(self) -> Dict[str, Any]:
        return vars(self.object) if self._shape.is_plain else {}

    def _look(self) -> None:
        """Keeps a small state as the good one. Raises if it is small and cannot be written."""
        self._good = None
        if self._shape.is_plain and is_small(list(self._attributes().values())):
            self._good = self._written(self.object)

    def _written(self, of: Any, most: int = WRITTEN_DEPTH) -> bytes:
        if not self._shape.is_plain:
            return bytes(of.snapshot())
        values = vars(of)
        missing = [name for name in self._kinds if name not in values]
        if missing:
            raise TypeError(f"self.{missing[0]} was deleted: set it to None instead")
        way = Way(is_state=True, most=most)
        told = {name: self._kept(name, value, way) for name, value in values.items()}
        if way.shared:
            way = way.labelled()
            told = {name: self._kept(name, value, way) for name, value in values.items()}
        free = [name for name, value in values.items() if self._is_free(name, value)]
        return written_state({**told, _FREE: free} if free else told)

    def _is_free(self, name: str, value: Any) -> bool:
        if name in self._shape.fields:
            return False
        return name not in self._kinds or not _fits(self._kinds[name], value)

    def _kept(self, name: str, value: Any, way: Way) -> Any:
        form = self._shape.fields.get(name)
        way.depth = 1
        try:
            return form.encode(value, way) if form else plain(value, way)
        except TypeError as error:
            raise TypeError(
                f"self.{name}: {error}; or give the class snapshot() and restore()"
            ) from None

    def _restored(self, state: bytes, way: Way) -> Any:
        """An object that has this state. Raises what tells why there is none."""
        fresh = self._make()
        if not self._shape.is_plain:
            fresh.restore(state)
            return fresh
        told = read_state(state)
        if not isinstance(told, dict):
            raise TypeError("the state is no object of attributes")
        free, fields = told.pop(_FREE, []), self._shape.fields
        known = {**vars(fresh), **fields, **dict.fromkeys(free)}
        values = placed(told, self._shape.name, self._shape.former, known, way)
        way.depth, way.is_labelled = 1, has_labels(state)
        for name, value in values.items():
            form = fields.get(name, _FORM)
            value = of_field(name, form, value, way)
            if form is _FORM and name not in free and not _fits(_kind(vars(fresh)[name]), value):
                kind = type(vars(fresh)[name]).__name__
                raise TypeError(f"field `{name}`: a value of type {type(value).__name__} is no {kind}")
            setattr(fresh, name, value)
        return fresh


#: That of attributes without a hint.
_FORM = Form("Json", plain, given)


def _kind(value: Any) -> Any:
    """What an attribute without a hint is at first; None: whatever it likes."""
    kind = type(value)
    return float if kind is int else kind if value is not None else None


def _fits(kind: Any, value: Any) -> bool:
    return kind is None or value is None or _kind(value) is kind


class _Schedule:
    """When the state is tried: after calls 1, 2, 4, 8 and so on, then once a minute at most."""

    def __init__(self) -> None:
        self.size = 0
        self._calls = 0
        self._next = 1
        self._tried = 0
        self._due = 0.0

    def changed(self) -> None:
        self._calls += 1

    def is_due(self) -> bool:
        if self._calls == self._tried or self.size > _TRIED_BYTES:
            return False
        return self._calls >= self._next or time.monotonic() >= self._due

    def tried(self, began: float, is_ill: bool) -> None:
        now = time.monotonic()
        pause, share = (_PAUSE_ILL, _SHARE_ILL) if is_ill else (_PAUSE, _SHARE)
        self._due = now + max(pause, share * (now - began))
        self._tried = self._calls
        while self._next <= self._calls:
            self._next *= 2
