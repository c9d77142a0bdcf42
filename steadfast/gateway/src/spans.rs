//! Times in headers, such as `500ms` and `2s`.

use std::time::Duration;

/// Reads a time. `None`: it is none.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit())?);
    let count: u32 = digits.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(count.into())),
        "s" => Some(Duration::from_secs(count.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_milliseconds_or_seconds() {
        assert_eq!(span("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(span("2s"), Some(Duration::from_secs(2)));
        assert_eq!(span("0ms"), Some(Duration::ZERO));
        for wrong in ["", "2", "s", "-1s", "+1s", "2m", "1.5s", "4294967296s", "2 s", "２s"] {
            assert_eq!(span(wrong), None, "{wrong}");
        }
    }
}
