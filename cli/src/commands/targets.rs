//! `steadfast targets`: the targets that clients of a group receive.

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use steadfast::status::{GroupStatus, Status};
use steadfast::{NodeId, Style, ViewNumber};

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast targets counter                      from this host's node
  steadfast targets counter --config node.toml --json | jq '.targets[].node'

Any node can answer. Clients try the targets in this order. For a stateless group each node puts its
own replica first. The load of a host is known if [manager] is on.

Exit codes:
  0  the group is known
  1  it is not: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// Shows the ranked targets that a node sends to a group's clients.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The group.
    group: String,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// The targets of a group.
#[derive(Debug, PartialEq, Serialize)]
struct Targets {
    group: String,
    style: Style,
    view: ViewNumber,
    /// The node that was asked.
    told_by: NodeId,
    targets: Vec<Target>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Target {
    node: NodeId,
    primary: bool,
    /// It has the state.
    synced: bool,
    /// The use and capacity of its host, in millionths of a processor; `None` if it has reported no
    /// load.
    used: Option<u64>,
    capacity: Option<u64>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let status = args.at.connect()?.status().map_err(Failure::failed)?;
    let group = status.groups.iter().find(|group| group.name == args.group).ok_or_else(|| {
        let group = &args.group;
        Failure::Failed(format!(
            "the cluster has no group {group}: `steadfast status` lists the groups"
        ))
    })?;
    let targets = targets(&status, group);
    if args.json {
        let json = serde_json::to_string_pretty(&targets).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&text(&targets))
}

/// In the order in which this node sends them.
fn targets(status: &Status, group: &GroupStatus) -> Targets {
    let mut replicas = group.replicas.clone();
    let own = |node: NodeId| group.style == Style::Stateless && node == status.node;
    replicas.sort_by_key(|replica| (!own(replica.node), !replica.synced));
    let target = |replica: &steadfast::status::ReplicaStatus| {
        let host = status.hosts.iter().find(|host| host.node == replica.node);
        Target {
            node: replica.node,
            primary: group.primary.is_some_and(|primary| primary.node == replica.node),
            synced: replica.synced,
            used: host.map(|host| host.used.0),
            capacity: host.map(|host| host.capacity.0),
        }
    };
    Targets {
        group: group.name.clone(),
        style: group.style,
        view: group.view,
        told_by: status.node,
        targets: replicas.iter().map(target).collect(),
    }
}

fn text(it: &Targets) -> String {
    let Targets { group, style, view, told_by, targets } = it;
    let mut text = format!("{group} ({style}, {view}), as {told_by} sends it to clients:\n");
    if targets.is_empty() {
        text.push_str("  none: no replica is up\n");
    }
    for (place, target) in targets.iter().enumerate() {
        let role = match (target.primary, target.synced) {
            (true, _) => "primary",
            (false, true) => "synced",
            (false, false) => "without the state yet",
        };
        let load = match (target.used, target.capacity) {
            (Some(used), Some(capacity)) if capacity > 0 => {
                format!("{} % of its host used", used * 100 / capacity)
            }
            _ => "has reported no load".into(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}. {:<4} {role:<22} {load}", place + 1, target.node.to_string());
    }
    text
}
