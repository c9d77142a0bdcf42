//! What depends on a group's style. Each question is answered in one place, here, and whoever acts
//! asks it.
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
//! | do replicas vote on their outcomes? | `replica.rs`, when one has executed |
//! | have replicas a state, which a joiner is given first? | `wire::ordered::Style`; `directory.rs`, when one joins or a component begins |
//! | are requests logged by all, and executed by the primary alone? | `replica/cold.rs` |
//! | does the primary stay primary whoever comes back? | `directory.rs` |

use wire::ordered::Style;

/// How a node stands to a group, by the group's view.
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

/// What a node does with a client's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It takes the call at once.
    Open,
    /// It takes the call if nobody else has after a while.
    Spare,
    /// It takes none: the client is told who does, or waits for the view in which somebody does.
    Closed,
}

/// What is done by style.
pub(crate) trait StyleRules {
    /// What a node that stands so does with a client's call.
    fn entry(self, standing: Standing) -> Entry;

    /// Whether calls are ordered. Else their entry executes them at once, in any component or none,
    /// and the reply waits for nobody.
    fn orders(self) -> bool;

    /// Whether any entry is as good as another, so that the best is the one that the client has
    /// found. Else it is the primary, where the token rests.
    fn nearest_first(self) -> bool;

    /// Whether an open entry looks if its replica knows the call, before it takes it: a client may
    /// ask again, or have asked another as well. Else only who retries after a fail-over asks
    /// twice, and the sessions see it.
    fn looks_first(self) -> bool;

    /// Whether the primary executes a call when it comes, and orders what that has changed, instead
    /// of the call.
    fn executes_on_arrival(self) -> bool;

    /// Whether every replica may say what the group has to say to others: else the primary does.
    fn all_speak(self) -> bool;

    /// Whether replicas keep requests in a log, and only the primary's service runs.
    fn logs(self) -> bool;

    /// Whether a node that stands so is given a request at its place in the order: its replica
    /// executes it, now or when it has the state, and answers the call if its client is here.
    fn executes(self, standing: Standing) -> bool;

    /// Whether a node that stands so learns what becomes of each request that it is given, whoever
    /// had it ordered. Else it is told of those that it has ordered itself.
    fn learns_all(self, standing: Standing) -> bool;

    /// Whether a replica that gets the state comes after those that had it: who is primary stays so
    /// until it goes.
    fn keeps_its_primary(self) -> bool;

    /// Whether a call that changes nothing is ordered all the same: one replica's word is not
    /// believed, or what its service has seen is not told by the order alone.
    fn orders_reads(self) -> bool;

    /// Whether an answer leaves only when a majority of the replicas has told that it has the same.
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
        // It may have executed what is in no order yet, or its service alone runs.
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

    fn votes(self) -> bool {
        self == Style::Voting
    }
}
