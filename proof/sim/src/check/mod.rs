//! One file per property. A checker hears what the world sees and objects at the first
//! contradiction.
//!
//! Checkers know nothing of how the machines work inside: they are told what was sent, delivered,
//! executed and answered, and compare it with what the papers and `docs/protocol` promise.

pub mod acknowledged;
pub mod alone;
pub mod apart;
pub mod benchmarks;
pub mod bounded;
pub mod cold;
pub mod decay;
pub mod deployed;
pub mod detection;
pub mod discarded;
pub mod evs;
pub mod growth;
pub mod hashed;
pub mod hedging;
pub mod histories;
pub mod hung;
pub mod kept;
pub mod keys;
pub mod licence;
pub mod linearizable;
pub mod liveness;
pub mod merged;
pub mod messages;
pub mod moves;
pub mod multicast;
pub mod nested;
pub mod once;
pub mod operations;
pub mod ordered_time;
pub mod poisons;
pub mod primary;
pub mod ranks;
pub mod replies;
pub mod restyles;
pub mod results;
pub mod retries;
pub mod sealed;
pub mod served;
pub mod settling;
pub mod shedding;
pub mod stability;
pub mod stale;
pub mod starts;
pub mod versions;
pub mod viewed;
pub mod views;
pub mod votes;
pub mod wait;

use std::fmt;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which property.
    pub property: &'static str,
    /// A description of the violation.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.text)
    }
}

/// The result of a check.
pub type Verdict = Result<(), Violation>;

/// Objects unless `holds`.
pub fn demand(holds: bool, property: &'static str, text: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Violation { property, text: text() }) }
}
