//! A service that begins with a file of protobuf: called by its clients and in JSON.

use std::collections::BTreeMap;

use fixture::cluster;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use steadfast::contract::{Base64, DESCRIBE};
use steadfast::{CallError, Client, Contract, HostOptions, Invocation, MethodId, Node, Reading};

#[steadfast::service(proto = "tests/proto/orders.proto", errors = Unsold)]
pub trait Orders {}

/// Why nothing was sold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, steadfast::Schema)]
pub enum Unsold {
    /// It has no lines.
    Empty,
}

#[derive(Default, Serialize, Deserialize)]
struct Shop(BTreeMap<u64, Order>);

impl Orders for Shop {
    fn place_order(&mut self, request: PlaceOrderRequest) -> Result<PlaceOrderReply, Unsold> {
        let order = request.order.filter(|order| !order.lines.is_empty()).ok_or(Unsold::Empty)?;
        let number = self.0.len() as u64 + 1;
        self.0.insert(number, order);
        Ok(PlaceOrderReply { number })
    }

    fn list_orders(&self, Empty {}: Empty) -> Result<ListOrdersReply, Unsold> {
        Ok(ListOrdersReply { orders: self.0.clone() })
    }
}

fn node() -> (Node, Client) {
    let node = cluster::start(1).remove(0);
    node.host("orders", HostOptions::default(), || OrdersService::new(Shop::default()))
        .expect("it takes replicas");
    let client = Client::connect([node.client_address().expect("it takes clients")]);
    (node, client.expect("the node listens"))
}

fn order() -> Order {
    Order {
        lines: vec![OrderLine { sku: "nails".into(), count: 3, price: Some(Amount { cents: -7 }) }],
        state: OrderState::PaidOut,
        note: Some(String::new()),
        seal: Base64(vec![0, 255]),
        weight: 1.5,
        labels: BTreeMap::from([(7, "red".into())]),
        locker: Some(u64::MAX),
        replaces: Some(Box::new(Order::default())),
        ..Order::default()
    }
}

#[test]
fn the_clients_speak_postcard_and_json() {
    let (node, client) = node();
    let orders = OrdersClient::new(&client, "orders");
    for orders in [orders.clone(), orders.in_json()] {
        let request = PlaceOrderRequest { order: Some(order()), urgent: true };
        orders.place_order(request).expect("it is placed");
        let all = orders.list_orders(Empty {}).expect("they are there").orders;
        assert_eq!(all.last_key_value().expect("one at least").1, &order());
        let refused = orders.place_order(PlaceOrderRequest::default());
        assert_eq!(refused, Err(CallError::Service(Unsold::Empty)));
    }
    node.stop().expect("it stops");
}

#[test]
fn json_is_protobufs_with_the_names_of_the_file() {
    let (node, client) = node();
    let call = |method: &str, body: Json| {
        let text = body.to_string();
        let call = Invocation::new("orders", MethodId::of(method)).json().body(text.into_bytes());
        let call = if method == "list_orders" { call.reading(Reading::Linearizable) } else { call };
        client.call(call).map(|answer| serde_json::from_slice::<Json>(&answer).expect("it is JSON"))
    };
    let line = json!({"sku": "nails", "price": {"cents": -7}});
    let placed = json!({"lines": [line], "state": "STATE_PAID_OUT", "seal": "AP8=",
                        "labels": {"7": "red"}, "locker": u64::MAX});
    let answer = call("place_order", json!({"request": {"order": placed}}));
    assert_eq!(answer.expect("it is placed"), json!({"number": 1}));
    let whole = json!({
        "lines": [{"sku": "nails", "count": 0, "price": {"cents": -7}}],
        "state": "STATE_PAID_OUT", "note": null, "seal": "AP8=", "weight": 0.0,
        "labels": {"7": "red"}, "street": null, "locker": u64::MAX, "replaces": null,
    });
    let answer = call("list_orders", json!([{}])).expect("they are there");
    assert_eq!(answer, json!({"orders": {"1": whole}}));
    for (wrong, why) in [
        (json!({"order": {"state": "STATE_LOST"}}), "STATE_LOST"),
        (json!({"order": {"seal": "?"}}), "base64"),
        (json!({"ordre": {}}), "ordre"),
    ] {
        let refused = call("place_order", json!({"request": wrong})).expect_err("it is wrong");
        assert!(refused.to_string().contains(why), "{refused}");
    }
    node.stop().expect("it stops");
}

#[test]
fn the_contract_tells_the_file() {
    let (node, client) = node();
    let contract = Contract::of(&client, "orders").expect("it is told");
    let proto = contract.proto.as_ref().expect("it begins with a file");
    assert_eq!((&*proto.service, &*proto.file), ("shop.Orders", "orders.proto"));
    assert_eq!(proto.sources["orders.proto"], include_str!("proto/orders.proto"));
    assert!(proto.text().starts_with("// File: money.proto\nsyntax"));
    let signatures: Vec<String> = contract.methods.iter().map(|it| it.signature()).collect();
    assert_eq!(
        signatures,
        [
            "place_order(request: PlaceOrderRequest) -> Result<PlaceOrderReply, Unsold>",
            "list_orders(request: Empty) -> Result<ListOrdersReply, Unsold>",
        ]
    );
    assert_eq!(contract.docs, "The orders of a shop.");
    assert_eq!(contract.methods[0].docs, "Places an order, and returns its number.");
    assert!(contract.methods[1].reads && !contract.methods[0].reads);
    let kept = Contract::from_json(contract.to_json().as_bytes()).expect("it fits");
    assert_eq!(kept, contract);
    assert_ne!(DESCRIBE, MethodId::of("place_order"));
    node.stop().expect("it stops");
}

mod newer {
    #[steadfast::service(proto = "tests/proto/newer.proto")]
    pub trait Orders {}
}

#[test]
fn other_numbers_and_types_break_callers_by_protobuf() {
    let (older, newer) =
        (OrdersService::<Shop>::contract(), newer::OrdersService::<Shop>::contract());
    let found = older.breaks(&newer);
    for change in [
        "rpc PlaceOrder: the reply was shop.PlaceOrderReply, is google.protobuf.Empty",
        "the message shop.PlaceOrderReply is gone",
        "shop.Order: field note was number 9, is number 13",
        "shop.Order: field weight was double, is fixed64",
        "shop.Order: field labels, number 6, is gone",
        "shop.Order: field locker was uint64 in oneof place, is optional uint64",
        "shop.PlaceOrderRequest: field urgent is named hasty now, by number 3",
        "shop.Order.State: value STATE_PAID_OUT was number 5, is number 6",
    ] {
        assert!(found.iter().any(|it| it == change), "{change}: {found:#?}");
    }
    let of_protobuf = |it: &&String| it.contains("shop.") || it.starts_with("rpc ");
    // The entry of the map of labels is gone with it.
    assert_eq!(found.iter().filter(of_protobuf).count(), 9, "{found:#?}");
    assert!(older.breaks(&older).is_empty());

    let mut derived = older.clone();
    derived.proto = None;
    assert_eq!(older.breaks(&derived), ["the file of protobuf is gone"]);
    assert_eq!(derived.breaks(&older).len(), 1);
    let mut hostile = older.clone();
    hostile.proto.as_mut().expect("it has one").descriptors = "?".into();
    assert!(older.breaks(&hostile)[0].starts_with("the newer file of protobuf: the descriptors"));
}
