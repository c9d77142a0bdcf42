"""Contracts of services in Rust as modules for type checkers."""

import ast
import sys
import types
import typing
import unittest

from steadfast_client import Contract
from steadfast_client._stubs import stubs


def contract(methods=(), types=None, service="Orders", docs=""):
    told = {"service": service, "docs": docs, "encodings": ["json"], "methods": list(methods)}
    return Contract.of_json({**told, "types": types or {}})


def method(name, *arguments, result="()", docs=""):
    listed = [{"name": name, "type": kind} for name, kind in arguments]
    return {"name": name, "reads": False, "docs": docs, "arguments": listed, "result": result}


def module(told):
    """The module, as Python loads it."""
    made = types.ModuleType("made")
    sys.modules["made"] = made
    exec(compile(stubs(told, "orders"), "made", "exec"), made.__dict__)
    return made


class Stubs(unittest.TestCase):
    def test_types_are_what_json_gives_back(self):
        fields = [
            {"name": "next", "type": "Option<Order>"},
            {"name": "class", "type": "Map<String, (u8, [bool; 4])>"},
        ]
        variants = [
            {"name": "Free"},
            {"name": "Sum", "fields": [{"type": "f64"}]},
            {"name": "Both", "fields": [{"type": "i64"}, {"type": "Order"}]},
            {"name": "Named", "fields": [{"name": "of", "type": "Vec<Bytes>"}]},
        ]
        told = contract(
            [method("put", ("order", "Order"), ("price", "Price"), result="Chrono<Utc>")],
            {
                "Order": {"kind": "struct", "fields": fields},
                "Price": {"kind": "enum", "variants": variants},
                "Meters": {"kind": "struct", "fields": [{"type": "f64"}]},
                "Unit": {"kind": "struct", "fields": []},
                "Alone": {"kind": "enum", "variants": variants[1:2]},
            },
        )
        made = module(told)
        text = stubs(told, "orders")
        self.assertIn('def put(self, order: "Order", price: "Price") -> Any:', text)
        self.assertIn("async def put(", text)
        order = typing.get_type_hints(made.Order)
        self.assertEqual(order["next"], typing.Optional[made.Order])
        inner = typing.Union[int, typing.List[bool]]
        self.assertEqual(order["class"], typing.Dict[str, typing.List[inner]])
        self.assertIn("'class'", text)
        named = typing.get_type_hints(made.Price_Named_fields)
        self.assertEqual(named, {"of": typing.List[typing.List[int]]})
        self.assertEqual(typing.get_type_hints(made.Price_Sum), {"Sum": float})
        self.assertEqual(typing.get_args(made.Price)[0], typing.Literal["Free"])
        self.assertEqual(len(typing.get_args(made.Price)), 4)

    def test_a_hostile_contract_makes_no_code(self):
        evil = '"""\nimport os; os.abort()\n"""'
        names = ("class", "a b", "x(self): os.abort()\n    def y", "_private", "self")
        told = contract(
            [method(name, docs=evil) for name in names]
            + [method("good", ("ok", evil), result=f"Vec<{evil}>", docs=evil + "\\")]
            + [method("bad", ("x=os.abort()", "u8")), method("worse", ("self", "u8"))],
            {
                evil: {"kind": "struct", "fields": [{"name": evil, "type": evil}]},
                "Client": {"kind": "enum", "variants": [{"name": evil}]},
                "deep": {"kind": "struct", "fields": [{"type": "Vec<" * 500 + "u8" + ">" * 500}]},
            },
            service="Protocol",
            docs=evil,
        )
        text = stubs(told, evil)
        parsed = ast.parse(text)
        imported = {node.module for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom)}
        self.assertEqual(imported, {"typing", "steadfast_client"})
        self.assertFalse([node for node in ast.walk(parsed) if isinstance(node, ast.Import)])
        methods = {node.name for node in ast.walk(parsed) if isinstance(node, ast.FunctionDef)}
        self.assertEqual(methods, {"good", "self", "connect", "connect_async"})
        self.assertTrue(hasattr(module(told), "Protocol_"))

    def test_what_is_no_contract_is_told(self):
        for told in (None, [], {"methods": {}}, {"methods": [1]}, {"methods": [{}]}):
            with self.assertRaisesRegex(ValueError, "of the service's contract|the contract"):
                Contract.of_json(told)


if __name__ == "__main__":
    unittest.main()
