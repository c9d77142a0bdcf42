//! `steadfast init`: all keys and certificates of a cluster, or of the cells of a system, and
//! configurations that start as written.

mod cells;
mod files;
mod make;
mod node_file;
mod plan;
mod report;
mod seating;
mod system;
mod system_report;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::cells::Cells;
use self::files::Folder;
use self::make::{Changes, People};
pub use self::plan::NodeSpec;
use self::plan::{Plan, Ports};
pub use self::seating::Rules as Seating;
use self::system::System;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  Three hosts:
      steadfast init --cluster plant --out plant 1=10.0.0.1 2=10.0.0.2 3=10.0.0.3
  Three nodes on this machine, to try:
      steadfast init --cluster trial --out trial --local 3
      steadfast node --config trial/node-1/steadfast.toml
  The same, with gateways for gRPC and HTTP at port 7443 of each:
      steadfast init --cluster trial --out trial --local 3 --grpc
  A system of cells, which are clusters in a tree, on this machine: a root of 4, two of 3 below it:
      steadfast init --system porto --out porto --cells porto:4,line-a.porto:3,line-b.porto:3 --local
  The same with seven cells, a tree of two below each (porto, a.porto, b.porto, a.a.porto, ...):
      steadfast init --system porto --out porto --cells 7 --local
  A system on hosts, one cell after the other, the root first:
      steadfast init --system porto --out porto --cell porto 1=10.0.0.1 2=10.0.0.2 3=10.0.0.3
      steadfast init --out porto --cell line-a.porto 1=10.1.0.1 2=10.1.0.2 3=10.1.0.3
  Later, for one cell:
      steadfast init --out porto/line-a.porto --client hmi
      steadfast init --out porto/line-a.porto --add 4=10.1.0.4
      steadfast init --out porto --cell line-a.porto --renew
  Later, where the authority's key is:
      steadfast init --out plant --add 4=10.0.0.4
      steadfast init --out plant --retired 1 --add 5=10.0.0.1
      steadfast init --out plant --client hmi --client recorder
      steadfast init --out plant --renew

What is made:
  DIR/authority/         makes all certificates: authority.key belongs offline, in a safe place
  DIR/node-ID/           all that a node needs: copy it to its host as it is
  DIR/node-ID.token      the same in one line, of a node that is added: for `steadfast join`
  DIR/client-NAME/       for those who call services: `steadfast call --tls DIR/client-NAME`
  DIR/admin-NAME/        for `steadfast status --connect HOST:PORT --tls DIR/admin-NAME`
  DIR/context.toml       where the nodes are: `steadfast context use DIR`
  DIR/cluster.toml       what was made, for the next time
Of a system:
  DIR/authority/         makes the authorities of cells: authority.key belongs offline
  DIR/CELL/              as above, of one cell; CELL/authority/ makes names of that cell alone

Nothing that exists is overwritten without --force.";

const RING_PORT: u16 = 7201;
const CLIENT_PORT: u16 = 7100;
const ADMIN_PORT: u16 = 7101;
const LINK_PORT: u16 = 7102;

const PORTS: Ports =
    Ports { ring: RING_PORT, client: CLIENT_PORT, admin: ADMIN_PORT, links: LINK_PORT };

