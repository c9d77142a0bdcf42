//! `steadfast status`: what a node knows of its cluster.

use std::process::ExitCode;
use std::time::Duration;

use steadfast::status::Status;

use super::at::At;
use super::wait::{self, duration};
use super::{Failure, finish, human, print};

const EXAMPLES: &str = "\
Examples:
  steadfast status                             the node of this host, at its usual socket
  steadfast status --config node.toml          the node with this configuration
  steadfast status --admin /run/steadfast/node.sock --json | jq .groups
  steadfast status --wait 10s                  when all nodes of a cluster that starts are there
  steadfast status --connect 10.0.0.1:7101 --tls plant/admin-ops      a node of another host

Any node can be asked: all know the same groups, views and primaries. Sessions and executed
requests are those of the asked node's own replicas.";

/// Shows nodes, ring, configuration, groups, views, primaries and sessions, as a node sees them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// Waits, for so long at most, until all nodes are in the ring and every group has a primary.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let look = || args.at.connect()?.status().map_err(Failure::failed);
    let status = wait::until(args.wait, look, missing)?;
    if args.json {
        let json = serde_json::to_string_pretty(&status).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&human::status(&status))
}

/// Returns the reason why a starting cluster is not ready yet, if it is not.
fn missing(status: &Status) -> Option<String> {
    let there = |node| status.ring.members.iter().any(|member| member.node == node);
    let absent: Vec<String> = (status.ring.configured.iter())
        .filter(|node| !there(**node))
        .map(|node| node.to_string())
        .collect();
    if !absent.is_empty() {
        return Some(format!("not in the ring: {}", absent.join(", ")));
    }
    let group = status.groups.iter().find(|group| group.primary.is_none())?;
    Some(format!("{} has no primary", group.name))
}
