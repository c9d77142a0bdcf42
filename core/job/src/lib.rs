//! The cluster's book of jobs (`star.txt`, section 2: recovery server and allocation).
//!
//! A job is a program that runs as so many ranks until all have ended. The book is one ordered
//! history of [`Command`]s, the same at every node: which start of a rank is the present one, where
//! it runs, and which images of it may be restored.
//!
//! - [`Jobs`]: the book.
//! - [`Command`]: what may be said, and by whom.
//! - [`Void`]: why a command changes nothing. Late words are void by their numbers: a start that is
//!   over commits no image, and a node's life that is over holds none.
//! - [`Catalogue`]: one rank's images, of which two are kept that can be restored.
//! - [`Director`]: where the group has its primary: says what is to start where, and what may go.
//! - [`Assignment`]: what the book wants of one node.
//! - [`Agent`]: a node's part: has ranks run, commits their images, and keeps what is needed.
//!
//! All is decided by the commands and by time that is given, without a clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod agent;
mod assignment;
mod bug;
mod catalogue;
mod command;
mod director;
mod host;
mod jobs;
mod key;
mod moving;
mod progress;
mod rank;
mod regroup;
mod seats;
mod sight;
mod spec;

pub use agent::{Agent, Output, Word};
pub use assignment::{Assignment, Kept, Task};
#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use catalogue::{Catalogue, Generation};
pub use command::{Command, Taken, Void};
pub use director::Director;
pub use host::Host;
pub use jobs::{Job, JobState, Jobs};
pub use key::Key;
pub use moving::Move;
pub use progress::{End, Moments, Progress, Recovery, Why};
pub use rank::{Rank, RankState};
pub use sight::Sight;
pub use spec::{Log, NoLog, Refusal, Rollback, Spec};

/// The most jobs of a cluster.
pub const MAX_JOBS: usize = 64;

/// The most ranks of a cluster's jobs together.
pub const MAX_RANKS: u32 = 1_024;

/// The most copies of an image.
pub const MAX_COPIES: u8 = 4;

/// The most images of a rank. Two states need sixteen; more are there only while holders are lost.
pub const MAX_IMAGES: usize = 32;

/// The most ranks of a job of which the book has the channels of each image.
pub const MAX_GROUP: u32 = 64;

/// The most messages of a channel that wait for a disk behind their receiver.
pub const MAX_TRANSIT: u32 = 65_536;

/// Images that can be restored, and are kept of each rank.
pub const KEPT: usize = 2;

/// The most bytes of a job's command, folder and environment together.
pub const MAX_COMMAND: usize = 32 << 10;

/// The most bytes of a host's processor, as its agent names it.
pub const MAX_PROCESSOR: usize = 512;

/// The most labels of a job, and of a host.
pub const MAX_LABELS: usize = 16;

/// Starts of a rank that end by a signal, one after the other without progress, until its job is
/// stopped.
pub const MAX_KILLED: u32 = 10;

/// Starts that end by themselves with an error, one after the other without progress, until the job
/// is stopped: it is the program's fault, and a further try changes nothing.
pub const MAX_FAILED: u32 = 3;

/// Recoveries of a rank that are remembered.
pub const MAX_RECOVERIES: usize = 4;

/// Forgotten jobs that are remembered, so that agents remove their images. Images of jobs of which the
/// book knows nothing stay.
pub const MAX_FORGOTTEN: usize = 256;
