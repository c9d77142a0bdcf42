//! `steadfast explain`: why a group's primary is where it is, and what would follow.

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use steadfast::status::{DeploymentStatus, Explanation, Standing, explain};

use super::at::At;
use super::{Failure, deployments, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast explain counter                      as this host's node sees it
  steadfast explain counter --config node.toml --json | jq .if_lost

Any node can be asked. The order of the backups is that in which clients try them, and in which they take over. The manager
changes it when another host is expected to be used less by a twentieth of what it can, or to be in time where the first is not
(docs/protocol/manager.md). What moves with a primary is what it uses more than the least busy backup: where all replicas
execute, as in semi-active, active and voting groups, that is nearly nothing. Of a group that is deployed each node is named,
with why it has, or has not, a replica (docs/protocol/deployment.md).

Exit codes:
  0  it is explained
  1  it is not: standard error says why, and what to do
  2  the command line or the configuration is wrong";

/// Says why a group's primary is where it is, in which order its backups are tried, and what would
/// happen if a host was lost.
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

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    /// If it is deployed.
    deployment: &'a Option<DeploymentStatus>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let mut node = args.at.connect()?;
    let status = node.status().map_err(Failure::failed)?;
    let explanation = explain(&status, &args.group).ok_or_else(|| {
        Failure::Failed(format!(
            "the cluster has no group {}: `steadfast status` lists the groups",
            args.group
        ))
    })?;
    // A node without a manager knows of none.
    let deployments = node.deployments().map(|all| all.deployments).unwrap_or_default();
    let mut deployments = deployments.into_iter();
    let deployment = deployments.find(|it| it.deployment.group == args.group);
    if args.json {
        let answer = Answer { explanation: &explanation, deployment: &deployment };
        let json = serde_json::to_string_pretty(&answer).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    let seats = deployment.as_ref().map(seats).unwrap_or_default();
    print(&(text(&explanation) + &seats))
}

/// Returns the deployment, and each node as a place for it.
fn seats(it: &DeploymentStatus) -> String {
    let mut text = format!("deployed: {}\n", deployments::line(it));
    for seat in &it.seats {
        let flaws = match seat.flaws {
            Some(flaws @ 1..) => format!(", with {flaws} at the same value of the label"),
            _ => String::new(),
        };
        let words = match (&seat.objection, seat.on) {
            (Some(reason), true) => {
                format!("is to have a replica until others have the state: {reason}")
            }
            (Some(reason), false) => format!("can have no replica: {reason}"),
            (None, true) => format!("is to have a replica{flaws}"),
            (None, false) => format!("could have a replica{flaws}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<4} {words}", seat.node);
    }
    text
}

fn text(it: &Explanation) -> String {
    let mut text = String::new();
    let mut say = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    };
    match it.primary {
        Some(node) => say(format!(
            "{} ({}, {}): the primary is at {node}: of the replicas that have the state, it is the first in rank",
            it.group, it.style, it.view
        )),
        None => say(format!(
            "{} ({}, {}): no primary: no replica with its state is up",
            it.group, it.style, it.view
        )),
    }
    say(match it.decides {
        Some(node) => format!("{node} decides who is next; {} of a processor moves with the primary", it.moves),
        None => "nobody decides who is next: replicas stay in the order in which they joined ([manager] is off, or there is no quorum)".into(),
    });
    if it.hung {
        say(
            "the service of the asked node's replica is hung: it missed the deadlines of its calls"
                .into(),
        );
    }
    for (place, host) in it.hosts.iter().enumerate() {
        say(line(place, host));
    }
    for lost in &it.if_lost {
        let primary = lost.primary.map_or("nowhere".to_owned(), |node| format!("at {node}"));
        let others: Vec<String> = lost
            .moves
            .iter()
            .filter(|(group, _)| *group != it.group)
            .map(|(group, to)| format!("{group} to {to}"))
            .collect();
        let others =
            if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
        let over: Vec<String> = lost.overloaded.iter().map(ToString::to_string).collect();
        let over = if over.is_empty() {
            String::new()
        } else {
            format!("; TOO MUCH TO DO at {}", over.join(", "))
        };
        say(format!("if {} was lost: the primary is {primary}{others}{over}", lost.node));
    }
    text
}

fn line(place: usize, host: &Standing) -> String {
    let role = if place == 0 { "primary".to_owned() } else { format!("backup {place}") };
    let (Some(used), Some(capacity)) = (host.used, host.capacity) else {
        return format!("  {role:<9} {:<4} has told nothing of its host", host.node);
    };
    let then = match (host.then, host.fits) {
        (Some(then), Some(true)) => format!("; {then} as primary, in time"),
        (Some(then), _) => format!("; {then} as primary, NOT all in time"),
        _ => String::new(),
    };
    format!("  {role:<9} {:<4} {used} of {capacity} used{then}", host.node)
}
