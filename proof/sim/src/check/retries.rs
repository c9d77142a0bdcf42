//! A client sends calls again that may have been executed, and no more often than its budget
//! allows.
//!
//! Source: docs/protocol/client.md, "Retries".

use client::{RetryBudget, Stats};
use wire::{ClientId, Duration};

use super::{Verdict, demand};

const PROPERTY: &str = "retries";

/// The retries of a client are within this budget for this span.
pub fn budget(client: ClientId, stats: Stats, budget: RetryBudget, span: Duration) -> Verdict {
    let RetryBudget { per_thousand, per_second, burst, .. } = budget;
    let by_calls = stats.calls * u64::from(per_thousand) / 1_000;
    let by_time = span.as_millis() as u64 * u64::from(per_second) / 1_000;
    let limit = u64::from(burst) + by_calls + by_time + 1;
    demand(stats.retries <= limit, PROPERTY, || {
        let Stats { retries, calls, .. } = stats;
        format!("{client} retries {retries} times in {calls} calls and {span:?}, {limit} at most")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_retry_more_than_the_budget_is_seen() {
        let few = RetryBudget::default().per_thousand(100).per_second(2).burst(3);
        let stats = |retries| {
            let mut stats = Stats::default();
            (stats.calls, stats.retries) = (40, retries);
            stats
        };
        let span = Duration::from_secs(5);
        assert!(budget(ClientId(1), stats(18), few, span).is_ok());
        assert!(budget(ClientId(1), stats(19), few, span).is_err());
    }
}
