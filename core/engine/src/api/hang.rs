//! When a replica's service is hung.

use wire::Duration;

/// When a service counts as hung: it has missed so many deadlines in a row. A deadline is missed when a handler still runs though its
/// caller can be answered no more in time, and it has run for `within`; and again after each further `within`. What it executes in time
/// ends the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HangRule {
    /// No handler misses a deadline before it has run for so long.
    pub within: Duration,
    /// Deadlines in a row; 0: no service counts as hung.
    pub misses: u32,
}

impl Default for HangRule {
    /// Three deadlines, a second each at least.
    fn default() -> Self {
        HangRule { within: Duration::from_secs(1), misses: 3 }
    }
}
