//! Pages compared with a copy.

use image::PAGE;

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

    pub fn changed(&mut self, memory: &Mapping) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let pages = self.before.chunks_mut(PAGE as usize).zip(memory.bytes().chunks(PAGE as usize));
        for (number, (before, now)) in (0..).zip(pages) {
            if before != now {
                before.copy_from_slice(now);
                add(&mut stretches, Stretch::new(number * PAGE, (number + 1) * PAGE));
            }
        }
        stretches
    }
}
