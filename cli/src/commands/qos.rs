//! `steadfast qos`: the host's daemon of reserves, and what it has reserved.

mod serve;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use qosd::Client;

use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast qos serve                          runs the daemon of this host, until a signal
  steadfast qos                                shows all reserves, and what they use
  steadfast qos --json | jq .reserves          for scripts

A node asks the daemon with these lines in its configuration:
  [realtime]
  runtime_us = 1000
  daemon = \"/run/steadfast-qos/qos.sock\"

The daemon needs CAP_SYS_NICE. The socket is for its user and group: give nodes the same group.

Exit codes:
  0  the command succeeded
  1  it failed: standard error has the reason and the remedy
  2  the command line is wrong";

/// Reserves processor time, memory and devices for the nodes of this host.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The daemon's socket.
    #[arg(long, value_name = "PATH", default_value = serve::SOCKET)]
    socket: PathBuf,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    Serve(serve::Args),
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.command {
        Some(Command::Serve(args)) => serve::serve(args),
        None => show(args),
    })
}

fn show(args: &Args) -> Result<(), Failure> {
    let shown = Client::connect(&args.socket).and_then(|mut client| client.show());
    let tree = shown.map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string_pretty(&tree).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&tree::text(&tree))
}
