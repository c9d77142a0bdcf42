//! Groups on disk, at the data plane: what the stack has kept is given to the store, and the stack
//! is told what is there.
//!
//! The store is a machine like the stack, and runs here; only its disk's two hands have threads.

use engine::{Event, Stack, StorageNews};
use os::clock::{monotonic, wall_clock};
use store::Strand;
use wire::{GroupId, Time};

use super::ending::Ending;
use super::keeping::Keeping;
use crate::error::Stopped;
use crate::events::Events;
use crate::storage::Word;

/// The parts that a handler of the storage may touch.
pub(super) struct Persisting<'a> {
    pub keeping: &'a mut Keeping,
    pub stack: &'a mut Stack,
    pub events: &'a mut Events,
    pub ending: &'a mut Ending,
}

impl Persisting<'_> {
    /// Has the stack's request done, as far as the store takes it now.
    pub fn give(&mut self, request: impl FnOnce(&mut Keeping)) {
        request(self.keeping);
        self.pump();
    }

    fn pump(&mut self) {
        if let Err(reason) = self.keeping.pump() {
            self.fail(reason);
        }
    }

    /// Takes what the disk has done, and what is due.
    pub fn take_stored(&mut self, now: Time) {
        for word in self.keeping.turn(now) {
            self.handle_word(now, word);
        }
        self.pump();
    }

    fn handle_word(&mut self, now: Time, word: Word) {
        let keeping = &mut *self.keeping;
        match word {
            Word::Persisted(upto) => {
                self.stack.handle_persisted(now, keeping.own_number(upto));
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
                self.tell(StorageNews::Full(text));
            }
            Word::Room => {
                keeping.set_full(None);
                self.tell(StorageNews::Room);
            }
            Word::Broken(reason) => self.fail(reason),
        }
    }

    /// Nothing can be kept any more: others go on, and this node ends.
    fn fail(&mut self, reason: String) {
        if self.keeping.fail() {
            self.tell(StorageNews::Failed(reason.clone()));
            let reason = Stopped::Failed(format!("storage has failed: {reason}"));
            self.ending.fail(monotonic(), self.stack, reason);
        }
    }

    fn tell(&mut self, news: StorageNews) {
        self.events.push(wall_clock(), Event::Storage(news));
    }
}

/// The group of these records; `None`: the node's own.
pub(crate) fn group_of(strand: Strand) -> Option<GroupId> {
    match strand {
        Strand::Node => None,
        Strand::Group(group) => Some(group),
    }
}
