//! Certificates that are not accepted any more, though they are genuine.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use rustls::CommonState;

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
    "line {line} is \"{text}\": write client-NAME, admin-NAME or node-ID of this cluster, one a line, \
     or a certificate's SHA-256 in hexadecimal digits (`openssl x509 -noout -fingerprint -sha256 -in \
     FILE`)"
)]
pub struct NotDenied {
    /// The line's number, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

/// A list that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "[security] denied {}: {why}; the list of before stays in force, and nothing starts without one: \
     write the file, an empty one if nobody is denied",
    path.display()
)]
pub struct DeniedError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

impl Denied {
    /// Reads a cluster's list from a file.
    ///
    /// # Errors
    /// It cannot be read, is longer than [`MAX_DENIED`], or has a line that denies nobody.
    pub fn from_file(path: &Path, cluster: &str) -> Result<Denied, DeniedError> {
        let problem = |why: String| DeniedError { path: path.into(), why };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| problem(error.to_string()))?;
        file.take(MAX_DENIED + 1)
            .read_to_string(&mut text)
            .map_err(|error| problem(error.to_string()))?;
        if text.len() as u64 > MAX_DENIED {
            let why = format!("more than {MAX_DENIED} bytes: make a new authority instead");
            return Err(problem(why));
        }
        Denied::parse(&text, cluster).map_err(|error| problem(error.to_string()))
    }

    /// Reads a cluster's list: one name, as certificates have it or its first label, or fingerprint a
    /// line; `#` begins a comment.
    ///
    /// # Errors
    /// The first line that is neither.
    pub fn parse(text: &str, cluster: &str) -> Result<Denied, NotDenied> {
        let mut denied = Denied::default();
        for (index, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            if let Some(fingerprint) = fingerprint(entry) {
                denied.fingerprints.insert(fingerprint);
                continue;
            }
            // A name that is not exactly one that certificates have would deny nobody.
            match Identity::named(entry, cluster) {
                Some(identity) => _ = denied.labels.insert(identity.label().into()),
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
        self.labels.contains(peer.identity.label()) || self.fingerprints.contains(&peer.fingerprint)
    }
}

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The name in its certificate.
    pub identity: Identity,
    /// The certificate's SHA-256.
    fingerprint: [u8; FINGERPRINT],
}

impl Peer {
    /// The other side of this connection, once the handshake is over. `None`: it is not of a
    /// Steadfast cluster.
    pub fn of(connection: &CommonState) -> Option<Peer> {
        let certificate = connection.peer_certificates()?.first()?;
        Some(Peer::new(Identity::of(certificate).ok()?, certificate))
    }

    pub(crate) fn new(identity: Identity, certificate: &[u8]) -> Peer {
        let hash = digest(&SHA256, certificate);
        Peer { identity, fingerprint: hash.as_ref().try_into().expect("SHA-256 has 32 bytes") }
    }
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
        let denied = Denied::parse(&text, "plant").unwrap();
        let denies = |name, certificate: &[u8]| {
            let identity = Identity::client("plant", name).unwrap();
            denied.denies(&Peer::new(identity, certificate))
        };
        assert!(denies("hmi", b"any"));
        assert!(denies("desk", b"a certificate"));
        assert!(!denies("desk", b"another"));
        assert!(!denied.is_empty() && Denied::parse("# nobody\n", "plant").unwrap().is_empty());
        let whole = Denied::parse("client-hmi.plant.steadfast", "plant").unwrap();
        assert!(whole.denies(&Peer::new(Identity::client("plant", "hmi").unwrap(), b"any")));
    }

    #[test]
    fn a_line_that_would_deny_nobody_is_refused() {
        for line in ["hmi", "client-HMI", "client-hmi,", "node-03", "admin-ops foo", "node"] {
            let error = Denied::parse(&format!("client-a\n{line}\n"), "plant").unwrap_err();
            assert_eq!((error.line, error.text.as_str()), (2, line));
        }
        assert!(Denied::parse("client-hmi.port.steadfast", "plant").is_err(), "another cluster");
    }
}
