"""The parts of a call that do not differ between plain Python and asyncio."""

import dataclasses
import enum
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._contract import DESCRIBE, Contract
from ._errors import CallError, Refused, ServiceError

#: JSON or not, the age that a read's state may have, the deadline: as the compiled half takes it.
How = Tuple[bool, Optional[float], float]


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (bytes, bytearray)):
        return list(value)
    raise TypeError(f"JSON has no form for {value!r}: give plain values, or raw bytes by body=")


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_plain).encode
_decoder = json.JSONDecoder()
_decode, _scan = _decoder.decode, _decoder.scan_once  # type: ignore[attr-defined]

DESCRIBED: How = (True, 0.0, 5.0)


def encoded(arguments: Sequence[Any], named: Mapping[str, Any], body: Optional[bytes]) -> bytes:
    """Arguments in order or by name, or the raw bytes."""
    if body is not None:
        if arguments or named:
            raise TypeError("give arguments, or raw bytes by body=, but not both")
        return bytes(body)
    if arguments and named:
        raise TypeError("give all arguments in order, or all by name: JSON has no form for both")
    text = _encode(named) if named else f"[{','.join(map(_argument, arguments))}]"
    return text.encode()


def _argument(value: Any) -> str:
    # Half of what Python adds to a call would be the encoder's preparations.
    return repr(value) if type(value) is int else _encode(value)


def decoded(result: bytes) -> Any:
    """A result in JSON."""
    try:
        text = result.decode()
        try:
            # Without the decoder's own steps: most results are short, with no white space around.
            value, end = _scan(text, 0)
        except StopIteration:
            end = -1
        return value if end == len(text) else _decode(text)
    except (RecursionError, ValueError) as error:
        wrong = CallError(f"the call was executed, but its answer is not JSON ({error})")
        wrong.executed = True
        raise wrong from None


def own_error(error: ServiceError) -> ServiceError:
    """The service's own error, whose value came as JSON."""
    return ServiceError(decoded(error.value))


def checked_addresses(addresses: Sequence[str]) -> List[str]:
    """Addresses, each HOST:PORT or several with commas between them."""
    if not all(isinstance(address, str) for address in addresses):
        raise TypeError("give each address as text, such as '127.0.0.1:7100'")
    return [one.strip() for address in addresses for one in address.split(",") if one.strip()]


def checked_priority(priority: int) -> int:
    """Raises ValueError."""
    if not 0 <= priority <= 255:
        raise ValueError(f"priority={priority}: give a number from 0 (the default) to 255")
    return priority


def folder(tls: Union[str, "os.PathLike[str]", None]) -> Optional[str]:
    return None if tls is None else os.fspath(tls)


class Contracts:
    """The contracts that a client has asked for, by group; None of a group that tells none."""

    def __init__(self) -> None:
        self._known: Dict[str, Optional[Contract]] = {}

    def __contains__(self, group: str) -> bool:
        return group in self._known

    def get(self, group: str) -> Contract:
        contract = self._known[group]
        if contract is None:
            raise AttributeError(
                f"the service of group {group!r} does not tell its methods: "
                "use call() or read() of the client with the method's name"
            )
        return contract

    def answered(self, group: str, result: bytes) -> None:
        try:
            self._known[group] = Contract.of_json(decoded(result))
        except ValueError as error:
            raise CallError(f"group {group!r}: {error}") from None

    def refused(self, group: str, error: Refused) -> None:
        """Raises the error, unless it says that the service tells no contract."""
        if error.kind not in ("NoSuchMethod", "BadArguments"):
            raise error
        self._known[group] = None


__all__ = ["DESCRIBE", "DESCRIBED", "Contracts", "How"]
