//! The clocks of a host: each starts somewhere and runs a little fast or slow.

use wire::{Duration, Time};

/// Offsets beyond this (nanoseconds: 2.5 hours) do not happen in a run.
const FOREVER: u64 = 9_000_000_000_000;

/// A monotonic clock and a wall clock, both driven by one crystal.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The monotonic clock's reading at true time zero.
    pub start: u64,
    /// The wall clock's reading at true time zero, in nanoseconds since the Unix epoch.
    pub wall: u64,
    /// Parts per million by which the crystal runs fast (or slow, when negative).
    pub drift_ppm: i64,
}

impl Clock {
    fn elapsed(&self, truth: Time) -> u64 {
        // Runs last seconds: far from the 2.5 hours after which this product has no room.
        let span = i64::try_from(truth.0).expect("runs are short");
        let drifted = span + span * self.drift_ppm / 1_000_000;
        drifted.unsigned_abs()
    }

    /// The wall clock is set by so many milliseconds; the monotonic one does not notice.
    pub fn jump(&mut self, by: i64) {
        self.wall = self.wall.saturating_add_signed(by * 1_000_000);
    }

    /// The monotonic clock at this true time.
    pub fn local(&self, truth: Time) -> Time {
        Time(self.start + self.elapsed(truth))
    }

    /// The wall clock at this true time.
    pub fn wall(&self, truth: Time) -> Time {
        Time(self.wall + self.elapsed(truth))
    }

    /// The first true time at which the monotonic clock has reached `local`.
    pub fn truth(&self, local: Time) -> Time {
        let span = local.0.saturating_sub(self.start).min(FOREVER);
        let rate = 1_000_000u64.saturating_add_signed(self.drift_ppm);
        let mut truth = Time(span * 1_000_000 / rate);
        if span == FOREVER {
            return truth;
        }
        while self.local(truth) < local {
            truth += Duration::from_nanos(1);
        }
        truth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_never_early_on_a_drifting_clock() {
        for drift_ppm in [-900, -1, 0, 1, 333, 900] {
            let clock = Clock { start: 77_000_000_123, wall: 5, drift_ppm };
            for local in [0, 77_000_000_123, 77_000_000_124, 77_123_456_789, 99_999_999_999] {
                let truth = clock.truth(Time(local));
                assert!(clock.local(truth) >= Time(local));
                if truth > Time::ZERO {
                    let before = Time(truth.0.saturating_sub(2));
                    assert!(clock.local(before) < Time(local), "not late either");
                }
            }
        }
    }
}
