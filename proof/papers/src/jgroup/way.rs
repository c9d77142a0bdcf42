//! The ways in which clients learn of returned servers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast::{Balancing, Policy, Refresh, Strategy};

/// How clients learn that a server has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum Way {
    /// Never (section 3.1, figure 2).
    None,
    /// A server is asked once in each period (section 5, technique 1; figure 10).
    Periodic,
    /// Replies bring newer views (technique 2; figure 9).
    View,
    /// As that, and servers tell unasked besides: what clients do by default.
    Push,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::None, Way::Periodic, Way::View, Way::Push];

    /// The policy of such a client. The paper's clients choose uniformly (section 5).
    pub fn policy(self, period: Duration) -> Policy {
        let (strategy, refresh) = match self {
            Way::None => (Strategy::Static, Refresh::None),
            Way::Periodic => (Strategy::Reactive, Refresh::Periodic(period)),
            Way::View => (Strategy::Reactive, Refresh::View),
            Way::Push => (Strategy::Proactive, Refresh::View),
        };
        Policy::default().strategy(strategy).refresh(refresh).balancing(Balancing::Random)
    }
}
