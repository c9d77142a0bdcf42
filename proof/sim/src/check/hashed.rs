//! Maps by hash for the checkers: quick, and the same in every run.
//!
//! The standard hasher guards against keys chosen to collide, which nobody does here, and starts
//! each process with another secret, so that what is iterated would come in another order.

use std::collections;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with the quick hash.
pub type HashMap<K, V> = collections::HashMap<K, V, BuildHasherDefault<Mixed>>;

/// A set with the quick hash.
pub type HashSet<K> = collections::HashSet<K, BuildHasherDefault<Mixed>>;

/// Mixes word by word: a multiplication and a rotation each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixed(u64);

impl Mixed {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(25) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        // The map looks at the highest bits and the lowest: the product is good in the former only.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    #[test]
    fn neighbours_differ_in_the_bits_that_a_map_looks_at() {
        let hash = |key: (u32, u64)| {
            let mut hasher = Mixed::default();
            key.hash(&mut hasher);
            hasher.finish()
        };
        let keys = (0..32).flat_map(|a| (0..64).map(move |b| (a, b)));
        let all: Vec<u64> = keys.map(hash).collect();
        let low: HashSet<u64> = all.iter().map(|hash| hash & 0x0fff).collect();
        let high: HashSet<u64> = all.iter().map(|hash| hash >> 57).collect();
        assert!(low.len() > 1_400 && high.len() == 128, "{} {}", low.len(), high.len());
    }
}
