//! Jobs on a cluster of this machine: an agent beside each node, ranks, and the book as nodes tell
//! it.
//!
//! - [`Scene`]: the processes, and the way to the book.
//! - [`Memory`]: a rank that changes its memory; what any rank of an experiment says ([`Said`]).
//! - [`Saving`]: one checkpoint after the other, each when it is asked for.
//! - [`Ran`]: a job from its beginning to its end, and what that has cost.

mod memory;
mod ran;
mod saving;
mod scene;

pub use crate::orders::{Changes, Memory};
pub use memory::{Said, Turns, change_spread, per_millisecond};
pub use ran::Ran;
pub use saving::{Checkpoint, Kind, Saving};
pub use scene::Scene;
