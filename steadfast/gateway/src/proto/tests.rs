use expect_test::expect;
use serde_json::{Value as Json, json};
use steadfast::Contract;

use super::*;

/// A contract with all that types can be.
fn rich() -> Described {
    let types = json!({
        "Order": {"kind": "struct", "docs": "An order.", "fields": [
            {"name": "id", "type": "u64"}, {"name": "lines", "type": "Vec<Line>"},
            {"name": "note", "type": "Option<String>"}, {"name": "tags", "type": "Map<String, u32>"},
            {"name": "state", "type": "State"}, {"name": "next", "type": "Option<Order>"},
        ]},
        "Line": {"kind": "struct", "fields": [{"type": "String"}, {"type": "f64"}]},
        "Cents": {"kind": "struct", "fields": [{"type": "i64"}]},
        "State": {"kind": "enum", "variants": [{"name": "Open"}, {"name": "PaidOut"}]},
        "Event": {"kind": "enum", "variants": [
            {"name": "None"}, {"name": "Paid", "fields": [{"type": "Cents"}]},
            {"name": "Moved", "fields": [{"name": "from", "type": "u8"}, {"name": "to", "type": "u8"}]},
            {"name": "Both", "fields": [{"type": "bool"}, {"type": "bool"}]},
            {"name": "Many", "fields": [{"type": "Vec<u64>"}]},
        ]},
    });
    let contract = json!({
        "service": "Orders", "docs": "Orders.", "encodings": ["json"], "types": types,
        "methods": [
            {"name": "put", "reads": false, "docs": "Puts an order.", "result": "()",
             "arguments": [{"name": "order", "type": "Order"}], "error": "Event"},
            {"name": "shut_down", "reads": false, "result": "Cents", "arguments": []},
            {"name": "all", "reads": true, "result": "Vec<Event>",
             "arguments": [{"name": "grid", "type": "Vec<Vec<u8>>"}, {"name": "raw", "type": "Money"},
                           {"name": "perhaps", "type": "Option<Vec<bool>>"}]},
        ],
    });
    let contract = Contract::from_json(contract.to_string().as_bytes()).expect("a contract");
    Described::new("line-a", contract).expect("it has a form in protobuf")
}

