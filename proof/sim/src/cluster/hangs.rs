//! Services that hang: for good, until another takes their place, or for the time of one call.

mod in_cluster;

use engine::HangRule;
use wire::Duration;

/// When a service is hung in worlds where some hang.
pub const RULE: HangRule = HangRule { within: Duration::from_millis(50), misses: 3 };

/// One that executes a call for so long misses one deadline, or none.
const STALL: Duration = Duration::from_millis(75);

/// If a node's messages wait for the ring, its missing report is looked for again after this time.
const AGAIN: Duration = Duration::from_millis(20);
