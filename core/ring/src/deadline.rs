//! When the next thing is due.

use wire::Time;

/// The earlier of two times that may come. Called after every step of the machine.
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, None) => a,
        (None, b) => b,
    }
}
