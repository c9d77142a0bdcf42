//! A copy of what is to be saved, in memory that the agent reads. The program waits for this copy,
//! and for nothing else.

use std::fs::File;
use std::io;

use memlog::Writer;
use wire::rank::{Array, MAX_PIECES, PAGE, Snapshot, Span};

use crate::arena::Arena;
use crate::mapping::Mapping;
use crate::output_ring;
use crate::stretch::{Stretch, coarsen};

/// Bytes for which memory is asked at a time.
const AT_ONCE: usize = 4 << 20;

/// An array beside the arena.
#[derive(Debug)]
pub struct Extra<'a> {
    /// It.
    pub array: Array,
    /// Its bytes.
    pub bytes: Bytes<'a>,
    /// Its stretches that have changed since the last image, from and to; `None`: all of it.
    pub changed: Option<Vec<(u64, u64)>>,
}

/// The bytes of an array beside the arena.
#[derive(Clone, Copy, Debug)]
pub enum Bytes<'a> {
    /// Here.
    Slice(&'a [u8]),
    /// The ring of this log.
    Ring(&'a Writer),
    /// The last bytes of this file of so many, as a ring of a capacity.
    Printed(&'a File, u64, u64),
}

impl Bytes<'_> {
    /// Copies those from this one on.
    fn copy(self, from: u64, to: &mut [u8]) {
        let from = from as usize;
        match self {
            Bytes::Slice(bytes) => to.copy_from_slice(&bytes[from..from + to.len()]),
            Bytes::Ring(writer) => writer.copy_ring(from, to),
            Bytes::Printed(file, length, capacity) => {
                output_ring::copy_ring(file, (length, capacity), from as u64, to);
            }
        }
    }
}

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
            for at in (from..bytes).step_by(AT_ONCE) {
                let count = (AT_ONCE as u64).min((bytes - at).next_multiple_of(PAGE));
                if room.populate(at as usize, count as usize).is_err() {
                    return;
                }
            }
        };
        let _ = os::threads::spawn_behind("steadfast staging", body);
    }

    /// Copies these stretches of the arena, and what has changed of the arrays beside it; `None`: all
    /// of both. `step`: how far the rank is.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn take(
        &mut self,
        arena: &Arena,
        beside: &[Extra<'_>],
        step: u64,
        changed: Option<&[Stretch]>,
    ) -> io::Result<Snapshot> {
        let all = [Stretch::new(0, arena.memory().bytes().len() as u64)];
        let mut spans = arena.spans(changed.unwrap_or(&all));
        let room = MAX_PIECES - 2 * beside.len();
        let mut grain = PAGE;
        while spans.len() > room {
            // More than a frame has room for: neighbours are saved together.
            grain *= 2;
            spans = arena.spans(&coarsen(changed.unwrap_or(&all), grain));
        }
        let arrays = arena.arrays().cloned().chain(beside.iter().map(|it| it.array.clone()));
        let mut snapshot = Snapshot {
            step,
            full: changed.is_none(),
            stop_us: 0,
            arrays: arrays.collect(),
            spans: Vec::with_capacity(spans.len() + beside.len()),
            counts: Vec::new(),
        };
        let of_arena = spans
            .into_iter()
            .map(|(array, from, to)| (Bytes::Slice(arena.bytes(array)), span(array, (from, to))));
        let first = arena.arrays().len();
        let of_others = beside.iter().enumerate().flat_map(|(number, it)| {
            let changed = it.changed.clone().filter(|_| !snapshot.full);
            let stretches = changed.unwrap_or_else(|| vec![(0, it.array.length)]);
            stretches.into_iter().map(move |stretch| (it.bytes, span(first + number, stretch)))
        });
        let all: Vec<(Bytes<'_>, Span)> =
            of_arena.chain(of_others).filter(|(_, span)| span.length > 0).collect();
        let length: u64 = all.iter().map(|(_, span)| span.length).sum();
        self.mapping.grow((length as usize).next_multiple_of(PAGE as usize))?;
        let mut begin = 0;
        for (bytes, span) in all {
            let end = begin + span.length as usize;
            bytes.copy(span.offset, &mut self.mapping.bytes_mut()[begin..end]);
            begin = end;
            snapshot.spans.push(span);
        }
        Ok(snapshot)
    }

    /// The file with the copied bytes, from its beginning.
    pub fn file(&self) -> &File {
        self.mapping.file()
    }
}

fn span(array: usize, (from, to): (u64, u64)) -> Span {
    Span { array: array as u32, offset: from, length: to - from }
}
