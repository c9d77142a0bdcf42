//! `steadfast drain`: empties a node; `steadfast return`: lets it have replicas again.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;
use steadfast::NodeId;
use steadfast::status::DeploymentsStatus;

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast drain 2                                    waits until node 2 is empty, and says how far it is
  steadfast drain 2 --within 0 --config node.toml      only has it begin
  steadfast return 2                                   it may have replicas again

Every deployed replica at the node goes to another one that may have it: first the new one gets the state, then the old one leaves, after a
hand-over if it is the primary, one at a time. No call fails. A replica that nobody else can take goes too, if another has the state; the only one
of a group stays, and is named. What is not deployed (replicas and programs of the node's configuration, `steadfast run`) stays as well.
The node stays drained, also over its restarts, until it is returned.

Exit codes:
  0  it is empty (or, with --within 0, has begun)
  1  it is not: standard error says what is left, and why
  2  the command line or the configuration is wrong";

const RETURNS: &str = "\
Examples:
  steadfast return 2
  steadfast return 2 --config node.toml

Nothing moves there for that alone: it is a place for what is missing elsewhere.";

/// How often it is asked how far it is.
const ASK: Duration = Duration::from_millis(100);

/// Empties a node: its replicas go to others, one at a time, and no call fails.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The node.
    node: u32,
    /// Seconds that it may take. It goes on after that.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    within: u64,
    #[command(flatten)]
    at: At,
    /// Print JSON, one object a line, instead of text.
    #[arg(long)]
    json: bool,
}

/// Lets a node that was drained have replicas again.
#[derive(clap::Args)]
#[command(after_help = RETURNS, arg_required_else_help = true)]
pub struct Return {
    /// The node.
    node: u32,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// How far it is.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Progress {
    node: NodeId,
    /// Groups that still have a replica there.
    left: Vec<String>,
    /// Those of them that no other node may have.
    stuck: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(drain(args))
}

/// Runs the other command.
pub fn give_back(args: &Return) -> ExitCode {
    finish(return_it(args))
}

fn return_it(args: &Return) -> Result<(), Failure> {
    let answer = args.at.connect()?.give_back(NodeId(args.node)).map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string(&answer).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&format!("n{} may have replicas again\n", args.node))
}

fn drain(args: &Args) -> Result<(), Failure> {
    let node = NodeId(args.node);
    let mut admin = args.at.connect()?;
    admin.drain(node).map_err(Failure::failed)?;
    let until = Instant::now() + Duration::from_secs(args.within);
    let mut told = None;
    loop {
        let progress = progress(&admin.deployments().map_err(Failure::failed)?, node);
        if told.as_ref() != Some(&progress) {
            say(args, &progress)?;
        }
        if progress.left.is_empty() || args.within == 0 {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(Failure::Failed(unfinished(&progress, args.within)));
        }
        told = Some(progress);
        // The node is asked again, and again: nothing tells how the cluster state changes.
        std::thread::sleep(ASK);
    }
}

fn progress(it: &DeploymentsStatus, node: NodeId) -> Progress {
    let seats = it.nodes.iter().find(|seats| seats.node == node);
    let left = seats.map(|seats| seats.replicas.clone()).unwrap_or_default();
    let lonely = it.deployments.iter().filter(|deployment| {
        let others = deployment.seats.iter().filter(|place| place.node != node);
        left.contains(&deployment.deployment.group)
            && others.clone().all(|place| place.objection.is_some())
            && others.clone().all(|place| !place.synced)
    });
    Progress { node, stuck: lonely.map(|it| it.deployment.group.clone()).collect(), left }
}

fn say(args: &Args, progress: &Progress) -> Result<(), Failure> {
    if args.json {
        let json = serde_json::to_string(progress).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    let node = progress.node;
    match progress.left.len() {
        0 => print(&format!("{node} is empty\n")),
        _ => print(&format!("{node} still has {}\n", progress.left.join(", "))),
    }
}

fn unfinished(progress: &Progress, within: u64) -> String {
    let Progress { node, left, stuck } = progress;
    let mut text = format!("{node} still has {} after {within} s, and goes on", left.join(", "));
    if !stuck.is_empty() {
        let groups = stuck.join(", ");
        text += &format!(
            ": no other node may have a replica of {groups} (`steadfast deployments` says why), and the only one does not go: bring another node, \
             or withdraw it"
        );
    }
    text
}
