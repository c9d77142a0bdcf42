//! The book of jobs, as a node tells it.

use job::{Assignment, Jobs, Taken, Void};
use serde::{Deserialize, Serialize};
use wire::{Member, NodeId};

/// A node's copy of the book of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsStatus {
    /// The node that was asked.
    pub node: NodeId,
    /// The node that directs.
    pub leads: Option<NodeId>,
    /// The node is with a majority, and has all that was answered there when it was asked. Else
    /// what it tells may be old.
    pub current: bool,
    /// The book's version.
    pub version: u64,
    /// The book; `None` if nothing has changed since the version that was asked about.
    pub jobs: Option<Jobs>,
}

/// The book's wishes for a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignmentAnswer {
    /// The node, in its present life.
    pub node: Member,
    /// Its work.
    pub assignment: Assignment,
}

/// The book's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobsAnswer {
    /// It has the command.
    Taken(Taken),
    /// The command changes nothing.
    Void(Void),
}
