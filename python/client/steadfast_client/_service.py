"""Replicas in Python: a class becomes a service, and a program serves it under its node.

Nothing but the standard library is needed. A handler's result and effects may depend on nothing but
the state, the arguments and the `Context`: no clock, no random numbers of its own, no order of sets.
"""

import inspect
import sys
import traceback
import typing
from typing import Any, Callable, Dict, NamedTuple, Optional, Type, TypeVar

from ._attach import (
    BAD_ARGUMENTS,
    ERROR,
    FAILED_HANDLER,
    NO_SUCH_METHOD,
    NOT_READ_ONLY,
    OK,
    REFUSED,
    AttachError,
    Execute,
    Outcome,
    Program,
    View,
    method_id,
)
from ._context import Context
from ._contract import DESCRIBE
from ._errors import ServiceError
from ._kept import Kept, Shape
from ._types import Form, Forms, was
from ._values import Way, plain, written
from ._values import read as read_json

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_READS = "__steadfast_reads__"
_RAISES = "__steadfast_raises__"
_SERVICE = "__steadfast_service__"
#: Names of a class that are no methods of its service.
_OWN = ("snapshot", "restore", "serve", "on_view", "on_merge")


def read(method: F) -> F:
    """Marks a method that changes nothing: one replica answers it, without an order."""
    setattr(method, _READS, True)
    return method


def raises(kind: Any) -> Callable[[F], F]:
    """Says in the contract which type the values of a method's `ServiceError` have."""

    def mark(method: F) -> F:
        setattr(method, _RAISES, kind)
        return method

    return mark


def service(cls: Type[T]) -> Type[T]:
    """Makes a service of a class; its public methods are those of the service.

    The contract follows from type hints: int, float, str, bool, bytes, list[T], dict[K, V],
    tuple[A, B], Optional[T], enums and dataclasses. A parameter named `context` gets the `Context`.

    The state is `vars(self)` in JSON, by the hints of the class's body where there are some. A class
    with other state has `snapshot(self) -> bytes` and `restore(self, state)`.

    A method `on_view(self, view)` is told of the group's `View`s, among the calls. A replica may miss
    views between which there is no call: the state may depend on the newest alone.

    A method `on_merge(self, other)` takes in the state of the other side of a partition; `other` is an
    object of the class that has it. Both have what was called before they parted, and may have one
    call more: what both have counts once. If it raises, the state is as before, and the other side's
    calls are told as discarded. The text of a `ServiceError` is told as the reason.

    The class gets a method `serve`, which is `steadfast_client.serve` of this class.
    """
    if "serve" in vars(cls):
        raise TypeError(f"{cls.__name__}.serve: `service` defines it; choose another name")
    setattr(cls, _SERVICE, Service(cls))
    setattr(cls, "serve", classmethod(serve))
    return cls


def serve(cls: Type[Any], *arguments: Any, **named: Any) -> None:
    """Serves `cls(*arguments, **named)`, until the node that has started this program ends it."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    described: Service = getattr(cls, _SERVICE)
    try:
        Program(Replica(described, lambda: cls(*arguments, **named))).serve()
    except AttachError as error:
        sys.exit(str(error))


class BadArguments(Exception):
    """A call's arguments are not those of the method."""


