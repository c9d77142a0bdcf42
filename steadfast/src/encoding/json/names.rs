//! The numbers that JSON has not, as protobuf's JSON writes them.

const INFINITY: &str = "Infinity";
const MINUS_INFINITY: &str = "-Infinity";
const NAN: &str = "NaN";

/// The text of a number that JSON cannot write.
pub(super) fn name_of(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some(NAN),
        f64::INFINITY => Some(INFINITY),
        f64::NEG_INFINITY => Some(MINUS_INFINITY),
        _ => None,
    }
}

/// The number of such a text.
pub(super) fn named(name: &str) -> Option<f64> {
    match name {
        NAN => Some(f64::NAN),
        INFINITY => Some(f64::INFINITY),
        MINUS_INFINITY => Some(f64::NEG_INFINITY),
        _ => None,
    }
}
