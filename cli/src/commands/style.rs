//! `steadfast style`: changes the style of a running group.

use std::process::ExitCode;

use steadfast::Style;

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast style counter active                        through this host's node
  steadfast style counter voting --config node.toml     through the node with this configuration
  steadfast style counter semi-active --connect 10.0.0.1:7101 --tls plant/admin-ops

Any node accepts the change. The change is ordered like a call: earlier calls use the old style,
later calls the new one. No call is lost or executed twice.

  semi-active   the primary executes first and answers; the other replicas follow one step behind
  active        every replica executes and may answer, so no client waits for a failed node;
                handlers must be deterministic
  voting        a majority of equal outcomes is the answer; a deviating replica is replaced
  warm-passive  only the primary executes, and sends its changes to the backups; handlers need not
                be deterministic, as they must be in the styles above
  cold-passive  only the primary's service runs; the backups store checkpoints and a log

A change to cold-passive ends the services and programs of the backups; a change from it starts
them. Meanwhile the states are taken or transferred, and calls wait at the primary.

A stateless group starts with the service's initial state. A change to stateless is refused, because
the group would lose its state.

The style in a node's configuration applies to a new group only: a node with another style joins,
and uses the group's. Change the configurations as well, for a later start without any replica.

Exit codes:
  0  the group has that style
  1  it does not: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// Changes the replication style of a running group.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The group.
    group: String,
    /// The style: semi-active, active, voting, warm-passive or cold-passive.
    #[arg(value_parser = parse)]
    style: Style,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

fn parse(name: &str) -> Result<Style, String> {
    let known = Style::ALL.into_iter().find(|style| style.name() == name);
    known.ok_or_else(|| {
        let names = Style::ALL.map(Style::name).join(", ");
        format!("no such style: the styles are {names}")
    })
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(restyle(args))
}

fn restyle(args: &Args) -> Result<(), Failure> {
    let mut node = args.at.connect()?;
    let restyled = node.restyle(&args.group, args.style).map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string(&restyled).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&format!(
        "{}: the style is {} (view {})\n",
        restyled.group, restyled.style, restyled.view
    ))
}
