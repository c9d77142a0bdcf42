//! The status of a program that serves a replica in a separate process.

use os::realtime::Grant;
use serde::{Deserialize, Serialize};

/// The state of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramState {
    /// It starts when its replica of a cold passive group becomes primary.
    Standby,
    /// Its process runs, and has not attached yet.
    Starting,
    /// It serves its replica.
    Attached,
    /// It has ended too often, and its next start is delayed.
    BackingOff,
    /// Its process is being stopped.
    Stopping,
}

/// A node's view of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// The group that it serves.
    pub group: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its state.
    pub state: ProgramState,
    /// Its replica has joined the group since it attached.
    pub joined: bool,
    /// Its process, if one runs.
    pub pid: Option<u32>,
    /// Milliseconds until its next start, if that is delayed.
    pub backing_off_ms: Option<u64>,
    /// Starts after the first one.
    pub restarts: u64,
    /// Ends in a row, with less than ten seconds of service between them. Five are a crash loop.
    pub ends_in_a_row: u32,
    /// How its last process ended.
    pub last_exit: Option<String>,
    /// Lines of its output that the log has dropped.
    pub lines_dropped: u64,
    /// The SCHED_FIFO priority of its last start, by the rate of its calls; 0: none.
    #[serde(default)]
    pub priority: u8,
    /// Whether the system granted the priority.
    #[serde(default)]
    pub priority_grant: Grant,
}
