//! Times in a file: whole milliseconds or microseconds, as the key's ending says.

/// Makes a module for `#[serde(with)]` that keeps a time as this many of a unit.
macro_rules! whole {
    ($($(#[$doc:meta])* $unit:ident: $number:ty, $take:ident, $give:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) mod $unit {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};
            use wire::Duration;

            pub fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
                <$number>::try_from(span.$take()).unwrap_or(<$number>::MAX).serialize(to)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
                <$number>::deserialize(from).map(|number| Duration::$give(number.into()))
            }
        }
    )*};
}

whole! {
    /// A key that ends in `_ms`.
    millis: u64, as_millis, from_millis;
    /// A key that ends in `_us`.
    micros: u32, as_micros, from_micros;
}

/// A key that ends in `_us` and may be left out.
pub(crate) mod maybe_micros {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use wire::Duration;

    #[derive(Serialize, Deserialize)]
    struct Micros(#[serde(with = "super::micros")] Duration);

    pub fn serialize<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        span.map(Micros).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Micros>::deserialize(from)?.map(|Micros(span)| span))
    }
}
