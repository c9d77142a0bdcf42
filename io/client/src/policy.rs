//! A client's use of a group's targets. The rules are in `docs/protocol/client.md`, "Targets".

use std::time::Duration;

use wire::ordered::Style;

/// The replicas that receive a call, where several may answer it.
///
/// Every replica answers calls to stateless, active and voting groups, and reads of all groups.
/// Other calls go to the primary, whatever this says.
///
/// The first four send each call to one replica, and choose which one. The last three send each
/// call to all replicas at once (multicast), and choose how many replies make its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Balancing {
    /// The primary, or the first replica in rank that can be reached.
    #[default]
    Primary,
    /// A random replica, all alike.
    Random,
    /// The replica with the least load (Envoy's and gRPC's *least request*).
    ///
    /// The load is `(n + 1) S`. The client has `n` calls of the group under way at the replica,
    /// and `S` is the smoothed time of an answer. `S` halves in each second without one.
    LeastLoaded,
    /// The less loaded of two random replicas (the *power of two choices*, Finagle's P2C).
    ///
    /// Clients that know the same loads do not all choose the same replica.
    TwoChoices,
    /// All replicas at once. The first reply is the result.
    ///
    /// This rule alone sends reads of a group of any style to all replicas. Some backups decline a
    /// read, so [`Majority`](Self::Majority) and [`All`](Self::All) leave it to the primary.
    FirstReply,
    /// All replicas at once. The result is what more than half of them say alike, byte for byte.
    ///
    /// If all have answered without a majority, the call is refused as
    /// [`Split`](wire::client::Refusal::Split).
    Majority,
    /// All replicas at once. The result is what all of them say alike, byte for byte.
    ///
    /// If two replies differ, the call is refused as [`Split`](wire::client::Refusal::Split).
    All,
}

/// How many replies a call waits for that goes to all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    First,
    Majority,
    All,
}

impl Balancing {
    /// How many replies a call waits for, if it goes to all replicas.
    pub(crate) fn replies(self) -> Option<Replies> {
        match self {
            Balancing::FirstReply => Some(Replies::First),
            Balancing::Majority => Some(Replies::Majority),
            Balancing::All => Some(Replies::All),
            Balancing::Primary
            | Balancing::Random
            | Balancing::LeastLoaded
            | Balancing::TwoChoices => None,
        }
    }
}

/// When a client learns of the replica that takes over, in the terms of FLARe (4.2 to 4.4).
///
/// This is for those who compare clients as that study did. Keep the default elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The client keeps the first targets that it was told, and learns only which of them fail.
    ///
    /// It loses a group that goes on at other nodes.
    Static,
    /// The client asks a node for the targets after a failure, before the call goes on.
    ///
    /// It does not believe news that it did not ask for.
    Reactive,
    /// The client learns all news at once, so it knows the next target before the first fails.
    #[default]
    Proactive,
}

/// How a client learns of new targets while nothing fails, in the terms of Jgroup/ARM (section 5).
///
/// This is for those who compare clients as that study did. Keep the default elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refresh {
    /// It does not.
    None,
    /// The client asks a node once in each such period, at least 1 ms.
    ///
    /// The first question comes after a random part of it, so that clients do not ask together.
    Periodic(Duration),
    /// Each request names the client's view, and the reply brings the targets of a newer one.
    ///
    /// This costs no message.
    #[default]
    View,
}

/// A client's use of a group's targets.
///
/// ```
/// use std::time::Duration;
/// use steadfast_client::{Balancing, Policy};
///
/// let policy = Policy::default().balancing(Balancing::TwoChoices).priority(200);
/// assert_eq!(policy.fail_back, Duration::from_millis(200));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The replicas that receive a call, where several may answer it.
    pub balancing: Balancing,
    /// How critical the calls are, from 0 (the default) to 255.
    pub priority: u8,
    /// How long a target must stay connected after a failure before it is preferred again.
    ///
    /// The default is 200 ms.
    pub fail_back: Duration,
    /// When the client learns of the replica that takes over. See [`Strategy`].
    pub strategy: Strategy,
    /// How the client learns of new targets while nothing fails. See [`Refresh`].
    pub refresh: Refresh,
}

impl Policy {
    /// Chooses the replicas that receive a call.
    #[must_use]
    pub fn balancing(self, balancing: Balancing) -> Self {
        Policy { balancing, ..self }
    }

    /// Sets how critical the calls are. A busy host refuses less critical calls first.
    ///
    /// Calls inherit the priority of the call whose handler makes them, through all groups. In a
    /// stateless group in lanes ([`Lane`](wire::Lane)) critical calls from 100 and alarms from 200
    /// do not wait for others. Elsewhere a priority orders nothing: calls wait alike.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Policy { priority, ..self }
    }

    /// Sets how long a target must stay connected after a failure before it is preferred again.
    ///
    /// A target that comes and goes would else fail calls each time. This matters where all
    /// replicas answer alike. Other groups have a primary, which gets the calls in any case.
    #[must_use]
    pub fn fail_back(self, fail_back: Duration) -> Self {
        Policy { fail_back, ..self }
    }

    /// Sets when the client learns of the replica that takes over.
    #[must_use]
    pub fn strategy(self, strategy: Strategy) -> Self {
        Policy { strategy, ..self }
    }

    /// Sets how the client learns of new targets while nothing fails.
    #[must_use]
    pub fn refresh(self, refresh: Refresh) -> Self {
        Policy { refresh, ..self }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            balancing: Balancing::default(),
            priority: 0,
            fail_back: Duration::from_millis(200),
            strategy: Strategy::default(),
            refresh: Refresh::default(),
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

#[cfg(test)]
mod tests {
    use super::*;

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
