//! When the manager is told how a node's processors are used: by period, and at once when a level
//! is crossed (`flare.txt`, section 3.4).
//!
//! The level is a share of the capacity, and has two edges: a node that is at it with noise would
//! else tell all the time. Crossing it downwards is told at the lower edge, `level - slack`.

use wire::{Duration, Share, Time};

/// The knobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Between two reports when nothing is crossed.
    pub period: Duration,
    /// Above this part of the capacity, in millionths, it is told at once.
    pub level: Share,
    /// So much below the level it is told at once that the use is below it again.
    pub slack: Share,
}

impl Default for Config {
    /// A report each second; the level is that of the paper's bound for many tasks, ln 2 (0.69),
    /// and the slack a twentieth of a processor.
    fn default() -> Config {
        Config {
            period: Duration::from_secs(1),
            level: Share::percent(69),
            slack: Share::percent(5),
        }
    }
}

/// The used part of the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Used processors.
    pub used: Share,
    /// The whole.
    pub capacity: Share,
}

impl Use {
    /// In millionths of the capacity. Nothing is free where there is none.
    fn part(self) -> Share {
        match self.capacity {
            Share::ZERO => Share::ONE,
            Share(whole) => {
                let millionths =
                    u128::from(self.used.0) * u128::from(Share::ONE.0) / u128::from(whole);
                Share(u64::try_from(millionths).unwrap_or(u64::MAX))
            }
        }
    }
}

/// Why a report is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The period is over, or it is the first.
    Period,
    /// The use has come above the level.
    Above,
    /// It has come below the level's lower edge.
    Below,
}

/// Looks at each reading.
#[derive(Clone, Debug)]
pub struct Watch {
    config: Config,
    told: Option<Time>,
    above: bool,
}

impl Watch {
    /// Nothing was told yet.
    ///
    /// # Panics
    /// If the slack is more than the level.
    pub fn new(config: Config) -> Watch {
        assert!(
            config.slack <= config.level,
            "what is below the level's lower edge is not less than nothing"
        );
        Watch { config, told: None, above: false }
    }

    /// The use of the host, and of the node's budget where it has one: whichever is the fuller
    /// counts. Says whether it is to be told.
    pub fn handle(&mut self, now: Time, host: Use, budget: Option<Use>) -> Option<Cause> {
        let part = host.part().max(budget.map_or(Share::ZERO, Use::part));
        let Config { period, level, slack } = self.config;
        let cause = if !self.above && part > level {
            Cause::Above
        } else if self.above && part < level.saturating_sub(slack) {
            Cause::Below
        } else if self.told.is_none_or(|told| now - told >= period) {
            Cause::Period
        } else {
            return None;
        };
        match cause {
            Cause::Above => self.above = true,
            Cause::Below => self.above = false,
            Cause::Period => {}
        }
        self.told = Some(now);
        Some(cause)
    }

    /// The use was above the level when it crossed one of its edges last.
    pub fn is_above(&self) -> bool {
        self.above
    }

    /// When the next report is due by itself.
    pub fn next_timeout(&self) -> Time {
        self.told.map_or(Time::ZERO, |told| told + self.config.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(percent: u64) -> Use {
        Use { used: Share::percent(percent * 2), capacity: Share::percent(200) }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_steady_use_is_told_by_period() {
        let mut watch = Watch::new(Config::default());
        let told: Vec<u64> = (0..=3_000)
            .step_by(20)
            .filter(|ms| watch.handle(at(*ms), used(40), None) == Some(Cause::Period))
            .collect();
        assert_eq!(told, [0, 1_000, 2_000, 3_000]);
        assert_eq!(watch.next_timeout(), at(4_000));
    }

    #[test]
    fn a_crossing_is_told_at_once_and_noise_at_the_level_is_not() {
        let mut watch = Watch::new(Config::default());
        watch.handle(at(0), used(68), None);
        assert_eq!(watch.handle(at(20), used(70), None), Some(Cause::Above));
        for (step, percent) in [68, 70, 66, 71, 65].into_iter().enumerate() {
            assert_eq!(watch.handle(at(40 + step as u64), used(percent), None), None, "{percent}");
        }
        assert_eq!(watch.handle(at(100), used(63), None), Some(Cause::Below));
        assert_eq!(watch.handle(at(120), used(68), None), None);
        assert_eq!(watch.handle(at(140), used(90), None), Some(Cause::Above));
    }

    #[test]
    fn whichever_is_fuller_counts() {
        let half = |percent| Use { used: Share::percent(percent), capacity: Share::percent(50) };
        let mut watch = Watch::new(Config::default());
        watch.handle(at(0), used(10), Some(half(10)));
        assert_eq!(watch.handle(at(20), used(10), Some(half(40))), Some(Cause::Above));
        assert_eq!(watch.handle(at(40), used(90), Some(half(1))), None, "still above");
        assert_eq!(watch.handle(at(60), used(10), Some(half(1))), Some(Cause::Below));
    }

    #[test]
    fn without_capacity_all_is_used() {
        let mut watch = Watch::new(Config::default());
        let none = Use { used: Share::ZERO, capacity: Share::ZERO };
        assert_eq!(watch.handle(at(0), used(1), Some(none)), Some(Cause::Above));
    }
}
