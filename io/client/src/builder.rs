//! How a client is made that is to do more than plain frames.

use std::net::SocketAddr;
use std::time::Duration;

use crate::buffers::draw;
use crate::secure::Tls;
use crate::{Choice, Config, ConnectError, Hedging, Policy, Refresh, Retries, Strategy};

/// What a client is to be like, before it connects.
///
/// ```no_run
/// # #[cfg(all(feature = "net", feature = "tls"))]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use steadfast_client::{Client, Tls};
///
/// let tls = Tls::from_dir("/etc/plant/client-hmi")?;
/// let client = Client::builder().tls(tls).connect(["192.0.2.1:7100", "192.0.2.2:7100"])?;
/// # drop(client);
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "net", feature = "tls")))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    pub(crate) tls: Option<Tls>,
    pub(crate) hedging: Hedging,
    pub(crate) policy: Policy,
    pub(crate) of_groups: Vec<(String, Policy)>,
    pub(crate) retries: Retries,
}

impl Builder {
    /// Talks TLS with the nodes, and shows them this certificate.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(self, tls: tls::Client) -> Builder {
        Builder { tls: Some(tls), ..self }
    }

    /// When calls to groups of the active style go to a second replica as well.
    #[must_use]
    pub fn hedging(self, hedging: Hedging) -> Builder {
        Builder { hedging, ..self }
    }

    /// When this client learns who takes over from a target.
    #[must_use]
    pub fn strategy(self, strategy: Strategy) -> Builder {
        Builder { policy: Policy { strategy, ..self.policy }, ..self }
    }

    /// How newer targets come while nothing fails.
    #[must_use]
    pub fn refresh(self, refresh: Refresh) -> Builder {
        Builder { policy: Policy { refresh, ..self.policy }, ..self }
    }

    /// Which replica is asked where several may answer: for reads, and in stateless, active and voting groups.
    #[must_use]
    pub fn choice(self, choice: Choice) -> Builder {
        Builder { policy: Policy { choice, ..self.policy }, ..self }
    }

    /// How long a target that had failed must be connected again before it is preferred, where the others answer as well.
    #[must_use]
    pub fn fail_back(self, fail_back: Duration) -> Builder {
        Builder { policy: Policy { fail_back, ..self.policy }, ..self }
    }

    /// How critical this client's calls are, from 0 (as by default) to 255: where a host has more to do than it can, calls of less are refused first
    /// ([`Policy::priority`]). The calls that their handlers make have the same.
    #[must_use]
    pub fn priority(self, priority: u8) -> Builder {
        Builder { policy: Policy { priority, ..self.policy }, ..self }
    }

    /// All of this for one group, in place of what is said for all. The last word on a group counts.
    #[must_use]
    pub fn for_group(mut self, group: impl Into<String>, policy: Policy) -> Builder {
        self.of_groups.push((group.into(), policy));
        self
    }

    /// How often calls that may have been executed are sent again, over all groups.
    #[must_use]
    pub fn retries(self, retries: Retries) -> Builder {
        Builder { retries, ..self }
    }

    /// What a session begins with.
    pub(crate) fn config(&self, addresses: Vec<SocketAddr>) -> Result<Config, ConnectError> {
        let Builder { hedging, policy, retries, .. } = *self;
        let of_groups = self.of_groups.iter().cloned().collect();
        Ok(Config { hedging, policy, of_groups, retries, ..draw(addresses)? })
    }
}
