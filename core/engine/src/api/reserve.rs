//! The events of reserved time, memory and disks. The I/O driver reports them; the engine's events
//! carry them on.

use alloc::string::String;

use wire::Duration;

/// How a reserve stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveNews {
    /// It is in force.
    InForce {
        /// The mechanism for its processor time.
        by: String,
    },
    /// The system does not permit it, or a part of it: the rest is in force.
    Degraded {
        /// The reason, and the remedy.
        why: String,
    },
    /// Its time was used up again and again, so more is asked for.
    Overran {
        /// Periods that used it up.
        overruns: u64,
        /// Processor time of each period from here on.
        runtime: Duration,
    },
    /// Its use has drifted, so another time is asked for.
    Changed {
        /// Processor time of each period from here on.
        runtime: Duration,
    },
    /// The host has no room for it.
    Refused {
        /// The reason, and the remedy.
        why: String,
    },
}
