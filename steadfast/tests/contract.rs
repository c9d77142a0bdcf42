//! The contract of a service as the attribute writes it and as a group tells it, and its clients in
//! JSON.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use expect_test::expect;
use fixture::cluster;
use serde::{Deserialize, Serialize};
use steadfast::contract::{TypeContract, Types};
use steadfast::{
    AsyncClient, BoxError, BytesCallError, Call, CallError, Client, Context, Contract,
    ContractError, DESCRIBE, HostOptions, Invocation, Node, NodeConfig, Reading, Refusal, Schema,
    Service, ServiceOutcome, Style,
};

const LONG: Duration = Duration::from_secs(20);

/// An order, and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
struct Order {
    /// The customer.
    ordered_by: String,
    lines: Vec<Line>,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(skip)]
    cache: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Line(u32, Cents);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Cents(u64);

/// How it comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "SCREAMING_SNAKE_CASE")]
enum Kind {
    /// At the door.
    PickUp,
    ByPost {
        post_code: Option<[u8; 5]>,
    },
    Gift(Box<Order>),
    Both(Line, Line),
}

/// Has no schema.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Opaque(BTreeMap<String, Vec<u8>>);

/// A type of the same name as another one.
mod other {
    #[derive(Debug, serde::Serialize, serde::Deserialize, steadfast::Schema)]
    pub(super) struct Line {
        pub(super) r#type: char,
    }
}

