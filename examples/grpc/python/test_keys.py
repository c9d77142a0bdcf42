"""Tests of the numbering: python -m unittest"""

import asyncio
import collections
import unittest

import grpc.aio

from steadfast_keys import AioKeys, Keys

Details = collections.namedtuple("Details", "method timeout metadata credentials wait_for_ready")
DETAILS = Details("/counter/add", 5, [("a", "b")], None, None)


class Call:
    """A call that ends when the test says so."""

    def __init__(self, details):
        self.metadata = dict(details.metadata)
        self.key = tuple(
            self.metadata[f"steadfast-{part}"] for part in ("session", "call", "unanswered")
        )

    def add_done_callback(self, callback):
        self.end = lambda: callback(self)


def begin(keys):
    return keys.intercept_unary_unary(lambda details, _: Call(details), DETAILS, None)


def begin_aio(keys):
    async def proceed(details, _):
        return Call(details)

    details = grpc.aio.ClientCallDetails("/counter/add", 5, grpc.aio.Metadata(("a", "b")), None, None)
    return asyncio.run(keys.intercept_unary_unary(proceed, details, None))


class Numbering(unittest.TestCase):
    def check(self, keys, begin):
        first, second = begin(keys), begin(keys)
        session = first.key[0]
        self.assertTrue(0 < int(session, 16) < 2**64)
        self.assertEqual((first.key, second.key), ((session, "1", "1"), (session, "2", "1")))
        self.assertEqual(first.metadata["a"], "b", "the caller's own metadata stay")
        first.end()
        self.assertEqual(begin(keys).key, (session, "3", "2"))

    def check_window(self, keys, begin):
        calls = [begin(keys) for _ in range(66)]
        sessions = [call.key[0] for call in calls]
        self.assertEqual(sessions[:64], [sessions[0]] * 64)
        self.assertEqual([call.key[1:] for call in calls[64:]], [("1", "1"), ("2", "1")])
        self.assertNotEqual(sessions[64], sessions[0])

    def test_blocking(self):
        self.check(Keys(), begin)
        self.check_window(Keys(), begin)

    def test_asyncio(self):
        self.check(AioKeys(), begin_aio)
        self.check_window(AioKeys(), begin_aio)

    def test_a_call_that_is_not_begun_is_no_hole(self):
        async def fail(*_):
            raise ConnectionError

        keys = AioKeys()
        details = grpc.aio.ClientCallDetails("/counter/add", 5, None, None, None)
        with self.assertRaises(ConnectionError):
            asyncio.run(keys.intercept_unary_unary(fail, details, None))
        self.assertEqual(begin_aio(keys).key[1:], ("2", "2"))


if __name__ == "__main__":
    unittest.main()
