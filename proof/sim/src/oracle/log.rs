//! The store's log in its simplest form: a list of records. After any damage to the disk the
//! recovered data must be as this list says.

use std::collections::BTreeMap;

use bytes::Bytes;
use store::{Opened, Record, RecordId, Snapshot, Strand};

use crate::check::{Verdict, demand};
use crate::trace::{digest, mix};

const PROPERTY: &str = "durable";

/// The appended records, and the store's reports about them.
#[derive(Default)]
pub struct Log {
    /// In order; the first is number 1.
    records: Vec<Record>,
    /// A digest of each record.
    digests: Vec<u64>,
    /// Said to be on the disk, up to here.
    persisted: u64,
    /// To be found even if a bit rots, or to be missed aloud.
    certain: u64,
    /// Said of snapshots: up to here they are on the disk.
    stored: BTreeMap<Strand, u64>,
    /// Forgotten on purpose, up to here.
    forgotten: BTreeMap<Strand, u64>,
    /// Said to be forgotten on the disk, up to here.
    gone: BTreeMap<Strand, u64>,
    /// Snapshots, and strands to be forgotten, that were taken and of which nothing was said since:
    /// how many of each strand.
    owed: BTreeMap<Strand, usize>,
    /// The damage to the files before this opening.
    harm: Leniency,
    /// The data that an opening brings back.
    back: Back,
}

/// The data that may be missing after an opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leniency {
    /// Nothing that was said to be on the disk.
    #[default]
    None,
    /// Data that looks like a write that was cut short: a bit had rotted.
    Rot,
    /// No record, but perhaps snapshots and forgotten strands, as an older manifest had them.
    OldManifest,
}

#[derive(Default)]
struct Back {
    covers: BTreeMap<Strand, u64>,
    records: Vec<u64>,
}

impl Log {
    /// A record was taken.
    pub fn append(&mut self, id: RecordId, record: Record) -> Verdict {
        self.digests.push(digest(&record.bytes));
        self.records.push(record);
        demand(id.0 == self.records.len() as u64, PROPERTY, || format!("{id} is not next"))
    }

    /// The last record.
    pub fn last(&self) -> RecordId {
        RecordId(self.records.len() as u64)
    }

    /// Records that were said to be on the disk.
    pub fn persisted(&self) -> u64 {
        self.persisted
    }

    /// All up to here is said to be on the disk.
    pub fn say(&mut self, upto: RecordId) -> Verdict {
        let known = self.persisted < upto.0 && upto <= self.last();
        // A batch that another follows was on the disk before that was written.
        self.certain = self.persisted;
        self.persisted = upto.0;
        demand(known, PROPERTY, || format!("{upto} is said to be persisted, but is no news"))
    }

    /// The log has rested, or was closed: whatever rots from here on is missed aloud.
    pub fn rest(&mut self) {
        self.certain = self.persisted;
    }

    /// A strand's snapshot is said to be on the disk.
    pub fn stored(&mut self, strand: Strand, covers: RecordId) -> Verdict {
        self.stored.insert(strand, covers.0);
        self.answered(strand)
    }

    /// A strand is said to be forgotten on the disk.
    pub fn forgotten(&mut self, strand: Strand, upto: RecordId) -> Verdict {
        self.gone.insert(strand, upto.0);
        self.answered(strand)
    }

    /// A request for a strand is given up.
    pub fn refused(&mut self, strand: Strand) -> Verdict {
        self.answered(strand)
    }

    fn answered(&mut self, strand: Strand) -> Verdict {
        let owed = self.owed.get_mut(&strand).filter(|many| **many > 0);
        let was_owed = owed.map(|many| *many -= 1).is_some();
        demand(was_owed, PROPERTY, || {
            format!("of {strand:?} something is told that nobody asked for")
        })
    }

    /// A snapshot was taken.
    pub fn snapshot(&mut self, strand: Strand) {
        *self.owed.entry(strand).or_default() += 1;
    }

    /// The store was closed, and all is well.
    pub fn closed(&self) -> Verdict {
        demand(self.owed.values().all(|&many| many == 0), PROPERTY, || {
            format!("what was asked for of {:?} is dropped without a word", self.owed)
        })
    }

    /// A strand was forgotten.
    pub fn forget(&mut self, strand: Strand) {
        self.forgotten.insert(strand, self.records.len() as u64);
        *self.owed.entry(strand).or_default() += 1;
    }

