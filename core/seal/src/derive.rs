//! From a cluster key to the key of one sender's life.

use core::fmt;

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use wire::{ClusterId, Member, Secret};
use zeroize::Zeroizing;

/// Names the use, so that nothing else that is derived from the cluster key can be the same.
const RING: &[u8] = b"steadfast ring v1";
const FINGERPRINT: &[u8] = b"steadfast fingerprint v1";

/// A cluster key under its number: what all nodes of a cluster, and nobody else, know.
///
/// The key of one life of one sender is HKDF-SHA-256 (RFC 5869) of it, without salt, with the
/// concatenation of
///
/// ```text
/// | "steadfast ring v1" 17 | cluster id 4 | sender node 4 | incarnation 8 | salt 8 |
/// ```
///
/// as info, all numbers little-endian, 32 bytes long.
#[derive(Clone)]
pub struct ClusterKey {
    number: u8,
    secret: Secret,
    extracted: Prk,
}

/// The public name of a key: 8 bytes derived from it, from which it cannot be found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 8]);

/// The AEAD key of one life.
pub(crate) struct LifeKey {
    pub(crate) number: u8,
    pub(crate) aead: LessSafeKey,
}

impl ClusterKey {
    /// The key of this number, 1 to 255.
    ///
    /// # Panics
    /// If the number is 0.
    pub fn new(number: u8, secret: Secret) -> ClusterKey {
        assert!(number > 0, "cluster keys are numbered from 1");
        let extracted = Salt::none(HKDF_SHA256).extract(secret.expose());
        ClusterKey { number, secret, extracted }
    }

    /// Its number.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The key itself, for writing it where it is kept and sending it where it is needed.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The part of it that people and logs may know.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut bytes = [0; 8];
        self.expand(&[FINGERPRINT], &mut bytes);
        Fingerprint(bytes)
    }

    /// The key of one life of one sender.
    pub(crate) fn life(&self, cluster: ClusterId, sender: Member, salt: u64) -> LifeKey {
        let mut key = Zeroizing::new([0; 32]);
        let info = [
            RING,
            &cluster.0.to_le_bytes(),
            &sender.node.0.to_le_bytes(),
            &sender.incarnation.0.to_le_bytes(),
            &salt.to_le_bytes(),
        ];
        self.expand(&info, &mut *key);
        let key = UnboundKey::new(&AES_256_GCM, &*key).expect("a key of AES-256 has 32 bytes");
        LifeKey { number: self.number, aead: LessSafeKey::new(key) }
    }

    fn expand(&self, info: &[&[u8]], out: &mut [u8]) {
        let filled = self.extracted.expand(info, Length(out.len())).and_then(|okm| okm.fill(out));
        filled.expect("HKDF gives up to 8,160 bytes");
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Unpredictable bytes from a random seed: the salt of a life and the nonces of its contacts.
pub(crate) struct Entropy {
    extracted: Prk,
    drawn: u64,
}

impl Entropy {
    pub(crate) fn new(seed: &Secret) -> Entropy {
        Entropy { extracted: Salt::none(HKDF_SHA256).extract(seed.expose()), drawn: 0 }
    }

    pub(crate) fn draw<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let number = self.drawn.to_le_bytes();
        self.drawn += 1;
        let info: [&[u8]; 2] = [b"steadfast draw v1", &number];
        let filled = self.extracted.expand(&info, Length(N)).and_then(|okm| okm.fill(&mut bytes));
        filled.expect("HKDF gives up to 8,160 bytes");
        bytes
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} ({})", self.number, self.fingerprint())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
