//! Values of states and calls.

use std::collections::BTreeMap;

use named::{Bounds, read, same, to_vec};
use serde::{Deserialize, Serialize};

/// Has one of each kind.
#[derive(Debug, Serialize, Deserialize)]
enum Value {
    Nothing,
    Numbers(u8, i16, u32, i64, u128, f32, f64),
    Texts(char, String, Option<Option<String>>),
    Bytes(Vec<u8>),
    Map(BTreeMap<Key, Value>),
    Many(Vec<Value>),
    Struct {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Box<Value>>,
        #[serde(flatten)]
        rest: BTreeMap<String, Loose>,
    },
    Loose(Loose),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Key(u16, bool);

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Loose {
    Number(u64),
    Text(String),
    Many(Vec<Loose>),
    Tagged(Tagged),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Tagged {
    A { x: i8 },
    B { y: Vec<f32>, z: Option<char> },
}

/// A value that is read is written and read again, and is the same.
pub fn named(bytes: &[u8]) {
    let Ok(value) = read::<Value>(bytes, Bounds::CALL) else { return };
    let written = to_vec(&value.value).expect("it was read, so it can be written");
    let again = read::<Value>(&written, Bounds::CALL).expect("it was written here");
    let twice = to_vec(&again.value).expect("it was read, so it can be written");
    // An `untagged` value may become its first fitting variant once, and no other after that.
    assert!(same(&written, &twice) || value.is_dynamic, "{:?}", value.value);
}

/// A value of each kind, for the corpus.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_has_a_value_of_each_kind() {
        let loose = Loose::Many(vec![
            Loose::Number(1),
            Loose::Text("t".into()),
            Loose::Tagged(Tagged::A { x: -1 }),
            Loose::Tagged(Tagged::B { y: vec![0.5, f32::NAN], z: Some('ü') }),
        ]);
        let all = Value::Many(vec![
            Value::Nothing,
            Value::Numbers(1, -2, 3, -4, 5, 0.5, f64::INFINITY),
            Value::Texts('漢', "text".into(), Some(None)),
            Value::Bytes(vec![0, 1, 255]),
            Value::Map(BTreeMap::from([(Key(300, true), Value::Nothing)])),
            Value::Struct {
                next: Some(Box::new(Value::Loose(loose))),
                rest: BTreeMap::from([("extra".into(), Loose::Number(7))]),
            },
        ]);
        let bytes = to_vec(&all).expect("plain data");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/named/all");
        if std::env::var_os("UPDATE_CORPUS").is_some() {
            std::fs::write(path, &bytes).expect("the folder is there");
        }
        assert_eq!(std::fs::read(path).expect("it is kept"), bytes);
        named(&bytes);
    }
}
