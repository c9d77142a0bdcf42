//! The happenings of this world, and where they are.

use std::collections::VecDeque;
use std::net::SocketAddr;

use cells::{Command, LinkId};
use wire::{Duration, Time};

use super::faults::Fault;
use crate::celled::At;

/// A link that is being dialled.
pub(super) struct Dial {
    pub(super) at: At,
    pub(super) life: u64,
    pub(super) link: LinkId,
    /// Those that are left, of which the first is tried.
    pub(super) to: VecDeque<SocketAddr>,
    pub(super) patience: Duration,
    pub(super) until: Time,
}

/// A happening to come.
pub(super) enum Happening {
    /// A router's timer is due.
    Wake(At),
    /// A dial goes on.
    Dial(Dial),
    /// A dialled link is up, or is not.
    Dialled { at: At, life: u64, link: LinkId, to: Option<At> },
    /// The next message of a link arrives at this end.
    Arrive { wire: usize, end: usize },
    /// A cell's group takes a command.
    Order { at: At, life: u64, ask: u64, command: Box<Command> },
    /// A cell's group executes a call.
    Execute { at: At, life: u64, call: u64, request: Box<cells::Call>, until: Time },
    /// A router is told of a group's targets.
    Locate { at: At, life: u64, group: String },
    /// A cell's ring has formed anew.
    Formed { cell: usize, formation: u64 },
    /// The next fault.
    Fault,
    /// A fault is over.
    Over(Fault),
    /// So long ago a cell was lost whole.
    Reattached { cell: usize, faults: u64 },
    /// So long ago a way was cut: nothing comes from one cell to another.
    Deaf { from: usize, to: usize, faults: u64 },
    /// Somebody calls, or asks.
    Load,
}

impl Happening {
    /// Where it happens, for a finding.
    pub(super) fn place(&self) -> Option<At> {
        match self {
            Happening::Wake(at) => Some(*at),
            other => other.at(),
        }
    }

    /// The node that is told of it.
    pub(super) fn at(&self) -> Option<At> {
        match self {
            Happening::Dial(Dial { at, .. })
            | Happening::Dialled { at, .. }
            | Happening::Order { at, .. }
            | Happening::Execute { at, .. }
            | Happening::Locate { at, .. } => Some(*at),
            _ => None,
        }
    }
}
