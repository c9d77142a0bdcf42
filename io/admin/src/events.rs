//! What happens in a node, as people and tools read it.

mod conversion;
mod record;
mod teller;

use engine::Event;

pub use record::{DeviationCause, EventKind, EventRecord, FaultCause, ReplicaRecord};
pub use teller::Teller;

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
