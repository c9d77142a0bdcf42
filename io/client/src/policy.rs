//! What a client is told to do with targets: what it learns of them and when, which of them it asks, and how often again.
//!
//! Strategies are those of FLARe (4.2 to 4.4), refresh techniques those of Jgroup/ARM (5). The rules are in
//! `docs/protocol/client.md`, "Targets".

use std::time::Duration;

use wire::Time;
use wire::ordered::Style;

/// When a client learns who takes over from a target (FLARe 4.2, 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The targets as they were told first. Nothing is learned later, but who has failed: a group that goes on elsewhere is lost
    /// to this client. For comparison, and where nobody may steer a client.
    Static,
    /// After a failure somebody is asked for the targets before the call goes on. What comes unasked is not believed.
    Reactive,
    /// Whatever is told is learned at once, so that the next target is known before the first fails.
    #[default]
    Proactive,
}

/// How newer targets come while nothing fails (Jgroup/ARM 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refresh {
    /// Not at all.
    None,
    /// A node is asked once in each such period, at least 1 ms; the first time after a part of it that is drawn at random, so that clients
    /// that begin together do not ask together.
    Periodic(Duration),
    /// Each request says the view that it was sent by, and the reply brings targets if the node knows a newer one. Costs no message.
    #[default]
    View,
}

/// Which replica a call goes to, where several may answer: calls to groups of the stateless, active and voting styles, and reads.
/// Everything else goes to the first in rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The first in rank.
    #[default]
    Primary,
    /// Any of them, by this rule, among those that have not failed of late.
    Anycast(Anycast),
    /// All of them at once. Reads of groups of other styles than stateless, active and voting only with [`Replies::First`], for some of their
    /// backups decline; else they go to the first in rank.
    Multicast(Replies),
}

/// How many replies a call waits for that all replicas are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// One: the first.
    First,
    /// Until more than half of the group's targets have answered alike, byte for byte: that is the call's result. If all have answered
    /// without that it is refused as [`Split`](wire::client::Refusal::Split).
    Majority,
    /// One of each target. The call's result is what they say, if they all say the same; else it is refused as
    /// [`Split`](wire::client::Refusal::Split).
    All,
}

/// Which of several replicas that may answer equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anycast {
    /// Each is as likely.
    Uniform,
    /// The one with the least load as far as this client knows: `(n + 1) S`, of `n` calls of its own to the group that are under way there, and
    /// the smoothed time of an answer, which counts half for each second that passes without one.
    LeastLoaded,
    /// The less loaded one of two that are drawn: clients that know the same do not all run to the same replica.
    BestOfTwo,
}

/// How often a client sends calls again that may have been executed: a token bucket over all its groups.
///
/// A *retry* is an attempt after one that was lost or silent. In any span of `t` seconds in which a client begins `c` calls it makes
/// at most `burst + per_second t + c per_thousand / 1000` retries; one more waits, at most until its deadline
/// ([`CallError::RetriesSpent`](crate::CallError::RetriesSpent)). So clients cannot multiply the load of nodes that are slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// What each call earns, in thousandths of a retry. At most 1,000.
    pub per_thousand: u32,
    /// What each second earns, so that a lone call is tried again: at least 1.
    pub per_second: u32,
    /// What may be saved up, and is there at first: at least 1. As many calls as this can lose a node at the same time and go on at once.
    pub burst: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Retries { per_thousand: 200, per_second: 10, burst: 1_024 }
    }
}

/// What a client does with the targets of a group.
///
/// ```
/// use std::time::Duration;
/// use steadfast_client::{Anycast, Choice, Policy, Refresh};
///
/// let policy = Policy {
///     choice: Choice::Anycast(Anycast::BestOfTwo),
///     refresh: Refresh::Periodic(Duration::from_secs(15)),
///     ..Policy::default()
/// };
/// assert_eq!(policy.fail_back, Duration::from_millis(200));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// When it learns who takes over.
    pub strategy: Strategy,
    /// How newer targets come while nothing fails.
    pub refresh: Refresh,
    /// Which replica is asked.
    pub choice: Choice,
    /// A target that had failed is not preferred until it has been connected again for so long without failing: one that comes and goes
    /// would take calls down with it each time. Only where the others answer as well: of other groups the primary is asked whatever it did.
    pub fail_back: Duration,
    /// Said with each call, and inherited by the calls that its handler makes, on through all groups: larger is more critical, 0 to 255, 0 unless
    /// somebody says otherwise. It says whose calls are taken where not all can be, and orders nothing: all calls that are taken wait alike.
    pub priority: u8,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            strategy: Strategy::default(),
            refresh: Refresh::default(),
            choice: Choice::default(),
            fail_back: Duration::from_millis(200),
            priority: 0,
        }
    }
}

