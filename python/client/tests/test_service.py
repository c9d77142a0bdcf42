"""Services without a node: contracts, values, states, and the frames of docs/protocol/attach.md."""

import contextlib
import io
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import types
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Dict, List, Optional, Set, Tuple, Union

from bank import Bank
from steadfast_client import CallError, Context, ServiceError, View, Was, service
from steadfast_client._attach import Execute, _view_of, method_id
from steadfast_client._calls import decoded
from steadfast_client._service import Replica

HELLO, WELCOME, EXECUTE, SNAPSHOT, RESTORE, RESET = 1, 2, 3, 4, 5, 6
ANSWER, STATE, FAILED, RESTORED, FAREWELL, CALL, CALLED = 7, 8, 9, 10, 11, 12, 13
NOTICE, MERGE = 128, 132
TESTS = Path(__file__).parent
COUNTER = TESTS / "counter.py"


#: What leaves a state that JSON would change, and the reason.
ODD_CALLS = {
    "number": "self.values: .*key 1 .*snapshot",
    "tuple": "a value of type tuple",
    "nest": "nested more than 100 deep",
    "wind": "(nested more than 100 deep|contains itself)",
    "drop": "self.values was deleted",
}


@service
class Odd:
    def __init__(self):
        self.values = {}

    def keep(self, name: str, value: Any) -> None:
        self.values[name] = value

    def number(self) -> None:
        self.values[1] = 1

    def tuple(self) -> None:
        self.values["tuple"] = (1, 2)

    def nest(self) -> None:
        for _ in range(200):
            self.values = {"within": self.values}

    def wrap(self) -> None:
        self.values = {"within": self.values, "beside": list(range(200))}

    def wind(self) -> None:
        self.values["itself"] = self.values

    def drop(self) -> None:
        del self.values

    def spoil(self) -> None:
        self.values["text"] = "\ud83d\ude00 \ud83d"
        self.values["mean"] = float("inf") - float("inf")
        self.values["least"] = float("-inf")
        self.values["large"] = 2**70


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


class Views(unittest.TestCase):
    def test_an_object_that_wants_to_know_is_told_of_views(self):
        @service
        class Crew:
            def __init__(self):
                self.nodes = [0]

            def on_view(self, view):
                if not view.members:
                    raise ValueError("nobody has the state")
                self.nodes = list(view.members)

            def put(self, node: int) -> None:
                self.nodes.append(node)

        replica = Replica(getattr(Crew, "__steadfast_service__"), Crew)
        replica.kept.begin()
        body = struct.pack("<QBB6x3I", 9, 2, 1, 3, 1, 2)
        self.assertEqual(_view_of(body), View(9, (3, 1), (2,)))
        replica.view(_view_of(body))
        self.assertEqual(replica.kept.object.nodes, [3, 1])
        with contextlib.redirect_stderr(io.StringIO()) as told:
            replica.view(View(10, (), (2,)))
        self.assertIn("nobody has the state", told.getvalue())
        self.assertEqual(replica.kept.object.nodes, [3, 1])
        names = [method.name for method in replica._service.methods.values()]
        self.assertEqual(names, ["put"])


@service
class Guests:
    """Those who came, by their numbers."""

    names: Dict[int, str]

    def __init__(self):
        self.names = {}

    def come(self, number: int, name: str) -> None:
        self.names[number] = name

    def greet(self, group: str, context: Context) -> Any:
        return context.call(group, "add", len(self.names))

    def on_merge(self, other):
        assert type(other) is Guests
        for number, name in other.names.items():
            if self.names.setdefault(number, name) != name:
                raise ServiceError(f"there are two guests {number}")
            if name == "nobody":
                raise KeyError(name)
            if name == "several":
                self.names[number] = {name}


