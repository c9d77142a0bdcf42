//! The use within a window, from a counter of what was used in all.

use std::collections::VecDeque;

use wire::{Duration, Share, Time};

/// A gauge keeps no more readings than this: who reads more often than `window / MAX_READINGS` gets
/// a shorter window.
const MAX_READINGS: usize = 64;

/// Tells the use between now and the last reading that is at least a window old.
#[derive(Clone, Debug)]
pub struct Gauge {
    window: Duration,
    readings: VecDeque<(Time, Duration)>,
}

impl Gauge {
    /// Makes a gauge of a counter that was not read yet. A change shows in full after `window`, and
    /// in part at the next reading.
    pub fn new(window: Duration) -> Gauge {
        Gauge { window, readings: VecDeque::new() }
    }

    /// The counter says so now. `None` at its first reading, and when it has gone back: then
    /// another is counted there.
    pub fn read(&mut self, now: Time, used: Duration) -> Option<Share> {
        if self.readings.back().is_some_and(|(at, before)| now < *at || used < *before) {
            self.readings.clear();
        }
        self.readings.push_back((now, used));
        let enough = |readings: &VecDeque<(Time, Duration)>| {
            readings.get(1).is_some_and(|(at, _)| now - *at >= self.window)
        };
        while enough(&self.readings) || self.readings.len() > MAX_READINGS {
            self.readings.pop_front();
        }
        let (since, before) = *self.readings.front()?;
        (now > since).then(|| Share::of(used - before, now - since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_change_shows_in_part_at_once_and_in_full_after_the_window() {
        let mut gauge = Gauge::new(WINDOW);
        let (mut now, mut used) = (Time::ZERO, Duration::ZERO);
        assert_eq!(gauge.read(now, used), None);
        let mut shares = Vec::new();
        for step in 0..20 {
            now += ms(20);
            used += if step < 10 { ms(10) } else { ms(20) };
            shares.push(gauge.read(now, used).unwrap());
        }
        assert!(shares[..10].iter().all(|share| *share == Share::percent(50)));
        assert_eq!(shares[10], Share::percent(60), "one of five readings");
        assert!(shares[14..].iter().all(|share| *share == Share::ONE));
    }

    #[test]
    fn a_counter_that_goes_back_is_another() {
        let mut gauge = Gauge::new(WINDOW);
        gauge.read(Time::ZERO, ms(500));
        assert_eq!(gauge.read(Time::ZERO + ms(20), ms(3)), None);
        assert_eq!(gauge.read(Time::ZERO + ms(40), ms(13)), Some(Share::percent(50)));
    }

    #[test]
    fn who_reads_at_every_moment_fills_nothing() {
        let mut gauge = Gauge::new(WINDOW);
        for nanos in 0..10_000 {
            gauge.read(Time(nanos), Duration::from_nanos(nanos / 2));
        }
        assert!(gauge.readings.len() <= MAX_READINGS);
    }

    #[test]
    fn two_readings_of_one_moment_tell_nothing() {
        let mut gauge = Gauge::new(WINDOW);
        gauge.read(Time::ZERO, ms(1));
        assert_eq!(gauge.read(Time::ZERO, ms(2)), None);
    }
}
