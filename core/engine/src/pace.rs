//! The pace of clients' calls at this node, for clients that find no room.
//!
//! A refusal contains the time of the next attempt. At the recent rate half of the waiting calls
//! will be done then, so that there is room for retries and for new calls.

use wire::{Duration, Time};

/// The rate is taken over spans of at least this length.
const SPAN: Duration = Duration::from_millis(100);

/// The bounds of that time. A client that retries too soon costs little; one that retries too late
/// waits in vain.
const LEAST: Duration = Duration::from_millis(1);
pub(crate) const MOST: Duration = Duration::from_millis(500);

/// The time where no call was answered recently: after a quiet time, or at a node that waits for a
/// quorum.
const UNKNOWN: Duration = Duration::from_millis(50);

/// The rate at which calls are answered here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// When the span that is being counted began, and how many calls had been answered then.
    since: Time,
    before: u64,
    /// Calls a second: half of it of the last span, half of those before. 0: none are answered.
    rate: u64,
}

impl Pace {
    /// So many calls have been answered by now. Called whenever a call arrives.
    pub(crate) fn observe(&mut self, now: Time, answered: u64) {
        let passed = now.since(self.since);
        if passed < SPAN {
            return;
        }
        let nanoseconds = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        let last = (answered - self.before).saturating_mul(1_000_000_000) / nanoseconds;
        // An old rate proves nothing.
        let lasting = passed < 2 * SPAN && self.rate > 0;
        self.rate = if lasting { (self.rate + last) / 2 } else { last };
        (self.since, self.before) = (now, answered);
    }

    /// When half of so many calls will have been answered.
    pub(crate) fn retry_after(&self, waiting: usize) -> Duration {
        // Not half of the number: of one call half is still half of the time that one takes.
        let microseconds = (waiting as u64).saturating_mul(500_000);
        microseconds
            .checked_div(self.rate)
            .map_or(UNKNOWN, Duration::from_micros)
            .clamp(LEAST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_room_is_told_when_half_of_it_is_done() {
        let start = Time(1_000_000_000_000);
        let mut pace = Pace::default();
        pace.observe(start, 0);
        assert_eq!(pace.retry_after(8_192), UNKNOWN, "nothing is known");
        // 10,000 calls a second.
        let at = |call: u64| start + Duration::from_micros(100 * call);
        (1..10_000).for_each(|call| pace.observe(at(call), call));
        assert_eq!(pace.retry_after(8_000), Duration::from_millis(400));
        assert_eq!(pace.retry_after(4), LEAST);
        let mut slow = Pace::default();
        slow.observe(start, 0);
        slow.observe(start + Duration::from_secs(1), 50);
        assert_eq!(slow.retry_after(1), Duration::from_millis(10), "half of what a call takes");
        // Half as quick: the answer goes there by halves.
        pace.observe(at(11_000), 10_499);
        let slower = pace.retry_after(4_000);
        assert!(slower > Duration::from_millis(200) && slower < Duration::from_millis(400));
        // Nothing has been answered for a second: nobody knows when something will.
        pace.observe(at(21_000), 10_499);
        assert_eq!(pace.retry_after(8_000), UNKNOWN);
    }
}
