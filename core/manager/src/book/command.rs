//! What is said to the book, and what it answers.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::limits::{MAX_COMMAND, MAX_DEPLOYMENTS, MAX_LABEL, MAX_LABELS, MAX_MEMBERS, MAX_NAME};
use wire::system::PREFIX;
use wire::{MethodId, NodeId, Share};

use super::{Deployment, Labels};

/// What is said. The first four by people, the others by nodes.
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
        /// What its host can do.
        capacity: Share,
    },
    /// Who leads says where replicas are to be.
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
        /// The placement by which it runs there: void if there is a newer one, for that may say another program.
        number: u64,
        /// The node.
        node: NodeId,
    },
    /// Who leads says which node is to run the new program of an upgrade next.
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
    /// Who leads says that the new program does not come to have the state at this node: all run the former one again.
    Undo {
        /// The group's name.
        group: String,
        /// The placement that this changes: void if there is a newer one.
        number: u64,
        /// The node.
        node: NodeId,
    },
}

impl Command {
    /// The only method of the group.
    pub const METHOD: MethodId = MethodId::of("command");

    /// The arguments of a call.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a command is plain data")
    }

    /// What [`encode`](Command::encode) gave.
    ///
    /// # Errors
    /// The bytes are no command.
    pub fn decode(bytes: &[u8]) -> Result<Command, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}

/// What comes of a command that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It is so.
    Done,
    /// It was about what is not so any more: nothing has changed.
    Void,
}

/// Why a command is refused, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The group's name.
    #[error(
        "a group's name has 1 to {MAX_NAME} bytes and does not begin with \"{PREFIX}\"; `{0}` is none"
    )]
    Name(String),
    /// No program.
    #[error("it names no program: give command = [\"./program\", ...]")]
    NoCommand,
    /// None, or more than there can be nodes.
    #[error("{0} replicas cannot be had: say 1 to {MAX_MEMBERS}")]
    Replicas(u32),
    /// What a policy says of replicas cannot be.
    #[error("at least {least} of {wanted} replicas is no minimum: say 1 to {wanted}")]
    Least {
        /// The minimum.
        least: u32,
        /// How many are wanted.
        wanted: u32,
    },
    /// A need cannot be.
    #[error("a need has a cost and a deadline above zero, no longer than its period")]
    Need,
    /// A label cannot be.
    #[error(
        "a label's name and value have 1 to {MAX_LABEL} bytes each, and there are at most {MAX_LABELS}: `{0}` is too much"
    )]
    Label(String),
    /// Too long.
    #[error(
        "the deployment takes {0} bytes, the limit is {MAX_COMMAND}: shorten arguments and environment"
    )]
    TooLarge(usize),
    /// The group's replicas run something else.
    #[error(
        "group {0} is deployed with another style, hold or durability, and all its replicas must have the same: withdraw it first (its \
         state ends with it), give the other one another name, or change a style with `steadfast style`"
    )]
    RunsAnother(String),
    /// Nobody would keep the state.
    #[error(
        "another program for group {0}: a sole replica has nobody to keep its state while it changes over: deploy it with replicas = 2 first"
    )]
    Alone(String),
    /// One at a time.
    #[error(
        "group {0} is being upgraded: wait until `steadfast deployments` says that it has settled, or deploy it with the former program to \
         take the upgrade back"
    )]
    Upgrading(String),
    /// No room in the book.
    #[error("{MAX_DEPLOYMENTS} groups are deployed, the limit: withdraw one")]
    TooMany,
    /// No room in the book.
    #[error("{MAX_MEMBERS} nodes have told of themselves, the limit")]
    TooManyNodes,
    /// It fits nowhere.
    #[error("{found} of {wanted} replicas have a place: {why}")]
    NoRoom {
        /// Nodes that could take one.
        found: usize,
        /// How many are wanted.
        wanted: usize,
        /// Why the others could not.
        why: String,
    },
    /// There is no such deployment.
    #[error("group {0} is not deployed: `steadfast deployments` lists what is")]
    NotDeployed(String),
    /// Nobody knows this node.
    #[error(
        "{0} has never told of itself: is it in the cluster, with [manager] on and an admin socket?"
    )]
    UnknownNode(NodeId),
    /// Nothing is to be returned.
    #[error("{0} is not being drained: `steadfast deployments` lists what is")]
    NotDrained(NodeId),
}
