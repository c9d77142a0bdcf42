//! A group's state at one place of the order, to be kept elsewhere (`docs/protocol/backup.md`).
//!
//! The node that was asked orders the proposal. At its delivery the node's replica takes its state,
//! as for a transfer. The state is handed out when the place is held, as a reply at that place
//! would be: the group cannot lose a saved state any more.

mod handler;

use alloc::collections::BTreeMap;

use wire::limits::{MAX_DEPOSITS, MAX_DEPOSITS_BYTES, MAX_SAVES};
use wire::ordered::Place;
use wire::{Duration, GroupId, RingId, Time};

use crate::api::{Restore, RestoreError, SaveError, Saved};
use crate::replicas::restoring::Restoring;

/// The time within which a save is answered. A service needs a while to write a large state.
const SAVE_TIMEOUT: Duration = Duration::from_secs(60);

/// A save that was asked for here.
#[derive(Clone, Debug)]
pub(crate) struct Saving {
    number: u64,
    until: Time,
    /// The ring on which it was ordered last: on one that ended it may be lost, and what was taken
    /// there may be, too.
    asked: Option<RingId>,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// It has no place yet.
    Asked,
    /// The replica takes its state, of this place of the order. It is not known yet what the place
    /// of a passive group's last update is, if its primary is ahead.
    Taking { sequence: u64, place: Option<Place> },
    /// The state waits until its place is held.
    Taken { sequence: u64, saved: Saved },
}

/// The saves and restores that this node was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backups {
    pub(crate) saves: BTreeMap<GroupId, Saving>,
    /// The number of the last one.
    last_save: u64,
    /// States that groups are to begin with.
    pub(crate) restores: BTreeMap<GroupId, Restoring>,
}

impl Backups {
    /// A group's state is to be saved.
    pub(crate) fn save(&mut self, now: Time, group: GroupId) -> Result<(), SaveError> {
        if self.saves.contains_key(&group) {
            return Err(SaveError::UnderWay);
        }
        if self.saves.len() >= MAX_SAVES {
            return Err(SaveError::TooMany);
        }
        self.last_save += 1;
        let (number, until) = (self.last_save, now + SAVE_TIMEOUT);
        self.saves.insert(group, Saving { number, until, asked: None, stage: Stage::Asked });
        Ok(())
    }

    /// A group is to begin with a state.
    pub(crate) fn restore(
        &mut self,
        now: Time,
        restore: Restore,
        number: u64,
    ) -> Result<(), RestoreError> {
        let id = GroupId::of(&restore.name);
        if self.restores.contains_key(&id) {
            return Err(RestoreError::UnderWay);
        }
        let bytes: usize = self.restores.values().map(Restoring::size).sum();
        let full = bytes > 0 && bytes + restore.state.len() > MAX_DEPOSITS_BYTES;
        if self.restores.len() >= MAX_DEPOSITS || full {
            return Err(RestoreError::TooMany);
        }
        self.restores.insert(id, Restoring::asked(restore, number, now));
        Ok(())
    }

    /// When somebody waits no longer.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let saves = self.saves.values().map(|saving| saving.until);
        saves.chain(self.restores.values().filter_map(Restoring::until)).min()
    }

    /// Something waits for its place to be held.
    pub(crate) fn any_unheld(&self) -> bool {
        !self.saves.is_empty() || self.restores.values().any(|it| it.until().is_some())
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.saves.len() <= MAX_SAVES, "saves under way are bounded");
        assert!(self.restores.len() <= MAX_DEPOSITS, "states to be restored are bounded");
    }
}

/// The outlook of a save.
#[derive(Clone, Debug)]
enum Outlook {
    Over(SaveError),
    Ready,
    Wait,
}
