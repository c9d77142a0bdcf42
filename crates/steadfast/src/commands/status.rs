//! `steadfast status`: what a node knows of its cluster.

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use steadfast::admin::{AdminError, Client as AdminClient};
use steadfast::status::Status;
use steadfast::{NodeConfig, Tls};

use super::node::read_config;
use super::{Failure, finish, human, print};

const EXAMPLES: &str = "\
Examples:
  steadfast status                             the node of this host, at its usual socket
  steadfast status --config node.toml          the node with this configuration
  steadfast status --admin /run/steadfast/node.sock --json | jq .groups
  steadfast status --connect 10.0.0.1:7101 --tls plant/admin-ops      a node of another host

Any node can be asked: all know the same groups, views and primaries. Sessions and executed
requests are those of the asked node's own replicas.";

/// A node that lives answers at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shows nodes, ring, configuration, groups, views, primaries and sessions, as a node sees them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The node's admin socket.
    #[arg(long, value_name = "PATH", default_value = "/run/steadfast/node.sock")]
    admin: PathBuf,
    /// The node's configuration, which names its admin socket and the nodes to expect.
    #[arg(long, value_name = "FILE", conflicts_with = "admin")]
    config: Option<PathBuf>,
    /// The node's port for administrators (listen.admin), over TLS.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["admin", "config"], requires = "tls")]
    connect: Option<String>,
    /// The folder that `steadfast init` made for an administrator.
    #[arg(long, value_name = "DIR", requires = "connect")]
    tls: Option<PathBuf>,
    /// One JSON object instead of a text for people.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let status = match (&args.connect, &args.tls) {
        (Some(port), Some(folder)) => ask(reach(port, folder)?).map_err(Failure::failed)?,
        _ => ask_socket(args)?,
    };
    if args.json {
        let json = serde_json::to_string_pretty(&status).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&human::status(&status))
}

fn ask_socket(args: &Args) -> Result<Status, Failure> {
    let path = match &args.config {
        Some(config) => admin_path(&read_config(config)?)?,
        None => args.admin.clone(),
    };
    AdminClient::connect(&path).and_then(ask).map_err(|error| match (&error, &args.config) {
        (AdminError::Connect { .. }, None) => Failure::Failed(format!(
            "{error} `--config FILE` or `--admin PATH` names another node's socket"
        )),
        _ => Failure::failed(error),
    })
}

fn ask(mut node: AdminClient) -> Result<Status, AdminError> {
    node.set_timeout(Some(PATIENCE))?;
    node.status()
}

/// Connects to a node's port for administrators.
fn reach(port: &str, folder: &Path) -> Result<AdminClient, Failure> {
    let tls = Tls::admin_from_dir(folder).map_err(Failure::usage)?;
    let found = port.to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = found.ok_or_else(|| {
        Failure::Usage(format!("`{port}` is no address: write HOST:PORT, such as 10.0.0.1:7101"))
    })?;
    AdminClient::connect_tls(address, &tls, PATIENCE).map_err(Failure::failed)
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
