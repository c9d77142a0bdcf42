//! Commands: changes of the book.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use image::{Parent, Place, Root};
use serde::{Deserialize, Serialize};
use wire::rank::Counts;
use wire::{Member, MethodId, NodeId, Time};

use crate::progress::{End, Moments, Progress};
use crate::{Host, Refusal, Spec};

/// A change of the book. A rank is named by its job's number and its own, from 0.
///
/// A node says each thing once, and in order (its session with the group). Other commands may come
/// late, or a second time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// A user: run this.
    Submit(Spec),
    /// A user: stop this job. Its images stay.
    Kill {
        /// The job.
        job: u64,
    },
    /// A user: go on with a job that was stopped.
    Resume {
        /// The job.
        job: u64,
    },
    /// A user: forget a job that is over or stopped, and its images.
    Forget {
        /// The job.
        job: u64,
    },
    /// A user: from now on more may run this job than before.
    Loosen {
        /// The job.
        job: u64,
        /// Hosts with any processors.
        processor: bool,
        /// Any program.
        program: bool,
    },
    /// A user: each rank is to save at its next safe point.
    Save {
        /// The job.
        job: u64,
    },
    /// A node's agent: this host may run ranks.
    Introduce {
        /// The node, in its present life.
        node: Member,
        /// Its labels, memory and processors.
        host: Host,
    },
    /// The director: this node is to start the rank.
    Start {
        /// The job.
        job: u64,
        /// The rank.
        rank: u32,
        /// The number of the start: one more than the rank's last.
        start: u64,
        /// The node, in its present life.
        node: Member,
    },
    /// The director: the rank is to go on at this node, because its own is being emptied; or it stays.
    Move {
        /// The job.
        job: u64,
        /// The rank.
        rank: u32,
        /// The start that runs.
        start: u64,
        /// Where to, or `None`: it stays.
        to: Option<NodeId>,
    },
    /// The director: these nodes are to have the rank's images.
    Keep {
        /// The job.
        job: u64,
        /// The rank.
        rank: u32,
        /// The nodes, at most [`MAX_COPIES`](crate::MAX_COPIES).
        keepers: BTreeSet<NodeId>,
    },
    /// The node: the rank computes again.
    Computes {
        /// The job.
        job: u64,
        /// The rank.
        rank: u32,
        /// The start.
        start: u64,
        /// When what happened, by the node's clock.
        moments: Moments,
    },
    /// The node: so far its ranks are.
    Progress(Vec<Progress>),
    /// The node: the rank's process has ended, or could not begin.
    Ended {
        /// The job.
        job: u64,
        /// The rank.
        rank: u32,
        /// The start that has ended.
        start: u64,
        /// How.
        end: End,
        /// When, by the node's clock.
        at: Time,
    },
    /// The node: the rank has done its work, and waits, because others may need what it has sent. All
    /// ranks of a job that wait so, or have finished, finish together.
    Done {
        /// The job.
        job: u64,
        /// The rank.
        rank: u32,
        /// The start.
        start: u64,
        /// When, by the node's clock.
        at: Time,
    },
    /// The director: this life of a node is over, with all that runs there. What it holds counts
    /// again as soon as its next life says so.
    Gone {
        /// The node.
        node: Member,
    },
    /// The node: this image is whole on its disk.
    Commit {
        /// The image: its start is the one that saved it.
        place: Place,
        /// The root of its manifest.
        root: Root,
        /// The bytes of its parts.
        bytes: u64,
        /// How far the rank was.
        step: u64,
        /// The image on which it builds.
        parent: Option<Parent>,
        /// The node: the one that runs the rank.
        holder: Member,
        /// The rank has sent messages, or got some: others let go what older images would need.
        talks: bool,
        /// Its channels, of a job of at most [`MAX_GROUP`](crate::MAX_GROUP) ranks.
        counts: Vec<Counts>,
    },
    /// A node: a copy of this image is whole on its disk.
    Held {
        /// The image.
        place: Place,
        /// The root of its manifest.
        root: Root,
        /// The node.
        holder: Member,
    },
    /// A node: its copy is lost or damaged.
    Lost {
        /// The image.
        place: Place,
        /// The node.
        holder: Member,
    },
    /// The director: this image is needed no more.
    Retire {
        /// The image.
        place: Place,
    },
}

impl Command {
    /// The method of the group that takes commands.
    pub const METHOD: MethodId = MethodId::of("command");

    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a command is plain data")
    }

    /// Reads what was sent.
    ///
    /// # Errors
    /// It is no command of this version.
    pub fn decode(bytes: &[u8]) -> Result<Command, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}

/// The book's answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The book has it from this version on.
    pub version: u64,
    /// The job that it has made.
    pub job: Option<u64>,
}

/// Why a command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Void {
    /// The job is impossible.
    #[error("{0}")]
    Refused(Refusal),
    /// The name is taken.
    #[error("a job has this name already: forget it, or choose another name")]
    NameTaken,
    /// There is no room for more.
    #[error("there are as many jobs, ranks or images as there may be: forget a job that is over")]
    Full,
    /// There is no such job, rank or image.
    #[error("there is no such job, rank or image")]
    Unknown,
    /// The job or the rank is not in a state for this.
    #[error("the job is not in a state for this")]
    State,
    /// A start or a life of a node is meant that is over.
    #[error("the start, or the node's life, is over")]
    Stale,
    /// An image does not follow on the last one.
    #[error("the image does not follow on the rank's last one, or on one that is kept")]
    Order,
    /// An image is needed: for a state that may have to be restored.
    #[error("the image is needed")]
    Needed,
    /// A node tells too much of itself.
    #[error("what the node tells of itself is too long")]
    Host,
}
