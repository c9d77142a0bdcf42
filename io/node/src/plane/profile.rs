//! The constants of a node's life.

use std::net::SocketAddr;

use admin::status::TlsStatus;
use config::Config;
use engine::Quorum;
use tls::Credentials;
use wire::Member;

use crate::security;

/// The constants of a node's life.
pub(crate) struct Profile {
    pub(super) me: Member,
    pub(super) cluster: String,
    pub(super) client_address: Option<SocketAddr>,
    /// Without the clients, who are counted when somebody asks.
    pub(super) tls: TlsStatus,
    /// Every configuration has the quorum.
    pub(super) quorum_off: bool,
    /// The bound by which this node's manager judges hosts, if it has one.
    pub(super) policy: Option<&'static str>,
}

impl Profile {
    pub fn new(
        config: &Config,
        me: Member,
        client_address: Option<SocketAddr>,
        credentials: Option<&Credentials>,
    ) -> Profile {
        Profile {
            me,
            cluster: config.cluster.clone(),
            client_address,
            tls: security::status(credentials),
            quorum_off: config.quorum == Quorum::Off,
            policy: config.manager.on.then(|| config.manager.policy_name()),
        }
    }

    pub fn has_manager(&self) -> bool {
        self.policy.is_some()
    }
}
