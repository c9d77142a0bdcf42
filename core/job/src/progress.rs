//! How a rank fares, for people.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use wire::rank::Step;
use wire::{Member, Time};

/// How a rank's process has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It has done its work.
    Finished,
    /// By itself, with this exit status.
    Failed(i32),
    /// By this signal.
    Killed(i32),
    /// Its image was damaged: it is to begin with another one.
    Damaged,
    /// It reached no safe point for as long as its job allows, and was ended.
    Stalled,
    /// It could not begin: the reason.
    NotStarted(String),
    /// It could not go on from what it and others had done, or what it needed was lost: the reason.
    Diverged(String),
}

impl core::fmt::Display for End {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            End::Finished => f.write_str("it has finished"),
            End::Failed(status) => write!(f, "it ended with exit status {status}"),
            End::Killed(signal) => write!(f, "it was ended by signal {signal}"),
            End::Damaged => f.write_str("its image was damaged"),
            End::Stalled => f.write_str("it reached no safe point for too long, and was ended"),
            End::NotStarted(why) => write!(f, "it could not be started: {why}"),
            End::Diverged(why) => write!(f, "it diverged: {why}"),
        }
    }
}

/// How far a rank is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The job.
    pub job: u64,
    /// The rank.
    pub rank: u32,
    /// The start.
    pub start: u64,
    /// Its turns.
    pub step: Step,
    /// Turns in 1,000 seconds.
    pub rate: u64,
    /// Microseconds for which the last checkpoint has stopped it.
    pub stop_us: u32,
    /// Microseconds until that checkpoint was whole.
    pub save_us: u32,
    /// When that was, by the node's clock; zero: there was none.
    pub saved: Time,
}

/// When a start came to compute, by its node's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// The process was started.
    pub begun: Time,
    /// Its state was read, and verified.
    pub restored: Time,
    /// It is at work.
    pub computes: Time,
}

/// From the end of a start until the next one computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The start that has ended.
    pub start: u64,
    /// How.
    pub why: Why,
    /// When that was seen, by the clock of the node that saw it.
    pub seen: Time,
    /// When the book had it.
    pub told: Time,
    /// When the next start was ordered.
    pub ordered: Option<Time>,
    /// Where that runs.
    pub at: Option<Member>,
    /// When it came to compute.
    pub moments: Option<Moments>,
    /// The turns of the image that it had.
    pub step: u64,
}

/// Why a start is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The process has ended.
    Ended(End),
    /// The node is gone.
    Gone(Member),
    /// Its node is being emptied, and all of its state is at another one.
    Moved,
    /// Another rank has diverged: all go back to states that fit together.
    Regrouped,
}
