//! The trust in those at the other ends of links.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::CertificateDer;
use tls::{
    Client, Credentials, Denied, Identity, Peer, Port, Records, Role, Server, any_node,
    check_cluster,
};

use crate::error::LinksError;
use crate::event::Down;
use crate::quic::config;

/// The certificate that this side shows, and those that it trusts.
#[derive(Debug)]
pub struct Security {
    /// This node's certificate, and the authorities that those of others must be by.
    pub credentials: Credentials,
    /// Clusters whose nodes may come in, beside this node's own and, if that is a cell, all cells of
    /// its system.
    pub clusters: Vec<String>,
    /// Certificates that are not accepted any more, though they are genuine.
    pub denied: Arc<Denied>,
}

impl Security {
    /// Nodes of this node's own cluster may come in, and nobody is denied.
    pub fn new(credentials: Credentials) -> Security {
        Security { credentials, clusters: Vec::new(), denied: Arc::default() }
    }
}

/// The one who must be at a dialled address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Any node of this cluster.
    Cluster(String),
    /// This very node.
    Node(Identity),
}

/// The security in force, in the forms that the transports need.
pub(crate) struct Trust {
    client: Client,
    server: Server,
    pub quic_client: quinn_proto::ClientConfig,
    pub quic_server: Arc<quinn_proto::ServerConfig>,
    clusters: Vec<String>,
    denied: Arc<Denied>,
}

/// The trust of connections that begin now. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct InForce(Arc<RwLock<Arc<Trust>>>);

impl InForce {
    pub fn new(trust: Trust) -> InForce {
        InForce(Arc::new(RwLock::new(Arc::new(trust))))
    }

    pub fn get(&self) -> Arc<Trust> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connections that begin from now on show and check this. It needs no turn of the links'
    /// thread: nobody who dials afterwards can be before it.
    pub fn renew(&self, trust: Trust) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(trust);
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trust").field(self.client.identity()).field(&self.clusters).finish()
    }
}

impl Trust {
    pub fn new(security: Security) -> Result<Trust, LinksError> {
        let Security { credentials, mut clusters, denied } = security;
        let client = Client::new(&credentials, Port::Cell)?;
        let server = Server::new(&credentials, Port::Cell)?;
        let quic_client = QuicClientConfig::try_from(client.config())
            .map_err(|error| LinksError::Quic(error.to_string()))?;
        let quic_server = QuicServerConfig::try_from(server.config())
            .map_err(|error| LinksError::Quic(error.to_string()))?;
        clusters.push(credentials.identity.cluster.clone());
        let quic_client = config::client(Arc::new(quic_client));
        let quic_server = config::server(Arc::new(quic_server));
        Ok(Trust { client, server, quic_client, quic_server, clusters, denied })
    }

    /// The cluster of the one who is expected.
    fn cluster<'a>(&'a self, expect: Option<&'a Expect>) -> &'a str {
        match expect {
            None => &self.client.identity().cluster,
            Some(Expect::Cluster(cluster)) => cluster,
            Some(Expect::Node(identity)) => &identity.cluster,
        }
    }

    /// The name that the other side's certificate must have.
    pub fn name(&self, expect: Option<&Expect>) -> Result<String, Down> {
        let cluster = self.cluster(expect);
        check_cluster(cluster).map_err(|error| Down::Unexpected(error.to_string()))?;
        Ok(any_node(cluster))
    }

    /// Begins TLS towards the one who is expected.
    pub fn connect(&self, expect: Option<&Expect>) -> Result<Records, Down> {
        self.client
            .connect_to(self.cluster(expect))
            .map_err(|error| Down::Unexpected(error.to_string()))
    }

    /// Begins TLS with one who has come.
    pub fn accept(&self) -> Result<Records, rustls::Error> {
        self.server.accept()
    }

    /// Whether one who has come may come in: a node, of a cluster that is let in.
    pub fn welcomes(&self, peer: Option<&Peer>) -> bool {
        peer.is_some_and(|peer| {
            let Identity { role, cluster, .. } = &peer.identity;
            let is_near = peer.identity.shares_system(self.client.identity());
            matches!(role, Role::Node(_))
                && (self.clusters.contains(cluster) || is_near)
                && !self.denied.denies(peer)
        })
    }

    /// Whether the one at a dialled address is the expected one.
    pub fn check(&self, expect: Option<&Expect>, peer: Option<&Peer>) -> Result<(), Down> {
        let Some(peer) = peer else {
            return Err(Down::Unexpected("the certificate there is not of a cluster".into()));
        };
        let theirs = &peer.identity;
        if self.denied.denies(peer) {
            return Err(Down::Untrusted(format!("the certificate of {theirs} is denied here")));
        }
        let expected = match expect {
            Some(Expect::Node(identity)) => theirs == identity,
            _ => matches!(theirs.role, Role::Node(_)) && theirs.cluster == self.cluster(expect),
        };
        if expected {
            return Ok(());
        }
        let wanted = match expect {
            Some(Expect::Node(identity)) => identity.to_string(),
            _ => format!("a node of the cluster \"{}\"", self.cluster(expect)),
        };
        Err(Down::Unexpected(format!("{theirs} is there, and {wanted} was expected")))
    }
}

/// The owner of the certificate that QUIC has checked.
pub(crate) fn peer_of(identity: Option<Box<dyn Any>>) -> Option<Peer> {
    let chain = identity?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    Peer::showing(&chain)
}
