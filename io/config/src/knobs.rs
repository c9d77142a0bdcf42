//! The tables of the configuration that have many knobs.

mod jobs;
mod manager;
mod registry;
mod ring;

pub use self::jobs::JobsKnobs;
pub use self::manager::ManagerKnobs;
pub use self::registry::RegistryKnobs;
pub(crate) use self::registry::Table as RegistryTable;
pub use self::ring::RingKnobs;
pub(crate) use self::ring::{TIMERS, Table as RingTable};
