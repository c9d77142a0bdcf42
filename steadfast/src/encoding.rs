//! How arguments, results and states become bytes: postcard between Rust programs, JSON by hand and
//! for programs in other languages.

use serde::Serialize;
use serde::de::DeserializeOwned;

mod json;

/// The form of a call's arguments and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Compact; both sides know the types.
    Postcard,
    /// Readable; arguments are an array in order, or an object by names.
    Json,
}

impl Encoding {
    #[cfg(feature = "node")]
    pub(crate) fn of_call(json: bool) -> Self {
        if json { Encoding::Json } else { Encoding::Postcard }
    }

    /// # Errors
    /// The type's own `Serialize` fails, or (JSON) a map's keys are not strings.
    pub(crate) fn encode<T: Serialize + ?Sized>(self, value: &T) -> Result<Vec<u8>, String> {
        match self {
            Encoding::Postcard => postcard::to_allocvec(value).map_err(|error| error.to_string()),
            Encoding::Json => json::to_vec(value).map_err(|error| error.to_string()),
        }
    }

    /// # Errors
    /// The bytes are not a `T`, or more than one: nothing is ignored in silence.
    pub(crate) fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, String> {
        match self {
            Encoding::Postcard => match postcard::take_from_bytes(bytes) {
                Ok((value, [])) => Ok(value),
                Ok((_, rest)) => Err(format!("{} bytes too many", rest.len())),
                Err(error) => Err(error.to_string()),
            },
            Encoding::Json => json::from_slice(bytes).map_err(|error| error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding::{Json, Postcard};

    #[test]
    fn both_forms_return_what_was_put_in() {
        let value = (7u64, "seven".to_owned(), vec![Some(true), None]);
        for encoding in [Postcard, Json] {
            let bytes = encoding.encode(&value).expect("plain data");
            assert_eq!(encoding.decode(&bytes), Ok(value.clone()));
        }
    }

    #[test]
    fn bytes_left_over_are_refused() {
        for encoding in [Postcard, Json] {
            let mut bytes = encoding.encode(&7u64).expect("plain data");
            bytes.extend(b" 1");
            encoding.decode::<u64>(&bytes).expect_err("something follows the value");
        }
    }

    #[test]
    fn cut_bytes_are_refused() {
        for encoding in [Postcard, Json] {
            let bytes = encoding.encode(&"a longer text").expect("plain data");
            encoding.decode::<String>(&bytes[..bytes.len() - 1]).expect_err("the end is missing");
        }
    }
}
