//! Saves a group's state to a file, and restores it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use wire::NodeId;
use wire::limits::{MAX_DEPOSITS, MAX_DEPOSITS_BYTES, MAX_NAME, MAX_SAVES};
use wire::ordered::{Form, GroupOptions, Place, Style};

/// A group's state as it was at one place of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The group's name.
    pub name: String,
    /// Its options.
    pub options: GroupOptions,
    /// The state contains exactly the requests ordered before this place; in a warm passive group,
    /// exactly the updates.
    pub place: Place,
    /// The form of `state`.
    pub form: Form,
    /// The state.
    pub state: Bytes,
}

/// A state that a group is to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// The group's name.
    pub name: String,
    /// The group's options, used if it does not exist yet.
    pub options: GroupOptions,
    /// The form of `state`.
    pub form: Form,
    /// The state; [`Form::look`] has accepted it.
    pub state: Bytes,
    /// Discard the state of a group that has executed calls.
    pub replace: bool,
}

/// Nodes, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(pub Vec<NodeId>);

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, node) in self.0.iter().enumerate() {
            let between = if i == 0 { "" } else { ", " };
            write!(f, "{between}{node}")?;
        }
        Ok(())
    }
}

/// Why a group's state is not saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// Groups do not act here.
    #[error(
        "no quorum: nothing can be saved until more nodes are in the ring; `steadfast status` names those that are missing"
    )]
    NoQuorum,
    /// The cluster has no such group.
    #[error("the cluster has no such group: `steadfast status` lists the groups")]
    NoSuchGroup,
    /// There is nothing to save.
    #[error("the group is stateless: its replicas have nothing in common that could be saved")]
    Stateless,
    /// No replica has the group's state.
    #[error(
        "no replica with the group's state is up: start the nodes that `steadfast status` shows as missing, and ask again"
    )]
    NoPrimary,
    /// This node has no replica with the state.
    #[error("this node has no replica with the group's state: ask a node that has, {0}")]
    NotHere(Nodes),
    /// An earlier save of the group, requested at this node, is not over.
    #[error("the group is being saved by this node already: wait for that")]
    UnderWay,
    /// Too many saves at a time.
    #[error("this node has {MAX_SAVES} saves under way, the limit: wait for them")]
    TooMany,
    /// The service failed, with its own error text.
    #[error("the group's service could not serialize its state: {0}")]
    Service(String),
    /// The replica has lost the state meanwhile.
    #[error(
        "the replica at this node left the group, or lost its state, during the save: try again"
    )]
    Lost,
    /// The save was not ordered, or not held by enough members, in time.
    #[error(
        "the save was not complete in time: the ring is being formed, or the service is slow to \
         serialize its state; see `steadfast status`, and try again"
    )]
    Late,
}

/// Why a group's state is not restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The name is empty or too long.
    #[error("a group's name has 1 to {MAX_NAME} bytes, this one {0}")]
    Name(usize),
    /// The group belongs to the system.
    #[error(
        "the groups steadfast.* belong to the cluster and cannot be restored: deploy the services \
         again from their files, and bind the names again"
    )]
    System,
    /// Groups do not act here.
    #[error(
        "no quorum: nothing can be restored until more nodes are in the ring; `steadfast status` names those that are missing"
    )]
    NoQuorum,
    /// The group has executed calls.
    #[error(
        "the group exists, and has executed calls that a restore would lose: save it, end it \
         (`steadfast withdraw`, or stop its replicas at all nodes), then restore it; or discard its \
         state with --replace"
    )]
    Lives,
    /// A group of this style cannot begin with a state of this form.
    #[error("{}", apart(*.form, *.style))]
    Apart {
        /// The state's form.
        form: Form,
        /// The group's style.
        style: Style,
    },
    /// The table of groups is full, or the name's hash is another group's.
    #[error("the cluster has no room for the group: end another one first")]
    Full,
    /// An earlier restore of the group, requested at this node, is not over.
    #[error(
        "this node is restoring the group already: wait for that, or cancel it with \
         `steadfast state discard`"
    )]
    UnderWay,
    /// Too many deposits at a time.
    #[error(
        "this node is at its limit of {MAX_DEPOSITS} states, or {MAX_DEPOSITS_BYTES} bytes, that no \
         replica has taken yet: host their groups, discard some with `steadfast state discard`, or \
         restore at another node"
    )]
    TooMany,
    /// Another state was restored meanwhile, or this one was discarded.
    #[error(
        "the group was restored from another file meanwhile, or this state was discarded: see \
         `steadfast status`"
    )]
    Replaced,
    /// The restore was not ordered in time.
    #[error(
        "the restore was not ordered in time: the ring is being formed, or is overloaded; see \
         `steadfast status`, and try again"
    )]
    Late,
}

/// Why a group of this style cannot begin with a state of this form.
fn apart(form: Form, style: Style) -> String {
    match (form, style) {
        (_, Style::Stateless) => {
            "the group is stateless, so it has no state to restore: end it, and host it in the style \
             that the file names"
                .into()
        }
        (Form::Log, style) => alloc::format!(
            "the file is from a cold-passive group and contains a log, which a {style} group cannot \
             execute: end the group, restore the file into a cold-passive group, then change the \
             style with `steadfast style`"
        ),
        (Form::State, style) => alloc::format!("a {style} group cannot begin with this file"),
    }
}

/// Why a deposit is not discarded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscardError {
    /// Groups do not act here.
    #[error(
        "no quorum: nothing can be discarded until more nodes are in the ring; `steadfast status` \
         names those that are missing"
    )]
    NoQuorum,
    /// There is nothing to discard.
    #[error("no state waits for this group: `steadfast status` lists the groups that wait for one")]
    Nothing,
}
