//! A disk that keeps what a stack gives it: what was synced when its node's life ended comes back.

use std::collections::{BTreeMap, VecDeque};

use steadfast_engine::{Kept, Recovery};
use wire::{Duration, GroupId, Time};

/// The time of a sync, unless a test sets another.
pub const SYNC: Duration = Duration::from_millis(1);

#[derive(Default)]
pub struct FakeDisk {
    /// Records of all lives.
    log: Vec<Kept>,
    /// The number of them that are on the disk.
    synced: usize,
    /// The last snapshot of each strand on the disk, with the number of records that it covers.
    snapshots: BTreeMap<Option<GroupId>, (usize, Kept)>,
    /// How many records there were when this life began.
    begun: usize,
    /// The writes under way, and the times at which they are done.
    syncing: VecDeque<(Time, Written)>,
    /// Nothing comes to the disk.
    pub stuck: bool,
}

enum Written {
    Records(usize),
    Snapshot(Option<GroupId>, usize, Kept),
}

/// A report to the stack.
pub enum Told {
    Persisted(u64),
    Snapshot(Option<GroupId>, u64),
}

impl FakeDisk {
    pub fn append(&mut self, now: Time, kept: Kept) {
        self.log.push(kept);
        self.syncing.push_back((now + SYNC, Written::Records(self.log.len())));
    }

    pub fn snapshot(&mut self, now: Time, covers: u64, kept: Kept) {
        let covers = self.begun + covers as usize;
        assert!(covers <= self.log.len(), "it covers what was given");
        let written = Written::Snapshot(kept.strand, covers, kept);
        self.syncing.push_back((now + SYNC, written));
    }

    pub fn due(&self) -> Option<Time> {
        self.syncing.front().filter(|_| !self.stuck).map(|(due, _)| *due)
    }

    /// The first that is on its way is there.
    pub fn sync(&mut self) -> Told {
        match self.syncing.pop_front().expect("something is due").1 {
            Written::Records(upto) => {
                self.synced = upto;
                Told::Persisted((upto - self.begun) as u64)
            }
            Written::Snapshot(strand, covers, kept) => {
                self.snapshots.insert(strand, (covers, kept));
                Told::Snapshot(strand, (covers - self.begun.min(covers)) as u64)
            }
        }
    }

    /// A life of the node begins: what was synced comes back.
    pub fn open(&mut self) -> Recovery {
        self.log.truncate(self.synced);
        self.syncing.clear();
        self.begun = self.log.len();
        let snapshots = self.snapshots.values().map(|(_, kept)| kept.clone());
        let covered = |strand| self.snapshots.get(&strand).map_or(0, |(covers, _)| *covers);
        let log = self.log.iter().enumerate();
        let records =
            log.filter(|(i, kept)| *i >= covered(kept.strand)).map(|(_, kept)| kept.clone());
        Recovery::read(snapshots.chain(records)).expect("what was kept can be read")
    }

    /// A snapshot of this strand is there.
    pub fn has_snapshot(&self, strand: Option<GroupId>) -> bool {
        self.snapshots.contains_key(&strand)
    }
}
