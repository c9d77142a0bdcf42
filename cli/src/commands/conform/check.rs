//! A check of the protocol, and the program that is tried.

use std::time::Duration;

use super::plan::{Call, Plan};
use super::process::Surroundings;
use super::session::{Session, Start};
use super::verdict::Flaw;

/// One promise of the protocol.
pub struct Check {
    /// Its name for `--only`.
    pub name: &'static str,
    /// The promise, in words.
    pub promise: &'static str,
    /// The section of docs/protocol/attach.md that has the rule.
    pub section: &'static str,
    pub run: fn(&Trial) -> Result<(), Flaw>,
}

/// Variables of a usual start.
const USUAL: Surroundings = &[];

/// The program, and the calls that are made.
pub struct Trial {
    pub command: Vec<String>,
    /// The longest time for each answer.
    pub wait: Duration,
    pub plan: Plan,
}

impl Trial {
    /// A usual start.
    pub fn start(&self) -> Start<'_> {
        Start {
            command: &self.command,
            wait: self.wait,
            surroundings: USUAL,
            ordered: true,
            extension: b"",
        }
    }

    /// A call that every program answers, if only by a refusal.
    pub fn any_call(&self) -> Call {
        self.plan.calls.first().cloned().unwrap_or_else(Call::describe)
    }

    /// The program, started and let in as usual.
    pub fn session(&self) -> Result<Session, Flaw> {
        Session::open(self.start())
    }
}
