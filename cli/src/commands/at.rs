//! Which running node a command talks to, and how.

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use steadfast::admin::{AdminError, Client as AdminClient};
use steadfast::{NodeConfig, Tls};

use super::Failure;
use super::context::Context;
use super::node::{RUNTIME, read_config};

/// A node that lives answers at once.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The node: of this host by its admin socket, of another by its port for administrators.
#[derive(Clone, clap::Args)]
pub struct At {
    /// The node's admin socket. Default: the node of the context (see `steadfast context`), else
    /// /run/steadfast/node.sock.
    #[arg(long, value_name = "PATH")]
    admin: Option<PathBuf>,
    /// The node's configuration, which names its admin socket and the nodes to expect.
    #[arg(long, value_name = "FILE", conflicts_with = "admin")]
    config: Option<PathBuf>,
    /// The node's port for administrators (listen.admin), over TLS.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port,
          conflicts_with_all = ["admin", "config"], requires = "tls")]
    connect: Option<String>,
    /// The folder that `steadfast init` made for an administrator.
    #[arg(long, value_name = "DIR", requires = "connect")]
    tls: Option<PathBuf>,
}

impl At {
    /// Connects; the node has some seconds for each answer.
    pub fn connect(&self) -> Result<AdminClient, Failure> {
        let context = self.context()?;
        let node = match (&self.connect, &self.tls) {
            (Some(port), Some(folder)) => reach(port, folder)?,
            _ if !context.admins.is_empty() => reach_any(&context)?,
            _ => self.connect_socket()?,
        };
        node.set_timeout(Some(TIMEOUT)).map_err(Failure::failed)?;
        Ok(node)
    }

    /// Connects to another node: by its admin socket, or by its port with the same certificate.
    pub fn connect_to(&self, other: &str) -> Result<AdminClient, Failure> {
        let tls = self.tls.clone().or(self.context()?.admin_tls);
        let node = match (host_port(other), &tls) {
            (Ok(port), Some(folder)) if !other.contains('/') => reach(&port, folder)?,
            (Ok(_), None) if !other.contains('/') => {
                let why = format!("{other} needs TLS: give --connect and --tls as well");
                return Err(Failure::Usage(why));
            }
            _ => AdminClient::connect(other).map_err(Failure::failed)?,
        };
        node.set_timeout(Some(TIMEOUT)).map_err(Failure::failed)?;
        Ok(node)
    }

    /// Whether the command line or the context names a node.
    pub fn is_said(&self) -> Result<bool, Failure> {
        let options = self.admin.is_some() || self.config.is_some() || self.connect.is_some();
        Ok(options || !self.context()?.admins.is_empty())
    }

    /// Whether there is another node to ask if one ends.
    pub fn has_others(&self) -> Result<bool, Failure> {
        Ok(self.context()?.admins.len() > 1)
    }

    /// The context, if no option names a node; else an empty one.
    fn context(&self) -> Result<Context, Failure> {
        match (&self.admin, &self.config, &self.connect) {
            (None, None, None) => Context::load(),
            _ => Ok(Context::default()),
        }
    }

    fn connect_socket(&self) -> Result<AdminClient, Failure> {
        let path = match (&self.config, &self.admin) {
            (Some(config), _) => admin_path(&read_config(config)?)?,
            (None, Some(admin)) => admin.clone(),
            (None, None) => Path::new(RUNTIME).join("node.sock"),
        };
        AdminClient::connect(path).map_err(|error| match (&error, &self.config) {
            (AdminError::Connect { .. }, None) => Failure::Failed(format!(
                "{error} `--config FILE` or `--admin PATH` names another socket, `--connect \
                 HOST:PORT --tls DIR` a node of another host, `steadfast context use DIR` a cluster"
            )),
            _ => Failure::failed(error),
        })
    }
}

/// Connects to the first of the context's nodes that answers.
fn reach_any(context: &Context) -> Result<AdminClient, Failure> {
    let mut refused = Vec::new();
    for at in &context.admins {
        let node = match &context.admin_tls {
            _ if at.contains('/') => AdminClient::connect(at).map_err(Failure::failed),
            Some(folder) => reach(at, folder),
            None => {
                let why = format!(
                    "the context has no folder with an administrator's certificate for {at}: \
                     `steadfast context use DIR` reads it from a folder that `steadfast init` made"
                );
                return Err(Failure::Usage(why));
            }
        };
        match node {
            Ok(node) => return Ok(node),
            Err(Failure::Failed(error)) => refused.push(format!("{at}: {error}")),
            Err(wrong) => return Err(wrong),
        }
    }
    Err(Failure::Failed(format!("no node of the context answers: {}", refused.join("; "))))
}

/// Connects to a node's port for administrators.
fn reach(port: &str, folder: &Path) -> Result<AdminClient, Failure> {
    let tls = Tls::admin_from_dir(folder).map_err(Failure::usage)?;
    let found = port.to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = found.ok_or_else(|| {
        Failure::Failed(format!("the name in `{port}` is not known here: give the host's address"))
    })?;
    AdminClient::connect_tls(address, &tls, TIMEOUT).map_err(Failure::failed)
}

fn admin_path(config: &NodeConfig) -> Result<PathBuf, Failure> {
    config.admin.clone().ok_or_else(|| {
        Failure::Usage(
            "the configuration names no admin socket: set admin = \"/run/steadfast/node.sock\" and \
             start the node again"
                .to_owned(),
        )
    })
}

/// Takes `HOST:PORT` as it is; whether the host is known, shows when it is dialled.
pub fn host_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.into()),
        _ => Err("write HOST:PORT, such as 10.0.0.1:7100 or [fe80::1]:7100".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for right in ["10.0.0.1:7100", "[::1]:7100", "hall-3:1"] {
            assert_eq!(host_port(right).as_deref(), Ok(right));
        }
        for wrong in ["", "10.0.0.1", "hall-3", ":7100", "hall-3:", "hall-3:99999", "7100"] {
            host_port(wrong).expect_err(wrong);
        }
    }
}
