//! A deployment's program is replaced by another, one replica after the other
//! (`docs/protocol/deployment.md`, "Upgrades").

use alloc::collections::BTreeSet;
use alloc::string::String;

use serde::{Deserialize, Serialize};
use wire::NodeId;
use wire::limits::MAX_REASON;

use super::Program;

/// A program that is being replaced by the deployment's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgrade {
    /// The program of the other replicas.
    pub from: Program,
    /// Nodes whose replicas run the deployment's program, and have been given the state since.
    pub done: BTreeSet<NodeId>,
    /// The node that changes over now: it runs the deployment's program, and has yet to be given
    /// the state.
    pub under_way: Option<NodeId>,
    /// It takes another one back, and is not taken back itself.
    pub undoes: bool,
}

impl Upgrade {
    /// Whether this node is to run the deployment's program.
    pub fn has(&self, node: NodeId) -> bool {
        self.under_way == Some(node) || self.done.contains(&node)
    }
}

/// An upgrade that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// The program that did not serve.
    pub program: Program,
    /// Where.
    pub node: NodeId,
    /// The fault of the program.
    pub fault: Fault,
}

/// The fault of a new program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// It ended again and again.
    Ended,
    /// It ran, and did not come to have the state in time.
    Late,
    /// It did not start, or cannot read the state: in its own words. From level 3 of the rules on.
    Refused(String),
}

impl Fault {
    /// The reason, as long as one may be.
    pub(super) fn refused(mut reason: String) -> Fault {
        let ends = (0..=reason.len().min(MAX_REASON)).rev();
        let end = ends.into_iter().find(|end| reason.is_char_boundary(*end));
        reason.truncate(end.unwrap_or_default());
        Fault::Refused(reason)
    }
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Fault::Ended => "it ended again and again",
            Fault::Late => "it did not come to have the state in time",
            Fault::Refused(reason) => reason,
        })
    }
}
