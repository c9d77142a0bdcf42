//! `[manager]`: what a node tells of its host, and what follows from it.

use manager::bound::Policy;
use serde::{Deserialize, Serialize};
use wire::{Duration, Share};

use crate::error::Problem;

/// The manager's knobs. [`DEFAULT_CONFIG`](crate::DEFAULT_CONFIG) explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagerKnobs {
    /// This node tells what its host has to do, and manages if it has the smallest id.
    pub on: bool,
    /// Between two looks at the host, 1 ms to a second.
    pub sample: Duration,
    /// The span over which use is measured, two samples to a minute.
    pub window: Duration,
    /// Between two reports when nothing is crossed, a sample to a minute.
    pub period: Duration,
    /// What this node and its programs may use, where that and not the host's processors is to be measured.
    pub own: Option<Share>,
    /// Percent of the capacity above which it is told at once, 1 to 100.
    pub level: u8,
    /// Percent of the capacity below the level at which it is told that the host has room again, at most the level.
    pub slack: u8,
    /// The test that a host must pass.
    pub policy: Policy,
    /// Backups are ranked for the loss of two hosts, too; else as in the paper.
    pub look_ahead: bool,
    /// How long a host is left alone after a primary has left or come, window and period at least, at most ten minutes.
    pub settle: Duration,
    /// How long a primary that was moved stays, at most an hour.
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

/// As it stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Table {
    on: bool,
    sample_ms: u64,
    window_ms: u64,
    period_ms: u64,
    own_percent: u64,
    level: u8,
    slack: u8,
    policy: PolicyName,
    look_ahead: bool,
    settle_ms: u64,
    rest_ms: u64,
    shed: bool,
}

/// Response times are no policy here: what is measured has no period of its own, so they say what the earliest deadline says.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PolicyName {
    RateMonotonic,
    Hyperbolic,
    EarliestDeadline,
}

impl Default for Table {
    fn default() -> Self {
        ManagerKnobs::default().into()
    }
}

impl From<ManagerKnobs> for Table {
    fn from(knobs: ManagerKnobs) -> Self {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Table {
            on: knobs.on,
            sample_ms: ms(knobs.sample),
            window_ms: ms(knobs.window),
            period_ms: ms(knobs.period),
            own_percent: knobs.own.map_or(0, |own| own.0 / Share::percent(1).0),
            level: knobs.level,
            slack: knobs.slack,
            policy: match knobs.policy {
                Policy::RateMonotonic => PolicyName::RateMonotonic,
                Policy::Hyperbolic => PolicyName::Hyperbolic,
                Policy::EarliestDeadline | Policy::ResponseTime => PolicyName::EarliestDeadline,
            },
            look_ahead: knobs.look_ahead,
            settle_ms: ms(knobs.settle),
            rest_ms: ms(knobs.rest),
            shed: knobs.shed,
        }
    }
}

impl From<Table> for ManagerKnobs {
    fn from(table: Table) -> Self {
        let ms = Duration::from_millis;
        ManagerKnobs {
            on: table.on,
            sample: ms(table.sample_ms),
            window: ms(table.window_ms),
            period: ms(table.period_ms),
            own: match table.own_percent {
                0 => None,
                // More is refused with a word by the check.
                percent => Some(Share::percent(percent.min(MOST_OWN + 1))),
            },
            level: table.level,
            slack: table.slack,
            policy: match table.policy {
                PolicyName::RateMonotonic => Policy::RateMonotonic,
                PolicyName::Hyperbolic => Policy::Hyperbolic,
                PolicyName::EarliestDeadline => Policy::EarliestDeadline,
            },
            look_ahead: table.look_ahead,
            settle: ms(table.settle_ms),
            rest: ms(table.rest_ms),
            shed: table.shed,
        }
    }
}