#[test]
fn a_contract_is_a_file_that_people_generate_code_from() {
    expect![[r#"
        // Made of the service's contract by `steadfast describe --proto`.
        syntax = "proto3";

        package line_x2da;

        // Orders.
        service Orders {
          // Puts an order.
          // Its own error: Event, as JSON in `steadfast-error-bin`.
          rpc put(PutRequest) returns (PutReply);
          rpc shut_down(ShutDownRequest) returns (ShutDownReply);
          rpc all(AllRequest) returns (AllReply);
        }

        message PutRequest {
          Order order = 1;
        }

        message PutReply {
        }

        message ShutDownRequest {
        }

        message ShutDownReply {
          int64 result = 1;
        }

        message AllRequestGrid {
          repeated uint32 value = 1;
        }

        message AllRequestPerhaps {
          repeated bool value = 1;
        }

        message AllRequest {
          repeated AllRequestGrid grid = 1;
          string raw = 2;
          optional AllRequestPerhaps perhaps = 3;
        }

        message AllReply {
          repeated Event result = 1;
        }

        message EventNone {
        }

        message EventMoved {
          uint32 from = 1;
          uint32 to = 2;
        }

        message EventBoth {
          bool item_1 = 1;
          bool item_2 = 2;
        }

        message EventMany {
          repeated uint64 value = 1;
        }

        message Event {
          oneof kind {
            EventNone none = 1;
            int64 paid = 2;
            EventMoved moved = 3;
            EventBoth both = 4;
            EventMany many = 5;
          }
        }

        message OrderLines {
          string item_1 = 1;
          double item_2 = 2;
        }

        // An order.
        message Order {
          uint64 id = 1;
          repeated OrderLines lines = 2;
          optional string note = 3;
          map<string, uint32> tags = 4;
          State state = 5;
          optional Order next = 6;
        }

        enum State {
          STATE_UNSPECIFIED = 0;
          STATE_OPEN = 1;
          STATE_PAID_OUT = 2;
        }
    "#]]
    .assert_eq(&rich().text());
}

fn types(described: &Described) -> &Types {
    match &described.form {
        Form::Derived(_, types) => types,
        Form::Given => panic!("it has no file of its own"),
    }
}

/// From JSON by a message and back.
fn through(method: &str, arguments: &Json) -> Json {
    let described = rich();
    let method = described.method(method).expect("it is there");
    let field =
        |it: &ArgumentContract| Field { name: it.name.clone(), shape: described.shape(&it.ty) };
    let fields: Vec<Field> = method.contract.arguments.iter().map(field).collect();
    let converter = Converter::new(types(&described));
    let arguments = serde_json::value::to_raw_value(arguments).expect("it is JSON");
    let message = converter.to_message(method.request.clone(), &fields, &arguments);
    let bytes = message.expect("it fits").encode_to_vec();
    let back = method.arguments(bytes.into()).expect("it fits");
    serde_json::from_slice(&back).expect("it is JSON")
}

#[test]
fn arguments_survive_the_way_through_protobuf() {
    let order = |next: Json| {
        json!({"id": u64::MAX, "lines": [["nails", 1.5], ["", 0.0]], "note": "urgent",
               "tags": {"a": 1, "": 0}, "state": "PaidOut", "next": next})
    };
    let whole = json!({"order": order(order(Json::Null))});
    assert_eq!(through("put", &whole), whole);
    let grid = json!({"grid": [[1, 2], [], [255]], "raw": {"cents": [1]}, "perhaps": []});
    assert_eq!(through("all", &grid), grid);
    let null = json!({"grid": [], "raw": null, "perhaps": null});
    assert_eq!(through("all", &null), null);
    assert_eq!(through("shut_down", &json!({})), json!({}));
}

#[test]
fn results_are_read_with_their_variants() {
    let described = rich();
    let all = described.method("all").expect("it is there");
    let events = json!(["None", {"Paid": -7}, {"Moved": {"from": 1, "to": 0}},
                        {"Both": [true, false]}, {"Many": [1, 2]}]);
    let message = all.result(events.to_string().as_bytes()).expect("it fits");
    let message = DynamicMessage::decode(all.reply.clone(), message).expect("it is its reply");
    let shape = described.shape("Vec<Event>");
    let mut back = Vec::new();
    Converter::new(types(&described)).take(&message, 1, &shape, &mut back).expect("it fits");
    assert_eq!(serde_json::from_slice::<Json>(&back).expect("it is JSON"), events);
    let nothing = described.method("put").expect("it is there").result(b"null");
    assert_eq!(nothing, Ok(Bytes::new()));
}

#[test]
fn values_that_do_not_fit_are_refused_with_their_place() {
    let described = rich();
    let all = described.method("all").expect("it is there");
    for (result, why) in [
        ("[\"Lost\"]", "no variant \"Lost\""),
        ("[{\"Paid\": \"x\"}]", "\"x\" is no i64"),
        ("[{\"Both\": [true]}]", "no array of 2"),
        ("7", "no array"),
        ("[", "EOF"),
    ] {
        let refused = all.result(result.as_bytes()).expect_err("it does not fit");
        assert!(refused.contains(why), "{refused}");
    }
    let put = described.method("put").expect("it is there");
    // An order without a state, and bytes that are no message.
    let refused = put.arguments(Bytes::from_static(&[0x0a, 0x00])).expect_err("no state");
    assert_eq!(refused, "order: state: 0 is none of Open, PaidOut");
    assert!(put.arguments(Bytes::from_static(&[0xff])).unwrap_err().contains("PutRequest"));
}

/// A contract with one method that returns what it takes.
fn echo(ty: &str) -> Described {
    let contract = json!({"service": "Echo", "encodings": ["json"], "types": {}, "methods": [
        {"name": "echo", "reads": true, "result": ty, "arguments": [{"name": "it", "type": ty}]},
    ]});
    let contract = Contract::from_json(contract.to_string().as_bytes()).expect("a contract");
    Described::new("echo", contract).expect("it has a form in protobuf")
}

#[test]
fn numbers_arrive_as_they_are_or_are_refused() {
    let (most, least) = (u128::MAX.to_string(), i128::MIN.to_string());
    for (ty, json) in [
        ("u128", &*most),
        ("i128", &least),
        ("u64", "18446744073709551615"),
        ("i64", "-9223372036854775808"),
        ("f64", "\"NaN\""),
        ("f64", "\"-Infinity\""),
        ("f64", "5e-324"),
        ("f64", "0.30000000000000004"),
        ("f32", "\"Infinity\""),
        ("f32", "3.4028234663852886e38"),
        ("Option<u128>", "null"),
        ("Vec<(u128, f64)>", "[[1234567890123456789012345,\"Infinity\"]]"),
        ("Money", "{\"of\":1234567890123456789012345,\"and\":1.50}"),
    ] {
        let described = echo(ty);
        let method = described.method("echo").expect("it is there");
        // A reply and a request have the same field.
        let message = method.result(json.as_bytes()).expect(ty);
        let back = method.arguments(message).expect(ty);
        assert_eq!(String::from_utf8_lossy(&back), format!("{{\"it\":{json}}}"), "{ty}");
    }
    for (ty, json) in [
        ("f32", "1e39"),
        ("f64", "null"),
        ("f64", "\"1.5\""),
        ("u64", "18446744073709551616"),
        ("u64", "1.0"),
        ("u64", "\"1\""),
        ("u128", "1.2345678901234568e24"),
        ("u128", "-1"),
        ("i128", "null"),
    ] {
        let described = echo(ty);
        let refused = described.method("echo").expect("it is there").result(json.as_bytes());
        let refused = refused.expect_err(json);
        assert!(refused.contains(&format!("is no {ty}")), "{refused}");
    }
    // A text that is no number, as an argument.
    let described = echo("u128");
    let method = described.method("echo").expect("it is there");
    let refused = method.arguments(Bytes::from_static(b"\x0a\x031.0")).expect_err("no digits");
    assert!(refused.contains("it"), "{refused}");
    let refused = method.arguments(Bytes::new()).expect_err("no digits");
    assert_eq!(refused, "it: \"\" is no u128: send digits");
}

#[test]
fn a_message_that_lies_too_deep_is_refused() {
    let described = rich();
    let put = described.method("put").expect("it is there");
    // Orders within orders: `next` is field 6, the state field 5.
    let mut order = vec![0x28, 0x01];
    for _ in 0..80 {
        let length = order.len();
        let mut outer = vec![0x28, 0x01, 0x32];
        prost::encoding::encode_varint(length as u64, &mut outer);
        outer.extend(&order);
        order = outer;
    }
    let mut request = vec![0x0a];
    prost::encoding::encode_varint(order.len() as u64, &mut request);
    request.extend(&order);
    let refused = put.arguments(request.into()).expect_err("too deep");
    assert!(refused.contains("deep") || refused.contains("recursion"), "{refused}");
}

#[test]
fn methods_are_found_by_both_names_and_symbols_are_known() {
    let described = rich();
    assert!(described.method("shut_down").is_some() && described.method("nothing").is_none());
    assert_eq!(described.reads(), ["/line_x2da.Orders/all"]);
    assert_eq!(described.service, "line_x2da.Orders");
    for known in ["Orders", "Orders.put", "Order", "State", "PutRequest"] {
        assert!(described.has(&format!("line_x2da.{known}")), "{known}");
    }
    for unknown in ["Orders.x", "Ordersput", "X", ""] {
        assert!(!described.has(&format!("line_x2da.{unknown}")), "{unknown}");
    }
}
