//! Pages compared with a copy.

use wire::rank::PAGE;

use crate::mapping::Mapping;
use crate::stretch::{Stretch, add};

/// The memory as it was the last time.
#[derive(Debug)]
pub(super) struct Compared {
    before: Vec<u8>,
}

impl Compared {
    pub fn new(memory: &Mapping) -> Compared {
        Compared { before: memory.bytes().to_vec() }
    }

    /// The changed stretches among the first bytes; the others are copied.
    pub fn changed(&mut self, memory: &Mapping, known: u64) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let (bytes, page) = (memory.bytes(), PAGE as usize);
        let pages = self.before.chunks_mut(page).zip(bytes.chunks(page));
        for (number, (before, now)) in (0..).zip(pages) {
            if before != now {
                before.copy_from_slice(now);
                add(&mut stretches, Stretch::new(number * PAGE, (number + 1) * PAGE));
            }
        }
        self.before.extend_from_slice(&bytes[known as usize..]);
        stretches
    }
}
