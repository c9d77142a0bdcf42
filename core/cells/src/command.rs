//! The commands of a cell's group, and its answers. All of it is postcard on the wire.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};
use wire::client::Targets;
use wire::limits::MAX_NAME;
use wire::path::{Name, Path};
use wire::{Duration, Member, MethodId, Time};

use crate::limits::{MAX_CHILDREN, MAX_EXPORTS};

/// An attachment of a cell to one above it: a later one is larger. 0: none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// A node that carries: it has links to other cells, and takes calls that go there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Carrier {
    /// The life of the node.
    pub member: Member,
    /// Where other cells' nodes connect.
    pub links: SocketAddr,
    /// Where the cell's own clients connect for calls to other cells.
    pub calls: SocketAddr,
}

/// A cell and where its links are taken, best first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The cell.
    pub path: Path,
    /// Its nodes.
    pub at: Vec<SocketAddr>,
}

/// A cell that asks to be attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The cell and its nodes.
    pub place: Place,
    /// The attachment that it has, as it believes.
    pub epoch: Epoch,
    /// When its book began, in microseconds since the Unix epoch: a cell that has lost everything
    /// and begins anew is later.
    pub founded: u64,
    /// Nodes that it has.
    pub nodes: u16,
}

/// How often a name is exported, in a cell and below it. 0: not any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The group.
    pub group: String,
    /// Cells that export it.
    pub count: u32,
}

/// Where a group is, as its own cell said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The cell.
    pub cell: Path,
    /// Its nodes to turn to.
    pub targets: Targets,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// This node carries, at these addresses. It is forgotten when a newer life of it says so, or
    /// with [`Command::Gone`].
    Carry(Carrier),
    /// These lives have ended.
    Gone(Vec<Member>),
    /// A cell below asks to be attached.
    Attach(Attachment),
    /// These cells below are there.
    Renew(Vec<(Path, Epoch)>),
    /// Exports in a cell below have changed.
    Report {
        /// The cell.
        path: Path,
        /// Its attachment.
        epoch: Epoch,
        /// The last change that is in it.
        upto: u64,
        /// The groups whose counts have changed, with their present counts.
        counts: Vec<Count>,
    },
    /// This cell is attached above.
    Rise {
        /// The attachment.
        epoch: Epoch,
        /// Changes of exports up to this one are known there.
        seen: u64,
        /// The cell above that has attached it, and all cells above that.
        above: Vec<Place>,
    },
    /// Cells beyond this one may find a group here.
    Export(String),
    /// They may not any more.
    Unexport(String),
    /// Somebody in the cell wants to know where this is.
    Want {
        /// The name.
        name: Name,
        /// An answer that is older does not do.
        bears: Duration,
    },
    /// That has been found out.
    Learn {
        /// The name.
        name: Name,
        /// Where it is; `None`: nowhere.
        found: Option<Record>,
        /// It was so then, or later: by the wall's clock, as ordered times are.
        as_of: Time,
    },
    /// By a person, where the root is lost: this cell is the root of what is left.
    Promote,
    /// Time has gone on: leases end.
    Tick,
}

impl Command {
    /// The method of the group that takes commands.
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

/// The verdict on a command that is not refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is so.
    Done,
    /// The cell below is attached.
    Attached(Attached),
    /// Some of these cells are not attached so: they must attach anew.
    Renewed {
        /// The paths of those.
        shunned: Vec<Path>,
    },
    /// The report is known up to this change.
    Reported(u64),
    /// The reporter is not attached so: it must attach anew.
    Shunned,
    /// This is where it is, and so old.
    Known {
        /// Where; `None`: nowhere.
        found: Option<Record>,
        /// Since it was so in its own cell.
        age: Duration,
    },
    /// It will be found out.
    Wanted,
}

/// An attachment, as the cell above grants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its number.
    pub epoch: Epoch,
    /// It has to be renewed within this time.
    pub lease: Duration,
    /// Changes of exports up to this one are known.
    pub seen: u64,
    /// The granting cell, and all above it, without the granting cell's nodes.
    pub above: Vec<Place>,
}

/// A cell, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The cell.
    pub path: Path,
    /// Its attachment above; `None`: it is a root, or not attached yet.
    pub epoch: Option<Epoch>,
    /// The cells above, the attaching one first.
    pub above: Vec<Place>,
    /// Its nodes that carry.
    pub carriers: Vec<Carrier>,
    /// The attached cells below, with their nodes and how many exports are known of each.
    pub children: Vec<ChildPicture>,
    /// Its own exports.
    pub exports: Vec<String>,
    /// Names in the cell and below that are known.
    pub names: u32,
}

/// A cell below, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildPicture {
    /// The cell and where its links are taken.
    pub place: Place,
    /// Its attachment.
    pub epoch: Epoch,
    /// Nodes that it has.
    pub nodes: u16,
    /// The ordered time at which its lease ends.
    pub until: Time,
}

/// Why a command is refused, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// It does not belong there.
    #[error("{0} is not below {1}: a cell attaches to one that its path ends with")]
    NotBelow(Path, Path),
    /// Another cell has its path.
    #[error("a later cell has the path {0}: give this one another, or retire one of the two")]
    Later(Path),
    /// No room.
    #[error("{MAX_CHILDREN} cells are attached here, the limit: attach this one below another")]
    Full,
    /// No room.
    #[error("{MAX_EXPORTS} groups are exported, the limit: take one back first")]
    TooManyExports,
    /// No such name.
    #[error("a group's name has 1 to {MAX_NAME} bytes and no colon; this one has {0} bytes")]
    Group(usize),
    /// Nothing is above.
    #[error("this cell is the root of {0}: nothing is above it")]
    Root(Path),
    /// A list is longer than it may be.
    #[error("{0} entries at once, the limit is {1}")]
    TooMany(usize, usize),
}