class Method(NamedTuple):
    """A method of a service."""

    name: str
    reads: bool
    docs: str
    parameters: Dict[str, Form]
    needed: int
    with_context: bool
    result: Form
    error: Optional[Form]

    @classmethod
    def of(cls, function: Callable[..., Any], forms: Forms) -> "Method":
        name = function.__name__
        try:
            hints = typing.get_type_hints(function)
            parameters, needed, with_context = {}, 0, False
            for parameter in list(inspect.signature(function).parameters.values())[1:]:
                if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
                    raise TypeError(f"{parameter} is no single argument with a name")
                if parameter.name == "context":
                    with_context = True
                    continue
                needed += parameter.default is parameter.empty
                parameters[parameter.name] = forms.of(hints.get(parameter.name, Any))
            result = forms.of(hints.get("return", Any))
            own_error = forms.of(getattr(function, _RAISES)) if hasattr(function, _RAISES) else None
        except (NameError, TypeError) as error:
            raise TypeError(f"{name}: {error}") from None
        reads, docs = hasattr(function, _READS), inspect.getdoc(function) or ""
        return cls(name, reads, docs, parameters, needed, with_context, result, own_error)

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}: {form.name}" for name, form in self.parameters.items())
        return f"{self.name}({arguments}) -> {self.result.name}"

    def arguments(self, body: bytes) -> Dict[str, Any]:
        """Raises BadArguments."""
        try:
            told = read_json(body)
        except ValueError as error:
            raise BadArguments(f"the arguments are not JSON ({error})") from None
        if isinstance(told, list):
            if len(told) > len(self.parameters):
                raise BadArguments(f"{self} is given {len(told)} arguments")
            told = dict(zip(self.parameters, told))
        elif not isinstance(told, dict):
            raise BadArguments(f"{self} takes an array of arguments, or an object by their names")
        missing = list(self.parameters)[: self.needed]
        missing = [name for name in missing if name not in told]
        if missing:
            raise BadArguments(f"{self} is not given {missing[0]}")
        way = Way()
        way.deeper()
        return {name: self._argument(name, value, way) for name, value in told.items()}

    def _argument(self, name: str, value: Any, way: Way) -> Any:
        if name not in self.parameters:
            raise BadArguments(f"{self} has no argument {name}")
        try:
            return self.parameters[name].decode(value, way)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadArguments(f"{self}, {name}: {error}") from None

    def described(self) -> Dict[str, Any]:
        """As it stands in the contract."""
        arguments = [{"name": name, "type": form.name} for name, form in self.parameters.items()]
        docs = {"docs": self.docs} if self.docs else {}
        error = {"error": self.error.name} if self.error else {}
        head = {"name": self.name, "reads": self.reads, **docs, "arguments": arguments}
        return {**head, "result": self.result.name, **error}


class Service:
    """A class as a service: its methods, its contract, and the form of its state."""

    def __init__(self, cls: Type[Any]) -> None:
        forms = Forms()
        functions = [
            function
            for name, function in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith("_") and name not in _OWN
        ]
        functions.sort(key=lambda function: function.__code__.co_firstlineno)
        try:
            self.methods = {method_id(f.__name__): Method.of(f, forms) for f in functions}
            hints = typing.get_type_hints(cls, include_extras=True)
            hints = {n: it for n, it in hints.items() if typing.get_origin(it) is not typing.ClassVar}
            fields = {name: forms.of(hint) for name, hint in hints.items()}
            former = {old: name for name, hint in hints.items() for old in was(hint)}
        except (NameError, TypeError) as error:
            raise TypeError(f"service {cls.__name__}: {error}") from None
        if len(self.methods) < len(functions):
            raise TypeError(f"service {cls.__name__}: two methods have one number: rename one")
        if hasattr(cls, "snapshot") != hasattr(cls, "restore"):
            raise TypeError(f"service {cls.__name__}: give both snapshot and restore, or none")
        self.name = cls.__name__
        self.shape = Shape(self.name, not hasattr(cls, "snapshot"), fields, former)
        docs = {"docs": inspect.getdoc(cls)} if cls.__doc__ else {}
        types = {"types": forms.types} if forms.types else {}
        methods = [method.described() for method in self.methods.values()]
        contract = {"service": self.name, **docs, "encodings": ["json"], "methods": methods, **types}
        self.contract = written(contract)

    def listed(self) -> str:
        """The methods, for those who call another one."""
        return ", ".join(str(method) for method in self.methods.values())


