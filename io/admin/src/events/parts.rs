//! Types of the events' JSON form that differ from the engine's types.

use engine::{Deviation, Suspicion};
use serde::{Deserialize, Serialize};
use wire::{Duration, Member};

/// Why a member was first suspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCause {
    /// It had the token, and there was no sign of the token.
    Silence,
    /// Its host reports that its process is gone.
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

/// Why a voting group removes a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviationCause {
    /// Its outcome of a call, or its nested call, differs from the majority's.
    Outcome {
        /// The replica's digest.
        told: String,
        /// The majority's digest.
        agreed: String,
        /// The number of synced replicas.
        voters: usize,
    },
    /// It did not vote in time.
    Silent,
    /// Its votes are too far behind.
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
    /// The member that hosts it.
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

/// How long the member had been silent, if that was measured.
pub(super) fn silent(cause: Option<Suspicion>) -> Option<u64> {
    cause.map(Suspicion::silent).filter(|span| !span.is_zero()).as_ref().map(ns)
}

pub(super) fn shown(fingerprint: [u8; 8]) -> String {
    seal::Fingerprint(fingerprint).to_string()
}
