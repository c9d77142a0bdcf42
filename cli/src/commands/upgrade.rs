//! `steadfast upgrade`: nodes get another version of the program, one after the other.

mod order;

use std::fmt::Write;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Subcommand;
use steadfast::status::{Status, VersionsStatus};

use self::order::{Next, is_in};
use super::at::At;
use super::{Failure, finish as end, print};

const EXAMPLES: &str = "\
Examples:
  steadfast upgrade status              which program each node runs, and which rules are in force
  steadfast upgrade next                which node may be stopped now, and started with the new program
  steadfast upgrade next --json | jq -r .node
  steadfast upgrade finish              the new rules come into force: no way back after this

Replace the program on a node's host, and restart the node; wait until it is in the ring again; then
the next one. Clients and programs of users go on: they may stay as they are. Nodes of two
neighbouring versions work together, by what both know.

When all nodes run the new program, its rules come into force after [upgrade] settle_ms, or by
`finish`. Until then each node can be taken back to the program before in the same way.

Exit codes:
  0  it is done; of `next`: standard output names a node, or all nodes run the newest program
  1  it failed, or no node may be stopped now: standard error has the reason
  2  the command line or the configuration is wrong";

/// How often it is looked whether rules are in force.
const GLANCE: Duration = Duration::from_millis(50);

/// Brings the nodes to another version of the program, while the cluster serves.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Shows the program of each node, the versions in use, and the nodes that cannot come in.
    Status {
        #[command(flatten)]
        at: At,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Names the node that may be stopped next: the quorum stays, and so does each group's state.
    Next {
        #[command(flatten)]
        at: At,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Has the newest rules come into force, if every configured node knows them.
    Finish {
        #[command(flatten)]
        at: At,
        /// Seconds to wait until they are in force.
        #[arg(long, value_name = "SECONDS", default_value_t = 30)]
        within: u64,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    end(match &args.what {
        What::Status { at, json } => status(at, *json),
        What::Next { at, json } => next(at, *json),
        What::Finish { at, within } => finish(at, Duration::from_secs(*within)),
    })
}

fn status(at: &At, json: bool) -> Result<(), Failure> {
    let status = at.connect()?.status().map_err(Failure::failed)?;
    if json {
        let json = serde_json::to_string_pretty(&status.versions).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&text(&status))
}

fn next(at: &At, json: bool) -> Result<(), Failure> {
    let status = at.connect()?.status().map_err(Failure::failed)?;
    let next = order::next(&status);
    if json {
        let json = serde_json::to_string(&next).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    match next {
        Next { node: Some(node), release, .. } => print(&format!(
            "{node}: stop it, and start it with the new program (it runs {})\n",
            release.unwrap_or_else(|| "an unknown one".into())
        )),
        Next { waits, .. } if waits.is_empty() => {
            print(&format!("all nodes run the newest program: {}\n", force(&status.versions)))
        }
        Next { waits, .. } => Err(Failure::Failed(format!(
            "no node may be stopped now: {}",
            waits.iter().map(|wait| wait.why.as_str()).collect::<Vec<_>>().join("; ")
        ))),
    }
}

fn finish(at: &At, within: Duration) -> Result<(), Failure> {
    let mut client = at.connect()?;
    let versions = client.status().map_err(Failure::failed)?.versions;
    if versions.next.is_none() && versions.lacking.is_empty() && versions.level > 0 {
        return print(&format!("{}: all nodes know no newer ones\n", force(&versions)));
    }
    let level = client.finish_upgrade().map_err(Failure::failed)?.level;
    let deadline = Instant::now() + within;
    loop {
        let versions = client.status().map_err(Failure::failed)?.versions;
        if versions.level >= level {
            return print(&format!("rules of level {level} are in force\n"));
        }
        if Instant::now() >= deadline {
            return Err(Failure::Failed(format!(
                "rules of level {level} are ordered and not in force yet: look again with `steadfast \
                 upgrade status`"
            )));
        }
        thread::sleep(GLANCE);
    }
}

/// The rules in force, and the next ones.
fn force(versions: &VersionsStatus) -> String {
    match (versions.next, versions.next_in_ms) {
        (Some(next), Some(ms)) => format!(
            "rules of level {next} come into force in {} s, or by `steadfast upgrade finish`",
            ms / 1_000
        ),
        (Some(next), None) => {
            format!("`steadfast upgrade finish` has rules of level {next} come into force")
        }
        (None, _) => format!("rules of level {} are in force", versions.level),
    }
}

fn text(status: &Status) -> String {
    let versions = &status.versions;
    let mut text = format!(
        "ring version {}, {}\n\nnode  program     ring    rules   clients  programs  ranks\n",
        versions.ring,
        force(versions)
    );
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        writeln!(text, "{arguments}").expect("a String takes everything");
    };
    for node in &status.ring.configured {
        let known = versions.programs.iter().find(|it| it.node == *node);
        let away = if is_in(status, *node) { "" } else { "  not in the ring" };
        let Some(program) = known.map(|it| &it.program) else {
            line(format_args!("{:<4}  not known{away}", node.to_string()));
            continue;
        };
        line(format_args!(
            "{:<4}  {:<10}  {:<6}  {:<6}  {:<7}  {:<8}  {}{away}",
            node.to_string(),
            program.release,
            program.ring.to_string(),
            program.rules.to_string(),
            program.client.to_string(),
            program.attach.to_string(),
            program.rank
        ));
    }
    for unfit in &versions.unfit {
        line(format_args!("  ! {}", unfit.why));
    }
    text
}
