"""A rank of a job, as its program sees it."""

import atexit
import builtins
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, SupportsIndex

from . import _native
from ._collectives import Collectives
from ._messages import Transport

# Only the rank itself may speak to its agent, and no process that it starts.
_AGENT = ("STEADFAST_JOB_SOCKET", "STEADFAST_JOB_TOKEN")

_STATE = "state"


class Tracker(NamedTuple):
    """How changes in arrays are found."""

    kind: str
    """"written": the kernel tells which pages were written; "compared": by a copy of all arrays."""
    instead: str | None
    """Why no better way is in force, and what it would take."""


class Job(Collectives):
    """This process as a rank of a job; it finds its agent at its first use.

    The job is finished when the process ends with exit status 0, or by `finish()`. Where another
    process has taken the rank's place, or the job was stopped, the process ends at once, with exit
    status 3.
    """

    def __init__(self) -> None:
        super().__init__(self._ready)
        self._lock = threading.Lock()
        self._connected = False
        self._state: dict[Any, Any] | None = None

    def _connect(self) -> None:
        if self._connected:
            return
        with self._lock:
            if not self._connected:
                _native.connect()
                for variable in _AGENT:
                    os.environ.pop(variable, None)
                atexit.register(self._at_exit)
                os.register_at_fork(after_in_child=_native.forget)
                self._connected = True

    def _ready(self) -> Transport:
        self._connect()
        return _native

    @property
    def start(self) -> int:
        """Which start of the rank this is, from 1."""
        self._connect()
        return _native.start()

    @property
    def fresh(self) -> bool:
        """True: it begins anew. False: it goes on from what was saved."""
        self._connect()
        return _native.fresh()

    @property
    def saved_by_agent(self) -> bool:
        """An agent saves the rank. False: the program was started by itself, or has finished."""
        self._connect()
        return _native.saved_by_agent()

    @property
    def tracker(self) -> Tracker | None:
        """How changes in arrays are found; None: nothing is saved."""
        self._connect()
        found = _native.tracker()
        return None if found is None else Tracker(*found)

    def array(
        self,
        name: str,
        shape: SupportsIndex | Sequence[SupportsIndex],
        dtype: Any = "f8",
        init: Any = None,
    ) -> Any:
        """An array that is saved: a NumPy array, or a memoryview where there is no NumPy.

        It has what was saved. At the first start it has what `init` says, else zeros. `init` is
        something like an array, or a function without arguments that returns it, and is called only
        if it is needed. The array is row-major, and its memory stays where it is.
        """
        self._connect()
        from ._arrays import arrays

        lengths = _lengths(shape)
        form, length = arrays.describe(lengths, dtype)
        memory, restored = _native.array(name, form, length)
        array = arrays.view(memory, lengths, dtype)
        if not restored and init is not None:
            arrays.fill(array, init() if callable(init) else init)
        return array

    def range(self, *arguments: SupportsIndex) -> Iterator[int]:
        """As Python's `range`, from the first turn that is not done. Loops may be nested.

        Each turn begins with a safe point: what is saved there has all turns before, and nothing of
        this one. When the program starts again, a turn that was saved in a loop within it begins
        again, and the loops within it go on: what stands beside them is done again. A loop that is
        left by `break`, `return` or an exception is over, and is passed over without them. Loops
        are known by their order, so it has to be the same at each start.

        No other thread may write arrays at a safe point: it would write what is being copied.
        """
        self._connect()
        turns = builtins.range(*arguments)
        return _native.Range(turns.start, turns.step, len(turns), self._save)

    @property
    def state(self) -> dict[Any, Any]:
        """Small objects that are saved, such as random number generators: all that pickle takes.

        They are pickled together when the rank is saved, and not before.
        """
        self._connect()
        if self._state is None:
            # The agent lets no state pass whose checksums are not right, and only the job's own
            # ranks write states. So this is the pickle that this program wrote.
            pickled = _native.get(_STATE)
            self._state = {} if pickled is None else pickle.loads(pickled)
        return self._state

    def result(self, name: str, value: Any) -> None:
        """Delivers a result, once, with the job's end. A second one of a name replaces the first.

        Arrays, bytes and texts are delivered as they are, other objects as a pickle. For arrays,
        `steadfast job restore --results` writes NumPy's files.
        """
        self._connect()
        _native.result(name, *_delivered(value))

    def safe_point(self) -> None:
        """The rank may be saved here, if it is time. `range` does it at each turn."""
        self._connect()
        if _native.safe_point():
            self._save()

    def save(self) -> None:
        """Saves the rank now: a safe point. This returns when what has changed is copied."""
        self._connect()
        _native.safe_point()
        self._save()

    def _save(self) -> None:
        self._all_received()
        self._keep_state()
        _native.save()

    def finish(self) -> None:
        """The work is done, and its results are delivered. Nothing is saved after it."""
        self._connect()
        self._keep_state()
        _native.finish()

    def _keep_state(self) -> None:
        if self._state is None:
            return
        try:
            pickled = pickle.dumps(self._state, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            why = f"job.state cannot be pickled: {error}; keep only what can be in it"
            raise _native.JobError(why) from error
        _native.put(_STATE, pickled)

    def _at_exit(self) -> None:
        # The exit status decides whether the job is finished, and is known only when Python has
        # ended; then nothing can be pickled any more.
        try:
            self._keep_state()
        except _native.JobError as error:
            traceback.print_exception(error)
            sys.stdout.flush()
            _native.leave()


def _lengths(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    axes = shape if isinstance(shape, Sequence) else (shape,)
    lengths = tuple(axis.__index__() for axis in axes)
    if any(length < 0 for length in lengths):
        raise ValueError(f"no axis of an array is shorter than 0: {shape}")
    return lengths


def _delivered(value: Any) -> tuple[str, bytes]:
    """A result's form and bytes."""
    if isinstance(value, (bytes, bytearray)):
        return "bytes", bytes(value)
    if isinstance(value, str):
        return "text", value.encode()
    from ._arrays import arrays

    flat = arrays.flatten(value)
    return flat or ("pickle", pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


job = Job()
