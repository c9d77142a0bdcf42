"""Calls from plain Python."""

import os
from typing import Any, Callable, List, Optional, Union

from ._calls import (
    DESCRIBE,
    DESCRIBED,
    Contracts,
    How,
    checked_addresses,
    checked_priority,
    decoded,
    encoded,
    folder,
    own_error,
)
from ._contract import Contract
from ._errors import Refused, ServiceError
from ._native import Client as _Native


class Client:
    """A session with a cluster, for any number of threads.

    `addresses` are client addresses of nodes, HOST:PORT; one that answers is enough. `tls` is the
    folder that `steadfast init` made for a client. `deadline` is in seconds, at most 60, and counts
    for calls that set none. A busy host refuses calls of a lower `priority` (0 to 255) first.

    It connects at once, and raises `ConnectError`. A process that was forked needs its own client.
    """

    def __init__(
        self,
        *addresses: str,
        tls: Union[str, "os.PathLike[str]", None] = None,
        deadline: float = 1.0,
        priority: int = 0,
    ) -> None:
        self._native = _Native(checked_addresses(addresses), folder(tls), checked_priority(priority))
        self._deadline = deadline
        self._contracts = Contracts()

    def call(
        self,
        group: str,
        method: str,
        /,
        *arguments: Any,
        deadline: Optional[float] = None,
        body: Optional[bytes] = None,
        **named: Any,
    ) -> Any:
        """Calls a method with arguments in order or by name; returns what JSON says.

        With `body` these bytes are the arguments, in the service's own encoding, and bytes come
        back. The call is executed once, whatever nodes are lost meanwhile. Raises `CallError`.
        """
        how = (body is None, None, self._deadline if deadline is None else deadline)
        return self._call(group, method, encoded(arguments, named, body), how)

    def read(
        self,
        group: str,
        method: str,
        /,
        *arguments: Any,
        stale: Optional[float] = None,
        deadline: Optional[float] = None,
        body: Optional[bytes] = None,
        **named: Any,
    ) -> Any:
        """Calls a method that changes nothing. One replica answers, without an order.

        The answer is linearizable; with `stale` the state may be so many seconds old, and replicas
        answer also during a fail-over.
        """
        age = 0.0 if stale is None else max(stale, 0.001)
        how = (body is None, age, self._deadline if deadline is None else deadline)
        return self._call(group, method, encoded(arguments, named, body), how)

    def contract(self, group: str) -> Contract:
        """The group's methods and types. Asked once; AttributeError if the service tells none."""
        if group not in self._contracts:
            try:
                told = self._native.call(group, DESCRIBE, b"[]", DESCRIBED)
            except Refused as error:
                self._contracts.refused(group, error)
            else:
                self._contracts.answered(group, told)
        return self._contracts.get(group)

    def group(
        self, name: str, *, deadline: Optional[float] = None, stale: Optional[float] = None
    ) -> "Group":
        """The group's methods as attributes, with these options for each call.

        Methods that change nothing are reads, with `stale` such as `read()` has it.
        """
        return Group(self, name, deadline, stale)

    def _call(self, group: str, method: str, body: bytes, how: How) -> Any:
        is_json = how[0]
        try:
            result = self._native.call(group, method, body, how)
        except ServiceError as error:
            if is_json:
                raise own_error(error) from None
            raise
        return decoded(result) if is_json else result


class Group:
    """A group's methods as attributes."""

    def __init__(
        self, client: Client, name: str, deadline: Optional[float], stale: Optional[float]
    ) -> None:
        self._client, self._name = client, name
        self._deadline, self._stale = deadline, stale

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        contract = self._client.contract(self._name)
        method = contract.method(self._name, name)
        age = None
        if method.reads:
            age = 0.0 if self._stale is None else max(self._stale, 0.001)
        how = (True, age, self._client._deadline if self._deadline is None else self._deadline)

        def call(*arguments: Any, **named: Any) -> Any:
            sent = encoded(arguments, named, None)
            return self._client._call(self._name, name, sent, how)

        call.__name__, call.__doc__ = name, method.docs or None
        self.__dict__[name] = call
        return call

    def __dir__(self) -> List[str]:
        return sorted(self._client.contract(self._name).methods)

    def __repr__(self) -> str:
        return f"<group {self._name!r}>"
