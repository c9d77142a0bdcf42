//! The stream of everything that happens in a run: its hash always, its words on demand.

use wire::Time;

/// A hash over all happenings, in order: two runs of one seed must end with the same one.
pub struct Trace {
    hash: u64,
    steps: u64,
    aloud: bool,
    /// Where it happens, if there are several such places.
    place: Option<String>,
}

impl Trace {
    /// An empty stream; `aloud` prints each line.
    pub fn new(aloud: bool) -> Self {
        Trace { hash: 0x9e37_79b9_7f4a_7c15, steps: 0, aloud, place: None }
    }

    /// All of it happens here: each line says so.
    pub fn set_place(&mut self, place: String) {
        self.place = Some(place);
    }

    /// Something happened: `what` kind, where, and two words that tell it from others.
    pub fn note(&mut self, now: Time, what: u8, place: usize, words: [u64; 2]) {
        self.steps += 1;
        for word in [now.0, u64::from(what) << 32 | place as u64, words[0], words[1]] {
            self.hash = mix(self.hash, word);
        }
    }

    /// The words for it, made only if somebody listens.
    pub fn say(&self, now: Time, words: impl FnOnce() -> String) {
        if self.aloud {
            match &self.place {
                Some(place) => println!("{now} {place}: {}", words()),
                None => println!("{now} {}", words()),
            }
        }
    }

    /// Somebody listens.
    pub fn aloud(&self) -> bool {
        self.aloud
    }

    /// The hash so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Happenings so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Mixes a word into a hash; good enough to tell runs and histories apart, not a secret's guard.
pub fn mix(hash: u64, word: u64) -> u64 {
    let mut z = (hash ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    z ^= z >> 32;
    z = z.wrapping_add(hash.rotate_left(23)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z ^ (z >> 29)
}

/// The hash of some bytes.
pub fn digest(bytes: &[u8]) -> u64 {
    let mut hash = mix(0, bytes.len() as u64);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        hash = mix(hash, u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(hash, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_every_word_count() {
        let run = |notes: &[(u64, u8)]| {
            let mut trace = Trace::new(false);
            for &(at, what) in notes {
                trace.note(Time(at), what, 0, [0, 0]);
            }
            trace.hash()
        };
        assert_ne!(run(&[(1, 1), (1, 2)]), run(&[(1, 2), (1, 1)]));
        assert_ne!(run(&[(1, 1)]), run(&[(2, 1)]));
        assert_ne!(digest(b"12345678"), digest(b"123456780"));
        assert_ne!(digest(b"1234567"), digest(b"1234567\0"));
    }
}
