//! Bytes of protobuf in a contract's values.

use base64ct::Encoding;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Schema, Types};

/// Bytes that travel as a text in base64, in each encoding: `bytes` of protobuf.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Base64(pub Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base64ct::Base64::encode_string(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Base64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = base64ct::Base64::decode_vec(&text);
        bytes.map(Base64).map_err(|_| D::Error::custom("bytes are a text in base64 here"))
    }
}

impl Schema for Base64 {
    fn schema(_: &mut Types) -> String {
        "String".to_owned()
    }
}
