//! A job as a user submits it.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::limits::MAX_NAME;

use crate::{MAX_COPIES, MAX_RANKS};

/// A job, as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name, unique among the cluster's jobs.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its ranks.
    pub ranks: u32,
    /// Copies of each image, on so many nodes.
    pub copies: u8,
    /// Labels that a node must have, as `key=value`.
    pub labels: Vec<String>,
    /// Bytes of memory that a rank needs.
    pub memory: u64,
}

/// Why a job cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name is none.
    #[error("the name of a job has 1 to {MAX_NAME} bytes, this one has {0}")]
    Name(usize),
    /// There is nothing to run.
    #[error("the job has no program: give the command behind --")]
    NoCommand,
    /// Too many ranks, or none.
    #[error("a job has 1 to {MAX_RANKS} ranks, not {0}")]
    Ranks(u32),
    /// Too many copies, or none.
    #[error("an image has 1 to {MAX_COPIES} copies, not {0}")]
    Copies(u8),
}

impl Spec {
    /// Whether such a job can be.
    ///
    /// # Errors
    /// It cannot: the reason, and the remedy.
    pub fn check(&self) -> Result<(), Refusal> {
        if !(1..=MAX_NAME).contains(&self.name.len()) {
            return Err(Refusal::Name(self.name.len()));
        }
        if self.command.is_empty() {
            return Err(Refusal::NoCommand);
        }
        if !(1..=MAX_RANKS).contains(&self.ranks) {
            return Err(Refusal::Ranks(self.ranks));
        }
        if !(1..=MAX_COPIES).contains(&self.copies) {
            return Err(Refusal::Copies(self.copies));
        }
        Ok(())
    }
}
