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
