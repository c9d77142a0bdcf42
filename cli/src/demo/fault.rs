//! A fault that the conductor makes.

use serde::Serialize;

/// A fault of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// SIGKILL, and a new process later.
    Kill,
    /// SIGSTOP, and SIGCONT later.
    Stop,
}

impl Means {
    /// The words for people.
    pub fn name(self) -> &'static str {
        match self {
            Means::Kill => "kill -9",
            Means::Stop => "kill -STOP",
        }
    }
}

/// The role that the node had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The primary's.
    Primary,
    /// Another replica's.
    Backup,
}

impl Role {
    /// The words for people.
    pub fn name(self) -> &'static str {
        match self {
            Role::Primary => "primary",
            Role::Backup => "backup",
        }
    }
}

/// A fault that the conductor made, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The fault.
    pub means: Means,
    /// To whom.
    pub role: Role,
    /// To which node.
    pub node: u32,
    /// When.
    pub at: u64,
    /// When the kernel had ended the process, if it was killed.
    pub dead: Option<u64>,
    /// When it was undone.
    pub undone: u64,
    /// When the conductor saw that all nodes were back and all replicas had the state.
    pub back: Option<u64>,
}