class Replica:
    """A service's object under its node."""

    def __init__(self, service: Service, make: Callable[[], Any]) -> None:
        self._service = service
        #: The object and its state.
        self.kept = Kept(service.shape, make)
        # A state that cannot be given is found at the start, and not when a node is lost.
        try:
            self.kept.begin()
        except Exception as error:
            raise AttachError(f"the initial state of {service.name} cannot be kept: {error}") from None

    def execute(self, call: Execute, nested: Callable[..., Any]) -> Outcome:
        """The outcome of a call; the same at every replica, texts included."""
        service = self._service
        if not call.json:
            return _refused(BAD_ARGUMENTS, f"service {service.name} takes JSON alone")
        if call.method == _DESCRIBE:
            return Outcome(OK, 0, service.contract)
        method = service.methods.get(call.method)
        if method is None:
            return _refused(NO_SUCH_METHOD, f"no such method; there are {service.listed()}")
        if call.read and not method.reads:
            return _refused(NOT_READ_ONLY, f"{method} may change the state: it is no read")
        try:
            arguments = method.arguments(call.body)
        except BadArguments as error:
            return _refused(BAD_ARGUMENTS, str(error))
        if method.with_context:
            arguments["context"] = Context(call.now, call.seed, call.client, call.call, nested)
        outcome = self._run(method, arguments)
        reason = None if method.reads else self.kept.after_call()
        return _undone(method.name, reason) if reason is not None else outcome

    def view(self, view: View) -> None:
        """Tells the object of its group's view, if it wants to know."""
        told = getattr(self.kept.object, "on_view", None)
        if told is None:
            return
        try:
            told(view)
        except MemoryError:
            raise
        except Exception:
            # Nobody waits for an answer. It fails alike at every replica.
            traceback.print_exc()
        self.kept.after_view()

    def merge(self, state: bytes) -> Outcome:
        """Merges the state of another history with the object's. The outcome is the same everywhere."""
        if not self.kept.merges:
            return _refused(NO_SUCH_METHOD, f"service {self._service.name} merges no states")
        try:
            before, other = self.kept.snapshot(), self.kept.read(state)
        except MemoryError:
            raise
        except Exception as error:
            traceback.print_exc()
            # What a class's own restore() raises may have addresses of memory.
            reason = str(error) if self._service.shape.is_plain else type(error).__name__
            return _refused(FAILED_HANDLER, f"the states to merge cannot be read: {reason}")
        try:
            self.kept.object.on_merge(other)
        except MemoryError:
            raise
        except Exception as error:
            self.kept.undo(before)
            if isinstance(error, ServiceError) and isinstance(error.value, str):
                return _refused(FAILED_HANDLER, error.value)
            return _failed("on_merge", error)
        undone = self.kept.after_call(before)
        return Outcome(OK, 0, b"") if undone is None else _undone("on_merge", undone)

    def _run(self, method: Method, arguments: Dict[str, Any]) -> Outcome:
        try:
            result = getattr(self.kept.object, method.name)(**arguments)
            return Outcome(OK, 0, written(method.result.encode(result, Way())))
        except ServiceError as error:
            return self._own_error(method, error)
        except MemoryError:
            # It says something of this host alone: other replicas go on.
            raise
        except Exception as error:
            return _failed(method.name, error)

    def _own_error(self, method: Method, error: ServiceError) -> Outcome:
        encode = method.error.encode if method.error else plain
        try:
            return Outcome(ERROR, 0, written(encode(error.value, Way())))
        except (TypeError, ValueError) as wrong:
            return _failed(method.name, wrong)


def _refused(refusal: int, reason: str) -> Outcome:
    return Outcome(REFUSED, refusal, reason.encode(errors="backslashreplace"))


def _undone(name: str, reason: str) -> Outcome:
    told = f"{name} was undone, since its state could not be given to other replicas: {reason}"
    print(told, file=sys.stderr)
    return _refused(FAILED_HANDLER, told)._replace(panicked=True)


def _failed(name: str, error: Exception) -> Outcome:
    # Its text may have addresses of memory, which differ between replicas: only the log has it.
    traceback.print_exception(type(error), error, error.__traceback__)
    reason = f"{name} raised {type(error).__name__}; the logs of the service's nodes say where"
    return Outcome(REFUSED, FAILED_HANDLER, reason.encode(), panicked=True)


_DESCRIBE = method_id(DESCRIBE)
