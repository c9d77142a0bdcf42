//! A benchmark that comes to its end has measured what it says: every member has had every message,
//! whole and in one order.
//!
//! Source: wire::bench (a [`Report`] of every member); a benchmark that faults strike is
//! interrupted and says so.

use wire::Member;
use wire::bench::Report;

use super::{Verdict, demand};

const PROPERTY: &str = "benchmarks";

/// A benchmark is over: what each sender says that it sent, and what each member had.
pub fn ended(sent: &[u64], reports: &[(Member, Report)]) -> Verdict {
    for (member, report) in reports {
        let clean = report.corrupt == 0 && report.disordered == 0;
        demand(clean && report.received == sent, PROPERTY, || {
            format!("{member} had {:?} of {sent:?}: {report:?}", report.received)
        })?;
        let (first, other) = (&reports[0].0, &reports[0].1);
        demand(report.order == other.order, PROPERTY, || {
            format!("{member} and {first} had one benchmark in two orders")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evs::samples::member;
    use wire::Duration;

    #[test]
    fn what_is_missing_broken_or_in_another_order_is_seen() {
        let report = |received, order, corrupt| Report {
            id: 1,
            received: vec![received],
            order,
            corrupt,
            disordered: 0,
            span: Duration::ZERO,
            measured: None,
        };
        let two = |second: Report| [(member(1), report(9, 5, 0)), (member(2), second)];
        assert!(ended(&[9], &two(report(9, 5, 0))).is_ok());
        assert!(ended(&[9], &two(report(8, 5, 0))).is_err());
        assert!(ended(&[9], &two(report(9, 6, 0))).is_err());
        assert!(ended(&[9], &two(report(9, 5, 1))).is_err());
    }
}
