//! A rank of a job: memory that checkpoints save (`star.txt`, section 3), and what of it has
//! changed since the last one.
//!
//! - [`Arena`]: named arrays in one shared memory file, which outlives the process if another one
//!   keeps the file.
//! - [`Tracker`]: which pages have changed. The kernel tells, where it can; else the pages are
//!   compared with a copy. What is in force is found by trial, and said.
//! - [`Snapshot`]: a copy of what has changed, for which alone the program waits.
//! - [`Saver`]: writes it as an image to a folder; [`restore`] reads images back, verified.
//!
//! Unsafe code is in `mapping` (memory that the kernel maps) and `tracker/written` (what the kernel
//! tells of it), and nowhere else.
#![deny(unsafe_code)]

mod arena;
mod mapping;
mod saver;
mod snapshot;
mod stretch;
mod tracker;

pub use arena::Arena;
pub use saver::{Commit, RestoreError, Saver, restore};
pub use snapshot::Snapshot;
pub use stretch::Stretch;
pub use tracker::{Kind, Tracker};
