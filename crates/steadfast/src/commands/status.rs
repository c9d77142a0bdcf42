//! `steadfast status`: what a node knows of its cluster.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use steadfast::NodeConfig;
use steadfast::admin::{AdminError, Client as AdminClient};
use steadfast::status::Status;

use super::node::read_config;
use super::{Failure, finish, human, print};

const EXAMPLES: &str = "\
Examples:
  steadfast status                             the node of this host, at its usual socket
  steadfast status --config node.toml          the node with this configuration
  steadfast status --admin /run/steadfast/node.sock --json | jq .groups

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
    /// One JSON object instead of a text for people.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let path = match &args.config {
        Some(config) => admin_path(&read_config(config)?)?,
        None => args.admin.clone(),
    };
    let status = ask(&path).map_err(|error| match (&error, &args.config) {
        (AdminError::Connect { .. }, None) => Failure::Failed(format!(
            "{error} `--config FILE` or `--admin PATH` names another node's socket"
        )),
        _ => Failure::failed(error),
    })?;
    if args.json {
        let json = serde_json::to_string_pretty(&status).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&human::status(&status))
}

fn ask(path: &Path) -> Result<Status, AdminError> {
    let mut node = AdminClient::connect(path)?;
    node.set_timeout(Some(PATIENCE))?;
    node.status()
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
