//! A group's state in a file, and back.

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
    /// It has all that was ordered before this place, and nothing else. Of a warm passive group: its updates up to there.
    pub place: Place,
    /// What it is.
    pub form: Form,
    /// It.
    pub state: Bytes,
}

/// A state that a group is to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// The group's name.
    pub name: String,
    /// Its options, if it does not exist yet.
    pub options: GroupOptions,
    /// What the state is.
    pub form: Form,
    /// It: [`Form::look`] has found nothing wrong with it.
    pub state: Bytes,
    /// What the group has executed is given up for it.
    pub replace: bool,
}

/// Nodes, for people.
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
    /// A save of the group that was asked for here is not over.
    #[error("the group is being saved by this node already: wait for that")]
    UnderWay,
    /// Too many saves at a time.
    #[error(
        "{MAX_SAVES} saves were asked for at this node and are not over, the limit: wait for them"
    )]
    TooMany,
    /// The service's own words.
    #[error("the group's service could not say what its state is: {0}")]
    Service(String),
    /// The replica has lost the state meanwhile.
    #[error(
        "the replica at this node left the group, or came anew, while its state was taken: ask again"
    )]
    Lost,
    /// It was not ordered and held in time.
    #[error(
        "the state was not taken in time: the ring is being formed, or the service is slow to tell its state; see \
         `steadfast status`, and ask again"
    )]
    Late,
}

/// Why a group's state is not restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The name is empty or too long.
    #[error("a group's name has 1 to {MAX_NAME} bytes, this one {0}")]
    Name(usize),
    /// The group is the system's own.
    #[error(
        "the groups steadfast.* are the cluster's own and cannot be restored: deploy the services again from their files, \
         and bind the names again"
    )]
    System,
    /// Groups do not act here.
    #[error(
        "no quorum: nothing can be restored until more nodes are in the ring; `steadfast status` names those that are missing"
    )]
    NoQuorum,
    /// The group has executed calls.
    #[error(
        "the group lives, and has executed calls that would be lost: save it first, then end it (`steadfast withdraw`, or stop its \
         replicas at all nodes) and restore it, or say --replace to give up what it has"
    )]
    Lives,
    /// Such a group cannot begin with such a state.
    #[error("{}", apart(*.form, *.style))]
    Apart {
        /// What the state is.
        form: Form,
        /// The group's style.
        style: Style,
    },
    /// The table of groups is full, or the name's hash is another group's.
    #[error("the cluster has no room for the group: end another one first")]
    Full,
    /// A restore of the group that was asked for here is not over.
    #[error(
        "this node is restoring the group already: wait for that, or give it up with `steadfast state discard`"
    )]
    UnderWay,
    /// Too many at a time.
    #[error(
        "this node has {MAX_DEPOSITS} states, or {MAX_DEPOSITS_BYTES} bytes of them, that no replica has taken yet, the limit: host \
         their groups, give some up with `steadfast state discard`, or ask another node"
    )]
    TooMany,
    /// Another state was restored meanwhile, or this one was given up.
    #[error(
        "the group was restored from another file meanwhile, or this restore was given up: see `steadfast status`"
    )]
    Replaced,
    /// It was not ordered in time.
    #[error(
        "the restore was not ordered in time: the ring is being formed, or is overloaded; see `steadfast status`, and ask again"
    )]
    Late,
}

/// Why a group of this style cannot begin with a state of this form.
fn apart(form: Form, style: Style) -> String {
    match (form, style) {
        (_, Style::Stateless) => {
            "the group is stateless, so nothing can be restored in it: end it, and host it in the style that the file names".into()
        }
        (Form::Log, style) => alloc::format!(
            "the file was saved of a cold-passive group, and has a log that a {style} group cannot execute: end the group, restore \
             it in a cold-passive one, then give that the style with `steadfast style`"
        ),
        (Form::State, style) => alloc::format!("a {style} group cannot begin with this file"),
    }
}

/// Why a restore is not given up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscardError {
    /// Groups do not act here.
    #[error(
        "no quorum: nothing can be given up until more nodes are in the ring; `steadfast status` names those that are missing"
    )]
    NoQuorum,
    /// There is nothing to give up.
    #[error("no state waits for this group: `steadfast status` says which groups wait for one")]
    Nothing,
}
