//! The expected results, computed a second time and so simply that they are evidently right.
//!
//! - `service`: the replies of the simulated service
//! - `sequencer`: the deliveries that a ring may make
//! - `log`: the data that a store must bring back

pub mod log;
pub mod sequencer;
pub mod service;
