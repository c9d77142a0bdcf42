//! A state of one version of a program, read by the next one.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use steadfast_named::{Bounds, from_slice, read, to_vec};

#[derive(Debug, PartialEq, Clone, Serialize, Deserialize)]
struct V1 {
    balance: u64,
    credit: u32,
    names: Vec<String>,
}

fn v1() -> V1 {
    V1 { balance: 100, credit: 7, names: vec!["a".into()] }
}

/// The value that another version makes of it.
fn becomes<T: DeserializeOwned>(value: &impl Serialize) -> Result<T, String> {
    from_slice(&to_vec(value).expect("plain data")).map_err(|error| error.to_string())
}

#[test]
fn fields_are_known_by_their_names() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Reordered {
        names: Vec<String>,
        credit: u32,
        balance: u64,
    }
    let now: Reordered = becomes(&v1()).expect("the same fields");
    assert_eq!(now, Reordered { names: vec!["a".into()], credit: 7, balance: 100 });
}

#[test]
fn fields_are_added_renamed_widened_and_made_optional() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct V2 {
        #[serde(alias = "balance")]
        amount: i128,
        credit: Option<u64>,
        names: Vec<Name>,
        #[serde(default)]
        limit: u8,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Name(String);
    let now: V2 = becomes(&v1()).expect("each change has its rule");
    let wanted = V2 { amount: 100, credit: Some(7), names: vec![Name("a".into())], limit: 0 };
    assert_eq!(now, wanted);
}

#[test]
fn fields_that_are_gone_are_told() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Less {
        balance: u64,
    }
    let bytes = to_vec(&[v1(), v1()]).expect("plain data");
    let now = read::<Vec<Less>>(&bytes, Bounds::NONE).expect("a part of it");
    assert_eq!(now.value, [Less { balance: 100 }, Less { balance: 100 }]);
    assert_eq!(now.dropped, ["Less.credit", "Less.names"]);
}

#[test]
fn fields_are_nested() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Nested {
        #[serde(flatten)]
        money: Money,
        names: Vec<String>,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Money {
        balance: u64,
        credit: u32,
    }
    let nested: Nested = becomes(&v1()).expect("the same names");
    assert_eq!(nested.money, Money { balance: 100, credit: 7 });
    assert_eq!(becomes::<V1>(&nested).expect("and back"), v1());
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct More {
        balance: u64,
        credit: u32,
        names: Vec<String>,
        limit: u8,
    }
    assert_eq!(becomes::<More>(&v1()).unwrap_err(), "missing field `limit`, in `More`");
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Narrow {
        accounts: BTreeMap<String, Vec<Account>>,
    }
    #[derive(Debug, Serialize, Deserialize)]
    struct Account {
        credit: u8,
    }
    #[derive(Serialize)]
    struct Before {
        accounts: BTreeMap<String, Vec<V1>>,
    }
    let large = V1 { credit: 300, ..v1() };
    let accounts = BTreeMap::from([("anna".to_owned(), vec![v1(), large])]);
    let error = becomes::<Narrow>(&Before { accounts }).unwrap_err();
    assert_eq!(
        error,
        "invalid value: integer `300`, expected u8, in `Narrow.accounts.anna[1].credit`"
    );
    assert!(becomes::<(u64,)>(&(1.5f64,)).unwrap_err().contains("floating point"));
    assert!(becomes::<f32>(&0.1f64).is_err(), "it would be rounded");
    assert_eq!(becomes::<f32>(&0.5f64), Ok(0.5));
    assert!(becomes::<f64>(&(u64::MAX)).is_err(), "it would be rounded");
    assert_eq!(becomes::<f64>(&(1u64 << 53)), Ok(9_007_199_254_740_992.0));
    assert!(becomes::<f64>(&vec![1u8]).is_err());
}

#[test]
fn foreign_bytes_are_refused() {
    let bytes = to_vec(&v1()).expect("plain data");
    for end in 0..bytes.len() {
        from_slice::<V1>(&bytes[..end]).expect_err("the end is missing");
    }
    let mut longer = bytes.clone();
    longer.insert(12, 0);
    from_slice::<V1>(&longer).expect_err("something is before it");
    let mut newer = bytes;
    newer[11] = 2;
    let error = from_slice::<V1>(&newer).expect_err("another version").to_string();
    assert!(error.contains("a newer version"), "{error}");
}

/// As long as serde wants to go on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Chain(Option<Box<Chain>>);

#[test]
fn calls_nest_only_so_deep() {
    let deep = |levels| (0..levels).fold(Chain(None), |chain, _| Chain(Some(Box::new(chain))));
    let bounds = Bounds::CALL;
    for (levels, goes) in [(bounds.depth, true), (bounds.depth + 1, false)] {
        let written = steadfast_named::to_vec_within(&deep(levels), bounds);
        assert_eq!(written.is_ok(), goes, "{levels}");
        let bytes = to_vec(&deep(levels)).expect("one's own data is not bounded");
        let error = read::<Chain>(&bytes, bounds).map(|it| it.value).map_err(|it| it.to_string());
        assert_eq!(error.is_ok(), goes, "{levels}: {error:?}");
    }
}
