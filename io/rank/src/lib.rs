//! A rank of a job: memory that checkpoints save (`star.txt`, section 3), and what of it has
//! changed since the last one.
//!
//! - [`Job`]: what a program uses: arrays, loops that go on, results, and its agent.
//! - [`Arena`]: named arrays in one shared memory file.
//! - [`Tracker`]: which pages have changed. The kernel tells, where it can; else the pages are
//!   compared with a copy. What is in force is found by trial, and said.
//! - [`Staging`]: a copy of what has changed, for which alone the program waits.
//!
//! Unsafe code is in `mapping` (memory that the kernel maps) and `tracker/written` (what the kernel
//! tells of it), and nowhere else.
#![deny(unsafe_code)]

mod agent;
mod arena;
mod cadence;
mod error;
mod job;
mod journal;
mod link;
mod mapping;
mod messages;
mod output;
mod output_ring;
mod staging;
mod stretch;
mod tracker;
mod turns;

pub use arena::Arena;
pub use channel::{ChannelError, OWN_TAGS};
pub use error::JobError;
pub use job::{Job, RESULT};
pub use messages::Message;
pub use staging::{Bytes, Extra, Staging};
pub use stretch::Stretch;
pub use tracker::{Kind, Tracker};
