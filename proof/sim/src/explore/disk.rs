//! A disk that keeps what a node gives it, one thing after the other, each when the explorer says.

use std::collections::{BTreeMap, VecDeque};

use engine::{Kept, Recovery};
use wire::GroupId;

/// The disk of a node. It outlives the node's process.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Records of all lives.
    log: Vec<Kept>,
    /// The last snapshot of each strand, with the number of records that it covers.
    snapshots: BTreeMap<Option<GroupId>, (usize, Kept)>,
    /// How many records there were when this life began.
    begun: usize,
    given: VecDeque<Given>,
}

#[derive(Clone, Debug)]
enum Given {
    Record(Kept),
    Snapshot(usize, Kept),
    Forget(GroupId),
}

/// A report to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// So many records of this life.
    Records(u64),
    /// This group's state, which stands for so many of them.
    Snapshot(GroupId, u64),
    /// Nothing that the node waits for.
    Silent,
}

impl Disk {
    /// The node gives a record.
    pub fn append(&mut self, kept: Kept) {
        self.given.push_back(Given::Record(kept));
    }

    /// The node gives a state, which stands for so many records of this life.
    pub fn snapshot(&mut self, covers: u64, kept: Kept) {
        let covers = self.begun + covers as usize;
        self.given.push_back(Given::Snapshot(covers, kept));
    }

    /// Nothing of this group is needed any more.
    pub fn forget(&mut self, group: GroupId) {
        self.given.push_back(Given::Forget(group));
    }

    /// It has something to write.
    pub fn is_busy(&self) -> bool {
        !self.given.is_empty()
    }

    /// It writes the first thing.
    pub fn write(&mut self) -> Written {
        match self.given.pop_front() {
            Some(Given::Record(kept)) => {
                self.log.push(kept);
                Written::Records((self.log.len() - self.begun) as u64)
            }
            Some(Given::Snapshot(covers, kept)) => {
                let strand = kept.strand;
                self.snapshots.insert(strand, (covers, kept));
                let covers = covers.saturating_sub(self.begun) as u64;
                strand.map_or(Written::Silent, |group| Written::Snapshot(group, covers))
            }
            Some(Given::Forget(group)) => {
                self.snapshots.remove(&Some(group));
                let covered = self.log.len();
                let gone = |kept: &Kept| kept.strand == Some(group);
                // A snapshot names how many records it covers: these stay, as empty as they are.
                self.log.iter_mut().take(covered).filter(|kept| gone(kept)).for_each(|kept| {
                    (kept.strand, kept.kind) = (None, None);
                });
                Written::Silent
            }
            None => Written::Silent,
        }
    }

    /// The node's process dies: what it has given comes to the disk, unless power is lost.
    pub fn end(&mut self, power: bool) {
        if power {
            self.given.clear();
        }
        while self.is_busy() {
            self.write();
        }
    }

    /// A life of the node begins: what was written comes back.
    pub fn open(&mut self) -> Recovery {
        self.begun = self.log.len();
        let snapshots = self.snapshots.values().map(|(_, kept)| kept.clone());
        let covered = |strand| self.snapshots.get(&strand).map_or(0, |(covers, _)| *covers);
        let log = self
            .log
            .iter()
            .enumerate()
            .filter(|(_, kept)| kept.strand.is_some() || kept.kind.is_some());
        let records =
            log.filter(|(at, kept)| *at >= covered(kept.strand)).map(|(_, kept)| kept.clone());
        Recovery::read(snapshots.chain(records)).expect("what was kept can be read")
    }
}
