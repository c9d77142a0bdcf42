//! Groups on disk, at the data plane: what the stack has kept is given to the store, and the stack is told what is there.
//!
//! The store is a machine like the stack, and runs here; only its disk's two hands have threads.

use engine::{Event, Kept, StorageNews};
use store::Strand;
use wire::ordered::Place;
use wire::{GroupId, Time};

use super::keeping::Keeping;
use super::{Plane, Stop};
use crate::storage::Word;

impl Plane {
    /// The stack has this kept.
    pub(super) fn keep(&mut self, kept: Kept) {
        let Some(keeping) = &mut self.keeping else { return };
        keeping.keep(kept);
        self.pump_storage();
    }

    pub(super) fn keep_snapshot(
        &mut self,
        strand: Option<GroupId>,
        covers: u64,
        place: Place,
        state: bytes::Bytes,
    ) {
        let Some(keeping) = &mut self.keeping else { return };
        keeping.keep_snapshot(strand, covers, place, state);
        self.pump_storage();
    }

    pub(super) fn forget_kept(&mut self, group: GroupId) {
        let Some(keeping) = &mut self.keeping else { return };
        keeping.forget(group);
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
        let Some(keeping) = &mut self.keeping else { return };
        for word in keeping.turn(now) {
            self.storage_says(now, word);
        }
        self.pump_storage();
    }

    fn storage_says(&mut self, now: Time, word: Word) {
        let Some(keeping) = &mut self.keeping else { return };
        match word {
            Word::Persisted(upto) => {
                let upto = keeping.own_number(upto);
                self.stack.handle_persisted(now, upto);
            }
            Word::SnapshotStored(strand, covers) => {
                keeping.snapshot_stored(strand);
                let covers = keeping.own_number(covers);
                if let Some(group) = group_of(strand) {
                    self.stack.handle_snapshot_stored(now, group, covers);
                }
            }
            Word::SnapshotRefused(strand) => keeping.snapshot_refused(now, strand),
            // Nobody waits for that: what it was is told by others.
            Word::Forgotten(..) => {}
            Word::SnapshotWanted(strand) => {
                self.stack.handle_snapshot_wanted(now, group_of(strand));
            }
            Word::Full(text) => {
                keeping.set_full(Some(text.clone()));
                self.handle_event(Event::Storage(StorageNews::Full(text)));
            }
            Word::Room => {
                keeping.set_full(None);
                self.handle_event(Event::Storage(StorageNews::Room));
            }
            Word::Broken(reason) => self.storage_failed(reason),
        }
    }

    /// Nothing can be kept any more: others go on, and this node ends.
    fn storage_failed(&mut self, reason: String) {
        if !self.keeping.as_mut().is_some_and(Keeping::fail) {
            return;
        }
        self.handle_event(Event::Storage(StorageNews::Failed(reason.clone())));
        self.failure = Some(reason);
        if self.stop == Stop::No {
            self.begin_to_stop(os::clock::monotonic());
        }
    }
}

fn group_of(strand: Strand) -> Option<GroupId> {
    match strand {
        Strand::Node => None,
        Strand::Group(group) => Some(group),
    }
}
