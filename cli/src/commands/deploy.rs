//! `steadfast deploy`: the cluster runs a service on some of its nodes.

mod file;
mod progress;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use steadfast::admin::DeployAnswer;

use super::at::At;
use super::wait::{self, long_duration};
use super::{Failure, finish, print};
use progress::Progress;

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
Before a replica ends, its node tries the new program beside it: the program has to start, to read
the group's present state, and to give it again. Otherwise the upgrade is refused with the reason, and
no replica has ended. (STEADFAST_TRIAL = \"off\" in [environment] leaves the trial out, for programs
that cannot run twice on a host.)
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
    /// Wait until all replicas have the state, at most for this time. It ends sooner, with the reason,
    /// when that is known to be impossible.
    #[arg(long, value_name = "TIME", value_parser = long_duration, conflicts_with = "dry_run")]
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
    let mut dropped = String::new();
    if args.wait.is_some() {
        let look = || node.deployments().map_err(Failure::failed);
        let mut progress = Progress::new(Instant::now(), &deployment);
        let all = wait::until_known(args.wait, look, |all| progress.look(Instant::now(), all))?;
        dropped = progress.dropped(&all);
    }
    if args.json {
        let json = serde_json::to_string_pretty(&answer).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&(text(&answer, args.dry_run) + &dropped))
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
