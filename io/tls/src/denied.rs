//! Certificates that are not accepted any more, though they are genuine.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{SHA256, digest};

use crate::name::Identity;

/// The most bytes of a list.
pub const MAX_DENIED: u64 = 1 << 20;

/// Bytes of a fingerprint.
const FINGERPRINT: usize = 32;

/// The list: names, of which all certificates are denied, and fingerprints of single ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denied {
    labels: BTreeSet<String>,
    fingerprints: BTreeSet<[u8; FINGERPRINT]>,
}

/// A line that is neither a name nor a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} is \"{text}\": write client-NAME, admin-NAME or node-ID, or a certificate's SHA-256 \
     in hexadecimal digits (`openssl x509 -noout -fingerprint -sha256 -in FILE`)"
)]
pub struct NotDenied {
    /// The line's number, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

impl Denied {
    /// Reads a list: one name or fingerprint a line; `#` begins a comment.
    ///
    /// # Errors
    /// The first line that is neither.
    pub fn parse(text: &str) -> Result<Denied, NotDenied> {
        let mut denied = Denied::default();
        for (index, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            let is_label = ["client-", "admin-", "node-"].iter().any(|it| entry.starts_with(it));
            match fingerprint(entry) {
                Some(fingerprint) => _ = denied.fingerprints.insert(fingerprint),
                None if is_label => _ = denied.labels.insert(entry.into()),
                None => return Err(NotDenied { line: index + 1, text: entry.into() }),
            }
        }
        Ok(denied)
    }

    /// Whether nobody is denied.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fingerprints.is_empty()
    }

    /// Whether this one is denied.
    pub fn denies(&self, peer: &Peer) -> bool {
        if self.labels.contains(peer.identity.label()) {
            return true;
        }
        let hash = digest(&SHA256, &peer.certificate);
        self.fingerprints.iter().any(|fingerprint| fingerprint[..] == *hash.as_ref())
    }
}

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The name in its certificate.
    pub identity: Identity,
    /// The certificate, DER.
    pub certificate: Vec<u8>,
}

/// 64 hexadecimal digits, perhaps with colons, perhaps behind "... Fingerprint=".
fn fingerprint(entry: &str) -> Option<[u8; FINGERPRINT]> {
    let digits = entry.rsplit('=').next()?.replace(':', "");
    if digits.len() != 2 * FINGERPRINT || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0; FINGERPRINT];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_fingerprints_are_read_and_nothing_else_is() {
        let hash = digest(&SHA256, b"a certificate");
        let hex: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        let text =
            format!("# stolen\nclient-hmi  # on Monday\n\nsha256 Fingerprint={}\n", hex.join(":"));
        let denied = Denied::parse(&text).unwrap();
        let denies = |name, certificate: &[u8]| {
            let identity = Identity::client("plant", name).unwrap();
            denied.denies(&Peer { identity, certificate: certificate.into() })
        };
        assert!(denies("hmi", b"any"));
        assert!(denies("desk", b"a certificate"));
        assert!(!denies("desk", b"another"));
        assert!(!denied.is_empty() && Denied::parse("# nobody\n").unwrap().is_empty());
        let error = Denied::parse("client-a\nhmi\n").unwrap_err();
        assert_eq!((error.line, error.text.as_str()), (2, "hmi"));
    }
}
