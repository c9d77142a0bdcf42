//! What happens to a program that serves a replica in a process of its own. the driver knows it; it is told in
//! the one stream of events.

use alloc::string::String;

use wire::Duration;

use super::Ticket;

/// What a service that was lost had begun of the calls that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Any of them, for all that is known.
    Any,
    /// Nothing from this command on.
    Before(Ticket),
    /// Nothing: its program never came.
    Nothing,
}

/// What happened to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramNews {
    /// A process was started.
    Started {
        /// The process.
        pid: u32,
    },
    /// It has attached, and serves the replica.
    Attached {
        /// The process.
        pid: u32,
    },
    /// A process has ended, or could not be started (then it has no number: 0).
    Ended {
        /// The process.
        pid: u32,
        /// How, in words.
        how: String,
    },
    /// It has ended again and again.
    CrashLoop {
        /// How often in a row.
        ends: u32,
        /// How long its next start waits.
        wait: Duration,
    },
    /// It was in a crash loop, and serves well again.
    Recovered,
    /// It was stopped, and is not started any more.
    Stopped,
}
