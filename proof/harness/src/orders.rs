//! The orders of processes that jobs need.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// An agent's place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The node's admin socket.
    pub admin: PathBuf,
    /// The folder of images.
    pub folder: PathBuf,
    /// The folder of the ranks' socket and of records.
    pub runtime: PathBuf,
    /// The label of its host.
    pub label: String,
}

/// When a rank changes its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Changes {
    /// In each turn, others than in the last.
    EachTurn,
    /// Once after each checkpoint, spread over all: so many are dirty at the next one.
    AfterSave,
}

/// The orders of a rank that changes its memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Its memory.
    pub bytes: u64,
    /// Percent of the pages that it changes at a time.
    pub dirty: u64,
    /// When.
    pub changes: Changes,
    /// Iterations of the sum that a turn computes.
    pub work: u64,
    /// Microseconds that a turn sleeps.
    pub pause_us: u64,
    /// Its turns.
    pub turns: u64,
    /// It says when each turn has ended.
    pub trace: bool,
}
