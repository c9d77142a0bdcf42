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
  steadfast state save counter counter.state             through this host's node; the group goes on
  steadfast state save --all /var/backups/steadfast      every group, one file each
  steadfast state save --all day --connect 10.0.0.1:7101 --also 10.0.0.2:7101 --tls plant/admin-ops
  steadfast state show counter.state                     checks a file and shows its content
  steadfast state restore counter counter.state          into this cluster, or a new one

A file has the state at one place of the total order, with the clients' sessions. A retry of an
earlier call is therefore answered from the state, and not executed again. Restore a group before it
has replicas, or before clients have called it.

Exit codes:
  0  the command succeeded
  1  it failed: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

const SHOW: &str = "\
Examples:
  steadfast state show counter.state
  steadfast state show counter.state --json

The digest is the SHA-256 of the service's state. A replica with the same state has the same digest.

Exit codes:
  0  the file is complete and undamaged
  1  it is not, or cannot be read: standard error has the reason and the remedy";

const DISCARD: &str = "\
Examples:
  steadfast state discard counter
  steadfast state discard counter --config node.toml

Use this after a failed restore: the node that had the state is lost, or the services cannot read
the state. A group without replicas ends.";

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
    /// Starts a group with the state in a file.
    #[command(arg_required_else_help = true)]
    Restore(restore::Args),
    /// Checks a file, and shows its content.
    #[command(after_help = SHOW, arg_required_else_help = true)]
    Show {
        /// The file.
        file: PathBuf,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Starts a group that waits for a restored state without it. Its replicas begin with the
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
    print(&format!("{group} no longer waits for a state\n"))
}
