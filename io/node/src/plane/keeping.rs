//! A node's storage at work: what waits for the store, in its order.

use std::collections::VecDeque;

use admin::status::StorageStatus;
use engine::Kept;
use store::{AppendError, Record, RecordId, Snapshot, SnapshotError, Strand};
use wire::limits::MAX_STORE_QUEUE;
use wire::ordered::Place;
use wire::{GroupId, Time};

use crate::storage::{Storage, Word};

/// Data that found no room on the disk is tried again after this time.
const RETRY: std::time::Duration = std::time::Duration::from_secs(1);

/// A node's storage at work.
pub(crate) struct Keeping {
    storage: Storage,
    /// The number of the last record of earlier lives: the stack counts from there.
    base: u64,
    /// Records that the store does not take yet, in order.
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
    pub(super) fn pump(&mut self) -> Result<(), String> {
        if self.failed {
            return Ok(());
        }
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

    /// Nothing is kept from here on. False: it was so already.
    pub(super) fn fail(&mut self) -> bool {
        !std::mem::replace(&mut self.failed, true)
    }

    /// Takes a record for [`pump`](Self::pump).
    pub(super) fn keep(&mut self, kept: Kept) {
        if self.failed {
            return;
        }
        let Kept { strand, kind, place, bytes } = kept;
        self.status.records += 1;
        self.status.bytes += bytes.len() as u64;
        let kind = kind.expect("a record has a kind");
        // The strand is needed again: drop its waiting order to forget. The store forgets all that
        // it has by then, and would forget the records from here on too.
        self.forgotten.retain(|(group, _)| Some(*group) != strand);
        self.records.push_back(Record { strand: strand_of(strand), kind, place, bytes });
    }

    /// Takes a snapshot for [`pump`](Self::pump).
    pub(super) fn keep_snapshot(
        &mut self,
        strand: Option<GroupId>,
        covers: u64,
        place: Place,
        state: wire::Payload,
    ) {
        if self.failed {
            return;
        }
        self.status.snapshots += 1;
        let covers = RecordId(self.base + covers);
        self.forgotten.retain(|(group, _)| Some(*group) != strand);
        self.snapshots.push_back(Snapshot { strand: strand_of(strand), covers, place, state });
    }

    /// Has a group forgotten by [`pump`](Self::pump).
    pub(super) fn forget(&mut self, group: GroupId) {
        if !self.failed {
            self.forgotten.push_back((group, Place::default()));
        }
    }

    /// Returns the store's news.
    pub(super) fn turn(&mut self, now: Time) -> VecDeque<Word> {
        if self.failed {
            return VecDeque::new();
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
        }
        self.storage.turn()
    }

    /// The record's number as the stack counts.
    pub(super) fn own_number(&self, RecordId(number): RecordId) -> u64 {
        number.saturating_sub(self.base)
    }

    /// A snapshot is in the store.
    pub(super) fn snapshot_stored(&mut self, strand: Strand) {
        self.flying.retain(|snapshot| snapshot.strand != strand);
    }

    /// A snapshot found no room.
    pub(super) fn snapshot_refused(&mut self, now: Time, strand: Strand) {
        let refused = self.flying.iter().position(|flying| flying.strand == strand);
        let refused = refused.map(|at| self.flying.swap_remove(at));
        // One may have come since: behind that this one would be refused as misplaced, and the node
        // would end.
        let mut since = self.snapshots.iter().chain(&self.flying);
        let newer = since.any(|since| since.strand == strand);
        self.snapshots.extend(refused.filter(|_| !newer));
        self.retry_at = Some(now + RETRY);
    }

    /// Whether the disk is full, in the system's words.
    pub(super) fn set_full(&mut self, full: Option<String>) {
        self.status.full = full;
    }
}

fn strand_of(group: Option<GroupId>) -> Strand {
    group.map_or(Strand::Node, Strand::Group)
}
