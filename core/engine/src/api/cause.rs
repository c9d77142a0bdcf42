//! Why a replica or a member is no longer relied upon.

use wire::Duration;

/// Why a replica of a voting group is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// It has another outcome of a call than a majority, or asks another group for something else.
    Outcome {
        /// What stands for what it has: the first bytes of the [digest](wire::ordered::Digest).
        told: u64,
        /// What stands for the majority's.
        agreed: u64,
        /// So many replicas had the state.
        voters: usize,
    },
    /// It has not told its outcome, or what it asks, in time.
    Silent,
    /// It is more than [`MAX_UNSETTLED`](wire::limits::MAX_UNSETTLED) votes behind.
    Behind,
}

/// Why a member is held to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// It had the token when that was lost: there was no sign of the token for this long.
    Silence(Duration),
    /// Its host says that its process is gone.
    Gone,
    /// It did not agree to a membership in time.
    NoAnswer,
    /// It did not keep up.
    TooSlow,
}

impl Suspicion {
    /// How long there was no sign of life before, as far as that was measured.
    pub fn silent(self) -> Duration {
        match self {
            Suspicion::Silence(span) => span,
            Suspicion::Gone | Suspicion::NoAnswer | Suspicion::TooSlow => Duration::ZERO,
        }
    }
}
