//! Bytes that must never be seen.

use core::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// 32 secret bytes. No log, event or status shows them; they are wiped when dropped. Copies in the
/// allocator, the kernel and the disk are beyond this type.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret([u8; Secret::LENGTH]);

impl Secret {
    /// Bytes of a secret.
    pub const LENGTH: usize = 32;

    /// Takes the bytes. They must be random: nothing here makes a weak secret strong.
    pub fn new(bytes: [u8; Secret::LENGTH]) -> Secret {
        Secret(bytes)
    }

    /// The bytes, for deriving keys and for writing them where they are kept.
    pub fn expose(&self) -> &[u8; Secret::LENGTH] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(alloc::format!("{:?}", Secret::new([0x5a; 32])), "Secret(..)");
    }
}
