//! Asking a second replica of an active group before the first has failed.
//!
//! J. Dean and L. A. Barroso: *The Tail at Scale*, CACM 56(2), 2013: a request that takes longer
//! than most is sent to another replica too, and the first reply wins. The delay is smoothed as a
//! TCP time-out is (V. Jacobson, SIGCOMM 1988; RFC 6298).

use std::time::Duration;

/// When, and how often, a client asks a second replica of an active group before the first fails.
///
/// The client waits for the smoothed time of earlier answers and four times its mean deviation,
/// within the bounds. Then it asks the second replica, and the first reply wins. Groups of other
/// styles get no such requests.
///
/// ```
/// use std::time::Duration;
/// use steadfast_client::Hedging;
///
/// let eager = Hedging::default().floor(Duration::from_micros(300)).per_thousand(100);
/// assert_eq!(eager.ceiling, Duration::from_millis(10));
/// assert_eq!(Hedging::OFF.per_thousand, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hedging {
    /// The client asks the second replica no sooner than this after the first. The default is 1 ms.
    pub floor: Duration,
    /// The client asks the second replica no later than this, and at this time while it has
    /// measured nothing. The default is 10 ms.
    pub ceiling: Duration,
    /// The client hedges so many of a thousand calls, and one more, at most. 0 is never, 1,000 the
    /// maximum. The default is 50.
    pub per_thousand: u32,
}

impl Hedging {
    /// The client never sends a call to two replicas at a time.
    pub const OFF: Hedging =
        Hedging { floor: Duration::ZERO, ceiling: Duration::ZERO, per_thousand: 0 };

    /// Sets the shortest time between the two requests.
    ///
    /// A host now and then wakes a thread late. A floor below that delay only measures the host.
    #[must_use]
    pub fn floor(self, floor: Duration) -> Self {
        Hedging { floor, ..self }
    }

    /// Sets the longest time between the two requests.
    #[must_use]
    pub fn ceiling(self, ceiling: Duration) -> Self {
        Hedging { ceiling, ..self }
    }

    /// Sets how many of a thousand calls may have a second request.
    #[must_use]
    pub fn per_thousand(self, per_thousand: u32) -> Self {
        Hedging { per_thousand, ..self }
    }
}

impl Default for Hedging {
    fn default() -> Self {
        let (floor, ceiling) = (Duration::from_millis(1), Duration::from_millis(10));
        Hedging { floor, ceiling, per_thousand: 50 }
    }
}

/// The price of asking twice.
const PRICE: u32 = 1_000;

/// The most that may be saved up: a burst of ten.
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
        let expected = self.bound().unwrap_or(hedging.ceiling);
        Some(expected.min(hedging.ceiling).max(hedging.floor))
    }

    /// Hardly any answer takes longer, once one was measured (RFC 6298).
    pub(crate) fn bound(&self) -> Option<Duration> {
        self.measured.map(|(smooth, off)| smooth + off * 4)
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
