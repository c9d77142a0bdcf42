//! Groups that begin with a state from a file (`docs/protocol/backup.md`).
//!
//! The node that was asked keeps the state, and orders that the group begins with it. From that
//! place on the table says so, and who has it; the group's replicas wait for it as for any
//! transfer, and this node gives it to all of them at once.

mod handler;

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::LoggedState;
use wire::{Duration, Payload, RingId, Time, ViewNumber};

use crate::api::{Restore, RestoreError};
use crate::outgoing::Outgoing;

/// The time within which a restore is answered.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);

/// A state that this node was asked to restore.
#[derive(Clone, Debug)]
pub(crate) struct Restoring {
    restore: Restore,
    number: u64,
    /// The time until which the asker waits. `None`: it has its answer.
    until: Option<Time>,
    /// The ring on which it was ordered last. If that ring has ended, it may be lost.
    asked: Option<RingId>,
    /// It had its place in the order here, and was void.
    refused: Option<RestoreError>,
    /// The state on its way to the replicas that wait for it.
    giving: Option<Outgoing>,
}

/// The outlook of a state that is here.
#[derive(Clone, Debug)]
enum Outlook {
    /// The group does not wait for it.
    Over(Result<ViewNumber, RestoreError>),
    /// The group waits for it.
    Waits(ViewNumber),
    /// It can be ordered.
    Ready,
    /// Groups do not act now.
    Wait,
}

impl Restoring {
    /// A restore that is requested now.
    pub(crate) fn asked(restore: Restore, number: u64, now: Time) -> Restoring {
        let until = Some(now + RESTORE_TIMEOUT);
        Restoring { restore, number, until, asked: None, refused: None, giving: None }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of the state.
    pub(crate) fn size(&self) -> usize {
        self.restore.state.len()
    }

    /// The time until which the asker waits.
    pub(crate) fn until(&self) -> Option<Time> {
        self.until
    }
}

/// A state as what a cold passive group begins with: a checkpoint, and nothing behind it.
fn as_checkpoint(state: &Bytes) -> Payload {
    let (log, ends) = (Vec::new(), Vec::new());
    let (proven, poisoned, blamed, checkpoint) = (0, Vec::new(), Vec::new(), state.clone());
    LoggedState { logged: 0, cut: 0, proven, poisoned, checkpoint, log, ends, blamed }.encode()
}
