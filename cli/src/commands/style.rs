//! `steadfast style`: a group gets another style, while it is being called.

use std::process::ExitCode;

use steadfast::Style;

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast style counter active                        asked of this host's node
  steadfast style counter voting --config node.toml     of the node with this configuration
  steadfast style counter semi-active --connect 10.0.0.1:7101 --tls plant/admin-ops

Any node can be asked. The change is ordered like a call: what came before is served in the old style, what comes
after in the new one. No call is lost by it, and none is executed twice.

  semi-active  the primary answers; the others are a step behind it, ready
  active       any replica answers, so no client waits for a node that fails; handlers must be deterministic
  voting       what a majority of the replicas has is answered; who has something else is replaced
  warm-passive the primary alone executes, and tells the others what has changed: handlers need not be deterministic.
               In the other styles they must be again
  cold-passive the primary's service alone runs; the others keep a log, and begin where a checkpoint was taken. At the
               others services and programs end with the change, and are started by the next one: each takes its state
               (towards it) or is given it (from it) meanwhile, and calls of that time wait for that at the primary

A stateless group begins with the service's initial state. To stateless is refused: the group would lose its state.

The style in a node's configuration is the one with which a group begins: a node that says another joins all the
same, and goes by what the group has. Set the new style there as well, for the day when all replicas have gone.

Exit codes:
  0  the group has that style
  1  it has not: standard error says why, and what to do
  2  the command line or the configuration is wrong";

/// Gives a group that runs another style of replication.
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
