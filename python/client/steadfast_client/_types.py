"""Type hints and JSON: the name of a hint in a contract, and values to and from JSON.

Both directions are strict. A value that JSON would change in silence, such as a dictionary's keys
that are numbers, would differ between a replica that executed all calls and one that was given the
state.
"""

import dataclasses
import enum
import functools
import math
import sys
import typing
from typing import Any, Callable, Dict, List, NamedTuple, Union

_NONE = type(None)
_UNIONS: List[Any] = [Union]
if sys.version_info >= (3, 10):
    import types

    _UNIONS.append(types.UnionType)

_INTEGERS = range(-(2**63), 2**63)


class Form(NamedTuple):
    """A hint: its name in the contract, and how its values become JSON and come from it."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def plain(value: Any) -> Any:
    """A value without a hint: it must be as JSON would give it back."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return _integer(value)
    if kind is float:
        return _finite(value)
    if kind is list:
        return [plain(item) for item in value]
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise TypeError(f"JSON would make the key {key!r} a text: annotate it, or use text")
        return {key: plain(item) for key, item in value.items()}
    raise TypeError(f"JSON would not give back {_shown(value)}: annotate it, or use plain values")


def _shown(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _integer(value: Any) -> int:
    if type(value) is not int or value not in _INTEGERS:
        raise TypeError(f"{_shown(value)} is no integer of 64 bits")
    return value


def _finite(value: Any) -> float:
    if type(value) not in (float, int) or not math.isfinite(value):
        raise TypeError(f"{_shown(value)} is no finite number")
    return float(value)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def same(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{_shown(value)} is no {kind.__name__}")
        return value

    return same


def _atom(name: str, check: Callable[[Any], Any]) -> Form:
    return Form(name, check, check)


_ATOMS: Dict[Any, Form] = {
    int: _atom("i64", _integer),
    float: _atom("f64", _finite),
    str: _atom("String", _exactly(str)),
    bool: _atom("bool", _exactly(bool)),
    _NONE: _atom("()", _exactly(_NONE)),
    Any: _atom("Json", plain),
}


class Forms:
    """The forms of the hints of one service, and the types that they name."""

    def __init__(self) -> None:
        #: As in a contract: the description of each named type.
        self.types: Dict[str, Any] = {}
        self._named: Dict[type, Form] = {}

    def of(self, hint: Any) -> Form:
        """Raises TypeError for a hint that has no form."""
        if hint in (None, type(None)):
            return _ATOMS[_NONE]
        if isinstance(hint, type) and hint in self._named:
            return self._named[hint]
        try:
            return _ATOMS[hint]
        except (KeyError, TypeError):
            pass
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin in _UNIONS:
            return self._option(hint, inner)
        if origin is list:
            return self._list(self.of(inner[0]))
        if origin is dict:
            return self._map(*inner)
        if origin is tuple and Ellipsis not in inner:
            return self._tuple([self.of(item) for item in inner])
        if hint is bytes:
            return Form("Bytes", lambda value: list(_exactly(bytes)(value)), _bytes)
        if hint in (list, dict):
            return Form("Json", plain, lambda value: plain(_exactly(hint)(value)))
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self._struct(hint)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self._enum(hint)
        raise TypeError(
            f"the hint {hint!r} has no form in JSON: use int, float, str, bool, bytes, list[T], "
            "dict[K, V], tuple[A, B], Optional[T], an Enum or a dataclass. Sets have none, because "
            "their order differs between replicas"
        )

    def _option(self, hint: Any, inner: Any) -> Form:
        others = [item for item in inner if item is not _NONE]
        if len(others) != 1 or len(inner) != 2:
            raise TypeError(f"the hint {hint!r} has no form: of unions only Optional[T] has one")
        form = self.of(others[0])
        return Form(
            f"Option<{form.name}>",
            lambda value: None if value is None else form.encode(value),
            lambda value: None if value is None else form.decode(value),
        )

    def _list(self, form: Form) -> Form:
        items = _exactly(list)
        return Form(
            f"Vec<{form.name}>",
            lambda value: [form.encode(item) for item in items(value)],
            lambda value: [form.decode(item) for item in items(value)],
        )

    def _tuple(self, forms: List[Form]) -> Form:
        def pairs(value: Any, kind: type) -> Any:
            if len(_exactly(kind)(value)) != len(forms):
                raise TypeError(f"{len(forms)} values are wanted, and not {len(value)}")
            return zip(forms, value)

        names = ", ".join(form.name for form in forms)
        return Form(
            f"({names},)" if len(forms) == 1 else f"({names})",
            lambda value: [form.encode(item) for form, item in pairs(value, tuple)],
            lambda value: tuple(form.decode(item) for form, item in pairs(value, list)),
        )

    def _map(self, key: Any, value: Any) -> Form:
        keys, values, table = self.of(key), self.of(value), _exactly(dict)
        if key not in (str, int):
            raise TypeError(f"a dictionary's keys are str or int, and not {key!r}")

        def encode(told: Any) -> Any:
            return {str(keys.encode(k)): values.encode(v) for k, v in table(told).items()}

        def decode(told: Any) -> Any:
            return {keys.decode(key(k)): values.decode(v) for k, v in table(told).items()}

        return Form(f"Map<{keys.name}, {values.name}>", encode, decode)

    def _struct(self, kind: Any) -> Form:
        # A type may have fields of itself: it is known before its fields are.
        fields: Dict[str, Form] = {}
        exactly = _exactly(kind)

        def encode(value: Any) -> Any:
            exactly(value)
            return {name: form.encode(getattr(value, name)) for name, form in fields.items()}

        form = self._name(kind, encode, functools.partial(_made, kind, fields))
        hints = typing.get_type_hints(kind)
        fields.update((field.name, self.of(hints[field.name])) for field in dataclasses.fields(kind))
        listed = [{"name": name, "type": form.name} for name, form in fields.items()]
        self.types[kind.__name__] = {"kind": "struct", "fields": listed}
        return form

    def _enum(self, kind: Any) -> Form:
        def decode(name: Any) -> Any:
            if not isinstance(name, str) or name not in kind.__members__:
                raise TypeError(f"{name!r} is none of {', '.join(kind.__members__)}")
            return kind[name]

        form = self._name(kind, lambda value: _exactly(kind)(value).name, decode)
        variants = [{"name": name, "fields": []} for name in kind.__members__]
        self.types[kind.__name__] = {"kind": "enum", "variants": variants}
        return form

    def _name(self, kind: Any, encode: Any, decode: Any) -> Form:
        name = kind.__name__
        if any(other.__name__ == name for other in self._named):
            raise TypeError(f"two types have the name {name}: rename one")
        form = self._named[kind] = Form(name, encode, decode)
        return form


def _bytes(value: Any) -> bytes:
    try:
        return bytes(_exactly(list)(value))
    except ValueError:
        raise TypeError("bytes in JSON are a list of numbers from 0 to 255") from None


def _made(kind: Any, fields: Dict[str, Form], value: Any) -> Any:
    """A dataclass of its fields; those with a default may be absent."""
    _exactly(dict)(value)
    unknown = [name for name in value if name not in fields]
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {unknown[0]!r}; it has {', '.join(fields)}")
    return kind(**{name: fields[name].decode(item) for name, item in value.items()})
