//! The events of a program that serves a replica in a separate process. The I/O driver reports
//! them; the engine's events carry them on.

use alloc::string::String;

use wire::Duration;

use super::Ticket;

/// The commands that a lost service may have begun to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Possibly all that it received.
    Any,
    /// Only commands before this one.
    Before(Ticket),
    /// None: its program never attached.
    Nothing,
}

/// An event of a program.
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
    /// A process has ended, or could not be started.
    Ended {
        /// The process; 0 if it could not be started.
        pid: u32,
        /// How it ended: exit code, signal or error.
        how: String,
    },
    /// It has ended several times in a row.
    CrashLoop {
        /// Ends in a row.
        ends: u32,
        /// The delay of its next start.
        wait: Duration,
    },
    /// Its crash loop is over.
    Recovered,
    /// It was stopped, and is not started again.
    Stopped,
}
