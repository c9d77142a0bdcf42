//! Messages between the demo's processes: one JSON object per line on their pipes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// From the conductor to a process, on its standard input. Its end means: exit at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Clients begin their traffic at this moment: nanoseconds since the Unix epoch.
    Go(u64),
    /// A node does something beside that takes so many percent of a processor.
    Work(u64),
    /// A node stops in order: it hands over, leaves the ring and exits.
    Stop,
}

/// From a process to the conductor, on its standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tale {
    /// A node serves clients at this address; clients are connected.
    Ready(Option<SocketAddr>),
    /// Calls so far.
    Progress(Progress),
    /// All calls are settled and written down.
    Done,
    /// It cannot go on.
    Failed(String),
}

/// Calls of a client process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Sent.
    pub sent: u64,
    /// Answered.
    pub acknowledged: u64,
    /// Given up.
    pub failed: u64,
}