class Merges(unittest.TestCase):
    def guests(self, *names):
        served = replica(Guests)
        for number, name in enumerate(names):
            execute(served, "come", json.dumps([number, name]))
        return served

    def test_the_union_of_two_states(self):
        served, other = self.guests("Ada"), self.guests("Ada", "Bob")
        for _ in range(2):
            self.assertEqual(served.merge(other.kept.snapshot()), (1, 0, b"", False))
            self.assertEqual(served.kept.snapshot(), other.kept.snapshot())
        self.assertEqual(served.kept.notices, [])
        self.assertNotIn(b"merge", Guests.__steadfast_service__.contract)

    def test_a_merge_that_fails_leaves_the_state_as_it_was(self):
        for names in (("Ada",), ("Ada", *map(str, range(200)))):
            served = self.guests(*names)
            before = served.kept.snapshot()
            for others, said in (
                ({300: "Eve", 0: "Bob"}, "^there are two guests 0$"),
                ({300: "Eve", 301: "nobody"}, "^on_merge raised KeyError; the logs"),
            ):
                other = replica(Guests)
                other.kept.object.names = others
                with contextlib.redirect_stderr(io.StringIO()):
                    outcome = served.merge(other.kept.snapshot())
                self.assertEqual(outcome[:2], (3, 5))
                self.assertRegex(outcome.body.decode(), said)
                self.assertEqual(served.kept.snapshot(), before)
                execute(served, "come", '[0, "Ada"]')
            for wrong in (b"", b"[]", b'{"names": {"one": "Ada"}}', b"\xff"):
                with contextlib.redirect_stderr(io.StringIO()):
                    outcome = served.merge(wrong)
                self.assertEqual(outcome[:2], (3, 5))
                self.assertIn(b"the states to merge cannot be read: ", outcome.body)
                self.assertEqual(served.kept.snapshot(), before)

    def test_a_merge_whose_state_cannot_be_given_is_undone(self):
        served, other = self.guests("Ada"), self.guests("Ada", "several")
        before = served.kept.snapshot()
        with contextlib.redirect_stderr(io.StringIO()):
            outcome = served.merge(other.kept.snapshot())
        self.assertEqual((outcome.refusal, outcome.panicked), (5, True))
        self.assertIn(b"on_merge was undone, since its state could not be given", outcome.body)
        self.assertEqual((served.kept.snapshot(), served.kept.notices), (before, []))

    def test_a_class_without_the_hook_refuses(self):
        served = replica(Bank)
        self.assertEqual(execute(served, "steadfast.merge", "[]").refusal, 3)
        self.assertEqual(served.merge(served.kept.snapshot()).refusal, 3)


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

            def any(self, value):
                return value

            def cut(self) -> str:
                return "\ud83d"

            def huge(self) -> Any:
                return [2**64, float("nan")]

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
            ("nested", '[{"7": [], "07": []}]'),
            ("nested", '[{"7": [], "7": []}]'),
            ("nested", '[{"7": [[true, "\\ud83d"]]}]'),
            ("any", '["half \\uD83D"]'),
            ("any", '[{"\\ud83d": 1}]'),
            ("any", '{"\\ud83d": 1}'),
            ("any", "[" * 65 + "]" * 65),
            ("any", "[" * 496 + "]" * 496),
            ("any", "[18446744073709551616]"),
            ("any", "[1e999]"),
            ("point", '[{"x": 9007199254740993}]'),
            ("point", '[{"x": 1' + "0" * 400 + "}]"),
            ("raw", "[[true]]"),
            ("raw", "[[1.0]]"),
            ("raw", "[[256]]"),
        ):
            with self.subTest(method=method, body=body[:50]):
                self.assertEqual(answer(method, body)[:2], (3, 4))
        with contextlib.redirect_stderr(io.StringIO()) as log:
            self.assertEqual(answer("wrong", "[]")[:2] + answer("wrong", "[]")[3:], (3, 5, True))
            for method in ("cut", "huge"):
                self.assertEqual(answer(method, "[]")[:2], (3, 5))
        self.assertIn("no integer of 64 bits", log.getvalue())
        self.assertIn("half a pair of surrogates, U+D83D", log.getvalue())
        deep = "[" * 64 + "]" * 64
        self.assertEqual(answer("any", deep)[:3], (1, 0, deep[1:-1]))
        self.assertEqual(answer("any", '["\\ud83d\\ude00", -0.0]')[0], 3)
        self.assertEqual(answer("any", '["\\ud83d\\ude00"]')[2], '"\U0001f600"')
        self.assertEqual(answer("any", "[-0.0]")[2], "-0.0")
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
        second.kept.restore(first.kept.snapshot())
        self.assertEqual(first.kept.snapshot(), second.kept.snapshot())
        self.assertEqual(vars(first.kept.object), vars(second.kept.object))
        second.kept.reset()
        self.assertEqual(second.kept.object.accounts, {})

    def test_an_unreadable_state_leaves_the_old_one(self):
        served = replica(Bank)
        execute(served, "open", "[1]")
        before = served.kept.snapshot()
        for state in (b"", b"[]", b'{"accounts": {"1": {}}}', b"\xff"):
            with self.assertRaises((TypeError, ValueError)):
                served.kept.restore(state)
            self.assertEqual(served.kept.snapshot(), before)

    def test_a_call_whose_state_cannot_be_given_is_undone_and_refused(self):
        served = replica(Odd)
        execute(served, "keep", '["first", 1]')
        before = served.kept.snapshot()
        for what, said in ODD_CALLS.items():
            with contextlib.redirect_stderr(io.StringIO()):
                outcome = execute(served, what, "[]")
            self.assertEqual((outcome.refusal, outcome.panicked), (5, True), what)
            self.assertRegex(outcome.body.decode(), f"{what} was undone, .*{said}")
            self.assertEqual(served.kept.snapshot(), before)
        self.assertEqual(served.kept.notices, [])

        @service
        class Unordered:
            def __init__(self):
                self.seen = set()

        with self.assertRaisesRegex(Exception, "initial state .* self.seen"):
            replica(Unordered)

    def test_a_large_state_that_cannot_be_given_is_told_and_again_when_it_can(self):
        served = replica(Odd)
        with contextlib.redirect_stderr(io.StringIO()):
            for name in range(200):
                execute(served, "keep", f'["{name}", [[1]]]')
            self.assertEqual(execute(served, "tuple", "[]").refusal, 0)
            served.kept.try_state()
            served.kept.try_state()
            (notice,) = served.kept.notices
            self.assertEqual(notice[0], 1)
            self.assertIn("self.values: JSON would not give back a value of type tuple", notice[1])
            with self.assertRaises(TypeError):
                served.kept.snapshot()
            execute(served, "keep", '["tuple", 1]')
            served.kept.try_state()
        self.assertEqual(served.kept.notices[1:], [(2, "")])

    def test_a_value_in_several_places_comes_back_as_one(self):
        @service
        class Sharing:
            accounts: Dict[int, Old]
            last: Optional[Old]
            lists: List[List[int]]

            def __init__(self):
                self.accounts, self.last, self.lists, self.any, self.more = {}, None, [], {}, []

            def open(self, number: int) -> None:
                self.last = self.accounts[number] = Old(0, "", "Ada")
                self.lists = [[1]] * 3
                self.any = {"$": [self.lists[0], {"of": 1}], "more": self.more}

            def pay(self, amount: int) -> int:
                self.last.amount += amount
                self.lists[0].append(amount)
                self.more.append(amount)
                return sum(account.amount for account in self.accounts.values())

        first, second = replica(Sharing), replica(Sharing)
        execute(first, "open", "[7]")
        second.kept.restore(first.kept.snapshot())
        for served in (first, second):
            self.assertEqual(execute(served, "pay", "[5]").body, b"5")
        self.assertEqual(vars(first.kept.object), vars(second.kept.object))
        self.assertEqual(second.kept.object.any, {"$": [[1, 5], {"of": 1}], "more": [5]})
        self.assertEqual(first.kept.snapshot(), second.kept.snapshot())

    def test_random_states_come_back_as_they_were(self):
        dice = random.Random(7)
        texts = ["", "\ud83d", "\ude00\ud83d", "\U0001f600", "\0\x7f\u2028", '"\\', "$", "of", "$free"]
        numbers = [0, -1, 2**63, -(2**90), 0.1, -0.0, 5e-324, 1.7e308, float("inf"), float("nan")]

        def value(depth, made):
            kind = dice.randrange(9 if depth < 5 else 5)
            if kind == 8 and made:
                return dice.choice(made)
            if kind < 5:
                return dice.choice([None, True, dice.choice(texts), dice.choice(numbers), depth])
            items = [value(depth + 1, made) for _ in range(dice.randrange(4))]
            one = items if kind % 2 else {dice.choice(texts): item for item in items}
            made.append(one)
            return one

        for _ in range(500):
            first, second = replica(Odd), replica(Odd)
            first.kept.object.values = {"all": value(0, []), "typed": value(0, [])}
            state = first.kept.snapshot()
            second.kept.restore(state)
            self.assertEqual(second.kept.snapshot(), state)
            # Which of the values are one is a part of that, and NaN is not equal to itself.
            self.assertEqual(repr(second.kept.object.values), repr(first.kept.object.values))

    def test_deep_states_are_told_while_they_can_still_be_given(self):
        served = replica(Odd)
        served.kept.object.values = {"large": list(range(200))}
        for _ in range(120):
            execute(served, "wrap", "[]")
        self.assertIn(b"within", served.kept.snapshot())
        served.kept.try_state()
        self.assertEqual(served.kept.notices, [(1, served.kept.notices[0][1])])
        self.assertIn("nested more than 100 deep", served.kept.notices[0][1])

    def test_a_state_is_tried_after_the_first_calls_and_then_now_and_then(self):
        served = replica(Odd)
        tried = []
        for call in range(1, 101):
            execute(served, "keep", '["a", 1]')
            if served.kept.is_trial_due():
                served.kept.try_state()
                tried.append(call)
        self.assertEqual(tried, [1, 2, 4, 8, 16, 32, 64])

    def test_odd_texts_and_numbers_come_back_as_they_were(self):
        served, other = replica(Odd), replica(Odd)
        execute(served, "spoil", "[]")
        other.kept.restore(served.kept.snapshot())
        values = other.kept.object.values
        self.assertEqual(values["text"], "\ud83d\ude00 \ud83d")
        self.assertNotEqual(values["mean"], values["mean"])
        self.assertEqual((values["large"], values["least"]), (2**70, float("-inf")))
        self.assertEqual(served.kept.snapshot(), other.kept.snapshot())

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
        second.kept.restore(first.kept.snapshot())
        self.assertEqual(second.kept.object.seen, {7})
        self.assertNotIn(b"snapshot", Own.__steadfast_service__.contract)


