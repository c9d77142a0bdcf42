//! Whole clusters in virtual time from one seed.
//!
//! How to run it, how to read a failure and how to add a checker: `docs/simulator.md`.
#![forbid(unsafe_code)]

pub mod campaign;
mod celled;
pub mod channels;
pub mod check;
pub mod clock;
pub mod cluster;
pub mod customers;
pub mod disk;
pub mod draft;
pub mod executor;
pub mod explore;
pub mod fabric;
pub mod faults;
pub mod forest;
mod identity;
pub mod interruptions;
pub mod jobs;
pub mod links;
pub mod options;
pub mod oracle;
mod outcome;
pub mod outsider;
mod panics;
mod plant;
pub mod plants;
pub mod process;
pub mod promise;
pub mod registers;
pub mod rings;
pub mod run;
pub mod service;
pub mod stores;
pub mod streams;
pub mod strike;
pub mod systems;
pub mod trace;
pub mod trial;
pub mod watch;
mod wires;

pub use testkit::{draw, network, queue};
