//! This node's replicas: what they execute, vote, lead, call and keep.

pub(crate) mod cold;
mod effects;
pub(crate) mod hosted;
pub(crate) mod hung;
pub(crate) mod journal;
pub(crate) mod leading;
pub(crate) mod nested;
pub(crate) mod passive;
mod reads;
pub(crate) mod restoring;
pub(crate) mod saving;
mod serving;
pub(crate) mod storage;
mod targets;
mod votes;

use alloc::collections::BTreeMap;

use wire::GroupId;

use crate::base::Base;
use crate::ordering::Ordering;
use crate::parts::{Hangs, Votes};
use crate::replicas::hosted::Hosted;
use crate::replicas::leading::Leading;
use crate::replicas::nested::Nested;
use crate::replicas::saving::Backups;
use crate::replies::{Replies, ReplyHandler};

/// This node's replicas.
pub(crate) struct Replicas {
    pub(crate) hosted: BTreeMap<GroupId, Hosted>,
    /// Calls of groups, by their handlers.
    pub(crate) nested: Nested,
    /// The votes in voting groups.
    pub(crate) votes: Votes,
    /// Services that hang.
    pub(crate) hangs: Hangs,
    /// Who executes first, and what is told of that.
    pub(crate) leading: Leading,
    /// States to be saved and restored.
    pub(crate) backups: Backups,
}

/// Lets replicas act, and does what they ask for.
pub(crate) struct ReplicaHandler<'a, O> {
    pub(crate) base: &'a mut Base<O>,
    pub(crate) replies: &'a mut Replies,
    pub(crate) replicas: &'a mut Replicas,
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    pub(crate) fn replies(&mut self) -> ReplyHandler<'_, O> {
        ReplyHandler { base: self.base, replies: self.replies }
    }
}
