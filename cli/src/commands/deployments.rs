//! `steadfast deployments`: what is deployed, and where; and `steadfast withdraw`.

use std::fmt::Write;
use std::process::ExitCode;

use steadfast::status::{DeploymentStatus, DeploymentsStatus, NodeDeployed, SeatStatus};

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast deployments
  steadfast deployments --config node.toml --json | jq '.deployments[] | select(.settled | not)'
  steadfast deployments --connect 10.0.0.1:7101 --tls plant/admin-ops

Any node can answer. `[n2]` is a replica that does not have the state yet. `but n1: ...` gives the
reason why n1 will lose its replica.";

const WITHDRAWS: &str = "\
Examples:
  steadfast withdraw orders
  steadfast withdraw orders --config node.toml

All replicas leave the group, and their programs end: the group's state is lost. The command returns
when the withdrawal is ordered; the replicas end afterwards.

Exit codes:
  0  the deployment is withdrawn
  1  it is not: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// Shows the deployments, their replicas, and the nodes that may have replicas.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Ends a deployment, and its state with it.
#[derive(clap::Args)]
#[command(after_help = WITHDRAWS, arg_required_else_help = true)]
pub struct Withdraw {
    /// The group.
    group: String,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

/// Runs the other command.
pub fn withdraw(args: &Withdraw) -> ExitCode {
    finish(end(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let deployments = args.at.connect()?.deployments().map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string_pretty(&deployments).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&text(&deployments))
}

fn end(args: &Withdraw) -> Result<(), Failure> {
    let answer = args.at.connect()?.withdraw(&args.group).map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string(&answer).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&format!("{} is withdrawn: its replicas end\n", args.group))
}

/// For people.
pub fn text(it: &DeploymentsStatus) -> String {
    let mut text = match it.leads {
        Some(node) => format!("{node} decides on the placement of replicas\n"),
        None => {
            "no node decides on the placement of replicas: the manager's group has no primary\n"
                .into()
        }
    };
    for node in &it.nodes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}", node_line(node));
    }
    if it.deployments.is_empty() {
        text += "no deployments (`steadfast deploy` makes one)\n";
    }
    for deployment in &it.deployments {
        let _ = writeln!(text, "{}", line(deployment));
    }
    text
}

fn node_line(node: &NodeDeployed) -> String {
    let labels: Vec<String> =
        node.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut parts = vec![format!("{:<4} {}", node.node, node.capacity)];
    parts.extend((!labels.is_empty()).then(|| labels.join(" ")));
    parts.extend((!node.present).then(|| "not in the cluster now".into()));
    parts.extend(node.drained.then(|| match node.replicas.len() {
        0 => "drained: it is empty".into(),
        left => format!("being drained: {left} replicas left"),
    }));
    if !node.replicas.is_empty() {
        parts.push(node.replicas.join(", "));
    }
    parts.join("; ")
}

/// A line on one deployment.
pub fn line(it: &DeploymentStatus) -> String {
    let name = |place: &SeatStatus| match place.synced {
        true => place.node.to_string(),
        false => format!("[{}]", place.node),
    };
    let on: Vec<&SeatStatus> = it.seats.iter().filter(|place| place.on).collect();
    let names: Vec<String> = on.iter().map(|place| name(place)).collect();
    let names = if names.is_empty() { "no node".into() } else { names.join(", ") };
    let wanted = it.deployment.replicas;
    let state = if it.settled { "" } else { ", not settled" };
    let mut line = format!(
        "{} ({}): {wanted} wanted, on {names}{state}",
        it.deployment.group, it.deployment.options.style
    );
    for place in on {
        if let Some(reason) = &place.objection {
            line += &format!("; but {}: {reason}", place.node);
        }
    }
    for note in &it.notes {
        line += &format!("\n  {}", note.fact());
    }
    line + &upgrade(it)
}

/// Returns the state of an upgrade, on lines of its own.
fn upgrade(it: &DeploymentStatus) -> String {
    let mut text = String::new();
    if let Some(undone) = &it.undone {
        let program = undone.program.command.join(" ");
        text += &format!(
            "\n  an upgrade was rolled back: `{program}` at {}: {}",
            undone.node, undone.fault
        );
    }
    if let Some(upgrade) = &it.upgrade {
        let names =
            |nodes: Vec<String>| if nodes.is_empty() { "none".into() } else { nodes.join(", ") };
        let done = names(upgrade.done.iter().map(ToString::to_string).collect());
        let program = it.deployment.program.command.join(" ");
        text += &format!("\n  upgrading to `{program}`: {done} done");
        if let Some(node) = upgrade.under_way {
            text += &format!(", {node} is changing");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use steadfast::NodeId;
    use steadfast::cluster_state::{Deployment, Fault, Program, Undone, Upgrade};

    use super::*;

    #[test]
    fn what_is_not_as_it_should_be_is_said() {
        let place = |node, on, synced, objection: Option<&str>| SeatStatus {
            node: NodeId(node),
            on,
            synced,
            objection: objection.map(String::from),
            flaws: Some(0),
        };
        let deployment = Deployment::new("orders", vec!["./orders".into()], 2);
        let it = DeploymentStatus {
            deployment,
            settled: false,
            upgrade: None,
            undone: None,
            notes: Vec::new(),
            seats: vec![
                place(1, true, true, Some("it is being drained")),
                place(2, true, true, None),
                place(3, true, false, None),
                place(4, false, false, Some("it has no label disk")),
            ],
        };
        assert_eq!(
            line(&it),
            "orders (semi-active): 2 wanted, on n1, n2, [n3], not settled; but n1: it is being drained"
        );
        let program =
            |name: &str| Program { command: vec![name.into()], ..it.deployment.program.clone() };
        let undone = Undone { program: program("new"), node: NodeId(2), fault: Fault::Ended };
        let upgrade = Upgrade {
            from: program("new"),
            done: [NodeId(1)].into(),
            under_way: Some(NodeId(2)),
            undoes: true,
        };
        let it = DeploymentStatus {
            upgrade: Some(upgrade),
            undone: Some(undone),
            seats: vec![place(1, true, true, None), place(2, true, false, None)],
            ..it
        };
        assert_eq!(
            line(&it),
            "orders (semi-active): 2 wanted, on n1, [n2], not settled\n  an upgrade was rolled back: `new` at n2: it ended again and \
             again\n  upgrading to `./orders`: n1 done, n2 is changing"
        );
    }
}
