//! Moving a group's primary to another replica, on demand or before this node goes
//! (`docs/protocol/group.md`, "Hand-over").
//!
//! The proposer orders the proposal. The node that is to take over orders the same message itself,
//! and that is the hand-over: it has the token then, and does not order it unless it can act. In a
//! passive group the primary orders it, when all that it has executed is ordered.

mod handler;

use wire::{Duration, Member, NodeId, RingId, Time, ViewNumber};

use crate::api::MoveError;

/// The requester of a move gets the outcome within this time.
const MOVE_TIMEOUT: Duration = Duration::from_secs(3);

/// A departing replica waits this long for another primary, then leaves all the same: its successor
/// may be leaving as well.
const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(100);

/// Why a primary is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Motive {
    /// Somebody requested it here, and waits for the outcome.
    Asked,
    /// This node's replica is about to leave.
    Going,
}

/// A move that this node proposes.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    to: NodeId,
    until: Time,
    /// The ring and view of the last proposal. After the end of the ring it may be lost; in another
    /// view it is void.
    asked: Option<(RingId, ViewNumber)>,
}

impl Moving {
    /// A move that is requested now.
    pub(crate) fn asked(to: NodeId, now: Time) -> Moving {
        Moving { to, until: now + MOVE_TIMEOUT, asked: None }
    }

    pub(crate) fn to(&self) -> NodeId {
        self.to
    }
}

/// The state of a proposal.
#[derive(Clone, Debug)]
enum Outlook {
    /// The primary is there.
    Done(ViewNumber),
    /// The move is impossible.
    Refused(MoveError),
    /// The move can be ordered.
    Ready(Member, ViewNumber),
    /// Groups do not act now.
    Wait,
}
