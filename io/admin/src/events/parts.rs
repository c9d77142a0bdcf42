//! What events are made of in their JSON form, where it is not what the engine has.

use engine::{Deviation, Suspicion};
use serde::{Deserialize, Serialize};
use wire::{Duration, Member};

/// By what a member was first held to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCause {
    /// There was no sign of the token, which it had.
    Silence,
    /// Its host says that its process is gone.
    Gone,
    /// It did not agree to a membership in time.
    NoAnswer,
    /// It did not keep up.
    TooSlow,
}

impl From<Suspicion> for FaultCause {
    fn from(suspicion: Suspicion) -> Self {
        match suspicion {
            Suspicion::Silence(_) => FaultCause::Silence,
            Suspicion::Gone => FaultCause::Gone,
            Suspicion::NoAnswer => FaultCause::NoAnswer,
            Suspicion::TooSlow => FaultCause::TooSlow,
        }
    }
}

/// Why a replica of a voting group is taken out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviationCause {
    /// It has another outcome of a call than a majority, or asks another group for something else. Digests stand for the two.
    Outcome {
        /// Its own.
        told: String,
        /// The majority's.
        agreed: String,
        /// Replicas that had the state.
        voters: usize,
    },
    /// It has not told its outcome, or what it asks, in time.
    Silent,
    /// It is too far behind.
    Behind,
}

impl From<Deviation> for DeviationCause {
    fn from(deviation: Deviation) -> Self {
        match deviation {
            Deviation::Outcome { told, agreed, voters } => DeviationCause::Outcome {
                told: format!("{told:016x}"),
                agreed: format!("{agreed:016x}"),
                voters,
            },
            Deviation::Silent => DeviationCause::Silent,
            Deviation::Behind => DeviationCause::Behind,
        }
    }
}

/// One replica of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Where it is.
    pub member: Member,
    /// It has the state.
    pub synced: bool,
}

pub(super) fn records(replicas: &[(Member, bool)]) -> Vec<ReplicaRecord> {
    replicas.iter().map(|&(member, synced)| ReplicaRecord { member, synced }).collect()
}

pub(super) fn ns(span: &Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// How long there was no sign of life, where that was measured.
pub(super) fn silent(cause: Option<Suspicion>) -> Option<u64> {
    cause.map(Suspicion::silent).filter(|span| !span.is_zero()).as_ref().map(ns)
}

pub(super) fn shown(fingerprint: [u8; 8]) -> String {
    seal::Fingerprint(fingerprint).to_string()
}
