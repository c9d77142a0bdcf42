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
//!
//! All is decided by the commands alone, without a clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bug;
mod catalogue;
mod command;
mod jobs;
mod spec;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use catalogue::{Catalogue, Generation};
pub use command::{Command, Void};
pub use jobs::{Job, JobState, Jobs, Rank, RankState};
pub use spec::{Refusal, Spec};

/// The most jobs of a cluster.
pub const MAX_JOBS: usize = 64;

/// The most ranks of a cluster's jobs together.
pub const MAX_RANKS: u32 = 1_024;

/// The most copies of an image.
pub const MAX_COPIES: u8 = 4;

/// The most images of a rank. Two states need sixteen; more are there only while holders are lost.
pub const MAX_IMAGES: usize = 64;

/// Images that can be restored, and are kept of each rank.
pub const KEPT: usize = 2;
