//! Reading the log: the content of one segment, and how segments follow each other.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::api::RecordId;
use crate::format::{BLOCK, Batch, Found, Identity, Link};

/// The content of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Its batches, one after the other from its beginning, each with its checksum.
    pub batches: Vec<(Batch, u32)>,
    /// Bytes up to the end of the last of them.
    pub end: u64,
    /// The bytes behind its readable part.
    pub rest: Rest,
}

/// The bytes behind the last batch that follows those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing of this segment.
    Nothing,
    /// The head of the batch that would come next, and not all of its records: a write that was cut
    /// short, or one that has rotted since.
    Torn,
    /// Later batches. They were written when those before them were on the disk: these are lost.
    Later {
        /// Where the first of them begins.
        at: u64,
        /// The first record of the first of them.
        first: RecordId,
        /// Records in all of them.
        records: u64,
    },
}

/// Reads a segment. Bytes of other segments, as a file that is used again has them, are none of its
/// batches.
pub fn read(bytes: &Bytes, identity: Identity) -> Contents {
    let mut batches: Vec<(Batch, u32)> = Vec::new();
    let mut at = 0;
    let mut torn = false;
    while at < bytes.len() {
        match Batch::decode(&bytes.slice(at..), identity) {
            Found::Whole(batch, checksum, size) if follows(batches.last(), &batch) => {
                batches.push((batch, checksum));
                at += size;
            }
            Found::Whole(..) => break,
            Found::Torn(number) => {
                torn = batches.last().is_none_or(|(last, _)| number == last.number + 1);
                break;
            }
            Found::Nothing => break,
        }
    }
    let rest = match later(bytes, at, identity, batches.last()) {
        Some(later) => later,
        None if torn => Rest::Torn,
        None => Rest::Nothing,
    };
    Contents { batches, end: at as u64, rest }
}

fn follows(last: Option<&(Batch, u32)>, batch: &Batch) -> bool {
    last.is_none_or(|(last, checksum)| Link::after(last, *checksum).leads_to(batch))
}

/// Batches of this segment behind `at` that come later than the last one.
fn later(
    bytes: &Bytes,
    mut at: usize,
    identity: Identity,
    last: Option<&(Batch, u32)>,
) -> Option<Rest> {
    let after = last.map_or(0, |(last, _)| last.number);
    let mut found: Option<(u64, RecordId)> = None;
    let mut many = 0;
    while at < bytes.len() {
        // Records may look like batches, if somebody keeps copies of a log in it: their numbers are
        // old.
        match Batch::decode(&bytes.slice(at..), identity) {
            Found::Whole(batch, _, size) if batch.number > after => {
                found.get_or_insert((at as u64, batch.first));
                many += batch.records.len() as u64;
                at += size;
            }
            _ => at += BLOCK,
        }
    }
    found.map(|(at, first)| Rest::Later { at, first, records: many })
}

impl Link {
    /// The link behind this batch.
    pub fn after(batch: &Batch, checksum: u32) -> Link {
        // A mark stands beside the chain: it may be lost, and what follows it must not be.
        let checksum = if batch.is_mark() { batch.before } else { checksum };
        Link { number: batch.number, checksum, next: batch.next() }
    }

    /// The batch comes next.
    pub fn leads_to(&self, batch: &Batch) -> bool {
        let number = if batch.is_mark() { self.number } else { self.number.saturating_add(1) };
        batch.number == number && batch.before == self.checksum && batch.first == self.next
    }

    /// The batch says the last one again, at the beginning of another life's segment.
    pub fn is_said_again_by(&self, batch: &Batch) -> bool {
        batch.repeat && batch.number == self.number && batch.next() == self.next
    }
}
