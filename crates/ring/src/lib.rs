//! The Totem single ring as a pure machine.
//!
//! Messages, time and verbs go in; [`Output`]s come out of one ordered queue. Nothing here reads a
//! clock, opens a socket or spawns a thread. What the machine does and why is in
//! `docs/protocol/ring.md`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod output;

pub use config::{Config, ConfigError, Timing};
pub use output::{Configuration, ConfigurationKind, Delivery, Event, Output};
