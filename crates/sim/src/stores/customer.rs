//! Who uses the store.

use bytes::Bytes;
use store::{AppendError, Record, RecordId, Snapshot, Strand};
use wire::ordered::Place;
use wire::{GroupId, RingId};

use super::{RECORDS, World};
use crate::check::{Verdict, demand};

impl World {
    /// Appends something, or takes a snapshot.
    pub(super) fn use_it(&mut self) -> Verdict {
        if !self.open {
            return Ok(());
        }
        if let Some(strand) = self.wanted.pop()
            && self.options.obliging
        {
            self.snapshot(strand);
        }
        match self.draw.between(0, 99) {
            0 | 1 => {
                let strand = self.strand();
                self.snapshot(strand);
            }
            2 if self.draw.one_in(4) => self.forget(),
            3..8 => {
                for _ in 0..self.draw.between(2, 40) {
                    self.append()?;
                }
            }
            _ => self.append()?,
        }
        Ok(())
    }

    fn strand(&mut self) -> Strand {
        match self.draw.between(0, self.options.strands) {
            0 => Strand::Node,
            number => Strand::Group(GroupId(number)),
        }
    }

    fn place(&self) -> Place {
        Place { epoch: self.lives, ring: RingId::default(), sequence: self.log.last().0 }
    }

    pub(super) fn append(&mut self) -> Verdict {
        self.appended += 1;
        if self.appended > RECORDS && !self.healed {
            return Ok(());
        }
        let length = self.draw.count(0, self.options.longest);
        let (word, kind) = (self.draw.bits(), self.draw.bits() as u8);
        let bytes = Bytes::from(word.to_le_bytes().repeat(length / 8 + 1)).slice(..length);
        let record = Record { strand: self.strand(), kind, place: self.place(), bytes };
        match self.store.append(self.now, record.clone()) {
            Ok(id) => self.log.append(id, record),
            Err(AppendError::Full) => demand(self.is_short(), "liveness", || {
                "a record is refused although there is room".into()
            }),
            Err(AppendError::NotOpen | AppendError::Busy) => Ok(()),
            Err(error @ AppendError::TooLong { .. }) => {
                demand(false, "bounded", || error.to_string())
            }
        }
    }

    fn snapshot(&mut self, strand: Strand) {
        // Mostly of all so far, which is not all on the disk.
        let last = self.log.last().0;
        let covers = if self.draw.one_in(3) { self.draw.between(last / 2, last) } else { last };
        let covers = RecordId(covers);
        let state = self.log.state(strand, covers);
        let snapshot = Snapshot { strand, covers, place: self.place(), state };
        // A snapshot before what was forgotten, or one too many, is refused.
        let _ = self.store.snapshot(self.now, snapshot);
    }

    fn forget(&mut self) {
        let (strand, place) = (self.strand(), self.place());
        if self.store.forget(self.now, strand, place).is_ok() {
            self.log.forget(strand);
        }
    }
}
