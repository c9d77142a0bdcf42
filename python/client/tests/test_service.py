"""Services without a node: contracts, values, states, and the frames of docs/protocol/attach.md."""

import contextlib
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple, Union

from bank import Bank
from steadfast_client import CallError, service
from steadfast_client._attach import Execute, method_id
from steadfast_client._calls import decoded
from steadfast_client._service import Replica

HELLO, WELCOME, EXECUTE, SNAPSHOT, RESTORE, RESET = 1, 2, 3, 4, 5, 6
ANSWER, STATE, FAILED, RESTORED, FAREWELL = 7, 8, 9, 10, 11
COUNTER = Path(__file__).with_name("counter.py")


def replica(cls):
    return Replica(cls.__steadfast_service__, cls)


def execute(served, method, body, read=False, is_json=True):
    call = Execute(1, 2, 3, 4, 5, method_id(method), is_json, read, body.encode())
    return served.execute(call, None)


class Contracts(unittest.TestCase):
    def test_hints_and_docs_make_the_contract(self):
        told = json.loads(Bank.__steadfast_service__.contract)
        self.assertEqual((told["service"], told["docs"]), ("Bank", "Accounts by their numbers."))
        self.assertEqual(told["encodings"], ["json"])
        methods = {method["name"]: method for method in told["methods"]}
        self.assertEqual(list(methods)[:3], ["open", "pay", "account"])
        self.assertEqual(
            methods["open"],
            {
                "name": "open",
                "reads": False,
                "docs": "Opens an account.",
                "arguments": [{"name": "number", "type": "i64"}, {"name": "kind", "type": "Kind"}],
                "result": "Account",
            },
        )
        self.assertEqual(methods["account"]["result"], "Option<Account>")
        self.assertTrue(methods["account"]["reads"])
        self.assertEqual(methods["die"]["result"], "()")
        self.assertEqual((methods["pay"]["error"], "error" in methods["open"]), ("Limit", False))
        names = [argument["name"] for argument in methods["pay"]["arguments"]]
        self.assertEqual(names, ["number", "amount", "text"])
        self.assertEqual(told["types"]["Account"]["fields"][2]["type"], "Vec<(i64, String)>")
        served = replica(Bank)
        for is_read in (False, True):
            outcome = execute(served, "steadfast.describe", "[]", is_read)
            self.assertEqual(json.loads(outcome.body), told)

    def test_hints_without_a_form_are_refused_where_the_class_is_made(self):
        odd = ((Set[int], "order differs"), (Union[int, str], "only Optional"), (object, "no form"))
        for hint, said in odd:
            with self.assertRaisesRegex(TypeError, f"service Odd: take: .*{said}"):

                @service
                class Odd:
                    def take(self, value: hint):
                        pass

        with self.assertRaisesRegex(TypeError, "no single argument"):

            @service
            class Many:
                def take(self, *values):
                    pass

    def test_the_numbers_of_methods(self):
        self.assertEqual(method_id(""), 0xCBF29CE484222325 >> 32 ^ 0xCBF29CE484222325 & 0xFFFFFFFF)
        self.assertEqual(len({method_id(name) for name in ("add", "get", "dad")}), 3)