/// Makes keys, certificates and configurations for a cluster, or for a system of cells.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The nodes: ID=ADDRESS, the address that the others and clients reach.
    #[arg(value_name = "ID=ADDRESS", conflicts_with_all = ["local", "add", "renew"])]
    nodes: Vec<NodeSpec>,
    /// The cluster's name: lower-case letters, digits and hyphens.
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The folder to make, or that was made before.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A system of cells, of this name, that of its root: a label.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cluster", "add", "retired"])]
    system: Option<String>,
    /// The cells of a system on this machine, PATH:NODES, the root's label last in each path; or a
    /// number of cells, in a tree of two below each, the root with 4 nodes, the others with 3.
    #[arg(long, value_name = "CELLS", requires_all = ["system", "local"],
          conflicts_with_all = ["cell", "nodes"])]
    cells: Option<Cells>,
    /// One cell of a system, by its path, such as line-a.porto; its nodes as those of a cluster.
    /// With --renew, a new authority for it.
    #[arg(long, value_name = "PATH",
          conflicts_with_all = ["cluster", "local", "add", "retired"])]
    cell: Option<String>,
    /// So many nodes on this machine alone, at 127.0.0.1, 127.0.0.2 and so on. With --cells without
    /// a number: node N of the K-th cell is at 127.0.K.N.
    #[arg(long, value_name = "N", num_args = 0..=1, conflicts_with_all = ["add", "renew"],
          value_parser = clap::value_parser!(u8).range(1..=64))]
    local: Option<Option<u8>>,
    /// Makes a further node for a cluster that was made before, and a token for `steadfast join`.
    #[arg(long, value_name = "ID=ADDRESS")]
    add: Vec<NodeSpec>,
    /// A node that was retired: its address is free again, its number is not.
    #[arg(long, value_name = "ID")]
    retired: Vec<u32>,
    /// Makes a certificate for a client of this name. At first, if none is named, for `app`.
    #[arg(long, value_name = "NAME")]
    client: Vec<String>,
    /// Makes a certificate for an administrator of this name. At first, if none is named, for
    /// `ops`.
    #[arg(long, value_name = "NAME")]
    admin: Vec<String>,
    /// Makes all certificates of nodes, clients and administrators anew, with new keys.
    #[arg(long)]
    renew: bool,
    /// Port of the ring, UDP and TCP.
    #[arg(long, value_name = "PORT", default_value_t = RING_PORT)]
    ring_port: u16,
    /// Port for clients.
    #[arg(long, value_name = "PORT", default_value_t = CLIENT_PORT)]
    client_port: u16,
    /// Port for administrators.
    #[arg(long, value_name = "PORT", default_value_t = ADMIN_PORT)]
    admin_port: u16,
    /// Port for links between cells, UDP and TCP.
    #[arg(long, value_name = "PORT", default_value_t = LINK_PORT)]
    link_port: u16,
    /// Each node has a gateway: callers by gRPC and HTTP come to this port (docs/gateway.md).
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "7443",
          conflicts_with_all = ["add", "renew"])]
    grpc: Option<u16>,
    /// Overwrites what exists: the old authority and all that it made are then worth nothing.
    #[arg(long)]
    force: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(files_of(args).and_then(|text| print(&text)))
}

/// Makes the files, and gives the report's text.
fn files_of(args: &Args) -> Result<String, Failure> {
    if args.system.is_some() || args.cell.is_some() {
        return text_of(of_system(args)?, args.json);
    }
    let folder = Folder::new(&args.out, args.force);
    let report = match (args.nodes.is_empty(), args.local) {
        (false, _) => found(args, &folder, args.nodes.clone(), false)?,
        (true, Some(Some(count))) => {
            found(args, &folder, (1..=count).map(NodeSpec::local).collect(), true)?
        }
        (true, Some(None)) => {
            return Err(Failure::Usage(
                "say how many nodes: --local 3; or, for a system, which cells: --system NAME --cells"
                    .to_owned(),
            ));
        }
        (true, None) => make::extend(&folder, &changes(args)?)?,
    };
    if args.json { report.json() } else { Ok(report.text()) }
}

/// The changes of a cluster that was made before.
fn changes(args: &Args) -> Result<Changes, Failure> {
    let changes = Changes {
        cluster: args.cluster.clone(),
        add: args.add.clone(),
        retired: args.retired.clone(),
        people: People { clients: args.client.clone(), admins: args.admin.clone() },
        renew: args.renew,
    };
    if changes.is_none() {
        return Err(Failure::Usage(
            "say which nodes: `1=10.0.0.1 2=10.0.0.2 3=10.0.0.3`, or `--local 3` for this machine \
             alone; for a cluster that was made before, --add, --client, --admin or --renew"
                .to_owned(),
        ));
    }
    Ok(changes)
}

