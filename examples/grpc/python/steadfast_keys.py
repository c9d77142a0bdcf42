"""Exactly once over stock gRPC: an interceptor that gives each call a key.

    channel = grpc.intercept_channel(grpc.insecure_channel("xds:///counter"), Keys())
    channel = grpc.aio.insecure_channel("xds:///counter", interceptors=[AioKeys()])

A retry has the key of its first attempt, whichever gateway it comes to. A replica that has executed the call answers
with the result that it kept. docs/gateway.md has the rules of a key.
"""

import collections
import secrets
import threading

import grpc
import grpc.aio

WINDOW = 64  # calls under way in a session


class _Session:
    def __init__(self):
        self.name = f"{secrets.randbelow(2**64 - 1) + 1:x}"
        self.next = 1
        self.open = set()

    def oldest(self):
        return min(self.open, default=self.next)


class _Numbers:
    """One session for a channel; a further one where more than 64 calls are under way."""

    def __init__(self):
        self._lock = threading.Lock()
        self._session = _Session()

    def begin(self):
        """The metadata of a further call, and what to call when the call has ended."""
        with self._lock:
            if self._session.next - self._session.oldest() >= WINDOW:
                self._session = _Session()
            session = self._session
            number, session.next = session.next, session.next + 1
            session.open.add(number)
            key = [
                ("steadfast-session", session.name),
                ("steadfast-call", str(number)),
                ("steadfast-unanswered", str(session.oldest())),
            ]

        def end(_):
            with self._lock:
                session.open.discard(number)

        return key, end


class _Details(
    collections.namedtuple("_Details", "method timeout metadata credentials wait_for_ready compression"),
    grpc.ClientCallDetails,
):
    pass


class Keys(grpc.UnaryUnaryClientInterceptor):
    """For a channel of its own: channels do not share an interceptor."""

    def __init__(self):
        self._numbers = _Numbers()

    def intercept_unary_unary(self, proceed, details, request):
        key, end = self._numbers.begin()
        details = _Details(
            details.method,
            details.timeout,
            list(details.metadata or ()) + key,
            details.credentials,
            details.wait_for_ready,
            getattr(details, "compression", None),
        )
        call = proceed(details, request)
        call.add_done_callback(end)
        return call


class AioKeys(grpc.aio.UnaryUnaryClientInterceptor):
    """The same for a channel of asyncio."""

    def __init__(self):
        self._numbers = _Numbers()

    async def intercept_unary_unary(self, proceed, details, request):
        key, end = self._numbers.begin()
        metadata = grpc.aio.Metadata(*(details.metadata or ()), *key)
        try:
            call = await proceed(details._replace(metadata=metadata), request)
        except BaseException:
            end(None)
            raise
        call.add_done_callback(end)
        return call
