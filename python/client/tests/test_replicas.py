"""Replicas in Python under the nodes of a real cluster."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from cluster import Background, Cluster, wait_for
from steadfast_client import (
    AsyncClient,
    CallError,
    Client,
    NestedError,
    Refused,
    ServiceError,
)
from test_asyncio import bounded

TESTS = Path(__file__).parent


class Replicas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())
        cls.addresses = list(cls.cluster.addresses.values())
        cls.client = Client(*cls.addresses, deadline=20)
        for group, script in (("twenty", "counter.py"), ("bank", "bank.py")):
            for node in (1, 2, 3):
                cls.cluster.serve(node, group, TESTS / script)
            cls.cluster.wait_for_replicas(group, 3)

    def program(self, node, group):
        listed = self.cluster.programs(node)
        return next(program for program in listed if program["group"] == group)

    def test_the_contract_makes_methods_and_reads(self):
        counter = self.client.group("twenty")
        before = counter.get()
        self.assertEqual(counter.add(5), before + 5)
        self.assertEqual(counter.add(n=6), before + 11)
        self.assertEqual(self.client.group("twenty", stale=60).get(), before + 11)
        self.assertEqual(dir(counter), ["add", "get"])
        self.assertEqual(counter.add.__doc__, "Adds n, and gives the sum.")
        with self.assertRaisesRegex(AttributeError, r"no method 'sub'; it has add\(n: i64\) -> i64"):
            counter.sub(1)
        with self.assertRaisesRegex(Refused, "may change the state"):
            self.client.read("twenty", "add", 1)

    @bounded
    async def test_the_contract_makes_coroutines(self):
        async with AsyncClient(*self.addresses, deadline=20) as client:
            counter = client.group("twenty")
            before = await counter.get()
            self.assertEqual(await counter.add(5), before + 5)
            with self.assertRaisesRegex(AttributeError, "no method 'sub'"):
                await counter.sub(1)

    @bounded
    async def test_a_group_without_a_contract_says_what_to_do(self):
        # The other nodes hear of the group a moment later.
        self.cluster.serve(1, "untold", TESTS / "untold.py")
        first = self.cluster.addresses[1]
        client = Client(first, deadline=20)
        self.assertEqual(client.call("untold", "add", 5), 5)
        with self.assertRaisesRegex(AttributeError, r"use call\(\) or read\(\)"):
            client.group("untold").add(1)
        async with AsyncClient(first, deadline=20) as client:
            with self.assertRaisesRegex(AttributeError, r"use call\(\) or read\(\)"):
                await client.group("untold").add(1)
            self.assertEqual(await client.read("untold", "get"), 5)

    def test_values_errors_and_time(self):
        bank = self.client.group("bank")
        opened = {"kind": "SAVINGS", "balance": 0, "moves": []}
        self.assertEqual(bank.open(1, "SAVINGS"), opened)
        self.assertEqual(bank.pay(number=1, amount=400, text="wages"), 400)
        with self.assertRaises(ServiceError) as raised:
            bank.pay(1, 400, "more")
        self.assertEqual(raised.exception.value, {"most": 500})
        (when, text), = bank.account(1)["moves"]
        self.assertEqual(text, "wages")
        self.assertGreater(when, 1_700_000_000 * 10**9)
        self.assertIsNone(bank.account(2))
        with self.assertRaises(Refused) as raised:
            bank.pay(99, 1, "nobody's")
        self.assertEqual(raised.exception.kind, "Failed")
        self.assertIs(raised.exception.executed, True)
        self.assertIn("pay raised KeyError; the logs", raised.exception.reason)
        for wrong in (lambda: bank.open("one"), lambda: bank.open(), lambda: bank.open(1, 2, 3)):
            with self.assertRaises(Refused) as raised:
                wrong()
            self.assertEqual(raised.exception.kind, "BadArguments")

    def test_what_is_too_large_is_refused_and_the_rest_is_not(self):
        self.assertEqual(len(self.client.call("bank", "text", 1_000_000)), 1_000_000)
        with self.assertRaises(Refused) as raised:
            self.client.call("bank", "text", 1 << 20)
        self.assertEqual(raised.exception.kind, "ReplyTooLarge")
        with self.assertRaises(CallError) as raised:
            self.client.call("twenty", "add", "x" * (1 << 20))
        self.assertIs(raised.exception.executed, False)

    def test_random_numbers_are_the_same_everywhere(self):
        # A voting group answers only what a majority of its replicas says.
        for node in (1, 2, 3):
            self.cluster.serve(node, "dice", TESTS / "bank.py", "--style", "voting")
        self.cluster.wait_for_replicas("dice", 3)
        first, second = self.client.call("dice", "draw"), self.client.call("dice", "draw")
        self.assertEqual(len(first), 3)
        self.assertNotEqual(first, second)

    def test_a_handler_calls_another_group(self):
        before = self.client.read("twenty", "get")
        self.assertEqual(self.client.call("bank", "forward", "twenty", 7), before + 7)
        with self.assertRaises(Refused) as raised:
            self.client.call("bank", "forward", "nobody", 7)
        self.assertIn("raised NestedError", raised.exception.reason)
        with self.assertRaises(Refused) as raised:
            self.client.call("bank", "forward", "bank", 7)
        self.assertIn("raised NestedError", raised.exception.reason)
        self.assertTrue(issubclass(NestedError, CallError))

    def test_a_killed_replica_is_served_again_and_gets_the_state(self):
        before, calls = self.client.read("twenty", "get"), 300
        self.client.call("bank", "open", 7)
        # More than two pieces.
        self.client.call("bank", "fill", 7, 600)
        kept = self.client.read("bank", "account", 7)

        def caller():
            client = Client(*self.addresses, deadline=20)
            return [client.call("twenty", "add", 1) for _ in range(calls)]

        callers = [Background(caller) for _ in range(2)]
        for node in (1, 2, 3):
            for group in ("twenty", "bank"):
                program = self.program(node, group)
                os.kill(program["pid"], signal.SIGKILL)
                wait_for(
                    f"the program of {group} at node {node} is served again",
                    lambda group=group, node=node, killed=program["restarts"]: (
                        self.program(node, group)["restarts"] > killed
                        and self.program(node, group)["joined"]
                    ),
                )
                self.cluster.wait_for_replicas(group, 3)
        sums = [sum for one in callers for sum in one.result()]
        # Each call was executed once, and none was lost.
        self.assertEqual(sorted(sums), list(range(before + 1, before + 2 * calls + 1)))
        self.assertEqual(self.client.read("bank", "account", 7), kept)

    def test_a_call_that_kills_its_replicas_is_refused(self):
        with self.assertRaises(Refused) as raised:
            self.client.call("bank", "die")
        self.assertEqual(raised.exception.kind, "Poisoned")
        self.cluster.wait_for_replicas("bank", 3)

    def test_stubs_are_python_that_type_checkers_read(self):
        for group, expected in (
            ("twenty", "    def add(self, n: int) -> int:"),
            ("bank", "Account = TypedDict('Account', "),
        ):
            command = [sys.executable, "-m", "steadfast_client", "stubs", group]
            command += ["--at", self.addresses[0]]
            made = subprocess.run(command, capture_output=True, text=True, timeout=20)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertIn(expected, made.stdout)
            module = {}
            exec(compile(made.stdout, group, "exec"), module)
            typed = module["connect"](self.client)
            self.assertEqual(dir(typed), dir(self.client.group(group)))
        command = [sys.executable, "-m", "steadfast_client", "stubs", "counter"]
        made = subprocess.run(
            [*command, "--at", "127.0.0.1:1"], capture_output=True, text=True, timeout=20
        )
        self.assertEqual(made.returncode, 1)
        self.assertIn("check the addresses", made.stderr)


if __name__ == "__main__":
    unittest.main()
