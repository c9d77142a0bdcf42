//! Stock stubs of a file of protobuf call the service that begins with it.

mod support;

use std::collections::BTreeMap;

use fixture::cluster;
use prost::Message;
use serde::{Deserialize, Serialize};
use steadfast::{HostOptions, Node};
use support::{Gateway, LONG};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

#[steadfast::service(proto = "../tests/proto/orders.proto")]
pub trait Orders {}

#[derive(Default, Serialize, Deserialize)]
struct Shop(BTreeMap<u64, Order>);

impl Orders for Shop {
    /// An order of a weight that is no number is kept as it is.
    fn place_order(&mut self, request: PlaceOrderRequest) -> PlaceOrderReply {
        let mut order = request.order.unwrap_or_default();
        if request.urgent {
            order.weight = f64::NAN;
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(number, order);
        PlaceOrderReply { number }
    }

    fn list_orders(&self, Empty {}: Empty) -> ListOrdersReply {
        ListOrdersReply { orders: self.0.clone() }
    }
}

/// The messages as a compiler of protobuf writes them for stubs.
mod stubs {
    use std::collections::HashMap;

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Amount {
        #[prost(sint64, tag = "2")]
        pub cents: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Line {
        #[prost(string, tag = "3")]
        pub sku: String,
        #[prost(uint32, tag = "1")]
        pub count: u32,
        #[prost(message, optional, tag = "7")]
        pub price: Option<Amount>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
    #[repr(i32)]
    pub enum State {
        Open = 0,
        PaidOut = 5,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Place {
        #[prost(string, tag = "10")]
        Street(String),
        #[prost(uint64, tag = "11")]
        Locker(u64),
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Order {
        #[prost(message, repeated, tag = "4")]
        pub lines: Vec<Line>,
        #[prost(enumeration = "State", tag = "2")]
        pub state: i32,
        #[prost(string, optional, tag = "9")]
        pub note: Option<String>,
        #[prost(bytes = "vec", tag = "12")]
        pub seal: Vec<u8>,
        #[prost(double, tag = "8")]
        pub weight: f64,
        #[prost(map = "uint32, string", tag = "6")]
        pub labels: HashMap<u32, String>,
        #[prost(oneof = "Place", tags = "10, 11")]
        pub place: Option<Place>,
        #[prost(message, optional, boxed, tag = "5")]
        pub replaces: Option<Box<Order>>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct PlaceOrderRequest {
        #[prost(message, optional, tag = "7")]
        pub order: Option<Order>,
        #[prost(bool, tag = "3")]
        pub urgent: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct PlaceOrderReply {
        #[prost(uint64, tag = "3")]
        pub number: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ListOrdersReply {
        #[prost(map = "uint64, message", tag = "2")]
        pub orders: HashMap<u64, Order>,
    }
}

/// A node with the group `orders`, whose service has the package `shop`.
fn nodes() -> Vec<Node> {
    let nodes = support::nodes(1);
    let options = HostOptions::default();
    let hosted = nodes[0].host("orders", options, || OrdersService::new(Shop::default()));
    hosted.expect("it takes replicas");
    cluster::wait_for_replicas(&nodes[0], "orders", 1);
    nodes
}

struct Stub {
    runtime: tokio::runtime::Runtime,
    channel: Channel,
}

impl Stub {
    /// A channel whose target has this authority.
    fn of(gateway: &Gateway, authority: &str) -> Stub {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let address = format!("http://{}", gateway.address);
        let origin = format!("http://{authority}").parse().expect("an origin");
        let endpoint = Endpoint::from_shared(address).expect("an address").origin(origin);
        let channel = runtime.block_on(endpoint.connect()).expect("the gateway listens");
        Stub { runtime, channel }
    }

    fn call<A, R>(&self, path: &str, message: A, group: Option<&str>) -> Result<R, Status>
    where
        A: Message + 'static,
        R: Message + Default + 'static,
    {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        let mut request = tonic::Request::new(message);
        if let Some(group) = group {
            request.metadata_mut().insert("steadfast-group", group.parse().expect("a name"));
        }
        let path = path.parse().expect("a path");
        let codec = ProstCodec::<A, R>::default();
        self.runtime.block_on(async {
            client.ready().await.expect("it is connected");
            let answer = tokio::time::timeout(LONG, client.unary(request, path, codec)).await;
            answer.expect("an answer").map(tonic::Response::into_inner)
        })
    }

    fn place(
        &self,
        order: Option<stubs::Order>,
        group: Option<&str>,
    ) -> Result<stubs::PlaceOrderReply, Status> {
        let request = stubs::PlaceOrderRequest { order, urgent: false };
        self.call("/shop.Orders/PlaceOrder", request, group)
    }

    /// Asks by reflection.
    fn reflect(&self, request: MessageRequest) -> MessageResponse {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        let question =
            ServerReflectionRequest { message_request: Some(request), ..Default::default() };
        let codec = ProstCodec::<ServerReflectionRequest, ServerReflectionResponse>::default();
        let answer = self.runtime.block_on(async {
            client.ready().await.expect("it is connected");
            let questions = tonic::Request::new(tokio_stream_of(question));
            let path = path.parse().expect("a path");
            let mut answers =
                client.streaming(questions, path, codec).await.expect("it answers").into_inner();
            tokio::time::timeout(LONG, answers.message()).await.expect("in time")
        });
        let answer = answer.expect("an answer").expect("one answer");
        answer.message_response.expect("it says something")
    }
}

fn tokio_stream_of<T>(one: T) -> tonic::codegen::tokio_stream::Once<T> {
    tonic::codegen::tokio_stream::once(one)
}

fn order() -> stubs::Order {
    let line = stubs::Line {
        sku: "nails".into(),
        count: 3,
        price: Some(stubs::Amount { cents: i64::MIN }),
    };
    stubs::Order {
        lines: vec![line, stubs::Line::default()],
        state: stubs::State::PaidOut.into(),
        note: Some(String::new()),
        seal: vec![0, 255],
        weight: 1.5,
        labels: [(7, "red".to_owned())].into(),
        place: Some(stubs::Place::Locker(u64::MAX)),
        replaces: Some(Box::default()),
    }
}

#[test]
fn stubs_call_by_the_numbers_of_the_file() {
    let nodes = nodes();
    let gateway = Gateway::beside(&nodes);
    let stub = Stub::of(&gateway, "orders");
    assert_eq!(stub.place(Some(order()), None).expect("it is placed").number, 1);
    assert_eq!(stub.place(None, None).expect("it is placed").number, 2);
    let all: stubs::ListOrdersReply =
        stub.call("/shop.Orders/ListOrders", (), None).expect("they are there");
    assert_eq!(all.orders[&1], order());
    assert_eq!(all.orders[&2], stubs::Order::default());
}

#[test]
fn the_group_is_named_by_the_target_or_by_metadata() {
    let nodes = nodes();
    let gateway = Gateway::beside(&nodes);
    let address = gateway.address.to_string();
    let by_address = Stub::of(&gateway, &address);
    assert_eq!(by_address.place(None, Some("orders")).expect("it is placed").number, 1);
    let lost = by_address.place(None, None).expect_err("nobody names the group");
    assert_eq!(lost.code(), Code::NotFound);
    let elsewhere = Stub::of(&gateway, "counter").place(None, None).expect_err("no such method");
    assert_eq!(elsewhere.code(), Code::Unimplemented);
    let nowhere = Stub::of(&gateway, "nothing").place(None, None).expect_err("no such group");
    assert_eq!(nowhere.code(), Code::NotFound);
}

#[test]
fn values_that_the_service_does_not_know_are_refused_and_all_numbers_arrive() {
    let nodes = nodes();
    let gateway = Gateway::beside(&nodes);
    let stub = Stub::of(&gateway, "orders");
    let lost = stubs::Order { state: 3, ..order() };
    let refused = stub.place(Some(lost), None).expect_err("no such state");
    assert_eq!(refused.code(), Code::InvalidArgument);
    let request = stubs::PlaceOrderRequest { order: Some(order()), urgent: true };
    let placed: Result<stubs::PlaceOrderReply, Status> =
        stub.call("/shop.Orders/PlaceOrder", request, None);
    placed.expect("it is placed");
    for weight in [f64::INFINITY, f64::NEG_INFINITY, 0.1 + 0.2, 5e-324] {
        let heavy = stubs::Order { weight, ..order() };
        stub.place(Some(heavy), None).expect("it is placed");
    }
    let all: stubs::ListOrdersReply =
        stub.call("/shop.Orders/ListOrders", (), None).expect("they are there");
    assert!(all.orders[&1].weight.is_nan());
    let weights = [2, 3, 4, 5].map(|number| all.orders[&number].weight);
    assert_eq!(weights, [f64::INFINITY, f64::NEG_INFINITY, 0.1 + 0.2, 5e-324]);
}

#[test]
fn reflection_serves_the_files_themselves() {
    let nodes = nodes();
    let gateway = Gateway::on(&nodes[0]);
    let stub = Stub::of(&gateway, "orders");
    let files = |request: MessageRequest| match stub.reflect(request) {
        MessageResponse::FileDescriptorResponse(files) => files.file_descriptor_proto,
        other => panic!("no files: {other:?}"),
    };
    let names = |files: Vec<Vec<u8>>| -> Vec<String> {
        let name = |file: Vec<u8>| {
            let file = prost_reflect::prost_types::FileDescriptorProto::decode(&*file);
            file.expect("a descriptor").name().to_owned()
        };
        files.into_iter().map(name).collect()
    };
    let deadline = std::time::Instant::now() + LONG;
    // The gateway hears of new groups from the registry.
    loop {
        let listed = stub.reflect(MessageRequest::ListServices(String::new()));
        let MessageResponse::ListServicesResponse(listed) = listed else { panic!("no list") };
        if listed.service.iter().any(|service| service.name == "shop.Orders") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{listed:?}");
    }
    let all = ["google/protobuf/empty.proto", "money.proto", "orders.proto"];
    for symbol in ["shop.Orders", "shop.Orders.PlaceOrder", "shop.Order.Line", "shop.money.Amount"]
    {
        let mut found = names(files(MessageRequest::FileContainingSymbol(symbol.into())));
        found.sort();
        assert_eq!(found, all, "{symbol}");
    }
    let mut found = names(files(MessageRequest::FileByFilename("money.proto".into())));
    found.sort();
    assert_eq!(found, all);
}
