//! `steadfast retire`: a node leaves the cluster for good.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use steadfast::NodeId;
use steadfast::admin::Client;

use super::at::At;
use super::drain;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast retire 1
  steadfast retire 1 --connect 10.0.0.2:7101 --tls plant/admin-ops
  steadfast retire 1 --json | jq -r .step
  steadfast retire 4 --give-up       ends a coming or going that is under way

The node is drained first, as by `steadfast drain`; then the cluster stops counting on it, and the node
ends by itself. Clients notice nothing. A node that is dead, or whose host is lost, is retired in the
same way: the others need a majority without it.

Its number is never used again. If it starts once more with its old disk it is told so, and ends. To
have its host in the cluster again, join with another number and an empty data_dir.

Exit codes:
  0  the cluster counts on the node no more; with --give-up: the change is given up
  1  it still does: standard error has the reason
  2  the command line or the configuration is wrong";

/// How often it is looked how far it is.
const GLANCE: Duration = Duration::from_millis(100);

/// Retires a node: it is drained, and then is one of the cluster's no more.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The node.
    node: u32,
    /// Give up the coming or going of this node that is under way.
    #[arg(long)]
    give_up: bool,
    /// Seconds to wait until the node is empty, and until it is retired.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    within: u64,
    #[command(flatten)]
    at: At,
    /// Print JSON, one object a line, instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Step {
    node: NodeId,
    step: &'static str,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(retire(args))
}

fn retire(args: &Args) -> Result<(), Failure> {
    let node = NodeId(args.node);
    let mut cluster = args.at.connect()?;
    if args.give_up {
        return give_up(args, node, &mut cluster);
    }
    let status = cluster.status().map_err(Failure::failed)?;
    if status.nodes.retired.contains(&node) {
        return say(args, node, "was retired before");
    }
    if status.node == node && !args.at.has_others()? {
        return Err(Failure::Usage(format!(
            "{node} ends when it is retired, and cannot tell how that went: ask another node"
        )));
    }
    let is_member = status.ring.members.iter().any(|member| member.node == node);
    if is_member && status.manager.is_some() {
        drain::empty(&mut cluster, node, args.within, args.json)?;
    }
    cluster.retire(node).map_err(Failure::failed)?;
    say(args, node, "is to go: the others keep that on their disks")?;
    let deadline = Instant::now() + Duration::from_secs(args.within);
    loop {
        // A node that was asked may go itself, or stop: others of the context know.
        let seen = cluster.status().ok().filter(|status| status.ring.state != "stopped");
        let Some(status) = seen else {
            if Instant::now() >= deadline {
                return Err(Failure::Failed(format!(
                    "no node tells whether {node} is retired: ask another one, for {node} itself ends then"
                )));
            }
            thread::sleep(GLANCE);
            cluster = args.at.connect().unwrap_or(cluster);
            continue;
        };
        let nodes = status.nodes;
        if nodes.retired.contains(&node) {
            say(args, node, "is retired")?;
            if !args.json {
                print(
                    "  if others may get at its folder: deny its certificate ([security] denied), and \
                     change the cluster's key (steadfast key rotate)\n",
                )?;
            }
            return Ok(());
        }
        if nodes.moving.is_none() {
            return Err(Failure::Failed(format!(
                "{node} stays, and is drained (`steadfast return {}` ends that): it was given up, or {node} has the \
                 last replica with the state of a group (`steadfast status` shows which): give that group a \
                 replica elsewhere first",
                args.node
            )));
        }
        if Instant::now() >= deadline {
            return Err(Failure::Failed(format!(
                "{node} is not retired after {} s: a majority of the other nodes has to be there; it goes \
                 on all the same, and `steadfast retire {} --give-up` ends it",
                args.within, args.node
            )));
        }
        thread::sleep(GLANCE);
    }
}

fn give_up(args: &Args, node: NodeId, cluster: &mut Client) -> Result<(), Failure> {
    let moving = cluster.status().map_err(Failure::failed)?.nodes.moving;
    if moving.is_none_or(|moving| moving.node != node) {
        return Err(Failure::Failed(format!("{node} is neither coming nor going just now")));
    }
    cluster.give_up_move().map_err(Failure::failed)?;
    say(args, node, "neither comes nor goes; if it was drained, `steadfast return` ends that")
}

fn say(args: &Args, node: NodeId, step: &'static str) -> Result<(), Failure> {
    if args.json {
        let json = serde_json::to_string(&Step { node, step }).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&format!("{node} {step}\n"))
}
