//! `steadfast reload`: a node reads its configuration again.

use std::process::ExitCode;

use super::at::At;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  steadfast reload                                    this host's node
  steadfast reload --config node.toml
  steadfast reload --connect 10.0.0.1:7101 --tls plant/admin-ops

Without a restart a node takes anew: the files of [security] authority, certificate, key and denied,
[rights], [labels], and the addresses of other nodes in [[nodes]]. Connections go on, and new ones
use the new certificates. A client whose certificate is in the list of denied ones is out at once. So
is an administrator, if it came from another host.

If anything is wrong, nothing changes. SIGHUP does the same. The ranks of jobs have an agent of their
own: restart the node for its certificate.

Exit codes:
  0  the configuration was taken
  1  it was not, or the node does not answer: standard error has the reason
  2  the command line is wrong";

/// Has a node read its configuration again: certificates, denied ones, rights and labels.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(reload(args))
}

fn reload(args: &Args) -> Result<(), Failure> {
    let answer = args.at.connect()?.reload().map_err(Failure::failed)?;
    if args.json {
        let json = serde_json::to_string(&answer).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    let rest = match &answer.needs_restart[..] {
        [] => String::new(),
        tables => format!("; restart the node for [{}]", tables.join("], [")),
    };
    print(&format!("the node has read its configuration again{rest}\n"))
}
