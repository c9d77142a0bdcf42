//! `steadfast state`: groups' states in files, and back.

mod file;
mod restore;
mod save;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use super::at::At;
use super::{Failure, finish, print};
pub(super) use file::moment;
use file::{Summary, read};

const EXAMPLES: &str = "\
Examples:
  steadfast state save counter counter.state             of this host's node, while the group is called
  steadfast state save --all /var/backups/steadfast      every group, one file each
  steadfast state save --all nightly --connect 10.0.0.1:7101 --also 10.0.0.2:7101 --tls plant/admin-ops
  steadfast state show counter.state                     what is in it, and whether it is whole; no node is asked
  steadfast state restore counter counter.state          into this cluster, or a new one

A state is saved as it is at one place of the order, with its sessions: a retry of a call from before that is answered from
it, and not executed again. A group is restored before its replicas are hosted, or while they have not been called.

Exit codes:
  0  it is done
  1  it failed: standard error says why, and what to do
  2  the command line or the configuration is wrong";

const SHOW: &str = "\
Examples:
  steadfast state show counter.state
  steadfast state show counter.state --json

The digest is SHA-256 of the service's state: the same as that of a replica that has it.

Exit codes:
  0  the file is whole
  1  it is not, or is none: standard error says why, and what to do";

const DISCARD: &str = "\
Examples:
  steadfast state discard counter
  steadfast state discard counter --config node.toml

Needed only where a restore came to nothing: the node that kept the state is lost, or the services cannot read it. A group without
replicas is gone then.";

/// Saves groups' states in files, and restores them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Saves a group's state in a file, or those of all groups.
    #[command(arg_required_else_help = true)]
    Save(save::Args),
    /// Has a group begin with the state in a file.
    #[command(arg_required_else_help = true)]
    Restore(restore::Args),
    /// Tells what is in a file, and whether it is whole.
    #[command(after_help = SHOW, arg_required_else_help = true)]
    Show {
        /// The file.
        file: PathBuf,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Has a group that waits for a state begin without it: replicas that are there begin with the
    /// service's initial state.
    #[command(after_help = DISCARD, arg_required_else_help = true)]
    Discard {
        /// The group.
        group: String,
        #[command(flatten)]
        at: At,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.what {
        What::Save(args) => save::run(args),
        What::Restore(args) => restore::run(args),
        What::Show { file, json } => show(file, *json),
        What::Discard { group, at } => discard(group, at),
    })
}

fn show(file: &Path, json: bool) -> Result<(), Failure> {
    let (backup, content) = read(file)?;
    let summary = Summary::new(file, &backup, &content);
    match json {
        true => print(&format!("{}\n", serde_json::to_string(&summary).map_err(Failure::failed)?)),
        false => print(&summary.text()),
    }
}

fn discard(group: &str, at: &At) -> Result<(), Failure> {
    at.connect()?.discard(group).map_err(Failure::failed)?;
    print(&format!("{group} waits for no state any more\n"))
}
