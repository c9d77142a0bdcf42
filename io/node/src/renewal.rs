//! The things that a node takes anew while it runs: certificates, the list of denied ones, rights,
//! labels.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use admin::server::Connections;
use admin::status::TlsStatus;
use config::{Config, NodeAddress, Rights};
use manager::cluster_state::Labels;
use tls::{Credentials, Denied, DeniedError, Port, Reach, Server};

use crate::error::{ReloadError, StartError, Stopped};
use crate::security;
use crate::streams::Security;

/// Reads a node's configuration again.
pub(crate) type Source = Box<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// The parts of a node that are renewed.
pub(crate) struct Renewal {
    config: Mutex<Config>,
    /// `None`: clients are not encrypted.
    pub clients: Option<Server>,
    pub administrators: Option<Server>,
    pub states: Security,
    /// Connections of administrators: those of denied ones end.
    pub connections: OnceLock<Connections>,
    labels: Mutex<Labels>,
    pub source: OnceLock<Source>,
}

/// A configuration that was taken, as far as the data plane is concerned.
#[derive(Debug)]
pub(crate) struct Renewed {
    pub rights: Rights,
    pub denied: Arc<Denied>,
    pub tls: TlsStatus,
    /// Where the nodes are.
    pub nodes: Vec<NodeAddress>,
}

impl Renewal {
    /// The parts of a node that starts.
    pub fn new(
        config: &Config,
        sealed: bool,
        credentials: Option<&Credentials>,
    ) -> Result<Renewal, StartError> {
        let server = |port| credentials.map(|it| Server::new(it, port)).transpose();
        let clients = |it| match &config.system {
            Some(system) if system.direct => Server::reaching(it, Port::Client, Reach::System),
            _ => Server::new(it, Port::Client),
        };
        let renewal = Renewal {
            config: Mutex::new(config.clone()),
            clients: credentials.map(clients).transpose()?,
            administrators: server(Port::Admin)?,
            states: Security::new(sealed, credentials)?,
            connections: OnceLock::new(),
            labels: Mutex::new(config.labels.clone()),
            source: OnceLock::new(),
        };
        renewal.deny(&denied(config)?);
        Ok(renewal)
    }

    /// Takes the configuration as it is now, with `order` for the data plane's part of it. Returns the
    /// keys whose new values wait for a restart. One at a time: what was read last is in force.
    pub fn renew(
        &self,
        order: impl FnOnce(Renewed) -> Result<(), Stopped>,
    ) -> Result<Vec<String>, ReloadError> {
        let mut present = lock(&self.config);
        let read = self.source.get().ok_or(ReloadError::Restart("its configuration"))?;
        let mut config = read().map_err(ReloadError::Source)?;
        config.look_up_names()?;
        config.check()?;
        if (config.node, &config.cluster) != (present.node, &present.cluster) {
            return Err(ReloadError::Restart("node and cluster"));
        }
        let credentials = security::credentials(&config)?;
        if credentials.is_some() != self.clients.is_some() {
            return Err(ReloadError::Restart("whether [security] has certificates"));
        }
        let denied = Arc::new(denied(&config)?);
        if let Some(credentials) = &credentials {
            let ports = [(&self.clients, Port::Client), (&self.administrators, Port::Admin)];
            let servers = ports.map(|(server, port)| (server, Server::new(credentials, port)));
            let states = Security::new(true, Some(credentials))?;
            for (server, new) in servers {
                let new = new?;
                server.iter().for_each(|server| server.renew(&new));
            }
            self.states.renew(&states);
        }
        self.deny(&denied);
        *lock(&self.labels) = config.labels.clone();
        let restart = present.needs_restart(&config);
        let tls = security::status(credentials.as_ref());
        let (rights, nodes) = (config.rights.clone(), config.nodes.clone());
        order(Renewed { rights, denied, tls, nodes }).map_err(ReloadError::Half)?;
        present.take_anew(config);
        Ok(restart)
    }

    /// The node's labels.
    pub fn labels(&self) -> Labels {
        lock(&self.labels).clone()
    }

    fn deny(&self, denied: &Denied) {
        let shared = Arc::new(denied.clone());
        let servers = self.clients.iter().chain(&self.administrators).chain(self.states.server());
        servers.for_each(|server| server.deny(shared.clone()));
        self.connections
            .get()
            .iter()
            .for_each(|connections| connections.end_denied(shared.clone()));
    }
}

/// The list of the configuration; empty, if it names none.
fn denied(config: &Config) -> Result<Denied, DeniedError> {
    let read = |path: &PathBuf| Denied::from_file(path, &config.cluster);
    config.security.denied.as_ref().map(read).transpose().map(Option::unwrap_or_default)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Renewal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renewal").field("encrypted", &self.clients.is_some()).finish()
    }
}
