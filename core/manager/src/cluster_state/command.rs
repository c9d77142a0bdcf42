//! The commands of the cluster state, and its answers.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::{MethodId, NodeId, Share};

use super::{Deployment, Labels};

/// A command. People send the first four, nodes the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Have this service run. For one that is deployed already: as this says, from now on.
    Deploy(Deployment),
    /// End all replicas of this group, and with them its state.
    Withdraw {
        /// The group's name.
        group: String,
    },
    /// Empty this node.
    Drain {
        /// The node.
        node: NodeId,
    },
    /// It may have replicas again.
    Return {
        /// The node.
        node: NodeId,
    },
    /// A node tells of itself.
    Introduce {
        /// The node.
        node: NodeId,
        /// Its labels.
        labels: Labels,
        /// The capacity of its host.
        capacity: Share,
    },
    /// The leader decides where replicas are to be.
    Place {
        /// The group's name.
        group: String,
        /// The placement that this changes: void if there is a newer one.
        number: u64,
        /// The nodes.
        on: Vec<NodeId>,
        /// All replicas have been there.
        filled: bool,
    },
    /// The group's program ends again and again at a node.
    Failing {
        /// The group's name.
        group: String,
        /// The placement by which it runs there: void if there is a newer one, for that may say
        /// another program.
        number: u64,
        /// The node.
        node: NodeId,
    },
    /// The leader decides which node is to run the new program of an upgrade next.
    Advance {
        /// The group's name.
        group: String,
        /// The placement that this changes: void if there is a newer one.
        number: u64,
        /// The node.
        node: NodeId,
    },
    /// A node's replica runs the new program, and has the state.
    Upgraded {
        /// The group's name.
        group: String,
        /// The placement that this changes: void if there is a newer one.
        number: u64,
        /// The node.
        node: NodeId,
    },
    /// The leader reports that the new program does not get the state at this node. All replicas
    /// run the former program again.
    Undo {
        /// The group's name.
        group: String,
        /// The placement that this changes: void if there is a newer one.
        number: u64,
        /// The node.
        node: NodeId,
    },
    /// The node was retired: it is none of the cluster's any more. Void while it is to have
    /// replicas.
    Forget {
        /// The node.
        node: NodeId,
    },
    /// A node has tried the new program of an upgrade, or has run it, and it will not serve there:
    /// all replicas run the former program. From level 3 of the rules on.
    Refuse {
        /// The group's name.
        group: String,
        /// The placement that this changes: void if there is a newer one.
        number: u64,
        /// The node.
        node: NodeId,
        /// Why, in the words of the program; at most [`MAX_REASON`](wire::limits::MAX_REASON) bytes.
        reason: String,
    },
}

impl Command {
    /// The only method of the group.
    pub const METHOD: MethodId = MethodId::of("command");

    /// The arguments of a call.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a command is plain data")
    }

    /// Decodes the bytes of [`encode`](Command::encode).
    ///
    /// # Errors
    /// The bytes are no command.
    pub fn decode(bytes: &[u8]) -> Result<Command, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}

/// The result of a command that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It is so.
    Done,
    /// It was about what is not so any more: nothing has changed.
    Void,
}
