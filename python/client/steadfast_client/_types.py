"""Type hints and JSON: the name of a hint in a contract, and values to and from JSON.

Both directions are strict. A value that JSON would change in silence, such as a dictionary's keys
that are numbers, would differ between a replica that executed all calls and one that was given the
state.
"""

import dataclasses
import enum
import functools
import sys
import typing
from typing import Any, Callable, Dict, List, NamedTuple, Tuple, Union

from ._values import Way, given, integer, number, plain, shown, text

_NONE = type(None)
_UNIONS: List[Any] = [Union]
if sys.version_info >= (3, 10):
    import types

    _UNIONS.append(types.UnionType)


class Was:
    """Former names of a field: `balance: Annotated[int, Was("amount")]` reads states that have
    `amount`."""

    def __init__(self, *names: str) -> None:
        self.names = names


def was(hint: Any) -> Tuple[str, ...]:
    """The former names that a hint tells."""
    told = (mark.names for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Was))
    return tuple(name for names in told for name in names)


class Form(NamedTuple):
    """A hint: its name in the contract, and how its values become JSON and come from it."""

    name: str
    encode: Callable[[Any, Way], Any]
    decode: Callable[[Any, Way], Any]


def _exactly(kind: type) -> Callable[[Any, Way], Any]:
    def same(value: Any, way: Way) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{shown(value)} is no {kind.__name__}")
        return value

    return same


def _atom(name: str, check: Callable[[Any, Way], Any]) -> Form:
    return Form(name, check, check)


_ATOMS: Dict[Any, Form] = {
    int: _atom("i64", integer),
    float: _atom("f64", number),
    str: _atom("String", text),
    bool: _atom("bool", _exactly(bool)),
    _NONE: _atom("()", _exactly(_NONE)),
    Any: Form("Json", plain, given),
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
        if hasattr(hint, "__metadata__"):
            return self.of(hint.__origin__)
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
            return Form("Bytes", lambda value, way: list(_exactly(bytes)(value, way)), _bytes)
        if hint in (list, dict):
            exactly = _exactly(hint)
            return Form("Json", plain, lambda value, way: exactly(given(value, way), way))
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
            lambda value, way: None if value is None else form.encode(value, way),
            lambda value, way: None if value is None else form.decode(value, way),
        )

    def _list(self, form: Form) -> Form:
        exactly = _exactly(list)

        def encode(value: Any, way: Way) -> Any:
            exactly(value, way)
            return way.wrap(value, lambda: [form.encode(item, way) for item in value])

        def inner(told: Any, way: Way) -> Any:
            way.deeper()
            made = [form.decode(item, way) for item in exactly(told, way)]
            way.depth -= 1
            return made

        return Form(f"Vec<{form.name}>", encode, lambda told, way: way.unwrap(told, inner))

    def _tuple(self, forms: List[Form]) -> Form:
        def pairs(value: Any, kind: type, way: Way) -> Any:
            if len(_exactly(kind)(value, way)) != len(forms):
                raise TypeError(f"{len(forms)} values are wanted, and not {len(value)}")
            return zip(forms, value)

        def encode(value: Any, way: Way) -> Any:
            way.deeper()
            told = [form.encode(item, way) for form, item in pairs(value, tuple, way)]
            way.depth -= 1
            return told

        def decode(value: Any, way: Way) -> Any:
            way.deeper()
            told = tuple(form.decode(item, way) for form, item in pairs(value, list, way))
            way.depth -= 1
            return told

        names = ", ".join(form.name for form in forms)
        return Form(f"({names},)" if len(forms) == 1 else f"({names})", encode, decode)

    def _map(self, key: Any, value: Any) -> Form:
        keys, values, table = self.of(key), self.of(value), _exactly(dict)
        if key not in (str, int):
            raise TypeError(f"a dictionary's keys are str or int, and not {key!r}")

        def encode(value: Any, way: Way) -> Any:
            table(value, way)
            return way.wrap(
                value,
                lambda: {
                    str(keys.encode(k, way)): values.encode(v, way) for k, v in value.items()
                },
            )

        def inner(told: Any, way: Way) -> Any:
            way.deeper()
            made = {
                keys.decode(_key(key, k), way): values.decode(v, way)
                for k, v in table(told, way).items()
            }
            way.depth -= 1
            return made

        name = f"Map<{keys.name}, {values.name}>"
        return Form(name, encode, lambda told, way: way.unwrap(told, inner))

    def _struct(self, kind: Any) -> Form:
        # A type may have fields of itself: it is known before its fields are.
        fields: Dict[str, Form] = {}
        former: Dict[str, str] = {}
        exactly = _exactly(kind)

        def encode(value: Any, way: Way) -> Any:
            exactly(value, way)
            _no_more(kind, fields, value)
            return way.wrap(
                value,
                lambda: {n: form.encode(getattr(value, n), way) for n, form in fields.items()},
            )

        inner = functools.partial(_made, kind, fields, former)
        form = self._name(kind, encode, lambda told, way: way.unwrap(told, inner))
        hints = typing.get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            if not field.init:
                raise TypeError(f"{kind.__name__}.{field.name} has init=False: no state gives it back")
            fields[field.name] = self.of(hints[field.name])
            former.update((name, field.name) for name in was(hints[field.name]))
        listed = [{"name": name, "type": form.name} for name, form in fields.items()]
        self.types[kind.__name__] = {"kind": "struct", "fields": listed}
        return form

    def _enum(self, kind: Any) -> Form:
        def decode(name: Any, way: Way) -> Any:
            if not isinstance(name, str) or name not in kind.__members__:
                raise TypeError(f"{name!r} is none of {', '.join(kind.__members__)}")
            return kind[name]

        form = self._name(kind, lambda value, way: _exactly(kind)(value, way).name, decode)
        variants = [{"name": name, "fields": []} for name in kind.__members__]
        self.types[kind.__name__] = {"kind": "enum", "variants": variants}
        return form

    def _name(self, kind: Any, encode: Any, decode: Any) -> Form:
        name = kind.__name__
        if any(other.__name__ == name for other in self._named):
            raise TypeError(f"two types have the name {name}: rename one")
        form = self._named[kind] = Form(name, encode, decode)
        return form


