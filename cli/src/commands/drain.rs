//! `steadfast drain`: empties a node; `steadfast return`: lets it have replicas again.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use job::{Generation, Job, Jobs, RankState};
use serde::Serialize;
use steadfast::NodeId;
use steadfast::admin::{AdminError, Client};
use steadfast::status::DeploymentsStatus;

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast drain 2                                    shows progress until node 2 is empty
  steadfast drain 2 --within 0 --config node.toml      only starts the drain
  steadfast return 2                                   permits replicas on node 2 again

The cluster moves the node's deployed replicas to other nodes, one at a time. The new replica
receives the state, a primary hands over, and then the old replica leaves. No call fails. If no
other node may take a replica, it still leaves, provided that another replica has the state. The
only replica of a group with its state stays; the command names the group. Replicas and programs
that are not deployed (from the node's configuration or `steadfast run`) stay.

Ranks of jobs save, and go on elsewhere once another node has their images; copies of images that
are nowhere else leave, too. A rank that saves nothing stays until it ends. Ask a node with [jobs]:
others know of no ranks.

The node stays drained, also after restarts, until `steadfast return`.

Exit codes:
  0  the node is empty (with --within 0: the drain has started)
  1  it is not: standard error lists what remains, and the reason
  2  the command line or the configuration is wrong";

const RETURNS: &str = "\
Examples:
  steadfast return 2
  steadfast return 2 --config node.toml

No replica moves back by itself. The cluster may use the node for missing replicas.";

/// How often it is asked how far it is.
const ASK: Duration = Duration::from_millis(100);

/// Drains a node: its replicas move to other nodes, one at a time, and no call fails.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The node.
    node: u32,
    /// Seconds to wait until the node is empty. The drain continues after that.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    within: u64,
    #[command(flatten)]
    at: At,
    /// Print JSON, one object a line, instead of text.
    #[arg(long)]
    json: bool,
}

/// Permits replicas on a drained node again.
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
    /// Ranks of jobs that still run there.
    ranks: Vec<String>,
    /// Ranks whose newest state is there alone.
    copies: Vec<String>,
}

impl Progress {
    fn is_empty(&self) -> bool {
        self.left.is_empty() && self.ranks.is_empty() && self.copies.is_empty()
    }

    /// All that is left, for people.
    fn told(&self) -> String {
        let copies = self.copies.iter().map(|rank| format!("the only copy of {rank}"));
        let all = self.left.iter().chain(&self.ranks).cloned().chain(copies);
        all.collect::<Vec<_>>().join(", ")
    }
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
    empty(&mut args.at.connect()?, NodeId(args.node), args.within, args.json)
}

/// Empties a node, and tells how far it is.
pub fn empty(admin: &mut Client, node: NodeId, within: u64, json: bool) -> Result<(), Failure> {
    admin.drain(node).map_err(Failure::failed)?;
    let until = Instant::now() + Duration::from_secs(within);
    let mut told = None;
    loop {
        let deployments = admin.deployments().map_err(Failure::failed)?;
        let jobs = jobs(admin, until)?;
        let progress = progress(&deployments, jobs.as_ref(), node);
        if told.as_ref() != Some(&progress) {
            say(json, &progress)?;
        }
        if progress.is_empty() || within == 0 {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(Failure::Failed(unfinished(&progress, within)));
        }
        told = Some(progress);
        // The node is asked again, and again: nothing tells how the cluster state changes.
        std::thread::sleep(ASK);
    }
}

fn progress(it: &DeploymentsStatus, jobs: Option<&Jobs>, node: NodeId) -> Progress {
    let seats = it.nodes.iter().find(|seats| seats.node == node);
    let left = seats.map(|seats| seats.replicas.clone()).unwrap_or_default();
    let lonely = it.deployments.iter().filter(|deployment| {
        let others = deployment.seats.iter().filter(|place| place.node != node);
        left.contains(&deployment.deployment.group)
            && others.clone().all(|place| place.objection.is_some())
            && others.clone().all(|place| !place.synced)
    });
    let stuck = lonely.map(|it| it.deployment.group.clone()).collect();
    let named = |job: &Job, number: u32| format!("rank {number} of {}", job.spec.name);
    let (mut ranks, mut copies) = (Vec::new(), Vec::new());
    for (_, job) in jobs.into_iter().flat_map(Jobs::jobs) {
        for (number, rank) in (0..).zip(&job.ranks) {
            let state = rank.images.restorable().next();
            if matches!(rank.state, RankState::At(at) if at.node == node) {
                ranks.push(named(job, number));
            } else if state.is_some_and(|state| state.iter().any(|image| is_only_at(image, node))) {
                copies.push(named(job, number));
            }
        }
    }
    Progress { node, stuck, left, ranks, copies }
}

fn is_only_at(image: &Generation, node: NodeId) -> bool {
    image.holders.iter().all(|holder| holder.node == node)
}

/// The book of jobs, once the node has it; `None`: the node has no part in it.
fn jobs(admin: &mut Client, until: Instant) -> Result<Option<Jobs>, Failure> {
    loop {
        match admin.jobs(None, Duration::ZERO) {
            Ok(status) if status.current => return Ok(status.jobs),
            Err(AdminError::Refused(_)) => return Ok(None),
            Err(error) => return Err(Failure::failed(error)),
            Ok(_) if Instant::now() >= until => {
                let why = "the node does not have the book of jobs: is there a quorum (`steadfast status`)?";
                return Err(Failure::Failed(why.into()));
            }
            Ok(_) => std::thread::sleep(ASK),
        }
    }
}

fn say(json: bool, progress: &Progress) -> Result<(), Failure> {
    if json {
        let json = serde_json::to_string(progress).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    let node = progress.node;
    match progress.is_empty() {
        true => print(&format!("{node} is empty\n")),
        false => print(&format!("{node} still has {}\n", progress.told())),
    }
}

fn unfinished(progress: &Progress, within: u64) -> String {
    let Progress { node, stuck, ranks, copies, .. } = progress;
    let mut text =
        format!("{node} still has {} after {within} s; the drain continues", progress.told());
    if !stuck.is_empty() {
        let groups = stuck.join(", ");
        text += &format!(
            ". No other node may have a replica of {groups} (`steadfast deployments` has the reasons), and its only \
             replica stays: add a node, or withdraw the group"
        );
    }
    if !ranks.is_empty() {
        text += ". Ranks leave when another node may have them and has their images (`steadfast job show`, \
                 `steadfast nodes`); one that saves nothing stays until it ends, or its job is stopped (`steadfast job kill`)";
    }
    if !copies.is_empty() {
        text += ". Copies leave when another node with [jobs] has room for them";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_left_is_named() {
        let node = NodeId(1);
        let none = || Progress {
            node,
            left: Vec::new(),
            stuck: Vec::new(),
            ranks: Vec::new(),
            copies: Vec::new(),
        };
        assert!(none().is_empty());
        let ranks = vec!["rank 0 of sum".into()];
        let copies = vec!["rank 1 of sum".into()];
        let progress = Progress { left: vec!["orders".into()], ranks, copies, ..none() };
        assert!(!progress.is_empty());
        let text = unfinished(&progress, 5);
        for words in [
            "orders, rank 0 of sum, the only copy of rank 1 of sum after 5 s",
            "steadfast job kill",
            "has room",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!Progress { copies: vec!["rank 1 of sum".into()], ..none() }.is_empty());
    }
}
