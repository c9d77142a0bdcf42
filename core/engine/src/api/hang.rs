//! When a replica's service is hung.

use wire::Duration;

/// When a service counts as hung: it has missed `misses` deadlines in a row.
///
/// A handler misses a deadline when it has run for `within` and its caller's deadline has passed.
/// It misses another one after each further `within`. An execution in time ends the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HangRule {
    /// A handler that has run for less time misses no deadline.
    pub within: Duration,
    /// Missed deadlines in a row; 0: no service counts as hung.
    pub misses: u32,
}

impl Default for HangRule {
    /// Three deadlines of at least one second each.
    fn default() -> Self {
        HangRule { within: Duration::from_secs(1), misses: 3 }
    }
}
