//! `steadfast events`: the events at a node.

use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;

use steadfast::events::EventFormatter;

use super::at::At;
use super::{Failure, finish};

const EXAMPLES: &str = "\
Examples:
  steadfast events                             the last events of this host's node
  steadfast events --follow                    these, and all later ones, until Ctrl-C
  steadfast events --follow --json | jq 'select(.event == \"excluded\")'
  steadfast events --follow --connect 10.0.0.1:7101 --tls plant/admin-ops      of another host

A line has the time of day (UTC), the reporting node, the time since the last fault, and the event.
The events of a fail-over at one node:
  suspected      a member seems to have failed: by its host's report, or without a sign of life
  excluded       a new configuration without the member, and the reason
  v4, primary n2 a group's new view, its primary and its replicas
  answers again  this node's first reply for a group whose primary was lost
  hung, removed  a service missed deadlines; its replica leaves the group and rejoins
  restarted      the node rejoins; state transfers and moved primaries follow

Times come from the node's clock. Only the new primary reports `answers again`. A node waits for no
reader: a slow reader gets the number of dropped events.";

/// Shows the events at a node: suspicions, exclusions, views, state transfers, moves.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// Continue with later events.
    #[arg(long)]
    follow: bool,
    /// Include the events of every call.
    #[arg(long)]
    calls: bool,
    /// Print JSON, one object a line, instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(show(args))
}

fn show(args: &Args) -> Result<(), Failure> {
    let node = args.at.connect()?;
    if args.follow {
        // Nothing may happen for long.
        node.set_timeout(None).map_err(Failure::failed)?;
    }
    let mut formatter = EventFormatter::new();
    let mut out = stdout().lock();
    for record in node.events(args.follow, args.calls).map_err(Failure::failed)? {
        let record = record.map_err(Failure::failed)?;
        let line = match args.json {
            true => serde_json::to_string(&record).map_err(Failure::failed)?,
            false => formatter.line(&record),
        };
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break, // `| head` has enough
            written => written.map_err(Failure::failed)?,
        }
    }
    Ok(())
}
