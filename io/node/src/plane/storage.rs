//! Groups on disk, at the data plane: what the stack has kept is given to the store, and the stack is told what is there.
//!
//! The store is a machine like the stack, and runs here; only its disk's two hands have threads.

use std::collections::VecDeque;

use admin::status::StorageStatus;
use engine::{Event, Kept, StorageNews};
use store::{AppendError, Record, RecordId, Snapshot, SnapshotError, Strand};
use wire::limits::MAX_STORE_QUEUE;
use wire::ordered::Place;
use wire::{GroupId, Time};

use super::{Plane, Stop};
use crate::storage::{Storage, Word};

/// What found no room on the disk is tried again after this time.
const RETRY: std::time::Duration = std::time::Duration::from_secs(1);

/// A node's storage at work.
pub(crate) struct Keeping {
    storage: Storage,
    /// The number of the last record of earlier lives: the stack counts from there.
    base: u64,
    /// What the store does not take yet, in order.
    records: VecDeque<Record>,
    snapshots: VecDeque<Snapshot>,
    /// Snapshots that the store has: of one that finds no room another is tried.
    flying: Vec<Snapshot>,
    forgotten: VecDeque<(GroupId, Place)>,
    /// When snapshots that found no room are tried again.
    retry_at: Option<Time>,
    /// Nothing is kept any more.
    failed: bool,
    status: StorageStatus,
}

impl Keeping {
    pub fn new(storage: Storage, base: RecordId, status: StorageStatus) -> Keeping {
        Keeping {
            storage,
            base: base.0,
            records: VecDeque::new(),
            snapshots: VecDeque::new(),
            flying: Vec::new(),
            forgotten: VecDeque::new(),
            retry_at: None,
            failed: false,
            status,
        }
    }

    /// Writes what waits, and ends.
    pub fn close(self) {
        if !self.failed
            && let Err(error) = self.storage.close()
        {
            tracing::error!(%error, "the store was not closed well");
        }
    }

    pub fn next_timeout(&self) -> Time {
        let store = self.storage.next_timeout().unwrap_or(Time::FAR);
        store.min(self.retry_at.unwrap_or(Time::FAR))
    }

    pub fn status(&self) -> StorageStatus {
        let (syncs, last_sync) = (self.storage.syncs(), self.storage.last_sync());
        let last_sync_us = u64::try_from(last_sync.as_micros()).unwrap_or(u64::MAX);
        StorageStatus { syncs, last_sync_us, ..self.status.clone() }
    }

