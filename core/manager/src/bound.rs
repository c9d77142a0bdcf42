//! Whether a processor can serve its tasks in time.
//!
//! A task is a replica that is called once in every period and takes some processor time for each
//! call. A host passes if every call is answered before its deadline whatever the others do, by one
//! of four tests. All but [`Policy::EarliestDeadline`] are for priorities by rate: who is called
//! more often goes first.
//!
//! | policy | holds if | exact? | source |
//! | --- | --- | --- | --- |
//! | [`Policy::RateMonotonic`] | the use of n tasks is at most n(2^(1/n) - 1) | no | Liu and Layland, 1973; `flare.txt`, section 3, note 1 |
//! | [`Policy::Hyperbolic`] | the product of all (use + 1) is at most 2 | no, but passes more | Bini, Buttazzo and Buttazzo, 2003 |
//! | [`Policy::ResponseTime`] | the longest response of each task is within its deadline | yes | Joseph and Pandya, 1986 |
//! | [`Policy::EarliestDeadline`] | the use is at most 1 | yes, if deadlines are periods | Liu and Layland, 1973 |
//!
//! The first two and the last look at use alone, and take every deadline for the period.

use alloc::vec::Vec;
use core::time::Duration;

use wire::Share;

/// A primary that is called periodically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The cost of a call, in time of one processor.
    pub cost: Duration,
    /// Between two calls. Above zero.
    pub period: Duration,
    /// Within which a call is to be answered. At most the period.
    pub deadline: Duration,
}

impl Task {
    /// A task whose deadline is its period.
    ///
    /// # Panics
    /// If the period is zero: whatever is called without a pause has no rate.
    pub fn new(cost: Duration, period: Duration) -> Task {
        assert!(!period.is_zero(), "a task's period is above zero");
        Task { cost, period, deadline: period }
    }

    /// The share of a processor that it uses, rounded up.
    pub fn share(&self) -> Share {
        let (cost, period) = (self.cost.as_nanos(), self.period.as_nanos());
        // Spans of some hours and less, which are divided in a tenth of the time.
        if let (Ok(cost), Ok(period)) = (u64::try_from(cost), u64::try_from(period))
            && let Some(scaled) = cost.checked_mul(Share::ONE.0)
        {
            return Share(scaled.div_ceil(period));
        }
        let millionths = (cost * u128::from(Share::ONE.0)).div_ceil(period);
        Share(u64::try_from(millionths).unwrap_or(u64::MAX))
    }
}

/// The test that a host must pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The bound of Liu and Layland: that of the paper.
    #[default]
    RateMonotonic,
    /// The hyperbolic bound.
    Hyperbolic,
    /// Exact response-time analysis.
    ResponseTime,
    /// Earliest deadline first.
    EarliestDeadline,
}

/// Fixed point of the products: parts of 2^32.
const ONE: u128 = 1 << 32;

impl Policy {
    /// By how much, in millionths of the capacity, these tasks are too many for a processor of
    /// which a share `other` is taken by what has no period, and whose whole is `capacity`: zero if
    /// all are in time. It never falls when a task or a share is added: a search may stop at the
    /// bound.
    pub fn excess(self, tasks: &[Task], other: Share, capacity: Share) -> Share {
        if tasks.is_empty() && other <= capacity {
            return Share::ZERO;
        }
        if capacity == Share::ZERO {
            return tasks.iter().map(Task::share).sum::<Share>() + other;
        }
        let used = tasks.iter().map(Task::share).sum::<Share>() + other;
        let too_much = used.saturating_sub(capacity);
        let late = match self {
            Policy::EarliestDeadline => Share::ZERO,
            // Below the limit of the bound for ever more tasks, ln 2, nothing need be multiplied.
            Policy::RateMonotonic if used.0 < capacity.0 / 100 * 69 => Share::ZERO,
            Policy::RateMonotonic => {
                // Work without a period counts as one task more.
                let count = tasks.len() as u32 + u32::from(other > Share::ZERO);
                // use <= n(2^(1/n) - 1), if and only if (1 + use / n)^n <= 2: no root is taken.
                let each = ONE + scaled(used, capacity).div_ceil(u128::from(count));
                past_two((0..count).map(|_| each))
            }
            Policy::Hyperbolic => {
                let shares = tasks.iter().map(Task::share).chain([other]);
                past_two(shares.map(|share| ONE + scaled(share, capacity)))
            }
            Policy::ResponseTime => relative(late(tasks, other, capacity), capacity),
        };
        // Each of the two only grows with what there is to do, so the larger does.
        late.max(relative(too_much, capacity))
    }

    /// All are in time.
    pub fn admits(self, tasks: &[Task], other: Share, capacity: Share) -> bool {
        self.excess(tasks, other, capacity) == Share::ZERO
    }
}

/// In millionths of a capacity, rounded up.
fn relative(share: Share, capacity: Share) -> Share {
    Share(share.0.saturating_mul(Share::ONE.0).div_ceil(capacity.0))
}

/// A share of a capacity in fixed point, rounded up.
fn scaled(share: Share, capacity: Share) -> u128 {
    (u128::from(share.0) * ONE).div_ceil(u128::from(capacity.0))
}

/// The amount by which a product of factors exceeds two. Roundings go up, and may have added up to
/// a millionth: a smaller excess counts as none.
fn past_two(factors: impl Iterator<Item = u128>) -> Share {
    let product =
        factors.fold(ONE, |product, factor| (product * factor).div_ceil(ONE).min(ONE << 16));
    let millionths = product.saturating_sub(2 * ONE) * u128::from(Share::ONE.0) / ONE;
    Share(u64::try_from(millionths).unwrap_or(u64::MAX))
}

/// The shares of all tasks that may be late. A processor of a smaller capacity takes so much longer
/// for every call, and so it does when a share is taken by others.
fn late(tasks: &[Task], other: Share, capacity: Share) -> Share {
    let speed = u128::from(capacity.saturating_sub(other).0.min(Share::ONE.0));
    let cost = |task: &Task| match speed {
        0 => u128::MAX,
        speed => (task.cost.as_nanos() * u128::from(Share::ONE.0)).div_ceil(speed),
    };
    let mut by_rate: Vec<&Task> = tasks.iter().collect();
    by_rate.sort_by_key(|task| (task.period, task.deadline, task.cost));
    let is_late = |place: usize| {
        let task = by_rate[place];
        let deadline = task.deadline.min(task.period).as_nanos();
        let own = cost(task);
        let mut response = own;
        // It grows by at least a nanosecond each time, or stays: then that is the longest response.
        while response <= deadline {
            let before = by_rate[..place].iter().map(|earlier| {
                let calls = response.div_ceil(earlier.period.as_nanos());
                calls.saturating_mul(cost(earlier))
            });
            let next = before.fold(own, u128::saturating_add);
            if next == response {
                return false;
            }
            response = next;
        }
        true
    };
    (0..by_rate.len())
        .filter(|place| is_late(*place))
        .map(|place| by_rate[place].share().max(Share(1)))
        .sum()
}

#[cfg(test)]
mod tests;
