//! How often a client sends calls again that may have been executed.

use std::time::Duration;

use wire::Time;

/// The limit on a client's retries: a token bucket over all its groups.
///
/// A *retry* is an attempt after one that was lost or silent. Let a client begin `c` calls in `t`
/// seconds. It then makes at most `burst + per_second t + c per_thousand / 1000` retries. A call
/// without credit waits for some, at most until its deadline
/// ([`CallError::RetriesSpent`](crate::CallError::RetriesSpent)). So clients cannot multiply the
/// load of slow nodes.
///
/// ```
/// use steadfast_client::RetryBudget;
///
/// let frugal = RetryBudget::default().per_thousand(10).per_second(1).burst(16);
/// assert!(frugal.burst < RetryBudget::default().burst);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryBudget {
    /// The credit that each call earns, in thousandths of a retry: at most 1,000. The default is
    /// 200.
    pub per_thousand: u32,
    /// The credit that each second earns, in retries: at least 1. The default is 10.
    pub per_second: u32,
    /// The credit at the start, and the most that is kept: at least 1. The default is 1,024.
    pub burst: u32,
}

impl RetryBudget {
    /// Sets what each call earns, in thousandths of a retry.
    #[must_use]
    pub fn per_thousand(self, per_thousand: u32) -> Self {
        RetryBudget { per_thousand, ..self }
    }

    /// Sets what each second earns, so that a lone call can be sent again.
    #[must_use]
    pub fn per_second(self, per_second: u32) -> Self {
        RetryBudget { per_second, ..self }
    }

    /// Sets what the bucket holds. So many calls can lose a node together and go on at once.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        RetryBudget { burst, ..self }
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        RetryBudget { per_thousand: 200, per_second: 10, burst: 1_024 }
    }
}

/// A retry costs this much of the bucket, whose unit is a millionth.
const PRICE: u64 = 1_000_000;

/// The remaining credit of a [`RetryBudget`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit {
    budget: RetryBudget,
    left: u64,
    since: Time,
}

impl Credit {
    pub(crate) fn new(budget: RetryBudget, now: Time) -> Self {
        let budget = RetryBudget {
            per_thousand: budget.per_thousand.min(1_000),
            per_second: budget.per_second.max(1),
            burst: budget.burst.max(1),
        };
        Credit { budget, left: u64::from(budget.burst) * PRICE, since: now }
    }

    fn add(&mut self, credit: u64) {
        let most = u64::from(self.budget.burst) * PRICE;
        self.left = self.left.saturating_add(credit).min(most);
    }

    /// A call begins.
    pub(crate) fn earn(&mut self) {
        self.add(u64::from(self.budget.per_thousand) * (PRICE / 1_000));
    }

    /// Pays for a retry, or gives the time of the next one, if no other call is first.
    pub(crate) fn spend(&mut self, now: Time) -> Result<(), Time> {
        let passed = u64::try_from(now.since(self.since).as_micros()).unwrap_or(u64::MAX);
        // A millionth each microsecond and unit of `per_second`; what is left of a microsecond is
        // waited for again.
        self.add(passed.saturating_mul(u64::from(self.budget.per_second)));
        self.since = self.since.max(now);
        if let Some(rest) = self.left.checked_sub(PRICE) {
            self.left = rest;
            return Ok(());
        }
        let micros = (PRICE - self.left).div_ceil(u64::from(self.budget.per_second));
        Err(now + Duration::from_micros(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_burst_a_share_of_the_calls_and_some_a_second() {
        let budget = RetryBudget { per_thousand: 100, per_second: 5, burst: 3 };
        let start = Time(1_000_000_000);
        let mut credit = Credit::new(budget, start);
        let mut spent =
            |count: usize, now| (0..count).filter(|_| credit.spend(now).is_ok()).count();
        assert_eq!(spent(10, start), 3);
        let later = start + Duration::from_secs(1);
        assert_eq!(spent(10, later), 3, "five are earned, three are kept");
        (0..20).for_each(|_| credit.earn());
        assert_eq!((0..10).filter(|_| credit.spend(later).is_ok()).count(), 2);
        let next = credit.spend(later).unwrap_err();
        assert_eq!(next, later + Duration::from_millis(200));
        assert_eq!(credit.spend(next), Ok(()));
        assert!(credit.spend(next).is_err());
    }
}
