//! `steadfast cell found`, `join`: further cells of a system, and further hosts.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::commands::init::{self, NodeSpec, Seating};
use crate::commands::{Failure, print};

/// Makes the files of a further cell of a system, or of its root, the first one.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    steadfast cell found porto --out porto 1=10.0.0.1 2=10.0.0.2 3=10.0.0.3\n  \
    steadfast cell found line-a.porto --out porto 1=10.1.0.1 2=10.1.0.2 3=10.1.0.3\n\n\
    Ports are those of the cells that are there. For others, and for further options, see \
    `steadfast init --cell`.")]
pub struct FoundArgs {
    /// The cell, such as line-a.porto. The cell above it must be there.
    path: String,
    /// Its nodes, 3 to 32: ID=ADDRESS, the address that the others and clients reach.
    #[arg(value_name = "ID=ADDRESS", required = true)]
    nodes: Vec<NodeSpec>,
    #[command(flatten)]
    files: Files,
}

/// Makes a node for each new host, in the cell of a system where its place is.
///
/// The smallest cell that has room takes the host, of equal ones the one nearest to the root. If no
/// cell has room, three hosts or more found another cell.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    steadfast cell join --out porto 10.1.0.4 10.1.0.5\n  \
    steadfast cell join --out porto --under line-a.porto 10.1.0.6\n\n\
    At each host, while its cell runs, `steadfast join --token` brings the node in: the report has \
    the commands.")]
pub struct JoinArgs {
    /// The hosts' addresses.
    #[arg(value_name = "ADDRESS", required = true)]
    hosts: Vec<IpAddr>,
    /// Only this cell and those below it come into question, such as those of one site.
    #[arg(long, value_name = "PATH")]
    under: Option<String>,
    /// A cell has room up to so many nodes.
    #[arg(long, value_name = "NODES", default_value_t = 16,
          value_parser = clap::value_parser!(u8).range(5..=32))]
    room: u8,
    #[command(flatten)]
    files: Files,
}

#[derive(clap::Args)]
struct Files {
    /// The system's folder, which `steadfast init --system` or `steadfast cell found` made.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

pub fn found(args: &FoundArgs) -> Result<(), Failure> {
    let Files { out, json } = &args.files;
    print(&init::cell(out, &args.path, &args.nodes, *json)?)
}

pub fn join(args: &JoinArgs) -> Result<(), Failure> {
    let Files { out, json } = &args.files;
    let seating = Seating { under: args.under.clone(), room: args.room.into() };
    print(&init::join(out, &args.hosts, &seating, *json)?)
}