@dataclass
class Old:
    """An account as a former version has it."""

    amount: int
    note: str
    owner: str


@dataclass
class New:
    owner: str
    balance: Annotated[int, Was("amount", "sum")]
    credit: int = 7


@service
class Former:
    accounts: Dict[str, Old]

    def __init__(self):
        self.accounts = {"a": Old(5, "gone", "Ada")}
        self.total, self.unused, self.calls = 5, [], 3


@service
class Present:
    accounts: Dict[str, New]
    sum: Annotated[int, Was("total")]

    def __init__(self):
        self.calls, self.sum, self.accounts, self.limit = 0, 0, {}, 100


class Versions(unittest.TestCase):
    def test_fields_are_added_with_a_default_reordered_removed_and_renamed(self):
        served = replica(Present)
        served.kept.restore(replica(Former).kept.snapshot())
        values = vars(served.kept.object)
        self.assertEqual(values["accounts"], {"a": New("Ada", 5, 7)})
        self.assertEqual((values["sum"], values["calls"], values["limit"]), (5, 3, 100))
        self.assertEqual(served.kept.notices, [(3, "`Present.unused`, `Old.note`".replace("Old", "New"))])
        # And once more, with nothing to drop.
        again = replica(Present)
        again.kept.restore(served.kept.snapshot())
        self.assertEqual((vars(again.kept.object), again.kept.notices), (values, []))

    def test_what_does_not_fit_is_refused_with_the_fields_name(self):
        served = replica(Present)
        before = served.kept.snapshot()
        for state, said in (
            ('{"accounts": {"a": {"owner": "Ada"}}}', "`accounts`: field `balance` of New is missing"),
            ('{"accounts": {"a": {"owner": 5, "balance": 1}}}', "`accounts`: field `owner`: "),
            ('{"accounts": {"a": {"owner": "", "sum": 1, "amount": 2}}}', "`balance` comes twice"),
            ('{"calls": "three"}', "field `calls`: a value of type str is no int"),
            ('{"sum": 1.5}', "field `sum`: a value of type float"),
        ):
            with self.assertRaisesRegex(TypeError, said):
                served.kept.restore(state.encode())
            self.assertEqual(served.kept.snapshot(), before)

    def test_attributes_of_many_types_and_late_ones_are_kept(self):
        served, other = replica(Present), replica(Present)
        served.kept.object.calls, served.kept.object.late = "three", [1]
        other.kept.restore(served.kept.snapshot())
        self.assertEqual(vars(other.kept.object), vars(served.kept.object))
        self.assertEqual(other.kept.snapshot(), served.kept.snapshot())

    def test_the_readme_shows_a_next_version(self):
        text = (TESTS.parent / "README.md").read_text().split("### How the state changes")[1]
        # Under a name, as hints of dataclasses are looked up in their module.
        module = types.ModuleType("readme")
        sys.modules["readme"] = module
        self.addCleanup(sys.modules.pop, "readme")
        exec(text.split("```python")[1].split("```")[0], vars(module))
        served = replica(module.Bank)
        served.kept.restore(b'{"accounts": {"1": {"amount": 5, "owner": "Ada", "note": ""}}}')
        bank = served.kept.object
        self.assertEqual(bank.accounts, {"1": module.Account("Ada", 5, 0)})
        self.assertEqual((bank.limit, served.kept.notices), (1000, [(3, "`Account.note`")]))

    def test_calls_have_no_former_names(self):
        @service
        class Taking:
            def take(self, account: New) -> None:
                pass

        Taking.take.__globals__["New"] = New
        served = replica(Taking)
        for body, refusal in (
            ('[{"owner": "", "balance": 1}]', 0),
            ('[{"owner": "", "amount": 1}]', 4),
            ('[{"owner": "", "balance": 1, "note": ""}]', 4),
        ):
            self.assertEqual(execute(served, "take", body).refusal, refusal)

    def test_attributes_that_no_state_has_are_refused(self):
        served = replica(Present)
        served.kept.object.accounts["a"] = account = New("Ada", 1)
        account.note = "lost"
        with self.assertRaisesRegex(TypeError, "New has an attribute `note` that is no field"):
            served.kept.snapshot()


