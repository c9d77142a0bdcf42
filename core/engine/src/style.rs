//! The rules that depend on a group's style. Each question is answered in one place, here.
//!
//! | question | who asks |
//! | --- | --- |
//! | who takes a client's call? | `groups/calls.rs`, when it comes |
//! | does who takes it ask first whether another took it? | the same |
//! | is a call ordered, or executed at once where it comes, or only at the primary? | the same |
//! | which of several entries is the best? | the same, when it tells clients the targets |
//! | who orders a replica's calls of other groups, and what it answers to theirs? | `replicas/nested.rs` |
//! | who executes a request at its place in the order? | `replicas/passive.rs` |
//! | who learns what becomes of a request that another node had ordered? | `replies/calls.rs`, when it has its place |
//! | is a call that changes nothing ordered all the same? | `replicas/reads.rs`, when it comes |
//! | can a group be kept on disk, or get this style while it runs? | `wire::ordered::GroupOptions` |
//! | do replicas compare their states? | `replicas/comparing.rs` |
//! | do replicas vote on their outcomes? | `replica.rs`, when one has executed |
//! | have replicas a state, which a joiner is given first? | `wire::ordered::Style`; `directory.rs`, when one joins or a component begins |
//! | are requests logged by all, and executed by the primary alone? | `replica/cold.rs` |
//! | does the primary stay primary when others come back? | `directory.rs` |

use wire::ordered::Style;

/// A node's role in a group's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has no replica.
    Stranger,
    /// Its replica waits for the state.
    Joining,
    /// Its replica has the state, and another is primary.
    Backup,
    /// Its replica is the first in rank that has the state.
    Primary,
}

/// A node's treatment of a client's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It takes the call at once.
    Open,
    /// It takes the call if nobody else has after a while.
    Spare,
    /// It takes none: the client is sent elsewhere, or waits for a view with an open entry.
    Closed,
}

/// The rules of a style.
pub(crate) trait StyleRules {
    /// The treatment of a client's call by a node in this role.
    fn entry(self, standing: Standing) -> Entry;

    /// Whether calls are ordered. Else their entry executes them at once, in any component or none,
    /// and the reply waits for nobody.
    fn orders(self) -> bool;

    /// Whether any entry is as good as another, so that the client's present one is the best.
    /// Otherwise the primary is, where the token rests.
    fn nearest_first(self) -> bool;

    /// Whether an open entry first looks if its replica knows the call: a client may ask again, or
    /// ask two entries. Otherwise only retries after a fail-over come twice, and the sessions
    /// detect them.
    fn looks_first(self) -> bool;

    /// Whether the primary executes a call on arrival, and orders its changes instead of the call.
    fn executes_on_arrival(self) -> bool;

    /// Whether every replica may order messages on behalf of the group. Otherwise the primary does.
    fn all_speak(self) -> bool;

    /// Whether replicas keep requests in a log, and only the primary's service runs.
    fn logs(self) -> bool;

    /// Whether a node in this role receives a request at its place in the order. Its replica
    /// executes it, now or when it has the state, and answers if the client is here.
    fn executes(self, standing: Standing) -> bool;

    /// Whether a node in this role learns the result of each request that it receives. Otherwise it
    /// learns the results of requests that it has ordered itself.
    fn learns_all(self, standing: Standing) -> bool;

    /// Whether a replica that gets the state comes after those that had it: a primary stays primary
    /// until it goes.
    fn keeps_its_primary(self) -> bool;

    /// Whether read-only calls are ordered, too: one replica alone is not trusted, or its service
    /// may have seen more than the order shows.
    fn orders_reads(self) -> bool;

    /// Whether all replicas execute all calls, so that their states are compared.
    fn compares(self) -> bool;

    /// Whether an answer waits until a majority of the replicas has voted for it.
    fn votes(self) -> bool;
}

impl StyleRules for Style {
    fn entry(self, standing: Standing) -> Entry {
        match (self, standing) {
            (_, Standing::Stranger | Standing::Joining) => Entry::Closed,
            (Style::SemiActive | Style::WarmPassive | Style::ColdPassive, standing) => {
                if standing == Standing::Primary { Entry::Open } else { Entry::Spare }
            }
            (Style::Active | Style::Voting | Style::Stateless, _) => Entry::Open,
        }
    }

    fn orders(self) -> bool {
        match self {
            Style::Stateless => false,
            Style::ColdPassive
            | Style::WarmPassive
            | Style::SemiActive
            | Style::Active
            | Style::Voting => true,
        }
    }

    fn nearest_first(self) -> bool {
        match self {
            Style::Stateless => true,
            Style::ColdPassive
            | Style::WarmPassive
            | Style::SemiActive
            | Style::Active
            | Style::Voting => false,
        }
    }

    fn looks_first(self) -> bool {
        match self {
            Style::SemiActive | Style::Active | Style::Voting => true,
            Style::Stateless | Style::ColdPassive | Style::WarmPassive => false,
        }
    }

    fn executes_on_arrival(self) -> bool {
        self == Style::WarmPassive
    }

    fn keeps_its_primary(self) -> bool {
        // It may have executed unordered calls, or its service alone runs.
        matches!(self, Style::WarmPassive | Style::ColdPassive)
    }

    fn logs(self) -> bool {
        self == Style::ColdPassive
    }

    fn all_speak(self) -> bool {
        match self {
            Style::ColdPassive | Style::WarmPassive | Style::SemiActive => false,
            Style::Active | Style::Voting | Style::Stateless => true,
        }
    }

    fn executes(self, standing: Standing) -> bool {
        match self {
            Style::Stateless => false,
            Style::ColdPassive | Style::SemiActive | Style::Active | Style::Voting => {
                standing != Standing::Stranger
            }
            // A backup had it ordered because its client cannot reach the primary.
            Style::WarmPassive => standing == Standing::Primary,
        }
    }

    fn learns_all(self, standing: Standing) -> bool {
        standing == Standing::Primary || !self.logs()
    }

    fn orders_reads(self) -> bool {
        self.votes() || self.logs()
    }

    fn compares(self) -> bool {
        match self {
            Style::SemiActive | Style::Active | Style::Voting => true,
            // The state comes from the primary, or there is none.
            Style::WarmPassive | Style::ColdPassive | Style::Stateless => false,
        }
    }

    fn votes(self) -> bool {
        self == Style::Voting
    }
}
