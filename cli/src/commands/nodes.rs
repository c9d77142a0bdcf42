//! `steadfast nodes`: the load of the hosts.

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use steadfast::status::{HostStatus, ManagerStatus, Status};

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast nodes                              from this host's node
  steadfast nodes --config node.toml --json | jq .hosts
  steadfast nodes --connect 10.0.0.1:7101 --tls plant/admin-ops

Any node can answer. Each node reports its load to all others every [manager] period_ms, and at once
when its use crosses the level. Use is in percent of a processor; with a CPU quota the capacity is
the quota. The use of a replica is shown if it has its own thread (execution = \"thread\") or program,
and uses at least a thousandth of a processor.

If no move relieves an overloaded host, it refuses calls of low priority (`steadfast call
--priority`). The command shows the level and the number of refused calls.";

/// Shows the load and capacity of each node's host, and the age of the report.
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
            format!("{node} manages the load, by the bound {policy}\n")
        }
        Some(ManagerStatus { leads: None, .. }) => {
            "no node manages the load: there is no quorum\n".into()
        }
        None => {
            "this node does not report or manage load: set on = true in [manager] of every node\n"
                .into()
        }
    };
    for node in &status.ring.configured {
        // Writing to a string cannot fail.
        let _ = match status.hosts.iter().find(|host| host.node == *node) {
            Some(host) => writeln!(text, "{}", line(host)),
            None if status.ring.members.iter().any(|member| member.node == *node) => {
                writeln!(text, "{node:<4}  has reported no load")
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
    let above = if host.above { " OVERLOADED" } else { "" };
    let sheds = match (host.sheds, host.refused) {
        (0, 0) => String::new(),
        (0, refused) => format!(", has refused {refused} calls"),
        (level, refused) => {
            format!(", REFUSES CALLS OF PRIORITY BELOW {level} ({refused} so far)")
        }
    };
    let (node, used, capacity) = (host.node, host.used.to_string(), host.capacity);
    format!(
        "{node:<4}  {used:>7} of {capacity}{above}{sheds}, reported {} ms ago{uses}",
        host.age_ms
    )
}
