//! `steadfast deploy`: has a service run on some of the cluster's nodes.

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
  steadfast deploy service.toml --wait 30s             ends when all replicas have the state
  steadfast deploy service.toml --dry-run              only where it would go, and why
  steadfast deployments                                what has become of it
  steadfast withdraw orders                            ends it, and its state with it

The file says the program, how many replicas, and on which nodes; examples/deploy/service.toml shows every key. The cluster keeps it: a
replica that is lost is replaced without anybody's help. Deploying it again changes the number of replicas, policies, labels and need. With
another program (or arguments, folder, environment) it is upgraded while it serves: one replica after the other ends, starts with the new program and is
given the state, the primary last. If the new program ends again and again, or has not got the state after 60 s, all run the former one again, and
`steadfast deployments` says why. Until all are through, both must answer alike and read each other's state.

Any node of which the host is this one can be asked (its admin socket; not over TLS: whoever deploys has programs started on every
host). All nodes need [manager] on.

Exit codes:
  0  the cluster keeps it: replicas are on their way
  1  it does not: standard error says why, and what to do
  2  the command line, the file or the configuration is wrong";

/// Has a service run on some of the cluster's nodes, and keeps it running.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The file that says what.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only say where it would go, and why not elsewhere.
    #[arg(long)]
    dry_run: bool,
    /// Waits, for so long at most, until all replicas are there and have the state.
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
    let Some(it) = found else { return Some(format!("{group} is not deployed any more")) };
    let synced = it.seats.iter().filter(|seat| seat.on && seat.synced).count();
    let wanted = it.deployment.replicas;
    (!it.settled)
        .then(|| format!("{synced} of {wanted} replicas have the state: `steadfast deployments`"))
}

fn text(answer: &DeployAnswer, dry: bool) -> String {
    let on: Vec<String> =
        answer.seats.iter().filter(|it| it.on).map(|it| it.node.to_string()).collect();
    let on = if on.is_empty() { "nowhere now".to_owned() } else { on.join(", ") };
    let mut text = match dry {
        true => format!("{} would go to {on}; nothing was changed\n", answer.group),
        false => format!("{} is deployed, to {on}\n", answer.group),
    };
    for place in &answer.seats {
        if let Some(reason) = &place.objection {
            text += &format!("  not {}: {reason}\n", place.node);
        }
    }
    text
}
