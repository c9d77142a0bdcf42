//! Commands: changes of the book.

use image::{Parent, Place, Root};
use serde::{Deserialize, Serialize};
use wire::Member;

use crate::{Refusal, Spec};

/// A change of the book. A rank is named by its job's number and its own, from 0.
///
/// A node says each thing once, and in order (its session with the group). Other commands may come
/// late, or a second time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The node: the rank's process has ended, or could not begin.
    Ended {
        /// The job.
        job: u64,
        /// The rank.
        rank: u32,
        /// The start that has ended.
        start: u64,
        /// It has finished its work.
        finished: bool,
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
        /// The image on which it builds.
        parent: Option<Parent>,
        /// The node: the one that runs the rank.
        holder: Member,
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

/// Why a command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
}
