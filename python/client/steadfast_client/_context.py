"""What a handler may know besides its state and its arguments."""

import random
from typing import Any, Callable, Optional


class Context:
    """A call as its handler sees it: the same at every replica. A parameter named `context` has it."""

    def __init__(
        self, now: int, seed: int, caller: int, number: int, call: Callable[..., Any]
    ) -> None:
        #: Ordered time in nanoseconds since the Unix epoch. It never runs backwards.
        self.now = now
        #: The client that made the call.
        self.caller = caller
        #: The number of the call among the caller's.
        self.number = number
        self._seed, self._call = seed, call
        self._random: Optional[random.Random] = None

    @property
    def random(self) -> random.Random:
        """Random numbers, drawn alike at every replica that has the same version of Python."""
        if self._random is None:
            self._random = random.Random(self._seed)
        return self._random

    def call(
        self,
        group: str,
        method: str,
        /,
        *arguments: Any,
        deadline: Optional[float] = None,
        **named: Any,
    ) -> Any:
        """Calls another group, once for all replicas. Raises `ServiceError`, `Refused`, `NestedError`.

        The deadline in seconds is at most what is left to the handler's own call.
        """
        return self._call(group, method, arguments, named, deadline)
