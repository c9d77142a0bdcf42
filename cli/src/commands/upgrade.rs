//! `steadfast upgrade`: nodes get another version of the program, one after the other.

mod order;

use std::fmt::Write;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Subcommand;
use steadfast::status::{Status, VersionsStatus};
use wire::Program;

use self::order::{Next, is_in};
use super::at::At;
use super::{Failure, finish as end, print};

const EXAMPLES: &str = "\
Examples:
  steadfast upgrade status              which program each node runs, and which rules are in force
  steadfast upgrade next                which node may be stopped now, and started with the new program
  steadfast upgrade next --json | jq -r .node
  steadfast upgrade finish              the new rules come into force: no way back after this

Ask `next` with the new program. Replace the program on a node's host, and restart the node; wait until
it is in the ring again; then the next one. Clients and programs of users go on: they may stay as they
are. Nodes of two neighbouring versions work together, by what both know.

When all nodes run the new program, its rules come into force after [upgrade] settle_ms, or by
`finish`. Until then each node can be taken back to the program before in the same way.

Exit codes:
  0  it is done; of `next`: standard output names a node, or all nodes run the newest program
  1  it failed, or no node may be stopped now: standard error has the reason. With --json, too: in
     a pipe, `set -o pipefail` passes it on
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
    /// A cluster of two nodes stops meanwhile, and a notice says so.
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
    // Asked with the new program, it names the first node, too.
    let own = Program::this(env!("CARGO_PKG_VERSION"));
    let (text, outcome) = answer(order::next(&status, &own), &status.versions, json);
    print(&text)?;
    outcome
}

/// The text for standard output, and whether a node may be stopped or all are done. Scripts tell
/// these from "not now" by the exit code, with JSON as well.
fn answer(next: Next, versions: &VersionsStatus, json: bool) -> (String, Result<(), Failure>) {
    let outcome = match next.node {
        None if !next.waits.is_empty() => Err(Failure::Failed(format!(
            "no node may be stopped now: {}",
            next.waits.iter().map(|wait| wait.why.as_str()).collect::<Vec<_>>().join("; ")
        ))),
        _ => Ok(()),
    };
    if json {
        return match serde_json::to_string(&next) {
            Ok(json) => (format!("{json}\n"), outcome),
            Err(error) => (String::new(), Err(Failure::failed(error))),
        };
    }
    let text = match next {
        Next { node: Some(node), release, notice, .. } => format!(
            "{node}: stop it, and start it with the new program (it runs {})\n{}",
            release.unwrap_or_else(|| "an unknown one".into()),
            notice.map(|notice| format!("  ! {notice}\n")).unwrap_or_default()
        ),
        _ if outcome.is_ok() => {
            format!("all nodes run the newest program: {}\n", force(versions))
        }
        _ => String::new(),
    };
    (text, outcome)
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

#[cfg(test)]
mod tests {
    use steadfast::NodeId;

    use super::order::Wait;
    use super::*;

    /// Standard output as text and as JSON, which have one exit code, and the error.
    fn both(next: impl Fn() -> Next) -> (String, serde_json::Value, Option<Failure>) {
        let (text, outcome) = answer(next(), &VersionsStatus::default(), false);
        let (json, same) = answer(next(), &VersionsStatus::default(), true);
        assert_eq!(outcome, same);
        (text, serde_json::from_str(&json).expect("JSON"), outcome.err())
    }

    #[test]
    fn json_and_text_have_the_same_exit_code() {
        let (text, json, error) = both(Next::default);
        assert!(text.starts_with("all nodes run the newest program"), "{text}");
        assert_eq!((&json["node"], error), (&serde_json::Value::Null, None));
        let waits = || vec![Wait { node: None, why: "the ring gathers".into() }];
        let (text, json, error) = both(|| Next { waits: waits(), ..Next::default() });
        assert_eq!((text.as_str(), &json["waits"][0]["why"]), ("", &"the ring gathers".into()));
        let why = "no node may be stopped now: the ring gathers".into();
        assert_eq!(error, Some(Failure::Failed(why)));
        let node = Some(NodeId(2));
        let notice = || Some("the cluster stops".into());
        let (text, json, error) =
            both(|| Next { node, notice: notice(), waits: waits(), ..Next::default() });
        assert!(text.starts_with("n2: stop it") && text.contains("  ! the cluster stops\n"));
        assert_eq!((&json["notice"], error), (&"the cluster stops".into(), None));
    }
}
