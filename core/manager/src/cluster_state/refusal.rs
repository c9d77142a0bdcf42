//! Why the cluster state does not take what was said.

use alloc::string::String;

use wire::NodeId;
use wire::limits::{
    MAX_COMMAND, MAX_DEPLOYMENTS, MAX_DISKS, MAX_LABEL, MAX_LABELS, MAX_MEMBERS, MAX_NAME,
};
use wire::system::PREFIX;

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
    /// A policy demands an impossible number of replicas.
    #[error("at least {least} of {wanted} replicas is no minimum: say 1 to {wanted}")]
    Least {
        /// The minimum.
        least: u32,
        /// How many are wanted.
        wanted: u32,
    },
    /// A need is impossible.
    #[error(
        "a need's cost is above zero and at most its deadline, and its deadline at most its \
         period: a call runs on one processor, however many the host has"
    )]
    Need,
    /// A reservation is impossible.
    #[error(
        "a reservation keeps at most as much memory as its limit, and has at most {MAX_DISKS} disks, \
         each with a folder"
    )]
    Reservation,
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
        "group {0} is deployed with another ack level, style or durability, and all its replicas must have the same: withdraw it first (its \
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
    /// No room in the cluster state.
    #[error("{MAX_DEPLOYMENTS} groups are deployed, the limit: withdraw one")]
    TooMany,
    /// No room in the cluster state.
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
