//! The user of the store.

use bytes::Bytes;
use store::{AppendError, Record, RecordId, Snapshot, Strand};
use wire::ordered::Place;
use wire::{GroupId, Payload, RingId};

use super::{RECORDS, World};
use crate::check::{Verdict, demand};

impl World {
    /// Appends something, or takes a snapshot.
    pub(super) fn use_it(&mut self) -> Verdict {
        let many = if self.draw.one_in(4) { self.life.wanted.len() } else { 1 };
        for strand in self.life.wanted.split_off(self.life.wanted.len().saturating_sub(many)) {
            if self.options.obliging {
                self.snapshot(strand);
            }
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

    /// No more records are appended before all heals.
    pub(super) fn has_enough(&self) -> bool {
        self.appended > RECORDS && !self.healed
    }

    pub(super) fn append(&mut self) -> Verdict {
        self.appended += 1;
        if self.has_enough() {
            return Ok(());
        }
        let length = self.draw.count(0, self.options.longest);
        let (word, kind) = (self.draw.bits(), self.draw.bits() as u8);
        let bytes = Bytes::from(word.to_le_bytes().repeat(length / 8 + 1)).slice(..length);
        let record = Record { strand: self.strand(), kind, place: self.place(), bytes };
        let taken = self.life.store.append(self.now, record.clone());
        if taken != Err(AppendError::Busy) {
            self.life.busy_since = None;
        }
        match taken {
            Ok(id) => self.log.append(id, record),
            Err(AppendError::Full) => demand(self.is_short(), "liveness", || {
                "a record is refused although there is room".into()
            }),
            Err(AppendError::Busy) => self.busy(),
            Err(AppendError::NotOpen) => Ok(()),
            Err(error @ AppendError::TooLong { .. }) => {
                demand(false, "bounded", || error.to_string())
            }
        }
    }

    /// A record was refused as busy: the disk's operations end that, or else the store should have
    /// reported that it is full.
    fn busy(&mut self) -> Verdict {
        let since = *self.life.busy_since.get_or_insert(self.now);
        let timeout = 4 * self.options.config.retry + 20 * self.options.slowest;
        demand(self.now <= since + timeout, "liveness", || {
            format!("the store says that it is busy, and has done nothing since {since:?}")
        })
    }

    pub(super) fn snapshot(&mut self, strand: Strand) {
        // Mostly of all so far, which is not all on the disk.
        let last = self.log.last().0;
        let part = !self.healed && self.draw.one_in(3);
        let covers = if part { self.draw.between(last / 2, last) } else { last };
        let covers = RecordId(covers);
        let state = self.log.state(strand, covers);
        // Large states are in two pieces: a head of the engine's, and the service's own.
        let head = state.slice(..state.len() / 3);
        let state = Payload { body: state.slice(head.len()..), head };
        let snapshot = Snapshot { strand, covers, place: self.place(), state };
        // A snapshot before what was forgotten, or one too many, is refused.
        if self.life.store.snapshot(self.now, snapshot).is_ok() {
            self.log.snapshot(strand);
        }
    }

    fn forget(&mut self) {
        let (strand, place) = (self.strand(), self.place());
        if self.life.store.forget(self.now, strand, place).is_ok() {
            self.log.forget(strand);
        }
    }
}