    /// The state of a strand after its records up to this one.
    pub fn state(&self, strand: Strand, covers: RecordId) -> Bytes {
        let after = self.forgotten.get(&strand).copied().unwrap_or(0);
        let mut hash = mix(1, 1);
        let mut many = 0;
        for place in after as usize..covers.0 as usize {
            if self.records[place].strand == strand {
                hash = mix(hash, self.digests[place]);
                many += 1;
            }
        }
        // Some states take several pieces, some a few bytes, and some none.
        let words = (hash % 7) as usize * many * 12;
        hash.to_le_bytes().repeat(words).into()
    }

    /// An opening begins, of files with this damage.
    pub fn begin(&mut self, harm: Leniency) {
        self.back = Back::default();
        self.owed.clear();
        self.harm = harm;
        if harm == Leniency::OldManifest {
            self.gone.clear();
        }
    }

    /// Up to here a strand's records and states never come back.
    fn gone(&self, strand: Strand) -> u64 {
        self.gone.get(&strand).copied().unwrap_or(0)
    }

    /// A snapshot came back.
    pub fn restored(&mut self, snapshot: &Snapshot) -> Verdict {
        let Snapshot { strand, covers, ref state, .. } = *snapshot;
        let twice = self.back.covers.insert(strand, covers.0).is_some();
        demand(!twice && covers <= self.last(), PROPERTY, || {
            format!("{strand:?} is restored twice, or up to {covers}, which never was")
        })?;
        // A snapshot taken since, without a new record, has an empty state.
        let since = covers.0 > self.gone(strand) || state.is_empty();
        demand(since || self.gone(strand) == 0, PROPERTY, || {
            format!("the state of {strand:?} up to {covers} comes back, which was forgotten")
        })?;
        // If a strand's forgetting is not on the disk, any old state may come back: nobody wants
        // it.
        let wanted = covers.0 > self.forgotten.get(&strand).copied().unwrap_or(0);
        demand(!wanted || state.equals(&self.state(strand, covers)), PROPERTY, || {
            format!("the state of {strand:?} up to {covers} is not what it was")
        })
    }

    /// A record came back.
    pub fn replayed(&mut self, id: RecordId, record: &Record) -> Verdict {
        let follows = self.back.records.last().is_none_or(|&last| last < id.0);
        demand(follows, PROPERTY, || format!("{id} comes back out of order"))?;
        self.back.records.push(id.0);
        demand(id.0 > self.gone(record.strand), PROPERTY, || {
            format!("{id} of {:?} comes back, which was forgotten", record.strand)
        })?;
        let known = (id.0 as usize).checked_sub(1).and_then(|place| self.records.get(place));
        demand(known == Some(record), PROPERTY, || format!("{id} is not what was appended"))
    }

    /// The store is open.
    pub fn opened(&mut self, opened: &Opened) -> Verdict {
        let last = opened.next.0 - 1;
        let least = if self.harm == Leniency::Rot { self.certain } else { self.persisted };
        demand(least <= last && last <= self.last().0, PROPERTY, || {
            format!(
                "the log comes back up to {last}, was said to be on the disk up to {least}, and ended with {}",
                self.last()
            )
        })?;
        let mut back = self.back.records.iter().peekable();
        for (place, record) in self.records.iter().enumerate().take(last as usize) {
            let id = place as u64 + 1;
            let covers = self.back.covers.get(&record.strand).copied().unwrap_or(0);
            let is_back = back.next_if(|&&other| other == id).is_some();
            let gone = self.forgotten.get(&record.strand).copied().unwrap_or(0);
            demand(is_back || id <= covers.max(gone), PROPERTY, || {
                format!("record {id} of {:?} does not come back", record.strand)
            })?;
            demand(!is_back || id > covers, PROPERTY, || {
                format!("record {id} comes back although its strand's snapshot covers it")
            })?;
        }
        if self.harm == Leniency::OldManifest {
            self.stored = self.back.covers.clone();
        }
        for (strand, &stored) in &self.stored {
            let covers = self.back.covers.get(strand).copied().unwrap_or(0);
            let gone = self.forgotten.get(strand).copied().unwrap_or(0);
            demand(covers >= stored || gone >= stored, PROPERTY, || {
                format!("the snapshot of {strand:?} up to {stored} does not come back")
            })?;
        }
        self.records.truncate(last as usize);
        self.digests.truncate(last as usize);
        self.forgotten.values_mut().for_each(|upto| *upto = (*upto).min(last));
        (self.persisted, self.certain) = (last, last);
        Ok(())
    }
}
