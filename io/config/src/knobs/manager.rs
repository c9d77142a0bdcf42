//! `[manager]`: what a node tells of its host, and what follows from it.

use qos::Policy;
use serde::{Deserialize, Serialize};
use wire::{Duration, Share};

use crate::error::Problem;
use crate::spans::millis;

/// The manager's knobs. [`DEFAULT_CONFIG`](crate::DEFAULT_CONFIG) explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ManagerKnobs {
    /// This node tells what its host has to do, and manages if it has the smallest id.
    pub on: bool,
    /// Between two looks at the host, 1 ms to a second.
    #[serde(rename = "sample_ms", with = "millis")]
    pub sample: Duration,
    /// The span over which use is measured, two samples to a minute.
    #[serde(rename = "window_ms", with = "millis")]
    pub window: Duration,
    /// Between two reports when nothing is crossed, a sample to a minute.
    #[serde(rename = "period_ms", with = "millis")]
    pub period: Duration,
    /// The share that this node and its programs may use, where that is to be measured instead of
    /// the host's processors.
    #[serde(rename = "own_percent", with = "percent")]
    pub own: Option<Share>,
    /// Percent of the capacity above which it is told at once, 1 to 100.
    pub level: u8,
    /// Percent of the capacity below the level at which it is told that the host has room again, at
    /// most the level.
    pub slack: u8,
    /// The test that a host must pass.
    #[serde(with = "PolicyName")]
    pub policy: Policy,
    /// Backups are ranked for the loss of two hosts, too; else as in the paper.
    pub look_ahead: bool,
    /// How long a host is left alone after a primary has left or come, window and period at least,
    /// at most ten minutes.
    #[serde(rename = "settle_ms", with = "millis")]
    pub settle: Duration,
    /// How long a primary that was moved stays, at most an hour.
    #[serde(rename = "rest_ms", with = "millis")]
    pub rest: Duration,
    /// Where no move helps, calls are refused, the least critical first.
    pub shed: bool,
}

/// A thousand processors.
const MOST_OWN: u64 = 100_000;

impl Default for ManagerKnobs {
    fn default() -> Self {
        let ms = Duration::from_millis;
        let watch = monitor::watch::Config::default();
        let machine = manager::Config::default();
        let percent = |share: Share| u8::try_from(share.0 / Share::percent(1).0).unwrap_or(100);
        ManagerKnobs {
            on: false,
            sample: ms(20),
            window: ms(500),
            period: watch.period,
            own: None,
            level: percent(watch.level),
            slack: percent(watch.slack),
            policy: machine.policy,
            look_ahead: machine.look_ahead,
            settle: machine.settle,
            rest: machine.rest,
            shed: machine.shed,
        }
    }
}

impl ManagerKnobs {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let ManagerKnobs { sample, window, period, own, level, slack, settle, rest, .. } = *self;
        let (ms, minute) = (Duration::from_millis(1), Duration::from_secs(60));
        let refused = |key, range| Err(Problem::Manager { key, range });
        if sample < ms || sample > ms * 1_000 {
            return refused("sample_ms", "1 to 1000");
        }
        if window < sample * 2 || window > minute {
            return refused("window_ms", "twice sample_ms to 60000");
        }
        if period < sample || period > minute {
            return refused("period_ms", "sample_ms to 60000");
        }
        if own.is_some_and(|own| own > Share::percent(MOST_OWN)) {
            return refused("own_percent", "0 to 100000");
        }
        if !(1..=100).contains(&level) {
            return refused("level", "1 to 100");
        }
        if slack > level {
            return refused("slack", "0 to level");
        }
        if settle < window + period || settle > minute * 10 {
            return refused("settle_ms", "window_ms + period_ms to 600000");
        }
        if rest > minute * 60 {
            return refused("rest_ms", "0 to 3600000");
        }
        Ok(())
    }

    /// The policy, as files and people have it.
    pub fn policy_name(&self) -> &'static str {
        match self.policy {
            Policy::RateMonotonic => "rate-monotonic",
            Policy::Hyperbolic => "hyperbolic",
            Policy::EarliestDeadline | Policy::ResponseTime => "earliest-deadline",
        }
    }

    /// The machine's part.
    #[allow(clippy::needless_update, reason = "with planted mistakes there is one field more")]
    pub fn manager(&self) -> manager::Config {
        let ManagerKnobs { policy, look_ahead, settle, rest, shed, .. } = *self;
        manager::Config { policy, look_ahead, settle, rest, shed, ..manager::Config::default() }
    }

    /// The part that says when the others are told.
    pub fn watch(&self) -> monitor::watch::Config {
        let percent = |percent: u8| Share::percent(percent.into());
        monitor::watch::Config {
            period: self.period,
            level: percent(self.level),
            slack: percent(self.slack),
        }
    }
}

/// Response times are no policy here: what is measured has no period of its own, so they say what
/// the earliest deadline says.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Policy", rename_all = "kebab-case")]
enum PolicyName {
    RateMonotonic,
    Hyperbolic,
    EarliestDeadline,
    #[serde(rename = "earliest-deadline", skip_deserializing)]
    ResponseTime,
}

/// Percent of a processor; 0: the host's processors are measured.
mod percent {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use wire::Share;

    use super::MOST_OWN;

    pub fn serialize<S: Serializer>(own: &Option<Share>, to: S) -> Result<S::Ok, S::Error> {
        own.map_or(0, |own| own.0 / Share::percent(1).0).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Share>, D::Error> {
        let percent = u64::deserialize(from)?;
        // More is refused with a word by the check.
        Ok((percent > 0).then(|| Share::percent(percent.min(MOST_OWN + 1))))
    }
}