/// Takes orders.
///
/// All of them.
#[steadfast::service]
trait Shop {
    /// Orders.
    ///
    /// # Errors
    /// There is no paper.
    fn order(&mut self, context: &Context, order: Order) -> Result<u64, other::Line>;
    fn all(&self) -> BTreeMap<u64, Order>;
    fn mixed(&self, r#in: (bool, f32), map: HashMap<String, Option<i8>>)
    -> Option<(Opaque, usize)>;
    fn opaque(&mut self, it: Opaque);
    fn wait(&self, r#for: Duration) -> Duration;
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Orders(BTreeMap<u64, Order>);

impl Shop for Orders {
    fn order(&mut self, _: &Context, order: Order) -> Result<u64, other::Line> {
        if order.ordered_by.is_empty() {
            return Err(other::Line { r#type: '?' });
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(number, order);
        Ok(number)
    }

    fn all(&self) -> BTreeMap<u64, Order> {
        self.0.clone()
    }

    fn mixed(
        &self,
        r#in: (bool, f32),
        map: HashMap<String, Option<i8>>,
    ) -> Option<(Opaque, usize)> {
        r#in.0.then(|| (Opaque::default(), map.len()))
    }

    fn opaque(&mut self, _: Opaque) {}

    fn wait(&self, r#for: Duration) -> Duration {
        r#for
    }
}

fn gift() -> Order {
    let by_post = Kind::ByPost { post_code: Some(*b"10115") };
    let inner = Order {
        ordered_by: "Ada".to_owned(),
        lines: vec![Line(2, Cents(1 << 60))],
        kind: by_post,
        cache: Vec::new(),
    };
    Order { kind: Kind::Gift(inner.clone().into()), lines: Vec::new(), ..inner }
}

/// The lines of a list, as JSON.
fn lines<T: Serialize>(list: impl IntoIterator<Item = T>) -> String {
    let line = |it| serde_json::to_string(&it).expect("texts and lists") + "\n";
    list.into_iter().map(line).collect()
}

#[test]
fn the_attribute_writes_the_methods() {
    let contract = ShopService::<Orders>::contract();
    expect![[r#"
        {"name":"order","reads":false,"docs":"Orders.\n\n# Errors\nThere is no paper.","arguments":[{"name":"order","type":"Order"}],"result":"u64","error":"Line2"}
        {"name":"all","reads":true,"arguments":[],"result":"Map<u64, Order>"}
        {"name":"mixed","reads":true,"arguments":[{"name":"in","type":"(bool, f32)"},{"name":"map","type":"Map<String, Option<i8>>"}],"result":"Option<(Opaque, usize)>"}
        {"name":"opaque","reads":false,"arguments":[{"name":"it","type":"Opaque"}],"result":"()"}
        {"name":"wait","reads":true,"arguments":[{"name":"for","type":"Duration"}],"result":"Duration"}
    "#]].assert_eq(&lines(&contract.methods));
    let all = (contract.service, contract.docs, contract.encodings);
    expect![[r#"("Shop", "Takes orders.\n\nAll of them.", ["named", "postcard", "json"])"#]]
        .assert_eq(&format!("{all:?}"));
}

#[test]
fn derived_schemas_define_the_types_as_serde_writes_them() {
    expect![[r#"
        ["Cents",{"kind":"struct","fields":[{"type":"u64"}]}]
        ["Duration",{"kind":"struct","fields":[{"name":"secs","type":"u64"},{"name":"nanos","type":"u32"}]}]
        ["Kind",{"kind":"enum","docs":"How it comes.","variants":[{"name":"pick-up","fields":[],"docs":"At the door."},{"name":"by-post","fields":[{"name":"POST_CODE","type":"Option<[u8; 5]>"}]},{"name":"gift","fields":[{"type":"Order"}]},{"name":"both","fields":[{"type":"Line"},{"type":"Line"}]}]}]
        ["Line",{"kind":"struct","fields":[{"type":"u32"},{"type":"Cents"}]}]
        ["Line2",{"kind":"struct","fields":[{"name":"type","type":"char"}]}]
        ["Order",{"kind":"struct","docs":"An order, and what is in it.","fields":[{"name":"orderedBy","type":"String","docs":"The customer."},{"name":"lines","type":"Vec<Line>"},{"name":"type","type":"Kind"}]}]
    "#]].assert_eq(&lines(&ShopService::<Orders>::contract().types));
}

/// Names as serde writes them, and as the contract has them.
macro_rules! names {
    ($($rule:literal)*) => {[$({
        #[derive(Serialize, Schema)]
        #[serde(rename_all = $rule)]
        #[allow(non_snake_case)]
        struct Fields {
            plain: (),
            two_words: (),
            r#type: (),
            x1_y2_: (),
            oddCase: (),
        }

        #[derive(Serialize, Schema)]
        #[serde(rename_all = $rule)]
        enum Variants {
            Plain,
            TwoWords,
            HTTPCode2,
        }

        let fields = Fields { plain: (), two_words: (), r#type: (), x1_y2_: (), oddCase: () };
        let fields = serde_json::to_value(fields).expect("it has a form");
        let mut written: Vec<String> = fields.as_object().expect("names").keys().cloned().collect();
        for variant in [Variants::Plain, Variants::TwoWords, Variants::HTTPCode2] {
            let variant = serde_json::to_value(variant).expect("it has a form");
            written.push(variant.as_str().expect("a name").to_owned());
        }
        let mut types = Types::default();
        Fields::schema(&mut types);
        Variants::schema(&mut types);
        let types = types.finish();
        let mut told = Vec::new();
        for definition in types.values() {
            match definition {
                TypeContract::Struct { fields, .. } => {
                    told.extend(fields.iter().map(|it| it.name.clone()));
                    // As the keys of an object are.
                    told.sort();
                }
                TypeContract::Enum { variants, .. } => {
                    told.extend(variants.iter().map(|it| it.name.clone()));
                }
            }
        }
        ($rule, written, told)
    }),*]};
}

#[test]
fn every_rule_for_names_is_that_of_serde() {
    for (rule, written, told) in names!(
        "lowercase" "UPPERCASE" "PascalCase" "camelCase" "snake_case" "SCREAMING_SNAKE_CASE"
        "kebab-case" "SCREAMING-KEBAB-CASE"
    ) {
        assert_eq!(told, written, "{rule}");
    }
}

/// A cluster of one node with a shop.
fn shop() -> (Node, Client) {
    let node = Node::start(NodeConfig::single()).expect("free ports");
    node.host("shop", HostOptions::default(), || ShopService::new(Orders::default()))
        .expect("a good name");
    cluster::wait_for_replicas(&node, "shop", 1);
    let client = Client::connect([node.client_address().expect("it takes clients")]).expect("up");
    (node, client)
}

/// All forms of JSON that the contract tells are those that serde writes.
#[test]
fn generated_clients_can_speak_json() {
    let (node, client) = shop();
    let shop = ShopClient::new(&client, "shop").within(LONG);
    let in_json = shop.in_json();
    assert_eq!(in_json.order(gift()).expect("ordered"), 1);
    assert_eq!(shop.order(gift()).expect("ordered"), 2, "the client itself keeps its encoding");
    assert_eq!(in_json.all().expect("read"), shop.all().expect("read"));
    assert_eq!(in_json.mixed((true, 0.5), HashMap::new()), Ok(Some((Opaque::default(), 0))));
    in_json.opaque(Opaque::default()).expect("nothing is a result, too");
    assert_eq!(in_json.wait(LONG), Ok(LONG));
    let nobody = Order { ordered_by: String::new(), ..gift() };
    match in_json.order(nobody) {
        Err(CallError::Service(error)) => assert_eq!(error.r#type, '?'),
        other => panic!("{other:?}"),
    }
    let raw = Invocation::new("shop", "all").json().body("{}").reading(Reading::Linearizable);
    let text = client.call(raw.within(LONG)).expect("read");
    let text: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let wait = Invocation::new("shop", "wait").json().body(r#"[{"secs": 1, "nanos": 2}]"#);
    let waited = client.call(wait.within(LONG)).expect("called");
    assert_eq!(waited, r#"{"secs":1,"nanos":2}"#);
    let order = &text["1"];
    assert_eq!(order["orderedBy"], "Ada");
    assert_eq!(order["type"]["gift"]["type"]["by-post"]["POST_CODE"][0], 49);
    assert_eq!(order["type"]["gift"]["lines"][0], serde_json::json!([2, 1u64 << 60]));
    node.stop().expect("it stops");
}

#[tokio::test]
async fn asynchronous_clients_can_speak_json_and_ask_for_the_contract() {
    let (node, _) = shop();
    let address = node.client_address().expect("it takes clients");
    let client = AsyncClient::connect([address]).await.expect("up");
    let shop = ShopAsyncClient::new(&client, "shop").within(LONG).in_json();
    assert_eq!(shop.order(gift()).await.expect("ordered"), 1);
    assert_eq!(shop.all().await.expect("read").len(), 1);
    let told = Contract::read(client.call(Contract::ask("shop").within(LONG)).await);
    assert_eq!(told, Ok(ShopService::<Orders>::contract()));
    node.stop().expect("it stops");
}

#[test]
fn a_group_tells_its_contract_without_ordering_and_to_other_calls_too() {
    let (node, client) = shop();
    let before = node.status().ring.delivered;
    let contract = Contract::of(&client, "shop").expect("it tells");
    assert_eq!(node.status().ring.delivered, before, "nothing was ordered");
    assert_eq!(contract, ShopService::<Orders>::contract());
    let ordered = Invocation::new("shop", DESCRIBE).json().body("{}").within(LONG);
    assert_eq!(Contract::read(client.call(ordered)), Ok(contract));
    for (invocation, why) in [
        (Contract::ask("shop").body("[1]"), "steadfast.describe()"),
        (Invocation::new("shop", DESCRIBE), "ask for it in JSON"),
    ] {
        let Err(BytesCallError::Refused { refusal: Refusal::BadArguments, reason }) =
            client.call(invocation.within(LONG))
        else {
            panic!("it was answered");
        };
        assert!(reason.contains(why), "{reason}");
    }
    node.stop().expect("it stops");
}

#[test]
fn a_group_of_every_style_tells_its_contract() {
    let node = Node::start(NodeConfig::single()).expect("free ports");
    let client = Client::connect([node.client_address().expect("it takes clients")]).expect("up");
    for style in [
        Style::Stateless,
        Style::ColdPassive,
        Style::WarmPassive,
        Style::SemiActive,
        Style::Active,
        Style::Voting,
    ] {
        let group = format!("{style:?}");
        let options = HostOptions::default().style(style);
        node.host(&group, options, || ShopService::new(Orders::default())).expect("a good name");
        cluster::wait_for_replicas(&node, &group, 1);
        let told = Contract::read(client.call(Contract::ask(&group).within(LONG)));
        assert_eq!(told.as_ref(), Ok(&ShopService::<Orders>::contract()), "{style:?}");
    }
    node.stop().expect("it stops");
}

/// A service by hand, which tells nothing.
struct Silent;

impl Service for Silent {
    fn call(&mut self, _: &Context, _: Call<'_>) -> ServiceOutcome {
        ServiceOutcome::Ok("[]".into())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn a_group_that_does_not_tell_is_told_apart() {
    let node = Node::start(NodeConfig::single()).expect("free ports");
    node.host("silent", HostOptions::default(), || Silent).expect("a good name");
    cluster::wait_for_replicas(&node, "silent", 1);
    let client = Client::connect([node.client_address().expect("it takes clients")]).expect("up");
    assert_eq!(Contract::of(&client, "silent"), Err(ContractError::Untold));
    let error = Contract::of(&client, "nobody").expect_err("there is no such group");
    assert!(matches!(error, ContractError::Call(BytesCallError::NoSuchGroup(_))), "{error}");
    node.stop().expect("it stops");
}
