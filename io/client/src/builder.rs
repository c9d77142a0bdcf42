//! A client's options, set before it connects.

use std::net::SocketAddr;

use wire::ClientId;

use crate::buffers::draw;
use crate::secure::Tls;
use crate::{Config, ConnectError, Hedging, Policy, RetryBudget};

/// The settings of a client, before it connects.
///
/// ```no_run
/// # #[cfg(all(feature = "net", feature = "tls"))]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use steadfast_client::{Balancing, Client, Policy, RetryBudget, Tls};
///
/// let client = Client::builder()
///     .tls(Tls::from_dir("/etc/plant/client-hmi")?)
///     .policy(Policy::default().balancing(Balancing::TwoChoices))
///     .policy_for("alarms", Policy::default().priority(200))
///     .retry_budget(RetryBudget::default().burst(64))
///     .connect(["192.0.2.1:7100", "192.0.2.2:7100"])?;
/// # drop(client);
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "net", feature = "tls")))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it connects"]
pub struct Builder {
    pub(crate) tls: Option<Tls>,
    pub(crate) hedging: Hedging,
    pub(crate) policy: Policy,
    pub(crate) group_policies: Vec<(String, Policy)>,
    pub(crate) retry_budget: RetryBudget,
    pub(crate) session: Option<ClientId>,
    pub(crate) in_order: bool,
}

impl Builder {
    /// Talks TLS with the nodes, and shows them this certificate.
    #[cfg(feature = "tls")]
    pub fn tls(self, tls: tls::Client) -> Builder {
        Builder { tls: Some(tls), ..self }
    }

    /// Sets when a second replica of an active group is asked.
    pub fn hedging(self, hedging: Hedging) -> Builder {
        Builder { hedging, ..self }
    }

    /// Sets what the client does with the targets of every group.
    pub fn policy(self, policy: Policy) -> Builder {
        Builder { policy, ..self }
    }

    /// Sets the policy of one group, in place of the policy of all groups.
    ///
    /// The last policy of a group counts.
    pub fn policy_for(mut self, group: impl Into<String>, policy: Policy) -> Builder {
        self.group_policies.push((group.into(), policy));
        self
    }

    /// Limits how often the client sends calls again that may have been executed.
    pub fn retry_budget(self, retry_budget: RetryBudget) -> Builder {
        Builder { retry_budget, ..self }
    }

    /// Takes part in a session whose calls a program counts in place of its clients: each
    /// invocation has a [`Key`](crate::Key).
    ///
    /// Several clients may take part in it, as gateways do to which one caller turns after the
    /// other. No other session may have its name, which is therefore drawn at random from 64 bits.
    pub fn session(self, session: ClientId) -> Builder {
        Builder { session: Some(session), ..self }
    }

    /// Tries the addresses in the order in which they are given, such as a near node first.
    ///
    /// Without this each client begins at a random one, so that not all turn to the same node.
    pub fn in_order(self) -> Builder {
        Builder { in_order: true, ..self }
    }

    /// The configuration of the session.
    pub(crate) fn config(&self, addresses: Vec<SocketAddr>) -> Result<Config, ConnectError> {
        let Builder { hedging, policy, retry_budget, session, in_order, .. } = *self;
        let group_policies = self.group_policies.iter().cloned().collect();
        let drawn = draw(addresses)?;
        let (client, keyed) = (session.unwrap_or(drawn.client), session.is_some());
        Ok(Config {
            client,
            keyed,
            in_order,
            hedging,
            policy,
            group_policies,
            retry_budget,
            ..drawn
        })
    }
}
