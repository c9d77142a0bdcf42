//! How arguments, results and states become bytes: [`named`] between Rust programs, JSON by hand
//! and for programs in other languages, postcard with programs that were built before `named`.

use named::Bounds;
use serde::Serialize;
use serde::de::DeserializeOwned;

mod json;
mod trials;

pub(crate) use trials::written;

/// The form of a call's arguments and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// With names and types: what arrives is what was sent, or it is refused.
    Named,
    /// Compact; both sides must have the very same types.
    Postcard,
    /// Readable; arguments are an array in order, or an object by names.
    Json,
}

impl Encoding {
    /// A service answers as it was asked.
    #[cfg(feature = "node")]
    pub(crate) fn of_call(json: bool, body: &[u8]) -> Self {
        match json {
            true => Encoding::Json,
            false if named::is_named(body) => Encoding::Named,
            false => Encoding::Postcard,
        }
    }

    /// # Errors
    /// The type's own `Serialize` fails, the value would arrive as another one, or (JSON) a map's
    /// keys are not strings.
    pub(crate) fn encode<T: Serialize + DeserializeOwned>(
        self,
        value: &T,
    ) -> Result<Vec<u8>, String> {
        match self {
            Encoding::Named => written(value, Bounds::CALL).map_err(|error| error.to_string()),
            Encoding::Postcard => in_postcard(value),
            Encoding::Json => json::to_vec(value).map_err(|error| error.to_string()),
        }
    }

    /// # Errors
    /// The bytes are not a `T`, or more than one: nothing is ignored in silence.
    pub(crate) fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, String> {
        match self {
            Encoding::Named => {
                let read = named::read(bytes, Bounds::CALL).map_err(|error| error.to_string())?;
                Ok(read.value)
            }
            Encoding::Postcard => match postcard::take_from_bytes(bytes) {
                Ok((value, [])) => Ok(value),
                Ok((_, rest)) => Err(format!("{} bytes too many", rest.len())),
                Err(error) => Err(error.to_string()),
            },
            Encoding::Json => json::from_slice(bytes).map_err(|error| error.to_string()),
        }
    }
}

/// Postcard skips what a type skips, and then reads one field for another: so it is always read
/// back here, and compared.
fn in_postcard<T: Serialize + DeserializeOwned>(value: &T) -> Result<Vec<u8>, String> {
    let bytes = postcard::to_allocvec(value).map_err(|error| error.to_string())?;
    let in_names = |value: &T| named::to_vec(value).map_err(|error| error.to_string());
    let back = Encoding::Postcard.decode(&bytes)?;
    match named::same(&in_names(&back)?, &in_names(value)?) {
        true => Ok(bytes),
        false => {
            Err("the other side was built with a former version of Steadfast, whose encoding \
                      cannot carry this value: build it anew"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding::{Json, Named, Postcard};

    const ALL: [super::Encoding; 3] = [Named, Postcard, Json];

    #[test]
    fn every_form_returns_what_was_put_in() {
        let value = (7u64, "seven".to_owned(), vec![Some(true), None]);
        for encoding in ALL {
            let bytes = encoding.encode(&value).expect("plain data");
            assert_eq!(encoding.decode(&bytes), Ok(value.clone()));
        }
    }

    #[test]
    fn bytes_left_over_are_refused() {
        for encoding in ALL {
            let mut bytes = encoding.encode(&7u64).expect("plain data");
            bytes.extend(b" 1");
            encoding.decode::<u64>(&bytes).expect_err("something follows the value");
        }
    }

    #[test]
    fn cut_bytes_are_refused() {
        for encoding in ALL {
            let bytes = encoding.encode(&"a longer text".to_owned()).expect("plain data");
            encoding.decode::<String>(&bytes[..bytes.len() - 1]).expect_err("the end is missing");
        }
    }

    /// So a replica of a former program refuses named arguments, and is asked in postcard.
    #[test]
    fn named_bytes_are_no_postcard() {
        let bytes = Named.encode(&[255u8; 30]).expect("plain data");
        Postcard.decode::<[u8; 12]>(&bytes).expect_err("too many bytes");
        Postcard.decode::<[[u8; 30]; 30]>(&bytes).expect_err("too few");
        Postcard.decode::<u128>(&bytes).expect_err("no such number");
        Postcard.decode::<Vec<u8>>(&bytes).expect_err("no such length");
        Postcard.decode::<(u8, String)>(&bytes).expect_err("no such length");
        Postcard.decode::<Option<u8>>(&bytes).expect_err("neither there nor not");
    }
}
