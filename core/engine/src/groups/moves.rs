//! Moving a group's primary to another replica, on demand or before this node goes
//! (`docs/protocol/group.md`, "Hand-over").
//!
//! Whoever proposes a move orders the proposal. The node that is to take over orders the same
//! message itself, and that is the hand-over: it has the token then, and does not say so unless it
//! can act. In a passive group the primary orders it, when what it has executed is ordered.

mod handler;

use wire::{Duration, Member, NodeId, RingId, Time, ViewNumber};

use crate::api::MoveError;

/// Whoever asked for a move hears of it within this time.
const MOVE_TIMEOUT: Duration = Duration::from_secs(3);

/// A replica that goes waits this long for another to be primary before it goes all the same: its
/// successor may be going as well.
const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(100);

/// Why a primary is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Motive {
    /// Somebody asked for it here, and waits for the outcome.
    Asked,
    /// This node's replica is about to go.
    Going,
}

/// A move that this node proposals.
pub(crate) struct Moving {
    to: NodeId,
    until: Time,
    /// Where the proposal was ordered last: on a ring that ended it may be lost, of an old view it
    /// is void.
    asked: Option<(RingId, ViewNumber)>,
}

impl Moving {
    /// A move that somebody asks for now.
    pub(crate) fn asked(to: NodeId, now: Time) -> Moving {
        Moving { to, until: now + MOVE_TIMEOUT, asked: None }
    }

    pub(crate) fn to(&self) -> NodeId {
        self.to
    }
}

/// What can come of a proposal.
enum Outlook {
    /// It is so.
    Done(ViewNumber),
    /// It cannot be.
    Refused(MoveError),
    /// It can be ordered.
    Ready(Member, ViewNumber),
    /// Groups do not act now.
    Wait,
}
