//! A program that serves a replica in a process of its own, as its node sees it.

use os::realtime::Grant;
use serde::{Deserialize, Serialize};

/// How a program stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramState {
    /// It is started when its replica is primary, in a cold passive group.
    Standby,
    /// Its process runs and has not attached yet.
    Starting,
    /// It serves its replica.
    Attached,
    /// It has ended too often, and waits for its next start.
    BackingOff,
    /// It is on its way out.
    Stopping,
}

/// What a node knows of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// The group that it serves.
    pub group: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How it stands.
    pub state: ProgramState,
    /// Its replica has been in the group since it attached.
    pub joined: bool,
    /// Its process, if one runs.
    pub pid: Option<u32>,
    /// Milliseconds until its next start, if it waits for one.
    pub backing_off_ms: Option<u64>,
    /// Starts after the first one.
    pub restarts: u64,
    /// Ends in a row, without ten seconds of service between them. From five on: a crash loop.
    pub ends_in_a_row: u32,
    /// How its last process ended.
    pub last_exit: Option<String>,
    /// Lines of its output that the log has not taken.
    pub lines_dropped: u64,
    /// SCHED_FIFO priority by the rate of its calls, of its last start; 0: none.
    #[serde(default)]
    pub priority: u8,
    /// What became of that.
    #[serde(default)]
    pub priority_grant: Grant,
}