    /// Gives the store what waits, in its order. An error is its end.
    fn pump(&mut self) -> Result<(), String> {
        while let Some(record) = self.records.front() {
            match self.storage.try_append(record) {
                Ok(_) => {
                    self.records.pop_front();
                }
                Err(AppendError::Busy) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        if self.records.len() > MAX_STORE_QUEUE {
            return Err("the disk is too slow for what it is given".into());
        }
        if !self.records.is_empty() || self.retry_at.is_some() {
            return Ok(()); // A snapshot may cover what waits.
        }
        while let Some(snapshot) = self.snapshots.pop_front() {
            match self.storage.try_snapshot(&snapshot) {
                Ok(()) => self.flying.push(snapshot),
                Err(SnapshotError::Busy) => {
                    self.snapshots.push_front(snapshot);
                    break;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        while let Some((group, place)) = self.forgotten.pop_front() {
            match self.storage.try_forget(Strand::Group(group), place) {
                Ok(()) => {}
                Err(SnapshotError::Busy) => {
                    self.forgotten.push_front((group, place));
                    break;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

fn strand_of(group: Option<GroupId>) -> Strand {
    group.map_or(Strand::Node, Strand::Group)
}

fn group_of(strand: Strand) -> Option<GroupId> {
    match strand {
        Strand::Node => None,
        Strand::Group(group) => Some(group),
    }
}

impl Plane {
    /// The stack has this kept.
    pub(super) fn keep(&mut self, kept: Kept) {
        let Some(keeping) = self.keeping.as_mut().filter(|keeping| !keeping.failed) else { return };
        let Kept { strand, kind, place, bytes } = kept;
        keeping.status.records += 1;
        keeping.status.bytes += bytes.len() as u64;
        let kind = kind.expect("a record has a kind");
        // What has waited to be forgotten is needed again. It would take along what is kept from here on: what is forgotten is all that there
        // is when the store hears of it.
        keeping.forgotten.retain(|(group, _)| Some(*group) != strand);
        keeping.records.push_back(Record { strand: strand_of(strand), kind, place, bytes });
        self.pump_storage();
    }

    pub(super) fn keep_snapshot(
        &mut self,
        strand: Option<GroupId>,
        covers: u64,
        place: Place,
        state: bytes::Bytes,
    ) {
        let Some(keeping) = self.keeping.as_mut().filter(|keeping| !keeping.failed) else { return };
        keeping.status.snapshots += 1;
        let covers = RecordId(keeping.base + covers);
        keeping.forgotten.retain(|(group, _)| Some(*group) != strand);
        keeping.snapshots.push_back(Snapshot { strand: strand_of(strand), covers, place, state });
        self.pump_storage();
    }

    pub(super) fn forget_kept(&mut self, group: GroupId) {
        let Some(keeping) = self.keeping.as_mut().filter(|keeping| !keeping.failed) else { return };
        keeping.forgotten.push_back((group, Place::default()));
        self.pump_storage();
    }

    fn pump_storage(&mut self) {
        let Some(keeping) = &mut self.keeping else { return };
        if let Err(reason) = keeping.pump() {
            self.storage_failed(reason);
        }
    }

    /// Takes what the disk has done, and what is due.
    pub(super) fn take_stored(&mut self, now: Time) {
        let Some(keeping) = self.keeping.as_mut().filter(|keeping| !keeping.failed) else { return };
        if keeping.retry_at.is_some_and(|at| at <= now) {
            keeping.retry_at = None;
        }
        let words = keeping.storage.turn();
        for word in words {
            self.storage_says(now, word);
        }
        self.pump_storage();
    }

    fn storage_says(&mut self, now: Time, word: Word) {
        let Some(keeping) = &mut self.keeping else { return };
        match word {
            Word::Persisted(RecordId(upto)) => {
                let upto = upto.saturating_sub(keeping.base);
                self.stack.handle_persisted(now, upto);
            }
            Word::SnapshotStored(strand, RecordId(covers)) => {
                keeping.flying.retain(|snapshot| snapshot.strand != strand);
                let covers = covers.saturating_sub(keeping.base);
                if let Some(group) = group_of(strand) {
                    self.stack.handle_snapshot_stored(now, group, covers);
                }
            }
            Word::SnapshotRefused(strand) => {
                let refused = keeping.flying.iter().position(|flying| flying.strand == strand);
                let refused = refused.map(|at| keeping.flying.swap_remove(at));
                // One may have come since: behind that this one would be refused as misplaced, and the node would end (simulator
                // world `decay`, seed 42).
                let mut since = keeping.snapshots.iter().chain(&keeping.flying);
                let newer = since.any(|since| since.strand == strand);
                keeping.snapshots.extend(refused.filter(|_| !newer));
                keeping.retry_at = Some(now + RETRY);
            }
            // Nobody waits for that: what it was is told by others.
            Word::Forgotten(..) => {}
            Word::SnapshotWanted(strand) => {
                self.stack.handle_snapshot_wanted(now, group_of(strand));
            }
            Word::Full(text) => {
                keeping.status.full = Some(text.clone());
                self.handle_event(Event::Storage(StorageNews::Full(text)));
            }
            Word::Room => {
                keeping.status.full = None;
                self.handle_event(Event::Storage(StorageNews::Room));
            }
            Word::Broken(reason) => self.storage_failed(reason),
        }
    }

    /// Nothing can be kept any more: others go on, and this node ends.
    fn storage_failed(&mut self, reason: String) {
        let Some(keeping) = self.keeping.as_mut().filter(|keeping| !keeping.failed) else { return };
        keeping.failed = true;
        self.handle_event(Event::Storage(StorageNews::Failed(reason.clone())));
        self.failure = Some(reason);
        if self.stop == Stop::No {
            self.begin_to_stop(os::clock::monotonic());
        }
    }
}
