//! A node's configuration: every knob, its default, and what values are possible.
//!
//! - [`Config`] has all knobs, [`DEFAULT_CONFIG`] explains them.
//! - `file.rs` reads and prints the file; `place.rs` finds the line of a [`Problem`].
//! - `check.rs` has the rules, [`Problem`] their remedies.
//! - [`founder`] says that a cluster is new.
//! - [`key_file`] keeps the cluster's keys.
#![forbid(unsafe_code)]

mod check;
mod config;
mod error;
mod file;
mod folders;
pub mod founder;
pub mod key_file;
mod knobs;
mod nodes;
mod place;
mod program;
mod reload;
mod replica;
mod rights;
mod ring_addresses;
mod security;
mod spans;
mod system;
#[cfg(test)]
mod tests;

pub use crate::config::Config;
pub use error::{ConfigError, Problem};
pub use folders::Folders;
pub use knobs::{JobsKnobs, ManagerKnobs, RegistryKnobs, RingKnobs};
pub use nodes::{NodeAddress, check_comer};
pub use program::{ProgramConfig, ProgramProblem};
pub use replica::{Execution, ReplicaConfig};
pub use rights::{Others, Rights, Rule};
pub use ring_addresses::RingAddresses;
pub use security::{Security, TlsFiles};
pub use system::{Overlay, System, SystemProblem};

/// The commented manual of all knobs, with their defaults: itself a valid configuration.
pub const DEFAULT_CONFIG: &str = include_str!("default.toml");

/// A page of it: the knobs that people change, with the same defaults.
pub const SHORT_CONFIG: &str = include_str!("short.toml");
