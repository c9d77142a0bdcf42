//! The events of a node, as people and tools read them.

mod formatter;
mod known;
mod log;
mod parts;
mod record;
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod words;

use engine::Event;

pub use formatter::EventFormatter;
pub use log::Log;
pub use parts::{DeviationCause, FaultCause, ReplicaRecord};
pub use record::EventRecord;
pub use table::EventKind;
pub(crate) use words::unfit;

/// An event with the wall clock's nanoseconds since the Unix epoch when it left the stack.
pub type Stamped = (u64, Event);

/// Which events a subscriber wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interest {
    /// All.
    All,
    /// All but those that every call makes (`Executed`, `Replied`, `Copy`).
    #[default]
    Membership,
}
