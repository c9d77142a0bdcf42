"""Replicas in Python: a class becomes a service, and a program serves it under its node.

Nothing but the standard library is needed. A handler's result and effects may depend on nothing but
the state, the arguments and the `Context`: no clock, no random numbers of its own, no order of sets.
"""

import inspect
import json
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
    method_id,
)
from ._context import Context
from ._contract import DESCRIBE
from ._errors import ServiceError
from ._types import Form, Forms, plain

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_READS = "__steadfast_reads__"
_RAISES = "__steadfast_raises__"
_SERVICE = "__steadfast_service__"
#: Names of a class that are no methods of its service.
_OWN = ("snapshot", "restore", "serve")

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


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
            told = json.loads(body.decode(), parse_constant=_no_number)
        except RecursionError:
            raise BadArguments("the arguments are nested too deeply") from None
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
        return {name: self._argument(name, value) for name, value in told.items()}

    def _argument(self, name: str, value: Any) -> Any:
        if name not in self.parameters:
            raise BadArguments(f"{self} has no argument {name}")
        try:
            return self.parameters[name].decode(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadArguments(f"{self}, {name}: {error}") from None

    def described(self) -> Dict[str, Any]:
        """As it stands in the contract."""
        arguments = [{"name": name, "type": form.name} for name, form in self.parameters.items()]
        docs = {"docs": self.docs} if self.docs else {}
        error = {"error": self.error.name} if self.error else {}
        head = {"name": self.name, "reads": self.reads, **docs, "arguments": arguments}
        return {**head, "result": self.result.name, **error}


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


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
            hints = typing.get_type_hints(cls)
            self.fields: Dict[str, Form] = {
                name: forms.of(hint)
                for name, hint in hints.items()
                if typing.get_origin(hint) is not typing.ClassVar
            }
        except (NameError, TypeError) as error:
            raise TypeError(f"service {cls.__name__}: {error}") from None
        if len(self.methods) < len(functions):
            raise TypeError(f"service {cls.__name__}: two methods have one number: rename one")
        if hasattr(cls, "snapshot") != hasattr(cls, "restore"):
            raise TypeError(f"service {cls.__name__}: give both snapshot and restore, or none")
        self.is_plain = not hasattr(cls, "snapshot")
        self.name = cls.__name__
        docs = {"docs": inspect.getdoc(cls)} if cls.__doc__ else {}
        types = {"types": forms.types} if forms.types else {}
        methods = [method.described() for method in self.methods.values()]
        contract = {"service": self.name, **docs, "encodings": ["json"], "methods": methods, **types}
        self.contract = _encode(contract).encode()

    def listed(self) -> str:
        """The methods, for those who call another one."""
        return ", ".join(str(method) for method in self.methods.values())


class Replica:
    """A service's object under its node."""

    def __init__(self, service: Service, make: Callable[[], Any]) -> None:
        self._service, self._make = service, make
        self._object = make()
        self._names = list(vars(self._object)) if service.is_plain else []
        # A state that cannot be given is found at the start, and not when a node is lost.
        try:
            if service.is_plain:
                self.restored(self.snapshot())
        except Exception as error:
            raise AttachError(f"the initial state of {service.name} cannot be kept: {error}") from None

    def reset(self) -> None:
        """Begins anew."""
        self._object = self._make()

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
        try:
            result = getattr(self._object, method.name)(**arguments)
            return Outcome(OK, 0, _encode(method.result.encode(result)).encode())
        except ServiceError as error:
            return self._own_error(method, error)
        except MemoryError:
            # It says something of this host alone: other replicas go on.
            raise
        except Exception as error:
            return _failed(method, error)

    def _own_error(self, method: Method, error: ServiceError) -> Outcome:
        encode = method.error.encode if method.error else plain
        try:
            return Outcome(ERROR, 0, _encode(encode(error.value)).encode())
        except (TypeError, ValueError) as wrong:
            return _failed(method, wrong)

    def snapshot(self) -> bytes:
        """The state. Raises what tells why there is none."""
        if not self._service.is_plain:
            return bytes(self._object.snapshot())
        values = vars(self._object)
        missing = [name for name in self._names if name not in values]
        if missing:
            raise TypeError(f"self.{missing[0]} was deleted: set it to None instead")
        return _encode({name: self._kept(name, value) for name, value in values.items()}).encode()

    def _kept(self, name: str, value: Any) -> Any:
        form = self._service.fields.get(name)
        try:
            return form.encode(value) if form else plain(value)
        except TypeError as error:
            raise TypeError(
                f"self.{name}: {error}; or give the class snapshot() and restore()"
            ) from None

    def restored(self, state: bytes) -> Any:
        """An object that has this state. Raises what tells why there is none."""
        fresh = self._make()
        if not self._service.is_plain:
            fresh.restore(state)
            return fresh
        told = json.loads(state.decode())
        if not isinstance(told, dict):
            raise TypeError("the state is no object of attributes")
        fields = self._service.fields
        for name, value in told.items():
            setattr(fresh, name, fields[name].decode(value) if name in fields else value)
        return fresh

    def restore(self, state: bytes) -> None:
        """Takes this state on, or keeps its own and raises."""
        self._object = self.restored(state)


def _refused(refusal: int, reason: str) -> Outcome:
    return Outcome(REFUSED, refusal, reason.encode())


def _failed(method: Method, error: Exception) -> Outcome:
    # Its text may have addresses of memory, which differ between replicas: only the log has it.
    traceback.print_exception(type(error), error, error.__traceback__)
    reason = f"{method.name} raised {type(error).__name__}; the logs of the service's nodes say where"
    return Outcome(REFUSED, FAILED_HANDLER, reason.encode(), panicked=True)


_DESCRIBE = method_id(DESCRIBE)
