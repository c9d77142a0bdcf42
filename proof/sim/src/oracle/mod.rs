//! What must come out, worked out a second time and so plainly that it can be seen to be right.
//!
//! - `service`: the replies of the simulated service
//! - `sequencer`: what a ring may deliver
//! - `log`: what a store must bring back

pub mod log;
pub mod sequencer;
pub mod service;
