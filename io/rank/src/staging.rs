//! A copy of what is to be saved, in memory that the agent reads. The program waits for this copy,
//! and for nothing else.

use std::fs::File;
use std::io;
use std::thread;

use wire::rank::{Array, MAX_PIECES, PAGE, Snapshot, Span};

use crate::arena::Arena;
use crate::mapping::Mapping;
use crate::stretch::{Stretch, coarsen};

/// Bytes for which memory is asked at a time.
const AT_ONCE: usize = 4 << 20;

/// Memory of earlier copies is used again: new memory costs more than the copy.
#[derive(Debug)]
pub struct Staging {
    mapping: Mapping,
    /// So many bytes have memory, or are about to.
    prepared: u64,
}

impl Staging {
    /// An empty one.
    ///
    /// # Errors
    /// The system has no memory file.
    pub fn new() -> io::Result<Staging> {
        Ok(Staging { mapping: Mapping::new(0)?, prepared: 0 })
    }

    /// The system is to have memory for a copy of so many bytes before the program stops for one: a
    /// thread behind all others has it made. Without that thread the first stop is longer.
    pub fn prepare(&mut self, bytes: u64) {
        if bytes <= self.prepared {
            return;
        }
        let from = std::mem::replace(&mut self.prepared, bytes);
        let room = self.mapping.room();
        let body = move || {
            os::sched::yield_to_others();
            for at in (from..bytes).step_by(AT_ONCE) {
                let count = (AT_ONCE as u64).min((bytes - at).next_multiple_of(PAGE));
                if room.populate(at as usize, count as usize).is_err() {
                    return;
                }
            }
        };
        let _ = thread::Builder::new().name("steadfast staging".into()).spawn(body);
    }

    /// Copies these stretches of the arena, and all of the notes, which are arrays beside it; `None`:
    /// all of the arena. `step`: how far the rank is.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn take(
        &mut self,
        arena: &Arena,
        notes: &[(Array, &[u8])],
        step: u64,
        changed: Option<&[Stretch]>,
    ) -> io::Result<Snapshot> {
        let all = [Stretch::new(0, arena.memory().bytes().len() as u64)];
        let mut spans = arena.spans(changed.unwrap_or(&all));
        let room = MAX_PIECES - notes.len();
        let mut grain = PAGE;
        while spans.len() > room {
            // More than a frame has room for: neighbours are saved together.
            grain *= 2;
            spans = arena.spans(&coarsen(changed.unwrap_or(&all), grain));
        }
        let arrays = arena.arrays().cloned().chain(notes.iter().map(|(array, _)| array.clone()));
        let mut snapshot = Snapshot {
            step,
            full: changed.is_none(),
            stop_us: 0,
            arrays: arrays.collect(),
            spans: Vec::with_capacity(spans.len() + notes.len()),
        };
        let of_arena = spans.iter().map(|(array, from, to)| {
            (*array, *from, &arena.bytes(*array)[*from as usize..*to as usize])
        });
        let first = arena.arrays().len();
        let of_notes = notes.iter().enumerate().map(|(note, (_, bytes))| (first + note, 0, *bytes));
        let all = || of_arena.clone().chain(of_notes.clone()).filter(|(_, _, it)| !it.is_empty());
        let length: usize = all().map(|(_, _, bytes)| bytes.len()).sum();
        self.mapping.grow(length.next_multiple_of(PAGE as usize))?;
        let mut begin = 0;
        for (array, offset, bytes) in all() {
            self.mapping.bytes_mut()[begin..begin + bytes.len()].copy_from_slice(bytes);
            begin += bytes.len();
            let (array, length) = (array as u32, bytes.len() as u64);
            snapshot.spans.push(Span { array, offset, length });
        }
        Ok(snapshot)
    }

    /// The file with the copied bytes, from its beginning.
    pub fn file(&self) -> &File {
        self.mapping.file()
    }
}
