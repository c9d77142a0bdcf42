"""Calls from asyncio: as `_client.py`, in coroutines."""

import asyncio
import os
import warnings
from typing import Any, Awaitable, Callable, Dict, Optional, Union

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
from ._errors import ClientClosed, ConnectError, Refused, ServiceError
from ._native import AsyncClient as _Native

#: The number under which the compiled half says that it has connected, or why not.
_CONNECTED = 0
#: The number under which it says that its thread has ended, which it does by itself only for a bug.
_OVER = 2**64 - 1


class AsyncClient:
    """A session with a cluster, for the tasks of one event loop.

    The arguments are those of `Client`. It connects with its first call, which may raise
    `ConnectError`; a later call tries again. All calls share one thread. A task that is cancelled
    gives its call up. Use it by `async with`, or close it.
    """

    _connection: "Optional[_Connection]" = None

    def __init__(
        self,
        *addresses: str,
        tls: Union[str, "os.PathLike[str]", None] = None,
        deadline: float = 1.0,
        priority: int = 0,
    ) -> None:
        self._addresses, self._tls = checked_addresses(addresses), folder(tls)
        self._deadline, self._priority = deadline, checked_priority(priority)
        self._contracts = Contracts()
        self._closed = False

    async def call(
        self,
        group: str,
        method: str,
        /,
        *arguments: Any,
        deadline: Optional[float] = None,
        body: Optional[bytes] = None,
        **named: Any,
    ) -> Any:
        """As `Client.call`."""
        how = (body is None, None, self._deadline if deadline is None else deadline)
        return await self._call(group, method, encoded(arguments, named, body), how)

    async def read(
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
        """As `Client.read`."""
        age = 0.0 if stale is None else max(stale, 0.001)
        how = (body is None, age, self._deadline if deadline is None else deadline)
        return await self._call(group, method, encoded(arguments, named, body), how)

    async def contract(self, group: str) -> Contract:
        """As `Client.contract`."""
        if group not in self._contracts:
            try:
                told = await self._send(group, DESCRIBE, b"[]", DESCRIBED)
            except Refused as error:
                self._contracts.refused(group, error)
            else:
                self._contracts.answered(group, told)
        return self._contracts.get(group)

    def group(
        self, name: str, *, deadline: Optional[float] = None, stale: Optional[float] = None
    ) -> "AsyncGroup":
        """As `Client.group`; the methods are coroutines."""
        return AsyncGroup(self, name, deadline, stale)

    async def close(self) -> None:
        """Ends the session. Calls under way raise `ClientClosed`."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self, warn: Any = warnings.warn) -> None:
        connection = self._connection
        if connection is not None and not connection.loop.is_closed():
            warn(f"a client was not closed: {self!r}", ResourceWarning, source=self)
            connection.loop.call_soon_threadsafe(connection.close)

    async def __aenter__(self) -> "AsyncClient":
        await self._connected()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _call(self, group: str, method: str, body: bytes, how: How) -> Any:
        is_json = how[0]
        try:
            result = await self._send(group, method, body, how)
        except ServiceError as error:
            if is_json:
                raise own_error(error) from None
            raise
        return decoded(result) if is_json else result

    async def _send(self, group: str, method: str, body: bytes, how: How) -> bytes:
        connection = self._connection
        if connection is None or not connection.is_ready():
            connection = await self._connected()
        return await connection.call(group, method, body, how)

    async def _connected(self) -> "_Connection":
        if self._closed:
            raise _not_begun()
        if self._connection is None:
            native = _Native(self._addresses, self._tls, self._priority)
            self._connection = _Connection(native)
        connection = self._connection
        if connection.loop is not asyncio.get_running_loop():
            raise RuntimeError("this client is in use in another event loop: make one for each loop")
        try:
            await asyncio.shield(connection.connected)
        except ConnectError:
            if self._connection is connection:
                connection.close()
                self._connection = None
            raise
        return connection


def _not_begun() -> ClientClosed:
    error = ClientClosed("this client was closed: make a new one")
    error.executed = False
    return error


class _Connection:
    """The compiled half, and the futures of the calls that it has under way."""

    def __init__(self, native: _Native) -> None:
        self._native, self._closed = native, False
        self.loop = asyncio.get_running_loop()
        self.connected: "asyncio.Future[Any]" = self.loop.create_future()
        # If all who waited were cancelled, nobody asks how it ended.
        self.connected.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        self._waiting: Dict[int, "asyncio.Future[Any]"] = {_CONNECTED: self.connected}
        self.loop.add_reader(native.fileno(), self._take)

    def is_ready(self) -> bool:
        """It has connected, and belongs to the present event loop."""
        return _CONNECTED not in self._waiting and self.loop is asyncio.get_running_loop()

    async def call(self, group: str, method: str, body: bytes, how: How) -> bytes:
        if self._closed:
            raise _not_begun()
        number = self._native.begin(group, method, body, how)
        future = self._waiting[number] = self.loop.create_future()
        try:
            result: bytes = await future
            return result
        finally:
            if self._waiting.pop(number, None) is not None:
                self._native.give_up(number)

    def _take(self) -> None:
        for number, result, error in self._native.ended():
            if number == _OVER:
                return self.close()
            future = self._waiting.pop(number, None)
            if future is None or future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    def close(self) -> None:
        """Ends all calls. The thread ends with the compiled half, which nobody has any more."""
        self._closed = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self._native.fileno())
        for number, future in self._waiting.items():
            if not future.done():
                self._native.give_up(number)
                future.set_exception(ClientClosed("the client was closed during the call"))
        self._waiting.clear()


class AsyncGroup:
    """A group's methods as attributes, in coroutines."""

    def __init__(
        self, client: AsyncClient, name: str, deadline: Optional[float], stale: Optional[float]
    ) -> None:
        self._client, self._name = client, name
        self._deadline, self._stale = deadline, stale

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(*arguments: Any, **named: Any) -> Any:
            # The contract can be asked for only here: an attribute cannot wait.
            contract = await self._client.contract(self._name)
            age = None
            if contract.method(self._name, name).reads:
                age = 0.0 if self._stale is None else max(self._stale, 0.001)
            deadline = self._client._deadline if self._deadline is None else self._deadline
            sent = encoded(arguments, named, None)
            return await self._client._call(self._name, name, sent, (True, age, deadline))

        call.__name__ = name
        self.__dict__[name] = call
        return call

    def __repr__(self) -> str:
        return f"<group {self._name!r}>"
