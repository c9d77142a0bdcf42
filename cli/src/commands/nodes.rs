//! `steadfast nodes`: what hosts have to do.

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use steadfast::status::{HostStatus, ManagerStatus, Status};

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast nodes                              as this host's node has heard
  steadfast nodes --config node.toml --json | jq .hosts
  steadfast nodes --connect 10.0.0.1:7101 --tls plant/admin-ops

Any node can be asked: each tells all others, by [manager] period_ms and at once when its use crosses the level. Use is
in percent of a processor; of a node with a CPU quota the capacity is the quota. What a replica uses shows if it has a thread or
a program of its own (execution = \"thread\"), and uses a thousandth of a processor. A host with too
much to do that no move relieves refuses the least critical calls (`steadfast call --priority`): the level and the number show.";

/// Shows what each node's host has to do, of how much, and when that was told.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    manager: &'a Option<ManagerStatus>,
    hosts: &'a [HostStatus],
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let status = args.at.connect()?.status().map_err(Failure::failed)?;
    if args.json {
        let answer = Answer { manager: &status.manager, hosts: &status.hosts };
        let json = serde_json::to_string_pretty(&answer).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&text(&status))
}

fn text(status: &Status) -> String {
    let mut text = match &status.manager {
        Some(ManagerStatus { leads: Some(node), policy }) => {
            format!("{node} manages, by the bound {policy}\n")
        }
        Some(ManagerStatus { leads: None, .. }) => "nobody manages: there is no quorum\n".into(),
        None => "this node tells nothing of its host, and does not manage: set on = true in [manager] of every node\n".into(),
    };
    for node in &status.ring.configured {
        // Writing to a string cannot fail.
        let _ = match status.hosts.iter().find(|host| host.node == *node) {
            Some(host) => writeln!(text, "{}", line(host)),
            None if status.ring.members.iter().any(|member| member.node == *node) => {
                writeln!(text, "{node:<4}  has told nothing of its host")
            }
            None => writeln!(text, "{node:<4}  is not in the ring"),
        };
    }
    text
}

fn line(host: &HostStatus) -> String {
    let uses: Vec<String> =
        host.replicas.iter().map(|it| format!("{} {}", it.group, it.used)).collect();
    let uses = if uses.is_empty() { String::new() } else { format!("; {}", uses.join(", ")) };
    let above = if host.above { " MUCH TO DO" } else { "" };
    let sheds = match (host.sheds, host.refused) {
        (0, 0) => String::new(),
        (0, refused) => format!(", has refused {refused} calls"),
        (level, refused) => {
            format!(", REFUSES CALLS OF PRIORITY BELOW {level} ({refused} so far)")
        }
    };
    let (node, used, capacity) = (host.node, host.used.to_string(), host.capacity);
    format!("{node:<4}  {used:>7} of {capacity}{above}{sheds}, told {} ms ago{uses}", host.age_ms)
}
