//! Whether one processor can serve its tasks in time.
//!
//! A processor passes if every release is done before its deadline, whatever the others do. All
//! policies but [`Policy::EarliestDeadline`] are for priorities by rate: the task with the shorter
//! period goes first.
//!
//! | policy | holds if | exact? | source |
//! | --- | --- | --- | --- |
//! | [`Policy::RateMonotonic`] | the use of n tasks is at most n(2^(1/n) - 1) | no | Liu and Layland, 1973; `flare.txt`, section 3, note 1 |
//! | [`Policy::Hyperbolic`] | the product of all (use + 1) is at most 2 | no, but passes more | Bini, Buttazzo and Buttazzo, 2003 |
//! | [`Policy::ResponseTime`] | the longest response of each task is within its deadline | yes | Joseph and Pandya, 1986 |
//! | [`Policy::EarliestDeadline`] | the demand of every span is at most the span | yes | Baruah, Rosier and Howell, 1990; Zhang and Burns, 2009 |
//!
//! The first two look at use alone, and take every deadline for the period.

use alloc::vec::Vec;

use wire::Share;

use crate::Task;
use crate::task::Nanos;

mod demand;

/// The test that a processor must pass.
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
    /// The overload of one processor, in millionths of its capacity: zero if all tasks are in time.
    /// Work without a period takes the share `other` of the capacity. The overload never falls when
    /// a task or a share is added.
    pub(crate) fn overload(self, tasks: &[Task], other: Share, capacity: Share) -> Share {
        if tasks.is_empty() && other <= capacity {
            return Share::ZERO;
        }
        if capacity == Share::ZERO {
            return tasks.iter().map(Task::share).sum::<Share>() + other;
        }
        let used = tasks.iter().map(Task::share).sum::<Share>() + other;
        let too_much = used.saturating_sub(capacity);
        let late = match self {
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
            Policy::ResponseTime => relative(late(tasks, capacity.saturating_sub(other)), capacity),
            // No task alone is late: all share the overload.
            Policy::EarliestDeadline => {
                let speed = capacity.saturating_sub(other);
                let in_time = too_much == Share::ZERO && demand::is_met(tasks, speed);
                let all = || tasks.iter().map(Task::share).sum();
                relative(if in_time { Share::ZERO } else { all() }, capacity)
            }
        };
        // Each of the two only grows with the work, so the larger one does.
        late.max(relative(too_much, capacity))
    }
}

/// In millionths of a capacity, rounded up.
pub(crate) fn relative(share: Share, capacity: Share) -> Share {
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

/// The shares of all tasks that may be late at this speed, with priorities by rate. Tasks of one
/// period have one priority, in which each may have to wait for the others.
fn late(tasks: &[Task], speed: Share) -> Share {
    let is_late = |own: &Task| {
        let at = |task: &Task| task.at(speed);
        let before: Vec<Nanos> =
            tasks.iter().filter(|task| task.period < own.period).map(at).collect();
        // Each of the same priority may be there already; what comes later goes behind.
        let beside = tasks.iter().filter(|task| task.period == own.period).map(at);
        let beside = beside.fold(0, |sum: u128, task| sum.saturating_add(task.cost));
        let (deadline, mut response) = (at(own).deadline, beside);
        // It grows by at least a nanosecond each time, or stays: then that is the longest response.
        while response <= deadline {
            let earlier = before
                .iter()
                .map(|earlier| response.div_ceil(earlier.period).saturating_mul(earlier.cost));
            let next = earlier.fold(beside, u128::saturating_add);
            if next == response {
                return false;
            }
            response = next;
        }
        true
    };
    tasks.iter().filter(|task| is_late(task)).map(|task| task.share().max(Share(1))).sum()
}

#[cfg(test)]
mod tests;
