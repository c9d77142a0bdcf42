//! The common parts of experiments with real processes on one machine: clusters and hosts, clients
//! and their records, faults, figures, tables and charts. It knows no experiment: programs hand it
//! a list of theirs.
//!
//! The processes of an experiment are the same program once more, started with a hidden command, so
//! that one binary is all it takes. They end with the one that started them.

pub mod allocator;
pub mod background;
pub mod caller;
pub mod chart;
pub mod child;
pub mod cluster;
pub mod daemon;
pub mod echo;
pub mod experiment;
pub mod figures;
pub mod floor;
pub mod grpc;
pub mod hog;
pub mod hosts;
pub mod jobs;
pub mod laden;
pub mod lateness;
pub mod machine;
pub mod namespaces;
pub mod objects;
pub mod orders;
pub mod process;
mod program;
pub mod protect;
pub mod quota;
pub mod report;
pub mod sites;
mod smoke;
pub mod styles;
pub mod system;
pub mod usage;
pub mod wait;
pub mod wires;
pub mod work;

pub use experiment::{Entry, Experiment};
pub use program::main;
pub use report::{Findings, Run, Table};

use std::error::Error;

use clap::ValueEnum;

/// How experiments fail: told to a person, and the run ends.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// A value as it is spelt on the command line.
pub fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Ends the run, or the part of it, with these words.
#[macro_export]
macro_rules! bail {
    ($($words:tt)*) => { return Err(format!($($words)*).into()) };
}

/// Ends it with these words unless this holds.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $($words:tt)*) => { if !($holds) { $crate::bail!($($words)*) } };
}
