//! A copy of what is to be saved: the program waits for it, and for nothing else.

use std::ops::Range;

use image::{Array, MAX_PART};

use crate::arena::Arena;
use crate::stretch::Stretch;

/// The changed parts of an arena, or all of it, as they were at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) arrays: Vec<Array>,
    pub(crate) step: u64,
    parts: Vec<Piece>,
    bytes: Vec<u8>,
}

/// A part of an array, and its place in the copy.
#[derive(Clone, Copy, Debug)]
struct Piece {
    array: u32,
    offset: u64,
    from: usize,
    to: usize,
}

impl Snapshot {
    /// Copies these stretches of the arena of a rank that has come so far; `None`: all. The memory of
    /// an earlier copy is used again: new memory costs more than the copy.
    pub fn take(&mut self, arena: &Arena, step: u64, changed: Option<&[Stretch]>) {
        let all = Stretch::new(0, arena.memory().bytes().len() as u64);
        let stretches = changed.unwrap_or(std::slice::from_ref(&all));
        self.step = step;
        self.arrays.clear();
        self.arrays.extend(arena.arrays().cloned());
        self.parts.clear();
        self.bytes.clear();
        for (array, from, to) in arena.parts(stretches) {
            // An arena's manifest has far fewer.
            let number = u32::try_from(array).unwrap_or(u32::MAX);
            let content = &arena.bytes(array)[from as usize..to as usize];
            let before = self.bytes.len();
            self.bytes.extend_from_slice(content);
            for (piece, part) in content.chunks(MAX_PART).enumerate() {
                let skipped = piece * MAX_PART;
                let from_here = before + skipped;
                self.parts.push(Piece {
                    array: number,
                    offset: from + skipped as u64,
                    from: from_here,
                    to: from_here + part.len(),
                });
            }
        }
    }

    /// The parts: array, place in the array, and place in the bytes.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, u64, Range<usize>)> {
        self.parts.iter().map(|it| (it.array, it.offset, it.from..it.to))
    }

    /// The bytes of all parts, one after the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
