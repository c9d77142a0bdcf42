//! The order of words, and the checkers that are told of it.

use std::collections::BTreeMap;

use job::{Command, JobState, Jobs, Taken, Void};
use wire::{Incarnation, Member, NodeId, Time};

use crate::check::kept::Kept;
use crate::check::starts::Starts;

/// A part of the order.
pub enum Entry {
    /// A word at this time; the node that waits for the answer, its agent's number and the attempt's.
    Word {
        at: Time,
        command: Box<Command>,
        from: Option<(Member, u64, u64)>,
        answer: Result<Taken, Void>,
    },
    /// These lives are a component, and at this one the book has its primary.
    Component(Vec<Member>, Member),
}

/// The order.
pub struct Order {
    /// The book after all of it.
    pub book: Jobs,
    pub entries: Vec<Entry>,
    pub members: Vec<Member>,
    pub leader: Member,
    /// A component is being formed.
    pub regroups: bool,
}

impl Order {
    pub fn new(planted: job::Planted) -> Order {
        Order {
            book: Jobs::planted(planted),
            entries: Vec::new(),
            members: Vec::new(),
            leader: Member { node: NodeId(0), incarnation: Incarnation(0) },
            regroups: false,
        }
    }
}

/// The checkers of the order, and what of it they have been told.
#[derive(Default)]
pub struct Judge {
    pub starts: Starts,
    pub kept: Kept,
    pub states: BTreeMap<u64, JobState>,
    /// The kind of processors where each job began.
    pub kinds: BTreeMap<u64, u8>,
}
