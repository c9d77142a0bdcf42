//! `steadfast init`: all keys and certificates of a cluster, and configurations that start as
//! written.

mod files;
mod node_file;
mod plan;
mod report;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tls::Identity;
use wire::NodeId;

use self::files::Folder;
use self::plan::{NodeSpec, Plan};
use self::report::Report;
use super::context::Context;
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

Nothing that exists is overwritten without --force.";

const RING_PORT: u16 = 7201;
const CLIENT_PORT: u16 = 7100;
const ADMIN_PORT: u16 = 7101;

/// Makes keys, certificates and configurations for a cluster.
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
    /// So many nodes on this machine alone, at 127.0.0.1, 127.0.0.2 and so on.
    #[arg(long, value_name = "N", conflicts_with_all = ["add", "renew"],
          value_parser = clap::value_parser!(u8).range(1..=64))]
    local: Option<u8>,
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
    finish(make(args).and_then(|report| {
        let text = if args.json { report.json()? } else { report.text() };
        print(&text)
    }))
}

fn make(args: &Args) -> Result<Report, Failure> {
    let folder = Folder::new(&args.out, args.force);
    if !args.nodes.is_empty() || args.local.is_some() {
        return found(args, &folder);
    }
    let later = !args.retired.is_empty()
        || !args.add.is_empty()
        || !args.client.is_empty()
        || !args.admin.is_empty()
        || args.renew;
    if !later {
        return Err(Failure::Usage(
            "say which nodes: `1=10.0.0.1 2=10.0.0.2 3=10.0.0.3`, or `--local 3` for this machine \
             alone; for a cluster that was made before, --add, --client, --admin or --renew"
                .to_owned(),
        ));
    }
    extend(args, &folder)
}

/// All that a cluster of so many nodes on this machine needs, for the demo.
pub fn trial(out: &Path, cluster: &str, nodes: u8) -> Result<(), Failure> {
    let args = Args {
        nodes: Vec::new(),
        cluster: Some(cluster.to_owned()),
        out: out.into(),
        local: Some(nodes),
        add: Vec::new(),
        retired: Vec::new(),
        client: Vec::new(),
        admin: Vec::new(),
        renew: false,
        ring_port: RING_PORT,
        client_port: CLIENT_PORT,
        admin_port: ADMIN_PORT,
        grpc: None,
        force: false,
        json: false,
    };
    make(&args).map(drop)
}

/// A new cluster.
fn found(args: &Args, folder: &Folder) -> Result<Report, Failure> {
    let nodes = match args.local {
        Some(count) => (1..=count).map(NodeSpec::local).collect(),
        None => args.nodes.clone(),
    };
    let cluster = args.cluster.clone().ok_or_else(|| {
        Failure::Usage("give the cluster a name: --cluster NAME, such as plant".to_owned())
    })?;
    tls::check_cluster(&cluster).map_err(Failure::usage)?;
    let ports = [args.ring_port, args.client_port, args.admin_port];
    let plan = Plan::new(cluster, nodes, ports, args.grpc)?;
    let named = |names: &[String], default: &str| match names {
        [] => vec![default.to_owned()],
        names => names.to_vec(),
    };
    let (clients, admins) = (named(&args.client, "app"), named(&args.admin, "ops"));
    let mut owners = owners(&plan, &clients, &admins)?;
    owners.extend(plan.nodes.iter().map(|node| plan.identity(node.id)));
    folder.expect_free(&owners)?;
    node_file::check(&plan)?;

    let mut report = Report::new(&args.out, &plan, args.local.is_some());
    let authority = folder.found_authority(&plan.cluster)?;
    let key = files::new_cluster_key()?;
    for node in &plan.nodes {
        let name = plan.identity(node.id);
        folder.issue(&authority, &name, &[node.address])?;
        folder.write_secret(name.label(), "cluster.key", &key)?;
        folder.write_config(&plan, node.id, args.local.is_some())?;
        folder.write_founder(&plan, node.id)?;
        report.add_node(node.id);
    }
    issue_owners(folder, &authority, &plan, (&clients, &admins), &mut report)?;
    folder.write_plan(&plan)?;
    folder.write_context(&context(&plan, (&clients[0], &admins[0]))?)?;
    Ok(report)
}

