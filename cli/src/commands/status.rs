//! `steadfast status`: what a node knows of its cluster.

use std::process::ExitCode;

use super::at::At;
use super::{Failure, finish, human, print};

const EXAMPLES: &str = "\
Examples:
  steadfast status                             the node of this host, at its usual socket
  steadfast status --config node.toml          the node with this configuration
  steadfast status --admin /run/steadfast/node.sock --json | jq .groups
  steadfast status --connect 10.0.0.1:7101 --tls plant/admin-ops      a node of another host

Any node can be asked: all know the same groups, views and primaries. Sessions and executed
requests are those of the asked node's own replicas.";

/// Shows nodes, ring, configuration, groups, views, primaries and sessions, as a node sees them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// One JSON object instead of a text for people.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let status = args.at.connect()?.status().map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string_pretty(&status).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&human::status(&status))
}
