//! The orders of this experiment's own processes.

use harness::Outcome;
use harness::process::Role;
use serde::{Deserialize, Serialize};

use super::applications::Application;
use super::arena::Arena;
use super::sending::Sending;

/// The experiment's name.
pub const EXPERIMENT: &str = "star";

/// The orders of a process of this experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Orders {
    /// A rank of an application.
    Run(Application),
    /// A rank that sends, or answers.
    Send(Sending),
    /// A process with memory.
    Hold(Arena),
}

impl Orders {
    /// The process.
    pub fn role(&self) -> Outcome<Role> {
        Role::own(EXPERIMENT, self)
    }

    /// Its life.
    pub fn live(self) -> Outcome<()> {
        match self {
            Orders::Run(application) => application.live(),
            Orders::Send(sending) => sending.live(),
            Orders::Hold(arena) => arena.live(),
        }
    }
}