class Attached(unittest.TestCase):
    """A program, with a node that is this test."""

    def start(self, code):
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
                f"import sys; sys.modules['steadfast_client._native'] = None; {code}",
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

    def welcome(self, extension=b""):
        kind, body = self.receive()
        self.assertEqual(kind, HELLO)
        pid = struct.pack("<I", self.program.pid)
        self.assertEqual(body, b"SFAT\1\1\7\0" + pid + b"\xab" * 32 + b"counter" + extension)
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


class MergeFrames(Attached):
    def test_a_program_that_merges_says_so_and_keeps_the_order(self):
        self.start(f"sys.path.insert(0, {str(TESTS)!r}); import test_service as t; t.Guests.serve()")
        self.welcome(extension=b"\1")
        self.send(*self.call(1, "greet", b'["twenty"]'))
        self.assertEqual(self.receive()[0], CALL)
        state = b'{"names":{"7":"Ada"}}'
        for piece in (state[:4], state[4:]):
            self.send(MERGE, struct.pack("<QQ", 2, len(state)) + piece)
        self.send(MERGE, struct.pack("<QQ", 3, 0))
        self.send(*self.call(4, "greet", b'["twenty"]'))
        self.send(CALLED, struct.pack("<QBBBx", 1, 1, 0, 0) + b"0")
        self.assertEqual(self.receive(), (ANSWER, struct.pack("<QBBBx", 1, 1, 0, 0) + b"0"))
        self.assertEqual(self.receive(), (ANSWER, struct.pack("<QBBBx", 2, 1, 0, 0)))
        kind, body = self.receive()
        self.assertEqual((kind, body[:12]), (ANSWER, struct.pack("<QBBBx", 3, 3, 5, 0)))
        kind, body = self.receive()
        self.assertEqual((kind, body[-3:]), (CALL, b"[1]"))
        self.assertEqual(self.begins.read_bytes(), struct.pack("<Q", 4))
        self.node.close()
        self.ends(0, b"there is no closer: ")


class Frames(Attached):
    """The program of 20 lines."""

    def setUp(self):
        self.start(f"import runpy; runpy.run_path({str(COUNTER)!r}, run_name='__main__')")

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

    def test_the_node_is_told_how_the_state_is(self):
        self.welcome()
        state = b'{"sum":41,"unit":"m"}'
        self.send(RESTORE, struct.pack("<QQ", 1, len(state)) + state)
        self.assertEqual(self.receive()[0], RESTORED)
        self.assertEqual(self.receive(), (NOTICE, struct.pack("<B7x", 3) + b"`Counter.unit`"))
        self.send(RESTORE, struct.pack("<QQ", 2, 11) + b'{"sum":"1"}')
        kind, body = self.receive()
        self.assertEqual((kind, body[8:29]), (FAILED, b"cannot read the state"))
        self.assertIn(b"field `sum`: ", body)

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