/// A new cluster.
fn found(
    args: &Args,
    folder: &Folder,
    nodes: Vec<NodeSpec>,
    local: bool,
) -> Result<report::Report, Failure> {
    let cluster = args.cluster.clone().ok_or_else(|| {
        Failure::Usage("give the cluster a name: --cluster NAME, such as plant".to_owned())
    })?;
    tls::check_cluster(&cluster).map_err(Failure::usage)?;
    if tls::path_of(&cluster).is_some() {
        return Err(Failure::Usage(
            "a cell is made as a part of its system: --system NAME --cell PATH".to_owned(),
        ));
    }
    let plan = Plan::new(cluster, nodes, ports(args), args.grpc)?;
    make::found_cluster(folder, &plan, &people(args), local)
}

/// Cells of a new system or one that was made before.
fn of_system(args: &Args) -> Result<system_report::SystemReport, Failure> {
    let system = System {
        out: args.out.clone(),
        force: args.force,
        name: args.system.clone(),
        ports: ports(args),
        grpc: args.grpc,
        people: people(args),
    };
    match (&args.cells, &args.cell) {
        (Some(_), _) if args.local.flatten().is_some() => Err(Failure::Usage(
            "--cells says how many nodes each cell has: leave the number after --local out".into(),
        )),
        (Some(cells), _) => system.found_all(cells),
        (None, Some(path)) if args.renew => system.renew(path),
        (None, Some(path)) => system.found_cell(path, &args.nodes),
        (None, None) => Err(Failure::Usage(
            "say which cells: on this machine `--cells porto:4,line-a.porto:3 --local`; on hosts one \
             after the other, the root first: `--cell porto 1=10.0.0.1 2=10.0.0.2 3=10.0.0.3`"
                .into(),
        )),
    }
}

/// A cell of a system, of which the root's begins it: for `steadfast cell found`.
pub fn cell(out: &Path, path: &str, nodes: &[NodeSpec], is_json: bool) -> Result<String, Failure> {
    let name = tls::parent_of(path).is_none().then(|| path.to_owned());
    text_of(existing(out, name)?.found_cell(path, nodes)?, is_json)
}

/// Nodes for these hosts, in cells of a system that was made before: for `steadfast cell join`.
pub fn join(
    out: &Path,
    hosts: &[IpAddr],
    seating: &Seating,
    is_json: bool,
) -> Result<String, Failure> {
    text_of(existing(out, None)?.join(hosts, seating)?, is_json)
}

fn text_of(report: system_report::SystemReport, is_json: bool) -> Result<String, Failure> {
    if is_json { report.json() } else { Ok(report.text()) }
}

/// A system with the ports of its first cell, if it has one.
fn existing(out: &Path, name: Option<String>) -> Result<System, Failure> {
    let cells = if out.exists() { Folder::new(out, false).cells()? } else { Vec::new() };
    let cells = cells.iter().filter(|plan| plan.links.is_some());
    let first = cells.min_by_key(|plan| plan.cluster.len());
    Ok(System {
        out: out.to_owned(),
        force: false,
        name,
        ports: first.map_or(PORTS, Plan::ports),
        grpc: first.and_then(|plan| plan.grpc_port),
        people: People::default().or_default(),
    })
}

fn ports(args: &Args) -> Ports {
    Ports {
        ring: args.ring_port,
        client: args.client_port,
        admin: args.admin_port,
        links: args.link_port,
    }
}

fn people(args: &Args) -> People {
    People { clients: args.client.clone(), admins: args.admin.clone() }.or_default()
}

/// All that a cluster of so many nodes on this machine needs, for the demo.
pub fn trial(out: &Path, cluster: &str, nodes: u8) -> Result<(), Failure> {
    let nodes = (1..=nodes).map(NodeSpec::local).collect();
    let plan = Plan::new(cluster.to_owned(), nodes, PORTS, None)?;
    make::found_cluster(&Folder::new(out, false), &plan, &People::default().or_default(), true)
        .map(drop)
}
