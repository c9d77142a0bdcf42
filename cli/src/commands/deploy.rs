//! `steadfast deploy`: the cluster runs a service on some of its nodes.

mod file;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use steadfast::admin::DeployAnswer;
use steadfast::status::DeploymentsStatus;

use super::at::At;
use super::wait::{self, duration};
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast deploy service.toml --config node.toml
  steadfast deploy service.toml --wait 30s             waits until all replicas have the state
  steadfast deploy service.toml --dry-run              only shows the placement and the reasons
  steadfast deployments                                shows the deployment's state
  steadfast withdraw orders                            ends the deployment, and its state with it

The file names the program, the number of replicas, and the nodes that may have them;
examples/deploy/service.toml shows every key. The cluster replaces a lost replica by itself.

Another `deploy` of the group changes the number of replicas, policies, labels and need. A new
program (or arguments, folder, environment) is a rolling upgrade while the group serves. One replica
after the other ends, starts with the new program and receives the state; the primary is the last.
If the new program ends again and again, or lacks the state after 60 s, the cluster rolls the
upgrade back; `steadfast deployments` shows the reason. During an upgrade both programs must
give the same answers and read each other's state.

The command asks a node of this host by its admin socket. It does not work over TLS, because a
deployment starts programs on every host. All nodes need [manager] on.

Exit codes:
  0  the cluster has the deployment, and starts its replicas
  1  it does not: standard error has the reason and the remedy
  2  the command line, the file or the configuration is wrong";

/// Deploys a service on some of the cluster's nodes, and keeps it running.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The file that describes the deployment.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only show the placement, and the reasons against other nodes.
    #[arg(long)]
    dry_run: bool,
    /// Wait until all replicas have the state, at most for this time.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "dry_run")]
    wait: Option<Duration>,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(deploy(args))
}

fn deploy(args: &Args) -> Result<(), Failure> {
    let deployment = file::read(&args.file)?;
    let mut node = args.at.connect()?;
    // Nodes of a cluster that starts tell of themselves one by one: until then there may be no
    // place.
    let ask = || node.deploy(&deployment, args.dry_run).map_err(Failure::failed);
    let answer = wait::until(args.wait, ask, |_| None)?;
    if args.wait.is_some() {
        let look = || node.deployments().map_err(Failure::failed);
        wait::until(args.wait, look, |all| missing(all, &answer.group))?;
    }
    if args.json {
        let json = serde_json::to_string_pretty(&answer).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&text(&answer, args.dry_run))
}

/// Returns the reason why the deployment has not settled yet, if it has not.
fn missing(all: &DeploymentsStatus, group: &str) -> Option<String> {
    let found = all.deployments.iter().find(|it| it.deployment.group == group);
    let Some(it) = found else { return Some(format!("{group} is no longer deployed")) };
    let synced = it.seats.iter().filter(|seat| seat.on && seat.synced).count();
    let wanted = it.deployment.replicas;
    (!it.settled).then(|| {
        format!("{synced} of {wanted} replicas have the state: see `steadfast deployments`")
    })
}

fn text(answer: &DeployAnswer, dry: bool) -> String {
    let on: Vec<String> =
        answer.seats.iter().filter(|it| it.on).map(|it| it.node.to_string()).collect();
    let on = if on.is_empty() { "no node now".to_owned() } else { on.join(", ") };
    let mut text = match dry {
        true => format!("{} would be placed on {on}; nothing was changed\n", answer.group),
        false => format!("{} is deployed on {on}\n", answer.group),
    };
    for place in &answer.seats {
        if let Some(reason) = &place.objection {
            text += &format!("  not {}: {reason}\n", place.node);
        }
    }
    text
}
