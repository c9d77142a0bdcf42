//! `[[program]]`: a program that serves a replica in a process of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wire::limits::MAX_NAME;
use wire::ordered::GroupOptions;

/// A program that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramProblem {
    /// A group's name is empty or too long.
    #[error("the group's name has {0} bytes: give it 1 to {MAX_NAME}")]
    Name(usize),
    /// The name is the system's own.
    #[error(
        "groups whose names begin with \"steadfast.\" are the system's own: give \"{0}\" another name"
    )]
    System(String),
    /// Nothing to start.
    #[error("no program is named: give its path, and its arguments after it")]
    NoCommand,
}

/// A program that serves a replica: what is started, and for which group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramConfig {
    /// The group's name, and so the program's: a node has at most one replica of a group.
    pub group: String,
    /// The program and its arguments. A path with a slash is relative to `folder`; a name without
    /// one is looked for where the node's `PATH` says.
    pub command: Vec<String>,
    /// Where it runs; without it, where the node does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Added to the node's own environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Options on which all replicas of the group must agree.
    #[serde(default)]
    pub options: GroupOptions,
}

impl ProgramConfig {
    /// Checks what no start is needed for.
    ///
    /// # Errors
    /// The impossible setting, and the remedy.
    pub fn check(&self) -> Result<(), ProgramProblem> {
        if !(1..=MAX_NAME).contains(&self.group.len()) {
            return Err(ProgramProblem::Name(self.group.len()));
        }
        if wire::system::is_system(&self.group) {
            return Err(ProgramProblem::System(self.group.clone()));
        }
        if self.command.first().is_none_or(String::is_empty) {
            return Err(ProgramProblem::NoCommand);
        }
        Ok(())
    }
}
