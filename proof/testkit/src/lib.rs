//! The foundation of machines' tests: virtual time; a network with faults; hosts that crash, are
//! stopped and read slowly, all from one seed; and golden traces of the events.
//!
//! A test's cluster implements [`Simulation`] over a [`World`] of its own [`Machine`]s. The
//! simulator takes the parts alone: [`queue`], [`network`] and [`draw`].
#![forbid(unsafe_code)]

pub mod draw;
pub mod network;
pub mod queue;
mod simulation;
mod trace;
mod world;

pub use draw::Draw;
pub use network::{Network, Place, Weather};
pub use queue::Queue;
pub use simulation::Simulation;
pub use trace::Trace;
pub use world::{Machine, Step, World};
