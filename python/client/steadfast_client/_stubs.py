"""A contract as a Python module for type checkers: `python -m steadfast_client stubs`."""

import keyword
import re
from typing import Any, Dict, List, Set

from ._contract import Contract, Method

_ATOMS = {
    "bool": "bool",
    "f32": "float",
    "f64": "float",
    "String": "str",
    "()": "None",
    "Bytes": "List[int]",
    **{f"{sign}{bits}": "int" for sign in "iu" for bits in (8, 16, 32, 64)},
}
#: Nothing deeper is a type that a service has.
_DEPTH = 32


class _Types:
    """The types of one contract, and the names that the module needs for them."""

    def __init__(self, contract: Contract) -> None:
        self._defined = contract.types
        self._taken = set(_TAKEN)
        self.classes = {name: self.fresh(name_of(name)) for name in contract.types}

    def fresh(self, name: str) -> str:
        """A name that nothing else in the module has."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def of(self, text: str, depth: int = 0) -> str:
        """The type as Python's JSON gives it back. One that only the service knows is `Any`."""
        text = text.strip()
        if text in self._defined:
            # In quotes: it may be defined below, or have itself inside.
            return f'"{self.classes[text]}"'
        if text in _ATOMS:
            return _ATOMS[text]
        inner = _inner(text)
        if inner is None or depth > _DEPTH:
            return "Any"
        kind, parts = inner
        of = [self.of(part, depth + 1) for part in parts]
        if kind == "Option" and len(of) == 1:
            return f"Optional[{of[0]}]"
        if kind == "Vec" and len(of) == 1:
            return f"List[{of[0]}]"
        if kind == "Map" and len(of) == 2:
            return f"Dict[str, {of[1]}]"
        if kind == "(" and of:
            return f"List[{_union(of)}]"
        if kind == "[":
            return f"List[{of[0]}]"
        return "Any"

    def definitions(self) -> List[str]:
        lines: List[str] = []
        for name, told in self._defined.items():
            lines += self._definition(self.classes[name], told)
        return lines

    def _definition(self, name: str, told: Any) -> List[str]:
        if told.get("kind") == "struct":
            return self._struct(name, told.get("fields", []))
        lines, variants = [], []
        for variant in told.get("variants", []):
            fields = variant.get("fields", [])
            if not fields:
                variants.append(f"Literal[{variant['name']!r}]")
                continue
            own = f"{name}_{name_of(variant['name'])}"
            inside, outside = self.fresh(f"{own}_fields"), self.fresh(own)
            lines += self._struct(inside, fields)
            variants.append(f'"{outside}"')
            table = f"{{{variant['name']!r}: \"{inside}\"}}"
            lines += [f"{outside} = TypedDict({outside!r}, {table})", ""]
        lines.append(f"{name} = {f'Union[{_listed(variants)}]' if variants else 'Any'}")
        return [*lines, ""]

    def _struct(self, name: str, fields: List[Dict[str, Any]]) -> List[str]:
        """Named fields are an object, several by place a list, a single one is itself."""
        types = [self.of(field["type"]) for field in fields]
        if not fields:
            return [f"{name} = None", ""]
        if not fields[0].get("name"):
            of = types[0] if len(fields) == 1 else f"List[{_union(types)}]"
            # One name in quotes alone would be a text, and no type.
            return [f"{name} = Union[{of}]", ""]
        listed = ", ".join(f"{f['name']!r}: {kind}" for f, kind in zip(fields, types))
        return [f"{name} = TypedDict({name!r}, {{{listed}}})", ""]


_TAKEN = {"Any", "Dict", "List", "Literal", "Optional", "Protocol", "TypedDict", "Union", "cast"}
_TAKEN |= {"AsyncClient", "Client", "connect", "connect_async"}


def _listed(types: List[str]) -> str:
    """Each once, with commas between."""
    return ", ".join(dict.fromkeys(types))


def _union(types: List[str]) -> str:
    return types[0] if len(set(types)) == 1 else f"Union[{_listed(types)}]"


def _inner(text: str) -> Any:
    """A type's kind and the types inside: `Map<K, V>`, `(A, B)`, `[T; 4]`."""
    if text.startswith("(") and text.endswith(")"):
        return "(", _parts(text[1:-1])
    if text.startswith("[") and text.endswith("]") and ";" in text:
        return "[", [text[1:-1].rsplit(";", 1)[0]]
    named = re.fullmatch(r"(\w+)<(.*)>", text, re.DOTALL)
    return (named[1], _parts(named[2])) if named else None


def _parts(text: str) -> List[str]:
    """Splits at the commas that are in no brackets."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [one for one in [*parts, part] if one.strip()]


def name_of(text: str) -> str:
    """A name that Python takes: the contract comes from a service, which may be hostile."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    if not name or name[0].isdigit() or keyword.iskeyword(name):
        name = f"_{name}"
    return name


def _docs(text: str, indent: str) -> List[str]:
    if not text:
        return []
    safe = text.replace("\\", "\\\\").replace('"', '\\"')
    lines = safe.splitlines()
    if len(lines) == 1:
        return [f'{indent}"""{safe}"""']
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""']


def _method(types: _Types, method: Method, word: str) -> List[str]:
    arguments = "".join(f", {name}: {types.of(kind)}" for name, kind in method.arguments)
    head = f"    {word} {method.name}(self{arguments}) -> {types.of(method.result)}:"
    docs = _docs(method.docs, "        ")
    return [head, *docs, ""] if docs else [f"{head} ...", ""]


def _is_callable(method: Method) -> bool:
    """Python can name it and its arguments; others are called by `call` and `read`."""
    names: Set[str] = {name for name, _ in method.arguments}
    valid = all(name.isidentifier() and not keyword.iskeyword(name) for name in names | {method.name})
    return valid and "self" not in names and not method.name.startswith("_")


def stubs(contract: Contract, group: str) -> str:
    """The text of the module."""
    types = _Types(contract)
    name = types.fresh(name_of(contract.service))
    in_coroutines = types.fresh(f"Async{name}")
    lines = [
        f'"""Group {name_of(group)} by its contract. Written by `python -m steadfast_client stubs`."""',
        "",
        "from typing import Any, Dict, List, Literal, Optional, Protocol, TypedDict, Union, cast",
        "",
        "from steadfast_client import AsyncClient, Client",
        "",
        *types.definitions(),
    ]
    methods = [method for method in contract.methods.values() if _is_callable(method)]
    for own, word in ((name, "def"), (in_coroutines, "async def")):
        lines += ["", f"class {own}(Protocol):", *_docs(contract.docs or contract.service, "    "), ""]
        for method in methods:
            lines += _method(types, method, word)
    for own, client in ((name, "Client"), (in_coroutines, "AsyncClient")):
        function = "connect" if client == "Client" else "connect_async"
        lines += [
            "",
            f"def {function}(client: {client}, group: str = {group!r}) -> {own}:",
            '    """The group has these methods."""',
            f"    return cast({own}, client.group(group))",
            "",
        ]
    return "\n".join(lines)
