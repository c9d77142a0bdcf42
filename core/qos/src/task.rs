//! A periodic task.

use core::time::Duration;

use wire::Share;

/// A task that is released once in every period: a replica's calls, a ring's rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The cost of a release, in time of one processor.
    pub cost: Duration,
    /// Between two releases. Above zero.
    pub period: Duration,
    /// From the release to the time at which it must be done. At most the period.
    pub deadline: Duration,
}

impl Task {
    /// A task whose deadline is its period.
    ///
    /// # Panics
    /// If the period is zero: a task without pauses has no rate.
    pub fn new(cost: Duration, period: Duration) -> Task {
        assert!(!period.is_zero(), "a task's period is above zero");
        Task { cost, period, deadline: period }
    }

    /// The share of a processor that it uses, rounded up.
    pub fn share(&self) -> Share {
        share(self.cost, self.period)
    }

    /// The share of a processor that it uses from its release to its deadline, rounded up.
    pub fn density(&self) -> Share {
        share(self.cost, self.deadline.min(self.period))
    }

    /// The task on a processor of which only this share is there, or is left: all costs so much
    /// more time.
    pub(crate) fn at(&self, speed: Share) -> Nanos {
        let scaled = self.cost.as_nanos() * u128::from(Share::ONE.0);
        let cost = match u128::from(speed.min(Share::ONE).0) {
            0 => u128::MAX,
            speed => scaled.div_ceil(speed),
        };
        let deadline = self.deadline.min(self.period).as_nanos();
        Nanos { cost, period: self.period.as_nanos(), deadline }
    }
}

/// A task in nanoseconds, as the exact tests count.
#[derive(Clone, Copy)]
pub(crate) struct Nanos {
    pub(crate) cost: u128,
    pub(crate) period: u128,
    pub(crate) deadline: u128,
}

fn share(cost: Duration, span: Duration) -> Share {
    let (cost, span) = (cost.as_nanos(), span.as_nanos());
    // Spans of some hours and less, which are divided in a tenth of the time.
    if let (Ok(cost), Ok(span)) = (u64::try_from(cost), u64::try_from(span))
        && span > 0
        && let Some(scaled) = cost.checked_mul(Share::ONE.0)
    {
        return Share(scaled.div_ceil(span));
    }
    let millionths = match span {
        0 => u128::MAX,
        span => (cost * u128::from(Share::ONE.0)).div_ceil(span),
    };
    Share(u64::try_from(millionths).unwrap_or(u64::MAX))
}
