//! `steadfast events`: what happens at a node, as it happens.

use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;

use steadfast::events::EventFormatter;

use super::at::At;
use super::{Failure, finish};

const EXAMPLES: &str = "\
Examples:
  steadfast events                             the last events of this host's node
  steadfast events --follow                    these, and what follows, until Ctrl-C
  steadfast events --follow --json | jq 'select(.event == \"excluded\")'
  steadfast events --follow --connect 10.0.0.1:7101 --tls plant/admin-ops      of another host

A line: time of day (UTC), the node that tells it, the time since the last fault, and what happened. The story of a
fail-over at one node:
  suspected    a member is held to have failed: its host says that its process is gone, or there was no sign of it
  excluded     a configuration without it, with the reason, and how long it was suspected
  view         a group's new membership and primary
  answers again  the first reply of this node for a group whose primary was lost
  hung, out    a service misses deadlines; its replica leaves its group, and comes anew
  back in a new life, given the state, moved      the way back

Times are those of the node's clock. `answers again` is told by the new primary only. A command that does not keep
up is told how many events it missed; the node waits for nobody.";

/// Shows what happens at a node: suspicions, exclusions, views, transfers, moves.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// Go on with what happens from now on.
    #[arg(long)]
    follow: bool,
    /// Those of every call too.
    #[arg(long)]
    calls: bool,
    /// One JSON object a line instead of words.
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
