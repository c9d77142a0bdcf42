"""A group's contract: its methods and types, as the service tells them."""

import dataclasses
from typing import Any, Dict, Mapping, Optional, Tuple

#: The method that tells it, in JSON and as a read.
DESCRIBE = "steadfast.describe"

# A service may be hostile: no contract is longer.
_MOST = 10_000


@dataclasses.dataclass(frozen=True)
class Method:
    """One method; types are strings of Rust's form, such as "Vec<u64>"."""

    name: str
    reads: bool
    docs: str
    arguments: Tuple[Tuple[str, str], ...]
    result: str
    error: Optional[str]

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}: {kind}" for name, kind in self.arguments)
        return f"{self.name}({arguments}) -> {self.result}"


@dataclasses.dataclass(frozen=True)
class Contract:
    """All methods by name, and the types that they name."""

    service: str
    docs: str
    methods: Mapping[str, Method]
    types: Mapping[str, Any]

    @classmethod
    def of_json(cls, told: Any) -> "Contract":
        """Raises ValueError if this is no contract."""
        methods: Dict[str, Method] = {}
        for item in _items(_table(told, "the contract"), "methods"):
            name = _text(item, "name")
            arguments = tuple(
                (_text(argument, "name"), _text(argument, "type"))
                for argument in _items(item, "arguments")
            )
            error = _text(item, "error") if item.get("error") is not None else None
            methods[name] = Method(
                name,
                item.get("reads") is True,
                _text(item, "docs", ""),
                arguments,
                _text(item, "result", "()"),
                error,
            )
        types = _table(told.get("types") or {}, "types")
        return cls(_text(told, "service", "Service"), _text(told, "docs", ""), methods, types)

    def method(self, group: str, name: str) -> Method:
        """Raises AttributeError with the methods that there are."""
        method = self.methods.get(name)
        if method is None:
            listed = ", ".join(str(method) for method in self.methods.values())
            raise AttributeError(f"group {group!r} has no method {name!r}; it has {listed}")
        return method


def _table(value: Any, name: str) -> Dict[str, Any]:
    if not isinstance(value, dict) or len(value) > _MOST:
        raise ValueError(f"{name} of the service's contract is no table")
    return value


def _items(table: Dict[str, Any], name: str) -> Any:
    items = table.get(name, [])
    if not isinstance(items, list) or len(items) > _MOST:
        raise ValueError(f"{name} of the service's contract is no list")
    return [_table(item, name) for item in items]


def _text(table: Dict[str, Any], name: str, default: Optional[str] = None) -> str:
    text = table.get(name, default)
    if not isinstance(text, str):
        raise ValueError(f"{name} of the service's contract is no text")
    return text
