//! `steadfast move`: another replica becomes a group's primary, while the group is being called.

use std::process::ExitCode;

use steadfast::NodeId;

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast move counter --to 2                        through this host's node
  steadfast move counter --to 2 --config node.toml     through the node with this configuration
  steadfast move counter --to 2 --connect 10.0.0.1:7101 --tls plant/admin-ops

Any node accepts the move. Clients lose no call and wait for none: the old primary answers the calls
that reached it, and sends their outcomes to the new primary. The old primary becomes the next in
rank.

The command fails if the node has no replica of the group, or its replica does not have the state
yet (in brackets in `steadfast status`). A move to the present primary's node succeeds without a
change.

Exit codes:
  0  that node has the primary
  1  it does not: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// Makes the replica at another node the primary of a group, without a gap for its clients.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The group.
    group: String,
    /// The node whose replica is to be the primary.
    #[arg(long, value_name = "NODE")]
    to: u32,
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(hand_over(args))
}

fn hand_over(args: &Args) -> Result<(), Failure> {
    let mut node = args.at.connect()?;
    let moved = node.move_primary(&args.group, NodeId(args.to)).map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string(&moved).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&format!("{}: the primary is {} (view {})\n", moved.group, moved.primary, moved.view))
}
