"""Calls of a real cluster, from plain Python."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest
from pathlib import Path

from cluster import PATIENCE, Background, Cluster, wait_for
from steadfast_client import (
    CallError,
    Client,
    ConnectError,
    DeadlineExceeded,
    NoSuchGroup,
    Refused,
    ServiceError,
)


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())
        cls.addresses = list(cls.cluster.addresses.values())

    def setUp(self):
        self.client = Client(*self.addresses, deadline=20)
        self.before = self.client.read("counter", "get")

    def test_arguments_in_order_and_by_name(self):
        self.assertEqual(self.client.call("counter", "add", 5), self.before + 5)
        self.assertEqual(self.client.call("counter", "add", n=6), self.before + 11)
        with self.assertRaisesRegex(TypeError, "in order, or all by name"):
            self.client.call("counter", "add", 5, n=6)

    def test_reads_see_what_was_answered(self):
        self.client.call("counter", "add", 1)
        other = Client(",".join(self.addresses), deadline=20)
        self.assertEqual(other.read("counter", "get"), self.before + 1)
        self.assertLessEqual(other.read("counter", "get", stale=1.5), self.before + 1)

    def test_raw_bytes_are_not_json(self):
        # Postcard of 300, and of the sum that comes back.
        answer = self.client.call("counter", "add", body=b"\xac\x02")
        number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(answer))
        self.assertEqual(number, self.before + 300)
        with self.assertRaisesRegex(TypeError, "not both"):
            self.client.call("counter", "add", 5, body=b"")

    def test_errors_have_their_types_and_say_whether_the_call_was_executed(self):
        self.client.call("counter", "add", 1)
        with self.assertRaises(ServiceError) as raised:
            self.client.call("counter", "add", 2**64 - 1)
        self.assertEqual(raised.exception.value, {"Overflow": self.before + 1})
        self.assertIs(raised.exception.executed, True)
        with self.assertRaises(ServiceError) as raised:
            self.client.call("counter", "add", body=b"\xff" * 9 + b"\x01")
        self.assertIsInstance(raised.exception.value, bytes)
        for kind, call in (
            ("NoSuchMethod", lambda: self.client.call("counter", "subtract", 1)),
            ("BadArguments", lambda: self.client.call("counter", "add", "one")),
            ("NotReadOnly", lambda: self.client.read("counter", "add", 1)),
        ):
            with self.assertRaises(Refused) as raised:
                call()
            self.assertEqual(raised.exception.kind, kind)
            self.assertIs(raised.exception.maybe_executed, False)
        with self.assertRaisesRegex(NoSuchGroup, "no group `nobody`") as raised:
            self.client.call("nobody", "add", 1)
        self.assertIs(raised.exception.executed, False)
        self.assertEqual(self.client.read("counter", "get"), self.before + 1)

    def test_wrong_times_arguments_and_addresses_are_refused_with_what_to_do(self):
        for deadline in (-1, float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, "give a number of seconds"):
                self.client.call("counter", "add", 1, deadline=deadline)
        with self.assertRaisesRegex(ValueError, "longer than the limit"):
            self.client.call("counter", "add", 1, deadline=61)
        with self.assertRaisesRegex(ValueError, "from 0 .* to 255"):
            Client(*self.addresses, priority=256)
        with self.assertRaisesRegex(ValueError, "JSON"):
            self.client.call("counter", "add", float("nan"))
        with self.assertRaisesRegex(TypeError, "JSON has no form"):
            self.client.call("counter", "add", object())
        for addresses, said in (
            ((), "no address"),
            (("nowhere",), "HOST:PORT"),
            (("127.0.0.1:1",), "check the addresses"),
        ):
            with self.assertRaisesRegex(ConnectError, said):
                Client(*addresses)
        with self.assertRaisesRegex(ConnectError, "/nowhere"):
            Client(*self.addresses, tls="/nowhere")

    def test_many_threads_share_a_client(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            sums = list(pool.map(lambda _: self.client.call("counter", "add", 1), range(400)))
        self.assertEqual(sorted(sums), [self.before + n for n in range(1, 401)])

    def test_a_forked_process_is_told_to_make_its_own_client(self):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self.client.call("counter", "add", 1)
                said = "nothing"
            except RuntimeError as error:
                said = str(error)
            own = Client(*self.addresses, deadline=20).call("counter", "add", 1)
            os.write(writer, f"{own}: {said}".encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with open(reader) as told:
            said = told.read()
        self.assertRegex(said, f"{self.before + 1}: .*make a new one in the child")
        self.assertEqual(self.client.call("counter", "add", 1), self.before + 2)

    def test_a_primary_that_is_killed_fails_no_call_and_loses_none(self):
        calls, failed = 600, []
        killed = threading.Event()
        victim = self.cluster.primary("counter")

        def caller(number):
            client = Client(*self.addresses, deadline=20)
            for n in range(calls // 4):
                if number == 0 and n == calls // 12:
                    self.cluster.kill(victim)
                    killed.set()
                try:
                    client.call("counter", "add", 1)
                except CallError as error:
                    failed.append(error)

        callers = [Background(lambda number=number: caller(number)) for number in range(4)]
        for one in callers:
            one.result()
        self.assertTrue(killed.is_set())
        self.assertEqual(failed, [])
        self.assertEqual(self.client.read("counter", "get"), self.before + calls)
        self.cluster.start(victim)
        self.cluster.wait_for_replicas("counter", 3)


class Waiting(unittest.TestCase):
    """Calls that nobody answers, because there is no majority."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())

    def setUp(self):
        # Two of three nodes hang: there is no majority, and the third keeps its calls waiting.
        self.client = Client(self.cluster.addresses[1], deadline=20)
        self.client.read("counter", "get")
        for node in (2, 3):
            self.cluster.stop(node)

    def tearDown(self):
        for node in (2, 3):
            self.cluster.go_on(node)
        self.cluster.wait_for_replicas("counter", 3)

    def test_a_deadline_is_kept_and_leaves_open_whether_the_call_was_executed(self):
        before = time.monotonic()
        with self.assertRaises(DeadlineExceeded) as raised:
            self.client.call("counter", "add", 1, deadline=0.3)
        self.assertGreaterEqual(time.monotonic() - before, 0.3)
        self.assertLess(time.monotonic() - before, 5)
        self.assertTrue(raised.exception.maybe_executed)

    def test_other_threads_run_while_one_waits(self):
        begins = threading.Event()

        def call():
            begins.set()
            self.client.call("counter", "add", 1, deadline=2)

        waiting = Background(call)
        self.assertTrue(begins.wait(PATIENCE))
        last, longest = time.monotonic(), 0
        while waiting.is_running():
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        with self.assertRaises(DeadlineExceeded):
            waiting.result()
        self.assertLess(longest, 1)

    def test_ctrl_c_interrupts_a_call_also_while_another_thread_polls(self):
        script = textwrap.dedent(
            """
            import sys, threading, time, traceback
            from steadfast_client import Client
            client = Client(sys.argv[1], deadline=50)
            if sys.argv[2] == "two":
                call = lambda: client.call("counter", "add", 1)
                threading.Thread(target=call, daemon=True).start()
            try:
                print("calls", flush=True)
                client.call("counter", "add", 1)
            except KeyboardInterrupt as error:
                print(time.monotonic(), flush=True)
                print(traceback.extract_tb(error.__traceback__)[-1].line, flush=True)
            """
        )
        for threads in ("one", "two"):
            command = [sys.executable, "-c", script, self.cluster.addresses[1], threads]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                self.assertEqual(child.stdout.readline(), "calls\n")
                state = Path(f"/proc/{child.pid}/stat")
                wait_for("the call waits", lambda: state.read_text().split()[2] == "S")
                sent = time.monotonic()
                child.send_signal(signal.SIGINT)
                took = float(child.stdout.readline()) - sent
                where = child.stdout.readline()
            finally:
                child.kill()
                child.communicate()
            self.assertIn("self._native.call(", where)
            # 50 ms in the client; the rest is for a busy machine.
            self.assertLess(took, 0.1 + 0.4)


class Secured(unittest.TestCase):
    """TLS with certificates on both sides, as `steadfast init` makes them."""

    def test_a_certificate_is_needed_and_is_enough(self):
        with Cluster(tls=True) as cluster:
            addresses = list(cluster.addresses.values())
            made = cluster.folder / "made"
            client = Client(*addresses, tls=made / "client-app", deadline=20)
            self.assertEqual(client.call("counter", "add", 5), 5)
            self.assertEqual(client.read("counter", "get"), 5)
            with self.assertRaises(ConnectError):
                Client(*addresses)
            with self.assertRaises(ConnectError):
                Client(*addresses, tls=made / "authority")


if __name__ == "__main__":
    unittest.main()
