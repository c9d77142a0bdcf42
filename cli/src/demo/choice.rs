//! The choice of a backup where a host has something else to do.

use serde::Serialize;

/// Each node's share of a processor, in percent. The nodes share one host, whose load would look
/// alike to all of them.
pub const PART: u64 = 100;

/// The backup that was to take over, and the one chosen since its host has something else to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The node that does something else.
    pub busy: u32,
    /// The use there, in percent of the node's part of its host.
    pub used_percent: u64,
    /// The backups' nodes before that, the first target first.
    pub before: Vec<u32>,
    /// And since then.
    pub after: Vec<u32>,
    /// Milliseconds until the list was another.
    pub took_ms: u64,
}