def _key(kind: Any, told: str) -> Any:
    """A key of a dictionary. A number has one text: two would become one key."""
    if kind is str:
        return told
    try:
        value = int(told)
    except ValueError:
        raise TypeError(f"the key {told!r} is no integer") from None
    if str(value) != told:
        raise TypeError(f"the key {told!r} is not written as an integer is")
    return value


def _bytes(value: Any, way: Way) -> bytes:
    if type(value) is not list or any(type(byte) is not int for byte in value):
        raise TypeError("bytes in JSON are a list of numbers from 0 to 255")
    try:
        return bytes(value)
    except ValueError:
        raise TypeError("bytes in JSON are a list of numbers from 0 to 255") from None


def _no_more(kind: Any, fields: Dict[str, Form], value: Any) -> None:
    """An attribute that is no field would be missing in the state, in silence."""
    there = getattr(value, "__dict__", fields)
    if len(there) <= len(fields):
        return
    for name in there:
        cached = isinstance(getattr(kind, name, None), functools.cached_property)
        if name not in fields and not cached:
            raise TypeError(f"{kind.__name__} has an attribute `{name}` that is no field")


def placed(value: Any, name: str, former: Dict[str, str], fields: Any, way: Way) -> Any:
    """The present names of what a table of fields has; None for those that nobody knows."""
    made: Dict[str, Any] = {}
    for told, item in value.items():
        present = told if told in fields else former.get(told) if way.is_state else None
        if present is None:
            if not way.is_state:
                raise TypeError(f"{name} has no field {told!r}; it has {', '.join(fields)}")
            way.drop(f"{name}.{told}")
        elif present in made:
            raise TypeError(f"field `{present}` comes twice: as {told!r} and by another name")
        else:
            made[present] = item
    return made


def of_field(name: str, form: Form, told: Any, way: Way) -> Any:
    """A field's value. Raises what names the field."""
    try:
        return form.decode(told, way)
    except (TypeError, ValueError) as error:
        raise TypeError(f"field `{name}`: {error}") from None


def _made(
    kind: Any, fields: Dict[str, Form], former: Dict[str, str], value: Any, way: Way
) -> Any:
    """A dataclass of its fields; those with a default may be absent."""
    told = placed(_exactly(dict)(value, way), kind.__name__, former, fields, way)
    way.deeper()
    made = {name: of_field(name, fields[name], item, way) for name, item in told.items()}
    way.depth -= 1
    if len(made) < len(fields):
        for field in dataclasses.fields(kind):
            defaults = (field.default, field.default_factory)
            if field.name not in made and all(it is dataclasses.MISSING for it in defaults):
                raise TypeError(f"field `{field.name}` of {kind.__name__} is missing, and has no default")
    return kind(**made)
