//! The expected results, computed a second time and so simply that they are evidently right.
//!
//! - `service`: the replies of the simulated service
//! - `sequencer`: what a ring may deliver
//! - `log`: what a store must bring back

pub mod log;
pub mod sequencer;
pub mod service;