class Values(unittest.TestCase):
    def test_arguments_are_checked_and_results_too(self):
        @dataclass
        class Point:
            x: float
            y: float = 0.5

        @service
        class Echo:
            def whole(self, value: int) -> int:
                return value

            def point(self, value: Point) -> Point:
                assert type(value) is Point
                return value

            def nested(self, value: Dict[int, List[Optional[Tuple[bool, str]]]]) -> Any:
                return sorted(value)

            def raw(self, value: bytes) -> bytes:
                return value * 2

            def wrong(self) -> int:
                return "text"

        # The hints of `point` name a class of this function.
        Echo.point.__globals__["Point"] = Point
        served = replica(Echo)

        def answer(method, body):
            outcome = execute(served, method, body)
            return (outcome.outcome, outcome.refusal, outcome.body.decode(), outcome.panicked)

        self.assertEqual(answer("whole", "[5]"), (1, 0, "5", False))
        self.assertEqual(answer("whole", '{"value": -5}'), (1, 0, "-5", False))
        self.assertEqual(answer("point", '[{"x": 1}]'), (1, 0, '{"x":1.0,"y":0.5}', False))
        self.assertEqual(answer("nested", '[{"7": [null, [true, "a"]]}]')[2], "[7]")
        self.assertEqual(answer("raw", "[[1, 255]]")[2], "[1,255,1,255]")
        for method, body in (
            ("whole", "5"),
            ("whole", "[]"),
            ("whole", "[1, 2]"),
            ("whole", '{"other": 1}'),
            ("whole", "[true]"),
            ("whole", "[1.5]"),
            ("whole", "[9223372036854775808]"),
            ("whole", "[" * 100_000),
            ("whole", "no JSON"),
            ("point", '[{"y": 1}]'),
            ("point", '[{"x": 1, "z": 2}]'),
            ("point", '[{"x": NaN}]'),
            ("nested", '[{"seven": []}]'),
            ("nested", '[{"7": [[true]]}]'),
            ("raw", "[[256]]"),
        ):
            with self.subTest(method=method, body=body[:50]):
                self.assertEqual(answer(method, body)[:2], (3, 4))
        with contextlib.redirect_stderr(io.StringIO()) as log:
            self.assertEqual(answer("wrong", "[]")[:2] + answer("wrong", "[]")[3:], (3, 5, True))
        self.assertIn("no integer of 64 bits", log.getvalue())
        self.assertEqual(execute(served, "whole", "\5", is_json=False).refusal, 4)


    def test_results_of_any_service_are_read(self):
        for text, value in (
            ("5", 5),
            (' {"a": [1.5, null]}\r\n', {"a": [1.5, None]}),
            ("18446744073709551616", 2**64),
            ('"\u00fc"', "ü"),
        ):
            self.assertEqual(decoded(text.encode()), value)
        for wrong in (b"", b"5 6", b"[1", b"\xff", b"[" * 100_000, b"five"):
            with self.assertRaisesRegex(CallError, "not JSON") as raised:
                decoded(wrong)
            self.assertTrue(raised.exception.executed)


class States(unittest.TestCase):
    def test_a_state_returns_as_it_was(self):
        first, second = replica(Bank), replica(Bank)
        execute(first, "open", '[1, "SAVINGS"]')
        execute(first, "pay", '[1, 5, "x"]')
        second.restore(first.snapshot())
        self.assertEqual(first.snapshot(), second.snapshot())
        self.assertEqual(vars(first._object), vars(second._object))
        second.reset()
        self.assertEqual(second._object.accounts, {})

    def test_an_unreadable_state_leaves_the_old_one(self):
        served = replica(Bank)
        execute(served, "open", "[1]")
        before = served.snapshot()
        for state in (b"", b"[]", b'{"accounts": {"1": {}}}', b"\xff"):
            with self.assertRaises((TypeError, ValueError)):
                served.restore(state)
            self.assertEqual(served.snapshot(), before)

    def test_states_that_json_would_change_are_refused(self):
        @service
        class Odd:
            def __init__(self):
                self.values = {}

            def put(self, key: int) -> None:
                self.values[key] = 1

            def drop(self) -> None:
                del self.values

        served = replica(Odd)
        execute(served, "put", "[1]")
        with self.assertRaisesRegex(TypeError, r"self.values: .*key 1 .*snapshot\(\)"):
            served.snapshot()
        execute(served, "drop", "[]")
        with self.assertRaisesRegex(TypeError, "self.values was deleted"):
            served.snapshot()

        @service
        class Unordered:
            def __init__(self):
                self.seen = set()

        with self.assertRaisesRegex(Exception, "initial state .* self.seen"):
            replica(Unordered)

    def test_a_class_may_have_its_own_form(self):
        @service
        class Own:
            def __init__(self):
                self.seen = set()

            def see(self, what: int) -> None:
                self.seen.add(what)

            def snapshot(self):
                return bytes(sorted(self.seen))

            def restore(self, state):
                self.seen = set(state)

        first, second = replica(Own), replica(Own)
        execute(first, "see", "[7]")
        second.restore(first.snapshot())
        self.assertEqual(second._object.seen, {7})
        self.assertNotIn(b"snapshot", Own.__steadfast_service__.contract)


