"""Exactly once over stock gRPC: an interceptor that gives each call a key.

    channel = grpc.intercept_channel(grpc.insecure_channel("xds:///counter"), Keys())

A retry has the key of its first attempt, whichever gateway it comes to. A replica that has executed the call answers
with the result that it kept. docs/gateway.md has the rules of a key.
"""

import collections
import secrets
import threading

import grpc

WINDOW = 64  # calls under way in a session


class _Details(
    collections.namedtuple("_Details", "method timeout metadata credentials wait_for_ready compression"),
    grpc.ClientCallDetails,
):
    pass


class _Session:
    def __init__(self):
        self.name = f"{secrets.randbelow(2**64 - 1) + 1:x}"
        self.next = 1
        self.open = set()

    def oldest(self):
        return min(self.open, default=self.next)


class Keys(grpc.UnaryUnaryClientInterceptor):
    """One session for a channel; a further one where more than 64 calls are under way."""

    def __init__(self):
        self._lock = threading.Lock()
        self._session = _Session()

    def intercept_unary_unary(self, proceed, details, request):
        with self._lock:
            if self._session.next - self._session.oldest() >= WINDOW:
                self._session = _Session()
            session = self._session
            number, session.next = session.next, session.next + 1
            session.open.add(number)
            unanswered = session.oldest()
        key = [
            ("steadfast-session", session.name),
            ("steadfast-call", str(number)),
            ("steadfast-unanswered", str(unanswered)),
        ]
        metadata = list(details.metadata or ()) + key
        details = _Details(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            details.wait_for_ready,
            getattr(details, "compression", None),
        )
        call = proceed(details, request)
        call.add_done_callback(lambda _: self._end(session, number))
        return call

    def _end(self, session, number):
        with self._lock:
            session.open.discard(number)
