//! Numbers between JSON and protobuf: each arrives as it was, or is refused.
//!
//! Protobuf has no numbers of 128 bits: they are texts of digits. JSON has no infinities and no
//! NaN: they are the texts of protobuf's JSON.

const NAN: &str = "NaN";
const INFINITY: &str = "Infinity";
const MINUS_INFINITY: &str = "-Infinity";

/// The digits of an unsigned number of 128 bits.
pub(crate) fn unsigned(text: &str) -> Option<String> {
    let is_plain = text.starts_with(|first: char| first.is_ascii_digit());
    text.parse::<u128>().ok().filter(|_| is_plain).map(|it| it.to_string())
}

/// The digits of a number of 128 bits with its sign.
pub(crate) fn signed(text: &str) -> Option<String> {
    text.parse::<i128>().ok().filter(|_| !text.starts_with('+')).map(|it| it.to_string())
}

/// A number in JSON, as near as an `f64` comes to it.
pub(crate) fn double(json: &str) -> Option<f64> {
    match unquoted(json) {
        Some(NAN) => Some(f64::NAN),
        Some(INFINITY) => Some(f64::INFINITY),
        Some(MINUS_INFINITY) => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => json.parse().ok().filter(|it: &f64| it.is_finite()),
    }
}

/// A number in JSON, as near as an `f32` comes to it.
pub(crate) fn float(json: &str) -> Option<f32> {
    match unquoted(json) {
        Some(_) => double(json).map(|it| it as f32),
        None => json.parse().ok().filter(|it: &f32| it.is_finite()),
    }
}

/// The JSON of a number.
pub(crate) fn written(number: f64) -> String {
    match number {
        _ if number.is_nan() => format!("\"{NAN}\""),
        f64::INFINITY => format!("\"{INFINITY}\""),
        f64::NEG_INFINITY => format!("\"{MINUS_INFINITY}\""),
        // The shortest digits that are this number again.
        _ => format!("{number:?}"),
    }
}

fn unquoted(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_128_bits_are_digits() {
        for digits in ["0", "1234567890123456789012345", &u128::MAX.to_string()] {
            assert_eq!(unsigned(digits).as_deref(), Some(digits));
        }
        assert_eq!(signed(&i128::MIN.to_string()), Some(i128::MIN.to_string()));
        for wrong in
            ["", "-1", "+1", "1.0", "1e2", " 1", "x", "340282366920938463463374607431768211456"]
        {
            assert_eq!(unsigned(wrong), None, "{wrong}");
        }
        for wrong in ["", "+1", "1.5", "--1", "-"] {
            assert_eq!(signed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn floats_come_to_the_last_bit() {
        let mut random = wire::Random::new(5);
        for _ in 0..20_000 {
            let number = f64::from_bits(random.next_u64());
            let seen = double(&written(number)).expect("a number");
            assert!(seen.to_bits() == number.to_bits() || seen.is_nan() && number.is_nan());
            let number = f32::from_bits(random.next_u64() as u32);
            let seen = float(&written(number.into())).expect("a number");
            assert!(seen.to_bits() == number.to_bits() || seen.is_nan() && number.is_nan());
        }
    }

    #[test]
    fn what_a_type_cannot_hold_is_none_of_it() {
        assert_eq!(double("\"-Infinity\""), Some(f64::NEG_INFINITY));
        assert_eq!(float("\"Infinity\""), Some(f32::INFINITY));
        assert_eq!(float("1e38"), Some(1e38));
        for wrong in ["1e39", "-3.5e38", "null", "\"1\"", "true", "\"inf\""] {
            assert_eq!(float(wrong), None, "{wrong}");
        }
        for wrong in ["1e400", "null", "\"1\"", "[]", "\"nan\""] {
            assert_eq!(double(wrong), None, "{wrong}");
        }
    }
}
