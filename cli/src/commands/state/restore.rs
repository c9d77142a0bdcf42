//! `steadfast state restore`.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use steadfast::admin::Client as AdminClient;
use steadfast::status::GroupStatus;
use steadfast::{NodeId, ViewNumber};

use super::super::at::At;
use super::super::{Failure, print};
use super::file::{Summary, read};

/// Replicas that were there come anew within this time.
const RETURN: Duration = Duration::from_millis(500);

/// How often it is asked how far it is.
const GLANCE: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
Examples:
  steadfast state restore counter counter.state               before the group has replicas or calls
  steadfast state restore counter counter.state --replace     discards the group's present state
  steadfast state restore counter counter.state --connect 10.0.0.1:7101 --tls plant/admin-ops

Without --replace the command refuses a group that has executed calls. End such a group first:
`steadfast withdraw`, or stop its replicas at all nodes. Until a replica has the state, only the
asked node has it, in memory. If that node is lost, restore the file again at another node.

Exit codes:
  0  the group has the state, or will begin with it when its first replica is hosted
  1  it does not: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The group.
    group: String,
    /// The file.
    file: PathBuf,
    /// Discard the group's present state. Without this a group that has executed calls is refused.
    #[arg(long)]
    replace: bool,
    /// Seconds to wait until a replica has the state, if the group has replicas. The restore
    /// continues after that.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// The outcome of a restore.
#[derive(Debug, Serialize)]
struct Outcome {
    group: String,
    /// The node that keeps the state until a replica has it.
    node: NodeId,
    view: ViewNumber,
    /// The node with the primary; `None`: no replica is there yet.
    primary: Option<NodeId>,
    from: Summary,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let (backup, content) = read(&args.file)?;
    if backup.group != args.group {
        return Err(Failure::Failed(format!(
            "{} has the state of group {}, not of {}: name that group, or give another file",
            args.file.display(),
            backup.group,
            args.group
        )));
    }
    let mut node = args.at.connect()?;
    let done =
        node.restore(&args.group, &backup.encode(), args.replace).map_err(Failure::failed)?;
    let primary = first_primary(&mut node, args)?;
    let from = Summary::new(&args.file, &backup, &content);
    let outcome = Outcome { group: done.group, node: done.node, view: done.view, primary, from };
    match args.json {
        true => print(&format!("{}\n", serde_json::to_string(&outcome).map_err(Failure::failed)?)),
        false => print(&text(&outcome)),
    }
}

/// The node of the primary, once a replica has the state; nobody if there is none that waits for
/// it.
fn first_primary(node: &mut AdminClient, args: &Args) -> Result<Option<NodeId>, Failure> {
    let begun = Instant::now();
    let until = begun + Duration::from_secs(args.wait);
    loop {
        let status = node.status().map_err(Failure::failed)?;
        let group = status.groups.into_iter().find(|group| group.name == args.group);
        let Some(group) = group else { return Ok(None) };
        if let Some(primary) = group.primary {
            return Ok(Some(primary.node));
        }
        if group.replicas.is_empty() && begun.elapsed() >= RETURN {
            return Ok(None);
        }
        if Instant::now() >= until && !group.replicas.is_empty() {
            return Err(Failure::Failed(late(&group, args.wait)));
        }
        // Nothing tells how far a transfer is.
        thread::sleep(GLANCE);
    }
}

fn late(group: &GroupStatus, waited: u64) -> String {
    let hosts: Vec<String> = group.replicas.iter().map(|it| it.node.to_string()).collect();
    format!(
        "no replica of {} has the state after {waited} s; the restore continues: see `steadfast status`. If the services cannot read the \
         state, the logs of {} have the reason; `steadfast state discard` starts the group without it",
        group.name,
        hosts.join(", ")
    )
}

fn text(outcome: &Outcome) -> String {
    let Outcome { group, node, primary, from, .. } = outcome;
    let what = from.line();
    match primary {
        Some(primary) => format!("{group} has the state, primary at {primary}\n  {what}"),
        None => format!(
            "{group} will begin with the state when its first replica is hosted; only {node} has it until then: do not stop {node}\n  {what}"
        ),
    }
}