/// How the first client and the first administrator reach the cluster.
fn context(plan: &Plan, (client, admin): (&str, &str)) -> Result<Context, Failure> {
    let label = |owner: Identity| Some(PathBuf::from(owner.label()));
    let client = Identity::client(&plan.cluster, client).map_err(Failure::usage)?;
    let admin = Identity::admin(&plan.cluster, admin).map_err(Failure::usage)?;
    Ok(Context {
        clients: (plan.nodes.iter()).map(|node| plan.sockets(node.id).client.to_string()).collect(),
        client_tls: label(client),
        // On one machine by the sockets, by which one may deploy.
        admins: (plan.nodes.iter())
            .map(|node| match node.address.is_loopback() {
                true => format!("{}/node.sock", plan.identity(node.id).label()),
                false => plan.sockets(node.id).admin.to_string(),
            })
            .collect(),
        admin_tls: label(admin),
    })
}

/// More for a cluster that was made before.
fn extend(args: &Args, folder: &Folder) -> Result<Report, Failure> {
    let mut plan = folder.read_plan()?;
    if args.cluster.as_ref().is_some_and(|cluster| *cluster != plan.cluster) {
        return Err(Failure::Usage(format!(
            "{} is that of cluster \"{}\": leave --cluster out, or give another --out",
            args.out.display(),
            plan.cluster
        )));
    }
    let authority = folder.authority(&plan.cluster)?;
    let is_local = plan.nodes.iter().all(|node| node.address.is_loopback());
    let new: Vec<NodeId> = args.add.iter().map(|node| node.id).collect();
    plan.retire(&args.retired)?;
    plan.add(&args.add)?;
    node_file::check(&plan)?;
    let mut wanted = owners(&plan, &args.client, &args.admin)?;
    wanted.extend(new.iter().map(|id| plan.identity(*id)));
    folder.expect_free(&wanted)?;

    let mut report = Report::new(&args.out, &plan, is_local);
    if args.renew {
        for owner in folder.owners(&plan.cluster)? {
            folder.renew(&authority, &owner, &plan.addresses(&owner))?;
            report.renewed(&owner);
        }
    }
    for id in new {
        let name = plan.identity(id);
        folder.issue(&authority, &name, &plan.addresses(&name))?;
        folder.write_secret(name.label(), "cluster.key", &folder.cluster_key(&plan)?)?;
        folder.write_config(&plan, id, is_local)?;
        let token = folder.write_token(&plan, id)?;
        report.add_later(id, token);
    }
    issue_owners(folder, &authority, &plan, (&args.client, &args.admin), &mut report)?;
    folder.write_plan(&plan)?;
    Ok(report)
}

fn owners(plan: &Plan, clients: &[String], admins: &[String]) -> Result<Vec<Identity>, Failure> {
    let clients = clients.iter().map(|name| Identity::client(&plan.cluster, name));
    let admins = admins.iter().map(|name| Identity::admin(&plan.cluster, name));
    clients.chain(admins).collect::<Result<_, _>>().map_err(Failure::usage)
}

fn issue_owners(
    folder: &Folder,
    authority: &tls::issue::Authority,
    plan: &Plan,
    (clients, admins): (&[String], &[String]),
    report: &mut Report,
) -> Result<(), Failure> {
    const NO_ADDRESS: &[IpAddr] = &[];
    for owner in owners(plan, clients, admins)? {
        folder.issue(authority, &owner, NO_ADDRESS)?;
        report.add_owner(&owner);
    }
    Ok(())
}