/// How targets came to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// In answer to a question.
    Asked,
    /// By a node that did not do what it was asked.
    Declined,
    /// Beside a result.
    Beside,
    /// By nobody's wish: a node knows of a newer view.
    Pushed,
}

impl Policy {
    /// News of this kind is believed of a group whose targets are known.
    pub(crate) fn believes(&self, news: News) -> bool {
        match (self.strategy, news) {
            (Strategy::Static, _) | (Strategy::Reactive, News::Pushed) => false,
            (_, News::Asked | News::Declined) | (Strategy::Proactive, News::Pushed) => true,
            (_, News::Beside) => self.refresh == Refresh::View,
        }
    }

    /// How often a node is asked, if it is.
    pub(crate) fn period(&self) -> Option<Duration> {
        match self.refresh {
            Refresh::Periodic(period) if self.strategy != Strategy::Static => {
                Some(period.max(Duration::from_millis(1)))
            }
            _ => None,
        }
    }
}

/// Any of the group's replicas answers such a call as well as the first in rank.
pub(crate) fn any_answers(style: Style, reads: bool) -> bool {
    reads || matches!(style, Style::Stateless | Style::Active | Style::Voting)
}

/// Calls like this one are sent to all replicas.
pub(crate) fn is_spread(style: Style, reads: bool, replies: Replies) -> bool {
    any_answers(style, false) || reads && replies == Replies::First
}

/// A retry costs this much of the bucket, whose unit is a millionth.
const PRICE: u64 = 1_000_000;

/// What is left of [`Retries`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    retries: Retries,
    credit: u64,
    since: Time,
}

impl Budget {
    pub(crate) fn new(retries: Retries, now: Time) -> Self {
        let retries = Retries {
            per_thousand: retries.per_thousand.min(1_000),
            per_second: retries.per_second.max(1),
            burst: retries.burst.max(1),
        };
        Budget { retries, credit: u64::from(retries.burst) * PRICE, since: now }
    }

    fn add(&mut self, credit: u64) {
        let most = u64::from(self.retries.burst) * PRICE;
        self.credit = self.credit.saturating_add(credit).min(most);
    }

    /// A call begins.
    pub(crate) fn earn(&mut self) {
        self.add(u64::from(self.retries.per_thousand) * (PRICE / 1_000));
    }

    /// A call is to be tried again: `Err` with the time at which it may be, if nobody else is first.
    pub(crate) fn spend(&mut self, now: Time) -> Result<(), Time> {
        let passed = u64::try_from(now.since(self.since).as_micros()).unwrap_or(u64::MAX);
        // A millionth each microsecond and unit of `per_second`; what is left of a microsecond is waited for again.
        self.add(passed.saturating_mul(u64::from(self.retries.per_second)));
        self.since = self.since.max(now);
        if let Some(rest) = self.credit.checked_sub(PRICE) {
            self.credit = rest;
            return Ok(());
        }
        let micros = (PRICE - self.credit).div_ceil(u64::from(self.retries.per_second));
        Err(now + Duration::from_micros(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_burst_a_share_of_the_calls_and_some_a_second() {
        let retries = Retries { per_thousand: 100, per_second: 5, burst: 3 };
        let start = Time(1_000_000_000);
        let mut budget = Budget::new(retries, start);
        let mut spent =
            |count: usize, now| (0..count).filter(|_| budget.spend(now).is_ok()).count();
        assert_eq!(spent(10, start), 3);
        let later = start + Duration::from_secs(1);
        assert_eq!(spent(10, later), 3, "five are earned, three are kept");
        (0..20).for_each(|_| budget.earn());
        assert_eq!((0..10).filter(|_| budget.spend(later).is_ok()).count(), 2);
        let next = budget.spend(later).unwrap_err();
        assert_eq!(next, later + Duration::from_millis(200));
        assert_eq!(budget.spend(next), Ok(()));
        assert!(budget.spend(next).is_err());
    }

    #[test]
    fn who_believes_what() {
        let policy = |strategy, refresh| Policy { strategy, refresh, ..Policy::default() };
        let all = [News::Asked, News::Declined, News::Beside, News::Pushed];
        let believed = |policy: Policy| all.map(|news| policy.believes(news));
        let of = |strategy, refresh| believed(policy(strategy, refresh));
        assert_eq!(of(Strategy::Static, Refresh::View), [false; 4]);
        assert_eq!(of(Strategy::Reactive, Refresh::None), [true, true, false, false]);
        assert_eq!(of(Strategy::Reactive, Refresh::View), [true, true, true, false]);
        assert_eq!(of(Strategy::Proactive, Refresh::None), [true, true, false, true]);
        assert_eq!(believed(Policy::default()), [true; 4]);
    }
}