class Frames(unittest.TestCase):
    """The program of 20 lines, with a node that is this test."""

    def setUp(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.begins = folder / "begins"
        self.begins.write_bytes(bytes([9] * 8))
        listener = self.enterContext(socket.socket(socket.AF_UNIX))
        listener.bind(str(folder / "node"))
        listener.listen()
        listener.settimeout(20)
        self.program = subprocess.Popen(
            # Without the compiled half, which a replica does not need.
            [
                sys.executable,
                "-c",
                "import runpy, sys; sys.modules['steadfast_client._native'] = None; "
                f"runpy.run_path({str(COUNTER)!r}, run_name='__main__')",
            ],
            env={
                **os.environ,
                "STEADFAST_ATTACH": str(folder / "node"),
                "STEADFAST_TOKEN": "ab" * 32,
                "STEADFAST_GROUP": "counter",
                "STEADFAST_BEGINS": str(self.begins),
            },
            stderr=subprocess.PIPE,
        )
        self.addCleanup(self.program.communicate)
        self.addCleanup(self.program.kill)
        self.node = self.enterContext(listener.accept()[0])
        self.node.settimeout(20)

    def send(self, kind, body=b""):
        self.node.sendall(struct.pack("<IB3x", len(body), kind) + body)

    def receive(self):
        head = self.node.recv(8, socket.MSG_WAITALL)
        length, kind = struct.unpack("<IB3x", head)
        return kind, self.node.recv(length, socket.MSG_WAITALL) if length else b""

    def welcome(self):
        kind, body = self.receive()
        self.assertEqual(kind, HELLO)
        magic, greatest, least, length, pid, token = struct.unpack_from("<4sBBHI32s", body)
        self.assertEqual((magic, greatest, least, pid), (b"SFAT", 1, 1, self.program.pid))
        self.assertEqual((token, body[44 : 44 + length]), (b"\xab" * 32, b"counter"))
        self.assertEqual(self.begins.read_bytes(), bytes(8))
        # With an extension behind the cluster's name, which is skipped.
        self.send(WELCOME, struct.pack("<BBHI", 1, 1, 5, 7) + b"trial" + b"extension")

    def call(self, number, method, body, flags=1):
        head = struct.pack("<QQQQQIB3x", number, 1, 2, 3, 4, method_id(method), flags)
        return EXECUTE, head + body

    def ends(self, status, said):
        _, log = self.program.communicate(timeout=20)
        self.assertEqual(self.program.returncode, status, log)
        self.assertIn(said, log)

    def test_commands_are_answered_in_order_however_they_come(self):
        self.welcome()
        commands = [self.call(n, "add", b"[2]") for n in range(1, 6)]
        commands.insert(2, (200, b"of a later version"))
        commands += [(SNAPSHOT, struct.pack("<Q", 6)), self.call(7, "get", b"{}", 3)]
        stream = b"".join(struct.pack("<IB3x", len(b), kind) + b for kind, b in commands)
        self.node.sendall(stream[:11])
        for byte in stream[11:111]:
            self.node.sendall(bytes([byte]))
        self.node.sendall(stream[111:])
        for number in range(1, 6):
            head = struct.pack("<QBBBx", number, 1, 0, 0)
            self.assertEqual(self.receive(), (ANSWER, head + str(2 * number).encode()))
        state = b'{"sum":10}'
        self.assertEqual(self.receive(), (STATE, struct.pack("<QQ", 6, len(state)) + state))
        self.assertEqual(self.receive(), (ANSWER, struct.pack("<QBBBx", 7, 1, 0, 0) + b"10"))
        self.assertEqual(self.begins.read_bytes(), struct.pack("<Q", 7))
        self.node.close()
        self.ends(0, b"")

    def test_states_come_in_pieces_and_reset_forgets_them(self):
        self.welcome()
        state = b'{"sum":41}'
        for piece in (state[:4], state[4:]):
            self.send(RESTORE, struct.pack("<QQ", 1, len(state)) + piece)
        self.assertEqual(self.receive(), (RESTORED, struct.pack("<Q", 1)))
        self.send(RESTORE, struct.pack("<QQ", 2, 5) + b"wrong")
        kind, body = self.receive()
        self.assertEqual((kind, body[:8]), (FAILED, struct.pack("<Q", 2)))
        self.send(*self.call(3, "add", b"[1]"))
        self.assertEqual(self.receive()[1][12:], b"42")
        self.send(RESET)
        self.send(*self.call(4, "get", b"[]"))
        self.assertEqual(self.receive()[1][12:], b"0")
        self.send(FAREWELL)
        self.ends(0, b"")

    def test_a_node_that_is_not_understood_ends_the_program_with_a_reason(self):
        self.welcome()
        self.node.sendall(struct.pack("<IB3x", 1 << 30, EXECUTE))
        self.ends(1, b"nearer to the node's")

    def test_a_short_frame_ends_it_too(self):
        self.welcome()
        self.send(EXECUTE, b"short")
        self.ends(1, b"too short")

    def test_a_dismissal_is_told(self):
        self.receive()
        self.send(FAREWELL, b"the token is of another start")
        self.ends(1, b"the node says: the token is of another start")

    def test_by_hand_it_says_how_to_start_it(self):
        self.node.close()
        plain = {name: value for name, value in os.environ.items() if "STEADFAST_" not in name}
        done = subprocess.run([sys.executable, COUNTER], env=plain, capture_output=True, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"steadfast run --group NAME", done.stderr)


if __name__ == "__main__":
    unittest.main()
