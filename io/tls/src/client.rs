//! The side that connects.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use wire::limits::MAX_LINKS;

use crate::credentials::{Credentials, CredentialsError};
use crate::name::{Identity, NameError, any_node, check_cluster};
use crate::reach::{NodesOfSystem, Reach, demand_cell};
use crate::records::Records;
use crate::{Port, provider};

/// Tickets that are kept of a node: each is good for one connection.
const TICKETS: usize = 4;

/// A client's part of TLS with a cluster. Clones share it.
///
/// It checks that the server has a certificate of a node within [`Reach`]: of the cluster that its
/// own certificate is for, or of any cell of that one's system. Addresses do not matter.
#[derive(Clone)]
pub struct Client {
    present: Arc<Mutex<Present>>,
    identity: Identity,
    demand: ServerName<'static>,
    /// Tickets are of use only at the node that gave them, so each address has its own.
    nodes: Arc<Mutex<BTreeMap<Called, Arc<ClientConfig>>>>,
}

/// A node's address, and the other cell that is called there, if one is.
type Called = (SocketAddr, Option<String>);

/// The things that a renewal replaces.
#[derive(Clone)]
struct Present {
    config: Arc<ClientConfig>,
    authorities: Arc<RootCertStore>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.identity.to_string()).finish()
    }
}

impl Client {
    /// From what one side shows and checks.
    ///
    /// # Errors
    /// The key is not that of the certificate, or of a kind that TLS 1.3 does not have.
    pub fn new(credentials: &Credentials, port: Port) -> Result<Client, CredentialsError> {
        Client::reaching(credentials, port, Reach::Cluster)
    }

    /// As [`new`](Client::new), for nodes within this reach.
    ///
    /// # Errors
    /// As there, or its own is no cell's and others are asked for.
    pub fn reaching(
        credentials: &Credentials,
        port: Port,
        reach: Reach,
    ) -> Result<Client, CredentialsError> {
        let unusable = |error: rustls::Error| CredentialsError::Unusable(error.to_string());
        let Credentials { identity, authorities, chain, key } = credentials;
        reach.check(identity)?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?;
        let nodes = || Arc::new(NodesOfSystem::new(identity.clone(), authorities.clone(), None));
        let builder = match reach {
            Reach::Cluster => builder.with_root_certificates(authorities.clone()),
            Reach::System => builder.dangerous().with_custom_certificate_verifier(nodes()),
        };
        let mut config =
            builder.with_client_auth_cert(chain.clone(), key.clone_key()).map_err(unusable)?;
        config.alpn_protocols = port.protocols();
        // A node has one certificate: the name would only tell onlookers which cluster this is.
        config.enable_sni = false;
        Ok(Client {
            present: Arc::new(Mutex::new(Present {
                config: Arc::new(config),
                authorities: authorities.clone(),
            })),
            identity: identity.clone(),
            demand: reach.demand(identity),
            nodes: Arc::default(),
        })
    }

    /// For calls, from files in PEM; the key's must be for its owner alone (mode 0600).
    ///
    /// # Errors
    /// A file cannot be used; which one, and why.
    pub fn from_files(
        authority: impl AsRef<Path>,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Client, CredentialsError> {
        let (authority, certificate, key) =
            (authority.as_ref(), certificate.as_ref(), key.as_ref());
        Client::new(&Credentials::from_files(authority, certificate, key)?, Port::Client)
    }

    /// For calls, from a folder that `steadfast init` made.
    ///
    /// # Errors
    /// A file cannot be used; which one, and why.
    pub fn from_dir(folder: impl AsRef<Path>) -> Result<Client, CredentialsError> {
        Client::new(&Credentials::from_dir(folder.as_ref())?, Port::Client)
    }

    /// For looking into nodes, from a folder that `steadfast init` made for an administrator.
    ///
    /// # Errors
    /// A file cannot be used; which one, and why.
    pub fn admin_from_dir(folder: impl AsRef<Path>) -> Result<Client, CredentialsError> {
        Client::new(&Credentials::from_dir(folder.as_ref())?, Port::Admin)
    }

    /// For calls, from PEM texts.
    ///
    /// # Errors
    /// Something is missing, or the certificate is not one of Steadfast.
    pub fn from_pem(
        authority: &[u8],
        certificate: &[u8],
        key: &[u8],
    ) -> Result<Client, CredentialsError> {
        Client::new(&Credentials::from_pem(authority, certificate, key)?, Port::Client)
    }

    /// New connections show and check what `other` does, which has the same identity.
    pub fn renew(&self, other: &Client) {
        let present = lock(&other.present).clone();
        *lock(&self.present) = present;
        lock(&self.nodes).clear();
    }

    /// The configuration of new connections, for those who drive rustls themselves. They ask for
    /// [`server_name`](Client::server_name).
    pub fn config(&self) -> Arc<ClientConfig> {
        lock(&self.present).config.clone()
    }

    /// The name to ask rustls for: any node within reach has it.
    pub fn server_name(&self) -> ServerName<'static> {
        self.demand.clone()
    }

    /// The name to ask rustls for, to reach nodes of the cell of this path alone. `None`: it is no
    /// cell of this client's system.
    pub fn server_name_of(&self, path: &str) -> Option<ServerName<'static>> {
        demand_cell(&self.identity, path)
    }

    /// The identity of this client.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Begins a connection to the node at this address. Nothing is sent yet.
    pub fn connect(&self, address: SocketAddr) -> Records {
        self.begin(self.config_for(address, None), self.demand.clone())
    }

    /// Begins a connection for calls to the cell that is this cluster: to a node of it, or to one of
    /// the client's own cell, which carries them there. Nothing is sent yet.
    ///
    /// A client whose own cluster is no cell has no others to call, and reaches its own.
    pub fn connect_by(&self, address: SocketAddr, cluster: &str) -> Records {
        if self.identity.path().is_none() {
            return self.connect(address);
        }
        let config = self.config_for(address, Some(cluster));
        self.begin(config, Reach::System.demand(&self.identity))
    }

    fn begin(&self, config: Arc<ClientConfig>, demand: ServerName<'static>) -> Records {
        let connection = ClientConnection::new(config, demand)
            .expect("the configuration was checked, and the name is valid");
        Records::new(connection.into())
    }

    /// Begins a connection to a node of this cluster, which may be another than the client's own. It
    /// uses no tickets. Nothing is sent yet.
    ///
    /// # Errors
    /// The cluster's name cannot stand in certificates.
    pub fn connect_to(&self, cluster: &str) -> Result<Records, NameError> {
        check_cluster(cluster)?;
        let name = ServerName::try_from(any_node(cluster)).expect("a label was checked to be one");
        Ok(self.begin(self.config(), name))
    }

    fn config_for(&self, address: SocketAddr, cluster: Option<&str>) -> Arc<ClientConfig> {
        let mut nodes = lock(&self.nodes);
        let key = (address, cluster.map(str::to_owned));
        if nodes.len() >= MAX_LINKS && !nodes.contains_key(&key) {
            // Only tickets are lost: the next connections shake hands in full.
            nodes.clear();
        }
        let fresh = || {
            let Present { config, authorities } = lock(&self.present).clone();
            let mut config = ClientConfig::clone(&config);
            config.resumption = Resumption::in_memory_sessions(TICKETS);
            if let Some(other) = cluster {
                let only = Some([self.identity.cluster.clone(), other.into()]);
                let nodes = NodesOfSystem::new(self.identity.clone(), authorities, only);
                config.dangerous().set_certificate_verifier(Arc::new(nodes));
            }
            Arc::new(config)
        };
        nodes.entry(key).or_insert_with(fresh).clone()
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
