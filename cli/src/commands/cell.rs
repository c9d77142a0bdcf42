//! `steadfast cell`: the cells of a system, as a node's cell knows them.

use std::process::ExitCode;
use std::time::Duration;

use admin::cell::CellStatus;
use cells::{Cell, Command, Name, Path};
use clap::Subcommand;

use super::at::At;
use super::{Failure, finish, print};

mod course;
mod demo;
mod find;
mod grow;
mod tree;

const EXAMPLES: &str = "\
Examples:
  steadfast cell demo
  steadfast cell found line-a.porto --out porto 1=10.1.0.1 2=10.1.0.2 3=10.1.0.3
  steadfast cell join --out porto 10.1.0.4 10.1.0.5
  steadfast cell tree --config node.toml
  steadfast cell tree --json | jq '.below[].path'
  steadfast cell explain line-a.porto
  steadfast cell find '*:alarms'
  steadfast cell export alarms
  steadfast cell unexport alarms
  steadfast cell promote --yes

A system is a tree of cells, and a cell is a cluster (docs/operating.md). Each node of a cell has
the cell's book: where the cell is attached, which cells are attached below it, what it exports.

Exit codes:
  0  the command succeeded
  1  it failed: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// Shows the cells of a system, makes further ones, and changes what a cell exports.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Demo(demo::Args),
    Found(grow::FoundArgs),
    Join(grow::JoinArgs),
    /// Shows the node's cell, the cells above it, and those attached below it.
    #[command(after_help = "Examples:\n  steadfast cell tree --config node.toml")]
    Tree {
        #[command(flatten)]
        how: How,
    },
    /// Tells by which cells a call from here to another cell goes.
    #[command(after_help = "Examples:\n  steadfast cell explain line-a.porto")]
    Explain {
        /// The cell, such as line-a.porto.
        path: Path,
        #[command(flatten)]
        how: How,
    },
    /// Finds a group of another cell: `*:GROUP` is in the nearest cell that exports it, CELL:GROUP in
    /// that cell.
    #[command(after_help = "Examples:\n  steadfast cell find '*:alarms'")]
    Find {
        /// The name.
        name: Name,
        #[command(flatten)]
        how: How,
    },
    /// Lets other cells find a group of this cell, by names such as `*:alarms`.
    #[command(after_help = "Examples:\n  steadfast cell export alarms --config node.toml")]
    Export {
        /// The group.
        group: String,
        #[command(flatten)]
        how: How,
    },
    /// Ends that. Calls by the group's full name go on.
    #[command(after_help = "Examples:\n  steadfast cell unexport alarms --config node.toml")]
    Unexport {
        /// The group.
        group: String,
        #[command(flatten)]
        how: How,
    },
    /// Makes this cell the root of all that is below it, for good, where all cells above are lost.
    #[command(after_help = "Examples:\n  steadfast cell promote --yes --config node.toml")]
    Promote {
        /// The cells above are lost: there is no way back to them.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        how: How,
    },
}

#[derive(clap::Args)]
struct How {
    #[command(flatten)]
    at: At,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.what {
        What::Demo(args) => demo::run(args),
        What::Found(args) => grow::found(args),
        What::Join(args) => grow::join(args),
        What::Tree { how } => tree(how),
        What::Explain { path, how } => explain(path, how),
        What::Find { name, how } => find(name, how),
        What::Export { group, how } => {
            let done = format!("other cells may find {group} here");
            tell(how, &Command::Export(group.clone()), &done)
        }
        What::Unexport { group, how } => {
            let done = format!("other cells do not find {group} here any more");
            tell(how, &Command::Unexport(group.clone()), &done)
        }
        What::Promote { yes, how } => promote(*yes, how),
    })
}

/// The node's copy of the book.
fn read(how: &How) -> Result<(CellStatus, Cell), Failure> {
    let status = how.at.connect()?.cell(None, Duration::ZERO).map_err(Failure::failed)?;
    match status.book() {
        Some(book) => Ok((status, book)),
        None => {
            let why = "the node's copy of the cell's book cannot be read: use this program in the \
                       node's version";
            Err(Failure::Failed(why.into()))
        }
    }
}

fn tree(how: &How) -> Result<(), Failure> {
    let (status, book) = read(how)?;
    let tree = tree::Tree::new(&status, &book);
    print(&if how.json { json(&tree)? } else { tree.text() })
}

fn find(name: &Name, how: &How) -> Result<(), Failure> {
    let found = find::find(name, &mut how.at.connect()?)?;
    print(&if how.json { json(&found)? } else { found.text() })
}

fn explain(path: &Path, how: &How) -> Result<(), Failure> {
    let (status, book) = read(how)?;
    let course = course::Course::new(&status, &book, path);
    print(&if how.json { json(&course)? } else { course.text() })
}

fn promote(yes: bool, how: &How) -> Result<(), Failure> {
    if !yes {
        let (_, book) = read(how)?;
        return Err(Failure::Usage(format!(
            "{} would be a root for good, and the cells above it would not know it any more: where \
             they are lost, give --yes",
            book.path()
        )));
    }
    tell(how, &Command::Promote, "this cell is a root now")
}

fn tell(how: &How, command: &Command, done: &str) -> Result<(), Failure> {
    let verdict = how.at.connect()?.tell_cell(command).map_err(Failure::failed)?;
    verdict.map_err(Failure::failed)?;
    print(&if how.json { "{\"done\":true}\n".into() } else { format!("{done}\n") })
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string(value).map_err(Failure::failed)? + "\n")
}
