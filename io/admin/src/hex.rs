//! Bytes as hexadecimal digits.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The digest of a state, as the admin socket tells it: SHA-256 in hexadecimal digits.
pub fn digest(state: &[u8]) -> String {
    hex(&Sha256::digest(state))
}

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of [`hex`], if they are some.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}
