//! Certificates that are not accepted any more, though they are genuine.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use rustls::CommonState;
use rustls::pki_types::CertificateDer;

use crate::name::{Identity, check_cluster, path_of, root_of};
use crate::twin::twins;

/// The most bytes of a list.
pub const MAX_DENIED: u64 = 1 << 20;

/// Bytes of a fingerprint.
const FINGERPRINT: usize = 32;

/// The list: names, of which all certificates are denied, fingerprints of single ones, and other
/// cells, of which all are denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denied {
    /// As certificates have them.
    names: BTreeSet<String>,
    /// As configurations have them.
    cells: BTreeSet<String>,
    fingerprints: BTreeSet<[u8; FINGERPRINT]>,
}

/// A line that is neither a name nor a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} is \"{text}\": write client-NAME, admin-NAME or node-ID of this cluster, one a line \
     (in a system of cells also whole names, and other cells as cell.PATH), or a certificate's SHA-256 in hexadecimal digits (`openssl x509 -noout -fingerprint -sha256 -in \
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
    /// line; `#` begins a comment. A cell's list may also have whole names of others
    /// in its system, and other cells, as `cell.PATH`.
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
            if let Some(identity) = Identity::named(entry, cluster) {
                denied.names.insert(identity.to_string());
            } else if is_other_cell(entry, cluster) {
                denied.cells.insert(entry.into());
            } else {
                return Err(NotDenied { line: index + 1, text: entry.into() });
            }
        }
        Ok(denied)
    }

    /// Whether nobody is denied.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.cells.is_empty() && self.fingerprints.is_empty()
    }

    /// Whether this one is denied.
    pub fn denies(&self, peer: &Peer) -> bool {
        self.names.contains(&peer.identity.to_string())
            || self.cells.contains(&peer.identity.cluster)
            || peer.fingerprints.iter().any(|it| self.fingerprints.contains(it))
    }
}

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The name in its certificate.
    pub identity: Identity,
    /// The SHA-256 of the certificate, and of those that its owner can make of it.
    fingerprints: Vec<[u8; FINGERPRINT]>,
}

impl Peer {
    /// The other side of this connection, once the handshake is over. `None`: it is not of a
    /// Steadfast cluster.
    pub fn of(connection: &CommonState) -> Option<Peer> {
        Peer::showing(connection.peer_certificates()?)
    }

    /// The other side that has shown these certificates, its own first. `None`: that is not of a
    /// Steadfast cluster.
    pub fn showing(chain: &[CertificateDer<'_>]) -> Option<Peer> {
        let certificate = chain.first()?;
        Some(Peer::new(Identity::of(certificate).ok()?, certificate))
    }

    fn new(identity: Identity, certificate: &[u8]) -> Peer {
        let mut fingerprints = vec![hash(certificate)];
        fingerprints.extend(twins(certificate).iter().map(|twin| hash(twin)));
        Peer { identity, fingerprints }
    }
}

fn hash(certificate: &[u8]) -> [u8; FINGERPRINT] {
    digest(&SHA256, certificate).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Another cell of this one's system. To deny one's own would shut all out.
fn is_other_cell(entry: &str, cluster: &str) -> bool {
    let system = |cluster| path_of(cluster).map(root_of);
    entry != cluster
        && check_cluster(entry).is_ok()
        && system(entry).is_some_and(|it| system(cluster) == Some(it))
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
    use wire::NodeId;

    use super::*;

    fn client(name: &str, certificate: &[u8]) -> Peer {
        Peer::new(Identity::client("plant", name).unwrap(), certificate)
    }

    #[test]
    fn names_and_fingerprints_are_read_and_nothing_else_is() {
        let hash = digest(&SHA256, b"a certificate");
        let hex: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        let text =
            format!("# stolen\nclient-hmi  # on Monday\n\nsha256 Fingerprint={}\n", hex.join(":"));
        let denied = Denied::parse(&text, "plant").unwrap();
        let denies = |name, certificate: &[u8]| denied.denies(&client(name, certificate));
        assert!(denies("hmi", b"any"));
        assert!(denies("desk", b"a certificate"));
        assert!(!denies("desk", b"another"));
        assert!(!denied.is_empty() && Denied::parse("# nobody\n", "plant").unwrap().is_empty());
        let whole = Denied::parse("client-hmi.plant.steadfast", "plant").unwrap();
        assert!(whole.denies(&client("hmi", b"any")));
    }

    #[test]
    fn a_line_that_would_deny_nobody_is_refused() {
        for line in ["hmi", "client-HMI", "client-hmi,", "node-03", "admin-ops foo", "node"] {
            let error = Denied::parse(&format!("client-a\n{line}\n"), "plant").unwrap_err();
            assert_eq!((error.line, error.text.as_str()), (2, line));
        }
        assert!(Denied::parse("client-hmi.port.steadfast", "plant").is_err(), "another cluster");
        let lisboa = "node-1.cell.lisboa.steadfast";
        for line in [lisboa, "cell.a.lisboa", "cell.porto", "cell.cell.porto", "cell."] {
            assert!(Denied::parse(line, "cell.porto").is_err(), "{line}");
        }
        assert!(Denied::parse("cell.a.porto", "porto").is_err(), "a cluster has no cells");
    }

    #[test]
    fn a_cells_list_tells_its_own_from_those_of_other_cells() {
        let text = "client-hmi\nnode-1.cell.a.porto.steadfast\ncell.b.porto  # stolen\n";
        let denied = Denied::parse(text, "cell.porto").unwrap();
        let denies = |identity: Identity| denied.denies(&Peer::new(identity, b"any"));
        assert!(denies(Identity::node("cell.b.porto", NodeId(9)).unwrap()));
        assert!(!denies(Identity::node("cell.a.b.porto", NodeId(9)).unwrap()), "a cell below");
        assert!(denies(Identity::client("cell.porto", "hmi").unwrap()));
        assert!(!denies(Identity::client("cell.a.porto", "hmi").unwrap()));
        assert!(denies(Identity::node("cell.a.porto", NodeId(1)).unwrap()));
        assert!(!denies(Identity::node("cell.porto", NodeId(1)).unwrap()));
    }
}
