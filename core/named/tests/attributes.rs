//! Each attribute of serde, each kind of data: what is written is read back, bit for bit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use steadfast_named::{from_slice, to_vec, tried};

/// Compared as text, too: a NaN is no other value's equal.
fn whole<T: Serialize + DeserializeOwned + Debug>(value: T) {
    let bytes = to_vec(&value).expect("it is written");
    let back: T = from_slice(&bytes).unwrap_or_else(|error| panic!("{value:?}: {error}"));
    assert_eq!(format!("{back:?}"), format!("{value:?}"));
    assert_eq!(to_vec(&back).expect("it is written again"), bytes, "{value:?}");
}

#[test]
fn plain_data() {
    whole((u8::MAX, u16::MAX, u32::MAX, u64::MAX, u128::MAX));
    whole((i8::MIN, i16::MIN, i32::MIN, i64::MIN, i128::MIN));
    whole([f64::NAN, f64::INFINITY, -0.0, f64::MIN_POSITIVE, 0.1]);
    whole([f32::NAN, f32::NEG_INFINITY, -0.0, 0.1]);
    whole((true, false, 'ü', '\0', String::from("漢 \u{2028} 😀"), ()));
    whole([None, Some(None), Some(Some(7u8))]);
    whole([Some(()), None]);
    whole(Some(Some(Some(()))));
    whole(vec![vec![0u8; 300], vec![], vec![1]]);
    whole(vec![vec![vec![1u64, u64::MAX]; 2]; 3]);
    whole(vec![Some(1u8), None]);
    whole(BTreeMap::from([((1u8, -1i8), "a"), ((2, 3), "b")].map(|(k, v)| (k, v.to_owned()))));
    whole(BTreeMap::from([(Some(1u8), BTreeSet::from(['x'])), (None, BTreeSet::new())]));
    whole(HashMap::from([(String::new(), 1i128)]));
    whole((Duration::from_nanos(1), Duration::new(u64::MAX, 1)));
    whole::<[IpAddr; 2]>(["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()]);
    whole((1u64, "a".to_owned(), 2u64));
    whole::<Vec<()>>(vec![(); 1000]);
    whole::<[u8; 0]>([]);
    whole(serde_json::json!({"a": [1, -1, 1.5, null, {"b": "c"}], "": true}));
}

#[derive(Debug, Serialize, Deserialize)]
struct Account {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(rename = "pieces", alias = "amount")]
    balance: u32,
    #[serde(skip)]
    #[allow(dead_code)]
    cache: u8,
    credit: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    notes: Vec<String>,
}

fn account(limit: Option<u32>, balance: u32, credit: Option<u32>) -> Account {
    Account { limit, balance, cache: 0, credit, notes: Vec::new() }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Side {
    BuyIt,
    #[serde(skip)]
    #[allow(dead_code)]
    Internal,
    Sell(u8),
    Both(u8, String),
    #[serde(rename = "x")]
    Cancel {
        at: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    Nothing {},
    Empty(()),
}

fn sides() -> Vec<Side> {
    vec![
        Side::BuyIt,
        Side::Sell(1),
        Side::Both(2, "b".into()),
        Side::Cancel { at: 3, by: None },
        Side::Cancel { at: 4, by: Some("me".into()) },
        Side::Nothing {},
        Side::Empty(()),
    ]
}

#[test]
fn skipped_fields_and_variants() {
    whole(vec![account(None, 0, Some(0)), account(Some(1), 2, None), account(None, 1, None)]);
    whole(sides());
    whole(account(None, 0, Some(0)));
    to_vec(&Side::Internal).expect_err("serde has no form for it");
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Setting {
    Flag(bool),
    Number(i64),
    Float(f64),
    Text(String),
    Address(IpAddr),
    Many(Vec<Setting>),
    Named { name: String, side: Side },
    Nothing,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Event {
    Started,
    Moved { x: f32, y: Option<f32>, via: Option<Option<u8>> },
    Bought(Account),
    Of(BTreeMap<String, u8>),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A,
    B(u8, Vec<u8>),
    C { side: Side },
    D(Option<()>),
}

fn settings() -> Vec<Setting> {
    vec![
        Setting::Flag(true),
        Setting::Number(-1),
        Setting::Float(0.5),
        Setting::Text("t".into()),
        Setting::Many(vec![Setting::Nothing, Setting::Number(3)]),
        Setting::Named { name: "n".into(), side: Side::Cancel { at: 1, by: None } },
        Setting::Named { name: "m".into(), side: Side::BuyIt },
        Setting::Named { name: "o".into(), side: Side::Both(1, "x".into()) },
        Setting::Nothing,
    ]
}

#[test]
fn tags_of_enums() {
    whole(settings());
    whole(vec![
        Event::Started,
        Event::Moved { x: 0.1, y: Some(-0.0), via: Some(None) },
        Event::Moved { x: 0.1, y: None, via: None },
        Event::Bought(account(None, 0, Some(0))),
        Event::Of(BTreeMap::from([("a".into(), 1)])),
    ]);
    whole(vec![
        Adjacent::A,
        Adjacent::B(1, vec![2, 3]),
        Adjacent::C { side: Side::Sell(1) },
        Adjacent::D(Some(())),
        Adjacent::D(None),
    ]);
}

#[derive(Debug, Serialize, Deserialize)]
struct Flat {
    id: u32,
    #[serde(flatten)]
    account: Account,
    #[serde(flatten)]
    event: Event,
}

#[derive(Debug, Serialize, Deserialize)]
struct FlatRest {
    id: u32,
    #[serde(flatten)]
    account: Account,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FlatEventAndRest {
    #[serde(flatten)]
    event: Event,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FlatNumbers {
    at: IpAddr,
    #[serde(flatten)]
    inner: Inner,
}

#[derive(Debug, Serialize, Deserialize)]
struct Inner {
    from: IpAddr,
    bytes: Vec<u8>,
    sides: Vec<Side>,
    option: Option<Option<Side>>,
    by_number: BTreeMap<u16, f32>,
}

#[test]
fn flattened_structs() {
    let rest = BTreeMap::from([("extra".to_owned(), serde_json::json!([1, "two"]))]);
    whole(FlatRest { id: 1, account: account(None, 1, None), rest });
    for event in [Event::Started, Event::Moved { x: 1.0, y: None, via: Some(Some(1)) }] {
        whole(Flat { id: 1, account: account(None, 1, None), event });
    }
    whole(FlatNumbers {
        at: "10.1.1.1".parse().unwrap(),
        inner: Inner {
            from: "::1".parse().unwrap(),
            bytes: vec![1; 300],
            sides: sides(),
            option: Some(None),
            by_number: BTreeMap::from([(1, 0.1)]),
        },
    });
}

#[test]
fn the_order_of_hashes_is_no_part_of_a_value() {
    let map: HashMap<u32, BTreeSet<char>> = (0..100).map(|n| (n, BTreeSet::from(['x']))).collect();
    tried(&(map.clone(), map), steadfast_named::Bounds::NONE).expect("the same in another order");
    assert!(steadfast_named::same(&to_vec(&[1, 2]).unwrap(), &to_vec(&[2, 1]).unwrap()));
    assert!(!steadfast_named::same(&to_vec(&[1, 2]).unwrap(), &to_vec(&[2, 2]).unwrap()));
}

#[test]
fn a_digest_is_equal_for_values_that_are_the_same_and_no_others() {
    let digest = |bytes: Vec<u8>| steadfast_named::digest(&bytes).expect("it is a value");
    let map = |at: u32, other: u32| {
        let mut map: HashMap<u32, Vec<Option<u32>>> = (0..50).map(|n| (n, vec![Some(n)])).collect();
        map.insert(at, vec![Some(other), None]);
        digest(to_vec(&map).unwrap())
    };
    assert_eq!(map(1, 2), map(1, 2), "each map has an order of its own");
    assert_ne!(map(1, 2), map(2, 1), "each key has its value");
    assert_ne!(map(1, 2), map(1, 3));
    let all = [
        digest(to_vec(&12u32).unwrap()),
        digest(to_vec(&21u32).unwrap()),
        digest(to_vec(&12u64).unwrap()),
        digest(to_vec(&Some(12u32)).unwrap()),
        digest(to_vec(&"12").unwrap()),
        digest(to_vec(&[12u32]).unwrap()),
        digest(to_vec(&[12u32, 12]).unwrap()),
        digest(to_vec(&(12u32, 0u32)).unwrap()),
        digest(to_vec(&[[12u32], [0]]).unwrap()),
    ];
    let apart: std::collections::BTreeSet<u64> = all.into_iter().collect();
    assert_eq!(apart.len(), all.len());
    assert_eq!(digest(to_vec(&[1, 2, 3]).unwrap()), digest(to_vec(&[3, 1, 2]).unwrap()));
    assert_eq!(steadfast_named::digest(b"no value"), None);
}

#[derive(Debug, Serialize, Deserialize)]
struct Wide {
    #[serde(flatten)]
    inner: Wider,
}

#[derive(Debug, Serialize, Deserialize)]
struct Wider {
    n: u128,
}

#[test]
fn what_serde_cannot_buffer_is_an_error_and_no_other_value() {
    let error = tried(&Wide { inner: Wider { n: 1 } }, steadfast_named::Bounds::NONE)
        .expect_err("serde buffers no numbers of 128 bits");
    assert!(error.to_string().contains("128"), "{error}");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Ambiguous {
    Narrow { x: u32 },
    Broad { x: u32, y: Option<u8> },
}

#[test]
fn a_value_that_reads_back_as_another_is_found() {
    let value = Ambiguous::Broad { x: 1, y: None };
    let error = tried(&value, steadfast_named::Bounds::NONE).expect_err("it becomes Narrow");
    assert!(error.to_string().contains("reads back as another value"), "{error}");
    // serde gives a flattened map what a flattened enum before it has taken, too.
    let value = FlatEventAndRest { event: Event::Started, rest: BTreeMap::new() };
    let error = tried(&value, steadfast_named::Bounds::NONE).expect_err("the map gets the tag");
    assert!(error.to_string().contains("reads back as another value"), "{error}");
}
