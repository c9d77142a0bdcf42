"""Calls of a real cluster, from asyncio."""

import asyncio
import gc
import os
import threading
import unittest

from cluster import PATIENCE, Cluster, wait_for
from steadfast_client import (
    AsyncClient,
    CallError,
    ClientClosed,
    ConnectError,
    Refused,
    ServiceError,
)


def bounded(test):
    """A test in coroutines that ends in time."""

    def run(self):
        asyncio.run(asyncio.wait_for(test(self), PATIENCE))

    run.__name__ = test.__name__
    return run


class Coroutines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())
        cls.addresses = list(cls.cluster.addresses.values())

    def client(self, *addresses):
        return AsyncClient(*(addresses or self.addresses), deadline=20)

    @bounded
    async def test_calls_and_reads(self):
        async with self.client() as client:
            before = await client.read("counter", "get")
            self.assertEqual(await client.call("counter", "add", 5), before + 5)
            self.assertEqual(await client.call("counter", "add", n=6), before + 11)
            self.assertLessEqual(await client.read("counter", "get", stale=1), before + 11)
            self.assertEqual(len(await client.read("counter", "get", body=b"")) > 0, True)

    @bounded
    async def test_a_thousand_calls_at_once_have_one_thread(self):
        async with self.client() as client:
            before = await client.read("counter", "get")
            calls = [asyncio.create_task(client.call("counter", "add", 1)) for _ in range(1000)]
            await asyncio.sleep(0)
            self.assertEqual(threading.active_count(), 1)
            # Those of earlier clients may still be about to end.
            wait_for("one thread for all calls", lambda: len(os.listdir("/proc/self/task")) == 2)
            sums = await asyncio.gather(*calls)
            self.assertEqual(sorted(sums), list(range(before + 1, before + 1001)))

    @bounded
    async def test_errors_have_their_types(self):
        async with self.client() as client:
            await client.call("counter", "add", 1)
            with self.assertRaises(ServiceError) as raised:
                await client.call("counter", "add", 2**64 - 1)
            self.assertEqual(list(raised.exception.value), ["Overflow"])
            with self.assertRaises(Refused) as raised:
                await client.call("counter", "subtract", 1)
            self.assertEqual(raised.exception.kind, "NoSuchMethod")

    @bounded
    async def test_a_client_that_cannot_connect_says_so_and_tries_again(self):
        client = self.client("127.0.0.1:1")
        for _ in range(2):
            with self.assertRaisesRegex(ConnectError, "check the addresses"):
                await client.call("counter", "add", 1)
        await client.close()
        with self.assertRaises(ClientClosed) as raised:
            await client.call("counter", "add", 1)
        self.assertIs(raised.exception.executed, False)

    @bounded
    async def test_a_cancelled_task_gives_its_call_up(self):
        async with self.client(self.cluster.addresses[1]) as client:
            before = await client.read("counter", "get")
            for node in (2, 3):
                self.cluster.stop(node)
            try:
                # More than the 1,024 that may wait in a client: each must be given up.
                for _ in range(8):
                    calls = [client.call("counter", "add", 1) for _ in range(200)]
                    calls = [asyncio.create_task(call) for call in calls]
                    # Until the client's thread has them all: it answers this one itself.
                    with self.assertRaises(CallError):
                        await client.call("counter", "add", 0, deadline=0.001)
                    for call in calls:
                        call.cancel()
                    ended = await asyncio.gather(*calls, return_exceptions=True)
                    self.assertEqual({type(end) for end in ended}, {asyncio.CancelledError})
                self.assertEqual(client._connection._waiting, {})
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.call("counter", "add", 1), 0.1)
            finally:
                for node in (2, 3):
                    self.cluster.go_on(node)
            self.assertGreaterEqual(await client.call("counter", "add", 1), before + 1)
        self.cluster.wait_for_replicas("counter", 3)

    @bounded
    async def test_a_client_that_nobody_closes_ends_with_a_warning(self):
        client = self.client()
        await client.call("counter", "add", 1)
        connection = client._connection
        with self.assertWarnsRegex(ResourceWarning, "was not closed"):
            del client
            gc.collect()
        await asyncio.sleep(0)
        with self.assertRaises(ClientClosed):
            await connection.call("counter", "add", b"[1]", (True, None, 20.0))

    @bounded
    async def test_closing_ends_the_calls_under_way(self):
        client = self.client(self.cluster.addresses[1])
        await client.read("counter", "get")
        for node in (2, 3):
            self.cluster.stop(node)
        try:
            call = asyncio.create_task(client.call("counter", "add", 1))
            await asyncio.sleep(0)
            await client.close()
            with self.assertRaises(ClientClosed) as raised:
                await call
            self.assertTrue(raised.exception.maybe_executed)
        finally:
            for node in (2, 3):
                self.cluster.go_on(node)
        self.cluster.wait_for_replicas("counter", 3)

    @bounded
    async def test_another_event_loop_is_told_to_have_its_own_client(self):
        client = self.client()
        await client.call("counter", "add", 1)

        def elsewhere():
            return asyncio.run(client.call("counter", "add", 1))

        with self.assertRaisesRegex(RuntimeError, "another event loop"):
            await asyncio.get_running_loop().run_in_executor(None, elsewhere)
        await client.close()

    @bounded
    async def test_a_forked_process_is_told_to_make_its_own_client(self):
        async with self.client() as client:
            await client.call("counter", "add", 1)
            child = os.fork()
            if child == 0:
                try:
                    client._connection._native.begin("counter", "add", b"[1]", (True, None, 1.0))
                except RuntimeError as error:
                    os._exit(7 if "make a new one in the child" in str(error) else 8)
                os._exit(9)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            await client.call("counter", "add", 1)

    @bounded
    async def test_a_primary_that_is_killed_fails_no_call_and_loses_none(self):
        victim = self.cluster.primary("counter")
        async with self.client() as client:
            before = await client.read("counter", "get")

            async def caller(number):
                for n in range(150):
                    if (number, n) == (0, 50):
                        self.cluster.kill(victim)
                    await client.call("counter", "add", 1)

            await asyncio.gather(*(caller(number) for number in range(8)))
            self.assertEqual(await client.read("counter", "get"), before + 1200)
        self.cluster.start(victim)
        self.cluster.wait_for_replicas("counter", 3)


if __name__ == "__main__":
    unittest.main()
