//! JSON in which every number arrives as it was, or is refused.
//!
//! JSON has no infinities and no NaN, and `serde_json` writes `null` for them without a word. Here
//! they are the texts of protobuf's JSON, wherever a type has `f32` or `f64`. A number that an `f32`
//! cannot hold is refused: `serde` would make an infinity of it.

use serde::Serialize;
use serde::de::DeserializeOwned;

mod names;
mod read;
mod write;

use read::Reader;
use write::Writer;

/// # Errors
/// The type's own `Serialize` fails, or a map's keys are not strings.
pub(super) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::with_capacity(128);
    value.serialize(Writer(&mut serde_json::Serializer::new(&mut bytes)))?;
    Ok(bytes)
}

/// # Errors
/// The bytes are not a `T`, or more than one.
pub(super) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = T::deserialize(Reader(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Wrapped(f64);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Point,
        Circle(f32),
        Box(f64, f64),
        Named { height: f64, inner: Option<Wrapped> },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All {
        shapes: Vec<Shape>,
        pair: (f32, [f64; 2]),
        by_name: BTreeMap<String, f64>,
        by_number: BTreeMap<u64, Option<f32>>,
        wide: (u128, i128, u64, i64),
        text: String,
        #[serde(flatten)]
        more: BTreeMap<String, bool>,
    }

    fn json<T: Serialize>(value: &T) -> String {
        String::from_utf8(to_vec(value).expect("it has a form")).expect("JSON is UTF-8")
    }

    fn back<T: DeserializeOwned>(json: &str) -> Result<T, String> {
        from_slice(json.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_number_arrives_as_it_was() {
        let (huge, tiny) = (f64::MAX, 5e-324);
        let all = All {
            shapes: vec![
                Shape::Point,
                Shape::Circle(f32::INFINITY),
                Shape::Box(f64::NEG_INFINITY, 0.1 + 0.2),
                Shape::Named { height: f64::INFINITY, inner: Some(Wrapped(f64::NEG_INFINITY)) },
                Shape::Named { height: -0.0, inner: None },
            ],
            pair: (f32::MAX, [huge, tiny]),
            by_name: [("a".to_owned(), f64::INFINITY), ("NaN".to_owned(), 1.5)].into(),
            by_number: [(7, Some(f32::NEG_INFINITY)), (8, None)].into(),
            wide: (u128::MAX, i128::MIN, u64::MAX, i64::MIN),
            text: "Infinity".into(),
            more: [("more".to_owned(), true)].into(),
        };
        assert_eq!(back::<All>(&json(&all)), Ok(all));
    }

    #[test]
    fn floats_survive_to_the_last_bit() {
        let mut random = wire::Random::new(44);
        for _ in 0..20_000 {
            let number = f64::from_bits(random.next_u64());
            let seen: f64 = back(&json(&number)).expect("it is a number");
            assert!(seen.to_bits() == number.to_bits() || seen.is_nan() && number.is_nan());
            let number = f32::from_bits(random.next_u64() as u32);
            let seen: f32 = back(&json(&number)).expect("it is a number");
            assert!(seen.to_bits() == number.to_bits() || seen.is_nan() && number.is_nan());
        }
    }

    #[test]
    fn what_json_cannot_write_is_a_text() {
        assert_eq!(json(&(f64::NAN, f32::INFINITY, Wrapped(f64::NEG_INFINITY))), {
            "[\"NaN\",\"Infinity\",\"-Infinity\"]"
        });
        assert!(back::<f64>("\"NaN\"").is_ok_and(f64::is_nan));
        assert!(back::<f32>("\"NaN\"").is_ok_and(f32::is_nan));
        let keyed = std::collections::HashMap::from([("x", f64::NAN)]);
        assert_eq!(json(&keyed), "{\"x\":\"NaN\"}");
    }

    #[test]
    fn numbers_that_a_type_cannot_hold_are_refused() {
        assert!(back::<f32>("1e39").unwrap_err().contains("f32"));
        assert!(back::<f32>("-3.5e38").unwrap_err().contains("f32"));
        assert_eq!(back::<f32>("1e38"), Ok(1e38));
        assert!(back::<f64>("1e400").is_err());
        for wrong in ["null", "\"1.5\"", "\"nan\"", "\"inf\"", "[1.5]", "true"] {
            assert!(back::<f64>(wrong).is_err(), "{wrong}");
        }
        for wrong in ["1.0", "1e2", "-1", "18446744073709551616", "\"1\"", "\"NaN\""] {
            assert!(back::<u64>(wrong).is_err(), "{wrong}");
        }
        assert!(back::<u64>("1 2").is_err());
    }

    #[test]
    fn texts_and_what_the_type_does_not_know_stay_as_they_are() {
        let raw: Box<RawValue> = back(" [1234567890123456789012345, 1.50]").expect("JSON");
        assert_eq!(json(&raw), "[1234567890123456789012345, 1.50]");
        let value: serde_json::Value = back("{\"a\":[1,\"NaN\",null,1.5]}").expect("JSON");
        assert_eq!(json(&value), "{\"a\":[1,\"NaN\",null,1.5]}");
        assert_eq!(back::<String>("\"NaN\""), Ok("NaN".to_owned()));
    }
}
