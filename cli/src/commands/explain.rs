//! `steadfast explain`: the reasons for the place of a group's primary, and the next ones.

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use steadfast::status::{DeploymentStatus, Explanation, Standing, explain};

use super::at::At;
use super::{Failure, deployments, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast explain counter                      from this host's node
  steadfast explain counter --config node.toml --json | jq .if_lost

Any node can answer. Clients try the backups in the shown order, and the first one takes over. The
manager ranks a backup higher if its host would be less used by a twentieth of its capacity, or
would meet all deadlines where the other would not (docs/protocol/manager.md).

The load that moves with a primary is its use above that of the least busy backup. In semi-active,
active and voting groups all replicas execute, so almost none moves. For a deployed group the
command gives each node's reason to have a replica or none (docs/protocol/deployment.md).

Exit codes:
  0  the explanation is complete
  1  there is none: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// Explains the place of a group's primary, the order of its backups, and the effect of a host's
/// loss.
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
            Some(flaws @ 1..) => {
                format!("; other replicas at the same value of the label: {flaws}")
            }
            _ => String::new(),
        };
        let words = match (&seat.objection, seat.on) {
            (Some(reason), true) => {
                format!("a replica stays here until others have the state: {reason}")
            }
            (Some(reason), false) => format!("may not have a replica: {reason}"),
            (None, true) => format!("a replica is placed here{flaws}"),
            (None, false) => format!("may have a replica{flaws}"),
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
            "{} ({}, {}): the primary is at {node}, the first in rank of the replicas with the state",
            it.group, it.style, it.view
        )),
        None => say(format!(
            "{} ({}, {}): no primary: no replica with the state is up",
            it.group, it.style, it.view
        )),
    }
    say(match it.decides {
        Some(node) => format!("{node} ranks the backups; {} of a processor moves with the primary", it.moves),
        None => "no node ranks the backups: replicas stay in the order in which they joined ([manager] is off, or there is no quorum)".into(),
    });
    if it.hung {
        say(
            "the service of the asked node's replica is hung: it missed several deadlines in a row"
                .into(),
        );
    }
    it.troubles.iter().for_each(|trouble| say(format!("! {trouble}")));
    for (place, host) in it.hosts.iter().enumerate() {
        say(line(place, host));
    }
    for lost in &it.if_lost {
        let primary =
            lost.primary.map_or("no primary".to_owned(), |node| format!("primary at {node}"));
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
            format!("; OVERLOAD at {}", over.join(", "))
        };
        say(format!("if {} is lost: {primary}{others}{over}", lost.node));
    }
    text
}

fn line(place: usize, host: &Standing) -> String {
    let role = if place == 0 { "primary".to_owned() } else { format!("backup {place}") };
    let (Some(used), Some(capacity)) = (host.used, host.capacity) else {
        return format!("  {role:<9} {:<4} has reported no load", host.node);
    };
    let then = match (host.then, host.fits) {
        (Some(then), Some(true)) => format!("; {then} as primary, all deadlines met"),
        (Some(then), _) => format!("; {then} as primary, deadlines NOT all met"),
        _ => String::new(),
    };
    format!("  {role:<9} {:<4} {used} of {capacity} used{then}", host.node)
}
