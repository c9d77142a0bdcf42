//! Which cluster a command calls as a client, and how.

use std::path::PathBuf;

use steadfast::{Client, ClientBuilder, Tls};

use super::Failure;
use super::at::host_port;
use super::context::Context;

/// The cluster: by addresses of its nodes, or that of the context.
#[derive(clap::Args)]
pub struct Cluster {
    /// Client addresses of one or more nodes. Any node finds the group. Default: the addresses of
    /// the context (see `steadfast context`).
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = host_port)]
    at: Vec<String>,
    /// Connect by TLS with the certificate in this folder, which `steadfast init` made for a client.
    #[arg(long, value_name = "DIR")]
    tls: Option<PathBuf>,
}

impl Cluster {
    /// Connects to a node.
    pub fn connect(&self, mut builder: ClientBuilder) -> Result<Client, Failure> {
        let (at, tls) = self.whom()?;
        if let Some(folder) = &tls {
            builder = builder.tls(Tls::from_dir(folder).map_err(Failure::usage)?);
        }
        builder.connect(&at).map_err(Failure::failed)
    }

    /// The nodes, and the folder of the certificate.
    fn whom(&self) -> Result<(Vec<String>, Option<PathBuf>), Failure> {
        if !self.at.is_empty() {
            return Ok((self.at.clone(), self.tls.clone()));
        }
        let context = Context::load()?;
        if context.clients.is_empty() {
            let why = "no address: give --at HOST:PORT, or choose a cluster by `steadfast context \
                       use DIR`";
            return Err(Failure::Usage(why.into()));
        }
        Ok((context.clients, self.tls.clone().or(context.client_tls)))
    }
}
