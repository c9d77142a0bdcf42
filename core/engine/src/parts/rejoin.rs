//! When a replica that was taken out for its votes comes back.

use wire::{Duration, Time};

/// A replica that was taken out comes back at once; then after so long, and twice as long each
/// time, up to [`LONGEST`]. Being good for ten times as long as it was kept out last makes it
/// forgotten.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);

/// How long this node's replica stays out of its group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RejoinBackoff {
    /// It was taken out so often in a row.
    times: u32,
    /// It does not come back before.
    until: Time,
    /// That time has not come.
    kept_out: bool,
}

impl RejoinBackoff {
    /// It is taken out.
    pub(crate) fn begin(&mut self, now: Time) {
        let good_for = backoff(self.times).max(FIRST) * 10;
        if now >= self.until + good_for {
            self.times = 0;
        }
        self.times += 1;
        self.until = now + backoff(self.times);
        self.kept_out = self.until > now;
    }

    pub(crate) fn is_kept_out(&self) -> bool {
        self.kept_out
    }

    /// When it may come back, if it is out.
    pub(crate) fn ends(&self) -> Option<Time> {
        self.kept_out.then_some(self.until)
    }

    /// The time may have come.
    pub(crate) fn expire(&mut self, now: Time) {
        self.kept_out &= self.until > now;
    }
}

fn backoff(times: u32) -> Duration {
    match times {
        0 | 1 => Duration::ZERO,
        _ => (FIRST * 2u32.saturating_pow(times - 2).min(1 << 16)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_in_a_row_takes_twice_as_long() {
        let mut rejoin = RejoinBackoff::default();
        let mut now = Time(1_000_000_000);
        rejoin.begin(now);
        assert!(!rejoin.is_kept_out(), "once may be an accident");
        for times in 0..20 {
            rejoin.begin(now);
            let ends = rejoin.ends().expect("it is out");
            assert_eq!(ends, now + (FIRST * (1 << times)).min(LONGEST));
            rejoin.expire(ends);
            assert!(!rejoin.is_kept_out());
            now = ends;
        }
        rejoin.begin(now + LONGEST * 11);
        assert!(!rejoin.is_kept_out(), "it was good for long");
    }
}
