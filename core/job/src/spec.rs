//! A job as a user submits it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use wire::Duration;
use wire::limits::MAX_NAME;
use wire::rank::Every;

use crate::{MAX_COMMAND, MAX_COPIES, MAX_GROUP, MAX_LABELS, MAX_RANKS, MAX_TRANSIT};

/// A job, as it is submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name, unique among the cluster's jobs.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder in which it runs.
    pub folder: String,
    /// Variables of its environment, beside the agent's own.
    pub environment: Vec<(String, String)>,
    /// Its ranks.
    pub ranks: u32,
    /// Copies of each image, on so many nodes.
    pub copies: u8,
    /// When a rank saves.
    pub every: Every,
    /// Each image is a full one.
    pub full: bool,
    /// A rank waits until its image is saved.
    pub blocking: bool,
    /// Labels that a node must have, as `key=value`.
    pub labels: Vec<String>,
    /// Bytes of memory that a rank needs.
    pub memory: u64,
    /// Its ranks may go on at hosts with other processors than those where the first began.
    pub any_processor: bool,
    /// The SHA-256 of its program: a host with another one does not run it. `None`: any will do.
    pub program: Option<[u8; 32]>,
    /// How the job goes on after the loss of a rank.
    pub recovery: Rollback,
    /// Where messages are kept.
    pub log: Log,
    /// How long a rank may reach no safe point before it is ended and started again, a second at least.
    /// Zero: for ever.
    pub stall: Duration,
}

/// How a job goes on after the loss of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rollback {
    /// Only the rank that was lost goes back, by message logs. Where that cannot be, all go back to
    /// states that fit together; if there are none, the job stops.
    #[default]
    Log,
    /// The same; and such states are always there: ranks save at the same turns, and keep them.
    Group,
}

/// Where messages between ranks are kept for a rank that goes back, beside their sender's memory and
/// images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Log {
    /// Nowhere: a sender that is lost sends them once more.
    #[default]
    Sender,
    /// On disks, in the background: when so many messages of a channel are not there yet. At twice as
    /// many, the sender waits.
    Optimistic(u32),
    /// On disks, before the receiver has them.
    Pessimistic,
}

impl fmt::Display for Log {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Log::Sender => to.write_str("sender"),
            Log::Optimistic(transit) => write!(to, "optimistic:{transit}"),
            Log::Pessimistic => to.write_str("pessimistic"),
        }
    }
}

impl FromStr for Log {
    type Err = NoLog;

    fn from_str(text: &str) -> Result<Log, NoLog> {
        match (text, text.strip_prefix("optimistic:").map(str::parse)) {
            ("sender", _) => Ok(Log::Sender),
            ("pessimistic", _) => Ok(Log::Pessimistic),
            (_, Some(Ok(transit))) => Ok(Log::Optimistic(transit)),
            _ => Err(NoLog),
        }
    }
}

/// A text names no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write sender, pessimistic, or optimistic:128, with a number of messages")]
pub struct NoLog;

/// Why a job cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// The name is none.
    #[error("the name of a job has 1 to {MAX_NAME} bytes and no slash, this one has {0} bytes")]
    Name(usize),
    /// There is nothing to run.
    #[error("the job has no program: give the command behind --")]
    NoCommand,
    /// Command and environment are too long.
    #[error(
        "command, folder and environment have {0} bytes, and may have {MAX_COMMAND}: put what is \
         long into a file"
    )]
    Command(usize),
    /// Too many labels, or a long one.
    #[error("a job has at most {MAX_LABELS} labels, of at most {MAX_NAME} bytes each")]
    Labels,
    /// Too many ranks, or none.
    #[error("a job has 1 to {MAX_RANKS} ranks, not {0}")]
    Ranks(u32),
    /// A rank says once in 100 ms that it was at a safe point.
    #[error("a rank may reach no safe point for 1 s or more (--stall), not for {0:?}")]
    Stall(Duration),
    /// Ranks that all go back have to save at the same turns.
    #[error(
        "ranks that all go back save at the same turns: say at which, as --every 50turns, and have at \
         most {MAX_GROUP} ranks"
    )]
    Group,
    /// A sender cannot wait for a disk before it has sent something.
    #[error("an optimistic log saves after 1 to {MAX_TRANSIT} messages, not after {0}")]
    Transit(u32),
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
        if !(1..=MAX_NAME).contains(&self.name.len()) || self.name.contains('/') {
            return Err(Refusal::Name(self.name.len()));
        }
        if self.command.is_empty() {
            return Err(Refusal::NoCommand);
        }
        let words = self.command.iter().map(String::len).sum::<usize>() + self.folder.len();
        let variables = self.environment.iter().map(|(name, value)| name.len() + value.len());
        let bytes = words + variables.sum::<usize>() + self.command.len() + self.environment.len();
        if bytes > MAX_COMMAND {
            return Err(Refusal::Command(bytes));
        }
        let long = |label: &String| label.len() > MAX_NAME;
        if self.labels.len() > MAX_LABELS || self.labels.iter().any(long) {
            return Err(Refusal::Labels);
        }
        if !(1..=MAX_RANKS).contains(&self.ranks) {
            return Err(Refusal::Ranks(self.ranks));
        }
        if !(1..=MAX_COPIES).contains(&self.copies) {
            return Err(Refusal::Copies(self.copies));
        }
        let group = matches!(self.every, Every::Turns(_)) && self.ranks <= MAX_GROUP;
        if self.recovery == Rollback::Group && !group {
            return Err(Refusal::Group);
        }
        if let Log::Optimistic(transit) = self.log
            && !(1..=MAX_TRANSIT).contains(&transit)
        {
            return Err(Refusal::Transit(transit));
        }
        if !self.stall.is_zero() && self.stall < Duration::from_secs(1) {
            return Err(Refusal::Stall(self.stall));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_written_and_read() {
        for log in [Log::Sender, Log::Optimistic(128), Log::Pessimistic] {
            assert_eq!(alloc::format!("{log}").parse(), Ok(log));
        }
        for wrong in ["optimistic", "optimistic:many", "none", ""] {
            assert_eq!(wrong.parse::<Log>(), Err(NoLog), "{wrong}");
        }
    }
}
