//! Priorities by rate: who is called more often goes first (Liu and Layland, 1973).
//!
//! There are few priorities, and which periods there will be is not known. So they are cut into
//! classes, each longer than the one before by the same factor: a *constant-ratio grid* (J. P.
//! Lehoczky, L. Sha: *Performance of Real-Time Bus Scheduling Algorithms*, ACM SIGMETRICS
//! Performance Evaluation Review 14(1), 1986). A replica's class depends on its own period alone:
//! nobody's changes when another comes or goes.

use core::time::Duration;

/// Periods up to this have the highest priority.
pub const SHORTEST: Duration = Duration::from_millis(1);

/// The priority, 1 to `top`, of what is called once in `period`: one less for each factor of the
/// square root of two beyond [`SHORTEST`]. 0 if `top` is 0: none.
pub fn by_rate(period: Duration, top: u8) -> u8 {
    // The factor between squares is two, so whole numbers suffice.
    let (period, shortest) = (period.as_nanos(), SHORTEST.as_nanos());
    let square = period.saturating_mul(period) / (shortest * shortest);
    let classes = square.checked_ilog2().unwrap_or(0);
    let classes = u8::try_from(classes).unwrap_or(u8::MAX);
    if top == 0 { 0 } else { top.saturating_sub(classes).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_doubling_of_the_period_is_two_less() {
        let ms = Duration::from_millis;
        for (period, priority) in [
            (Duration::from_micros(10), 40),
            (ms(1), 40),
            (Duration::from_micros(1_400), 40),
            (Duration::from_micros(1_420), 39),
            (ms(2), 38),
            (ms(4), 36),
            (ms(1_000), 21),
            (ms(1_100), 20),
            (Duration::from_secs(60), 9),
            (Duration::from_secs(10_000), 1),
            (Duration::MAX, 1),
        ] {
            assert_eq!(by_rate(period, 40), priority, "{period:?}");
        }
        assert_eq!((by_rate(ms(1), 0), by_rate(ms(500), 3)), (0, 1));
    }

    #[test]
    fn who_is_called_more_often_is_never_behind() {
        let mut last = u8::MAX;
        for micros in (1..2_000_000).step_by(97) {
            let priority = by_rate(Duration::from_micros(micros), 50);
            assert!(priority <= last && priority >= 1, "{micros} us");
            last = priority;
        }
    }
}
