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
  steadfast state restore counter counter.state                      before its replicas are hosted, or called
  steadfast state restore counter counter.state --replace            what it has executed is given up
  steadfast state restore counter counter.state --connect 10.0.0.1:7101 --tls plant/admin-ops

A group that lives and was called is not touched without --replace: end it first (`steadfast withdraw`, or stop its replicas at all
nodes). Until a replica has the state the node that was asked keeps it, in memory: if that node is lost, say it again at another.

Exit codes:
  0  the group has the state, or begins with it as soon as a replica is hosted
  1  it has not: standard error says why, and what to do
  2  the command line or the configuration is wrong";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The group.
    group: String,
    /// The file.
    file: PathBuf,
    /// Give up what the group has executed. Without this a group that was called is not touched.
    #[arg(long)]
    replace: bool,
    /// How long to wait for the first replica that has the state, if there are any. It goes on all
    /// the same.
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
        "no replica of {} has the state after {waited} s, and it goes on: `steadfast status` shows when one has; if the services cannot read \
         it, the logs of {} say so, and `steadfast state discard` has the group begin without",
        group.name,
        hosts.join(", ")
    )
}

fn text(outcome: &Outcome) -> String {
    let Outcome { group, node, primary, from, .. } = outcome;
    let what = from.line();
    match primary {
        Some(primary) => format!("{group} goes on with the state, primary at {primary}\n  {what}"),
        None => format!(
            "{group} begins with the state as soon as a replica is hosted; {node} keeps it until then: do not stop it before\n  {what}"
        ),
    }
}
