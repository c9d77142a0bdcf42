"""Replicated services from Python: calls that survive the loss of a node, and replicas.

Calls: `Client`, or `AsyncClient` for asyncio. Replicas: `service` and `read`, which need nothing but
the standard library and work without the compiled half of this package.
"""

from typing import TYPE_CHECKING, Any

from ._context import Context
from ._contract import Contract
from ._errors import (
    CallError,
    ClientClosed,
    ConnectError,
    DeadlineExceeded,
    NestedError,
    NoReplica,
    NoSuchGroup,
    Refused,
    RetriesSpent,
    ServiceError,
    SteadfastError,
    TooManyCalls,
    Unreachable,
    VersionMismatch,
)
from ._attach import View
from ._service import raises, read, serve, service
from ._types import Was

if TYPE_CHECKING:
    from ._asyncio import AsyncClient
    from ._client import Client

__all__ = [
    "AsyncClient",
    "CallError",
    "Client",
    "ClientClosed",
    "ConnectError",
    "Context",
    "Contract",
    "DeadlineExceeded",
    "NestedError",
    "NoReplica",
    "NoSuchGroup",
    "Refused",
    "RetriesSpent",
    "ServiceError",
    "SteadfastError",
    "TooManyCalls",
    "Unreachable",
    "VersionMismatch",
    "View",
    "Was",
    "raises",
    "read",
    "serve",
    "service",
]


def __getattr__(name: str) -> Any:
    # The compiled half is loaded by those who call, and not by replicas.
    if name == "Client":
        from ._client import Client

        return Client
    if name == "AsyncClient":
        from ._asyncio import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
