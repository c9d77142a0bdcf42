//! The time at which a replica that was expelled for its votes rejoins.

use wire::{Duration, Time};

/// An expelled replica first rejoins at once; then after so long, and twice as long each time, up
/// to [`LONGEST`]. Its expulsions are forgotten after ten times its last time out without another.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);

/// How long this node's replica stays out of its group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RejoinBackoff {
    /// The number of expulsions in a row.
    times: u32,
    /// The replica does not rejoin before.
    until: Time,
    /// Whether that time is yet to come.
    kept_out: bool,
}

impl RejoinBackoff {
    /// The replica is expelled.
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

    /// Returns when it may rejoin, if it is out.
    pub(crate) fn ends(&self) -> Option<Time> {
        self.kept_out.then_some(self.until)
    }

    /// Checks whether the time has come.
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
