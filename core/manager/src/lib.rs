//! The manager's decisions, as pure functions of its knowledge (`flare.txt`, section 3). It decides
//! where clients go when a host is lost. It decides which primaries move when a host has more to do
//! than it can do in time.
//!
//! - [`flare`]: the ranking of the paper, Algorithm 1, as it stands there.
//! - [`ranking`]: the one that is used: no loss of a host, and of a pair where there is room,
//!   overloads another.
//! - [`relief`]: primaries leave a host that has too much to do.
//! - `shedding`: where no move helps, calls are refused there, the least critical first.
//! - [`Manager`], a machine: looks at the whole picture, and returns proposals
//! - [`cluster_state`]: deployments and drains that people requested, and where replicas are to be
//!   (`docs/protocol/deployment.md`)
//! - [`placement`]: which of the cluster state's placements are to change
//!
//! All is exact arithmetic in an order that depends on nothing but the input: every replica of the
//! manager decides alike.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bug;
pub mod cluster;
pub mod cluster_state;
pub mod flare;
mod manager;
mod picture;
pub mod placement;
pub mod ranking;
pub mod relief;
mod shedding;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use manager::{Config, LEAST_MOVED, Manager, Proposal};
pub use picture::{Picture, Shape};
