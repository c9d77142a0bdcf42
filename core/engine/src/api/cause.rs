//! Reasons for the removal of a voting replica and for the suspicion of a member.

use wire::Duration;

/// Why a voting group removes a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// Its outcome of a call, or its nested call, differs from the majority's.
    Outcome {
        /// First bytes of the replica's [digest](wire::ordered::Digest).
        told: u64,
        /// First bytes of the majority's digest.
        agreed: u64,
        /// The number of synced replicas.
        voters: usize,
    },
    /// It did not vote in time.
    Silent,
    /// It is more than [`MAX_UNSETTLED`](wire::limits::MAX_UNSETTLED) votes behind.
    Behind,
}

/// Why a member is suspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// It had the token when the token was lost. There was no sign of the token for this long.
    Silence(Duration),
    /// Its host reports that its process is gone.
    Gone,
    /// It did not agree to a membership in time.
    NoAnswer,
    /// It did not keep up.
    TooSlow,
}

impl Suspicion {
    /// How long the member had been silent; zero where that was not measured.
    pub fn silent(self) -> Duration {
        match self {
            Suspicion::Silence(span) => span,
            Suspicion::Gone | Suspicion::NoAnswer | Suspicion::TooSlow => Duration::ZERO,
        }
    }
}
