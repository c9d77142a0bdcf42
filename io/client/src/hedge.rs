//! Asking a second replica of an active group before the first has failed.
//!
//! J. Dean and L. A. Barroso: *The Tail at Scale*, CACM 56(2), 2013: a request that takes longer than most is sent
//! to another replica too, and the first reply wins. The delay is smoothed as a TCP time-out is
//! (V. Jacobson, SIGCOMM 1988; RFC 6298).

use std::time::Duration;

/// When, and how often, a call to a group of the active style goes to a second replica at the same time.
///
/// The second is asked when the answer has taken longer than the smoothed time of earlier answers plus four
/// times its mean deviation, within the bounds. Groups of other styles are never asked twice at a time.
///
/// ```
/// use std::time::Duration;
/// use steadfast_client::Hedging;
///
/// let eager = Hedging { floor: Duration::from_micros(300), ..Hedging::default() };
/// assert!(eager.per_thousand <= 50 && Hedging::OFF.per_thousand == 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedging {
    /// The second replica is not asked sooner than this after the first. Below the time that the client's
    /// host takes to wake a thread now and then, it only finds out how busy that is.
    pub floor: Duration,
    /// It is asked after this time at the latest, and after this time while nothing was measured yet.
    pub ceiling: Duration,
    /// At most so many of a thousand calls are asked twice, and one more: copies of replies are no
    /// more than that. At most 1,000; 0: never.
    pub per_thousand: u32,
}

impl Hedging {
    /// No call is sent to two replicas at a time.
    pub const OFF: Hedging =
        Hedging { floor: Duration::ZERO, ceiling: Duration::ZERO, per_thousand: 0 };
}

impl Default for Hedging {
    fn default() -> Self {
        let (floor, ceiling) = (Duration::from_millis(1), Duration::from_millis(10));
        Hedging { floor, ceiling, per_thousand: 50 }
    }
}

/// What it costs to ask twice.
const PRICE: u32 = 1_000;

/// What may be saved up: a burst of ten.
const MOST: u32 = 10 * PRICE;

/// How quickly a group answers, and how often it may still be asked twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Smoothed time of an answer, and its mean deviation, once one was measured.
    measured: Option<(Duration, Duration)>,
    credit: u32,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Pace { measured: None, credit: PRICE }
    }

    /// A call begins: each earns its share of the next one that is asked twice.
    pub(crate) fn earn(&mut self, hedging: &Hedging) {
        self.credit = (self.credit + hedging.per_thousand.min(PRICE)).min(MOST);
    }

    /// After how long a second replica is asked, if there is credit for it.
    pub(crate) fn delay(&self, hedging: &Hedging) -> Option<Duration> {
        if hedging.per_thousand == 0 || self.credit < PRICE {
            return None;
        }
        let expected = self.measured.map_or(hedging.ceiling, |(smooth, off)| smooth + off * 4);
        Some(expected.min(hedging.ceiling).max(hedging.floor))
    }

    /// A second replica is asked. False if there is no credit for it.
    pub(crate) fn spend(&mut self) -> bool {
        let enough = self.credit >= PRICE;
        if enough {
            self.credit -= PRICE;
        }
        enough
    }

    /// An answer took so long.
    pub(crate) fn took(&mut self, span: Duration) {
        self.measured = Some(match self.measured {
            None => (span, span / 2),
            Some((smooth, off)) => ((smooth * 7 + span) / 8, (off * 3 + span.abs_diff(smooth)) / 4),
        });
    }

    /// An answer that was outrun has taken so long so far: what is longer than expected counts.
    pub(crate) fn outrun(&mut self, span: Duration) {
        if self.measured.is_none_or(|(smooth, _)| span > smooth) {
            self.took(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_delay_follows_what_was_measured_within_its_bounds() {
        let hedging = Hedging::default();
        let mut pace = Pace::new();
        assert_eq!(pace.delay(&hedging), Some(hedging.ceiling), "nothing is known");
        for _ in 0..100 {
            pace.took(MS * 3);
        }
        let steady = pace.delay(&hedging).unwrap();
        assert!((MS * 3..MS * 4).contains(&steady), "{steady:?}");
        for place in 0..100 {
            pace.took(MS * (2 + 2 * (place % 2)));
        }
        let unsteady = pace.delay(&hedging).unwrap();
        assert!((MS * 6..MS * 9).contains(&unsteady), "{unsteady:?}");
        for _ in 0..100 {
            pace.took(MS / 10);
        }
        assert_eq!(pace.delay(&hedging), Some(hedging.floor));
        pace.outrun(MS / 20);
        assert_eq!(pace.delay(&hedging), Some(hedging.floor));
        for _ in 0..20 {
            pace.outrun(MS * 500);
        }
        assert_eq!(pace.delay(&hedging), Some(hedging.ceiling), "who is slow is seen to be slow");
    }

    #[test]
    fn a_twentieth_of_the_calls_and_one_are_asked_twice_at_most() {
        let hedging = Hedging::default();
        let mut pace = Pace::new();
        let twice = (0..1_000).filter(|_| {
            pace.earn(&hedging);
            pace.delay(&hedging).is_some() && pace.spend()
        });
        assert_eq!(twice.count(), 51);
        for _ in 0..100_000 {
            pace.earn(&hedging);
        }
        assert_eq!((0..100).filter(|_| pace.spend()).count(), 10, "a burst is bounded");
        assert_eq!(pace.delay(&hedging), None);
    }

    #[test]
    fn off_is_off() {
        let mut pace = Pace::new();
        pace.earn(&Hedging::OFF);
        assert_eq!(pace.delay(&Hedging::OFF), None);
    }
}
