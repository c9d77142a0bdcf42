//! What the data plane knows of programs beside their executors.

use std::collections::BTreeMap;
use std::sync::Weak;

use supervisor::Tether;
use wire::GroupId;
use wire::ordered::GroupOptions;

use crate::executor::{Executor, Report};

/// A program whose replica cannot be hosted yet: the last one of its group is still on its way out.
pub(super) struct Arrival {
    pub name: String,
    pub options: GroupOptions,
    pub executor: Executor,
}

/// What is known of programs beside their executors.
#[derive(Default)]
pub(crate) struct Attached {
    /// The groups of those that are polled, by their executors' serials.
    pub(super) groups: BTreeMap<u64, GroupId>,
    /// Those that were given commands in this turn.
    pub(super) unwritten: Vec<GroupId>,
    /// At most one for each program that the node runs.
    pub(super) arrivals: Vec<Arrival>,
    /// Replicas of any kind that are on their way out of their groups.
    pub(super) parting: Vec<GroupId>,
    /// What tied those that were lost to the thread that minds them, for whoever comes next.
    pub(super) lost: Vec<(GroupId, Tether)>,
    /// Threads of hung services that were left behind.
    pub(super) stuck: Vec<Weak<()>>,
    /// Room for what a program answers, kept from read to read.
    pub(super) done: Vec<Report>,
}
