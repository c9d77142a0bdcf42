"""How calls, connections and services fail."""

from typing import Any, Optional


class SteadfastError(Exception):
    """Anything of this package that fails."""


class ConnectError(SteadfastError):
    """No client could be made. The text tells what each address did, or what is wrong with TLS."""


class CallError(SteadfastError):
    """A call has no result."""

    #: True or False: the call was executed or never will be. None: nobody knows.
    executed: Optional[bool] = False

    @property
    def maybe_executed(self) -> bool:
        """False only if the call was not executed and never will be: make it again, if you like."""
        return self.executed is not False


class ServiceError(CallError):
    """The service's own error: a handler raises it, and the caller gets it with the same value.

    The value is what JSON can say; bytes, if the call had raw bytes.
    """

    executed: Optional[bool] = True

    def __init__(self, value: Any = None) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return f"the service returned an error: {self.value!r}"


class Refused(CallError):
    """A node or the service refused the call, such as with kind "NoSuchMethod"."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind, self.reason = kind, reason

    def __str__(self) -> str:
        return f"refused ({self.kind}): {self.reason}"


class DeadlineExceeded(CallError):
    """No answer came before the deadline."""

    executed: Optional[bool] = None


class RetriesSpent(DeadlineExceeded):
    """No answer came before the deadline, and the budget of retries was empty."""


class NoSuchGroup(CallError):
    """The cluster has no group of this name."""


class NoReplica(CallError):
    """No replica of the group could answer before the deadline."""


class Unreachable(CallError):
    """The client reached no node before the deadline."""


class VersionMismatch(CallError):
    """The nodes speak another version of the protocol."""


class TooManyCalls(CallError):
    """Too many calls wait in this client."""


class ClientClosed(CallError):
    """The client was closed, or its event loop has ended."""

    executed: Optional[bool] = None


class NestedError(CallError):
    """A handler's call of another group has no reply. `kind` is such as "Deadline" or "Cycle"."""

    executed: Optional[bool] = None

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind, self.reason = kind, reason

    def __str__(self) -> str:
        return f"no reply ({self.kind}): {self.reason}"
