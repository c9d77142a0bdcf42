//! `steadfast join`: a new node comes to a cluster that runs.

pub mod invitation;
mod node_list;

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use serde::Serialize;
use steadfast::admin::{AdminError, Client, WelcomeAnswer};
use steadfast::{NodeAddress, NodeConfig, NodeId, Tls};

use self::invitation::{CLUSTER_KEY, Invitation};
use super::node::read_config;
use super::{Failure, finish, print};

const EXAMPLES: &str = "\
Examples:
  Where the authority's key is:
      steadfast init --out plant --add 4=10.0.0.4
  On the new host, with the line in plant/node-4.token:
      steadfast join --token @node-4.token --out /etc/steadfast
  A node whose configuration you wrote yourself, and which needs no certificate:
      steadfast join --config node.toml --by /run/other/node.sock

The command writes the node's folder, with the cluster's nodes and key as they are now. It waits for
you to start the node: `systemctl start steadfast`, or `steadfast node --config FILE` in another
terminal. It tells which files to give to another user who runs the node. Then it asks the cluster to count on it, and waits until a majority of the nodes has that on
its disks. Clients notice nothing. Run it again if it was interrupted.

A token has the node's private key: pass it on as you would a password. `steadfast retire` is the way
back.

Exit codes:
  0  the node is one of the cluster's
  1  it is not, or not yet: standard error has the reason
  2  the command line, the token or the configuration is wrong";

/// How long another node has for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How often it is looked how far it is.
const GLANCE: Duration = Duration::from_millis(100);

/// Has this host's new node come to a cluster that runs.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The line that `steadfast init --add` made, or @FILE with it.
    #[arg(long, value_name = "TOKEN", required_unless_present = "config")]
    token: Option<String>,
    /// The folder for the node. Default: node-ID, here.
    #[arg(long, value_name = "DIR", requires = "token")]
    out: Option<PathBuf>,
    /// The node's configuration, if there is no token.
    #[arg(long, value_name = "FILE", conflicts_with = "token", requires = "by")]
    config: Option<PathBuf>,
    /// The admin socket or port of a node of the cluster.
    #[arg(long, value_name = "PATH|HOST:PORT")]
    by: Vec<String>,
    /// Seconds to wait: for the node's start, and until the cluster counts on it.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    within: u64,
    /// Print JSON, one object a line, instead of text.
    #[arg(long)]
    json: bool,
}

/// A step that was done, or is waited for.
#[derive(Serialize)]
struct Step<'a> {
    node: NodeId,
    step: &'static str,
    text: &'a str,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(join(args))
}

fn join(args: &Args) -> Result<(), Failure> {
    let (config, mut admins) = match (&args.token, &args.config) {
        (Some(token), _) => {
            let invitation = Invitation::read(token)?;
            let here = PathBuf::from(format!("node-{}", invitation.node.0));
            let config = invitation.unpack(args.out.as_ref().unwrap_or(&here))?;
            let there = read_config(&config)?.node;
            if there != invitation.node {
                return Err(Failure::Failed(format!(
                    "{} is the configuration of {there}, and the token is for {}: give another --out, or \
                     move that folder away",
                    config.display(),
                    invitation.node
                )));
            }
            (config, invitation.admins)
        }
        (None, Some(config)) => (config.clone(), Vec::new()),
        (None, None) => unreachable!("one of them is required"),
    };
    admins.splice(0..0, args.by.iter().cloned());
    let mut cluster = reach(&admins, &config)?;
    let welcome = cluster.welcome().map_err(Failure::failed)?;
    if args.token.is_some() {
        refresh(&config, &welcome)?;
    }
    let mut node = read_config(&config)?;
    node.look_up_names().map_err(Failure::usage)?;
    let lists = |id: NodeId| node.nodes.iter().any(|it| it.id == id);
    if let Some(missing) = welcome.nodes.iter().find(|it| !lists(it.id)) {
        return Err(Failure::Usage(format!(
            "{} does not list {}: give it an entry in [[nodes]] for each of the cluster's nodes",
            config.display(),
            missing.id
        )));
    }
    if node.data_dir.is_none() {
        return Err(Failure::Usage(
            "the configuration has no data_dir: the cluster counts on nodes that keep what they know".into(),
        ));
    }
    let say = |step, text: &str| say(args, Step { node: node.node, step, text });
    if welcome.cluster != node.cluster {
        return Err(Failure::Usage(format!(
            "the configuration is for the cluster \"{}\", and that is \"{}\"",
            node.cluster, welcome.cluster
        )));
    }
    let deadline = Instant::now() + Duration::from_secs(args.within);
    let mut own = wait_for_start(&node, &config, deadline, &say)?;
    if !welcome.nodes.iter().any(|it| it.id == node.node) {
        let ring = node.ring_addresses().to_vec();
        cluster.admit(NodeAddress::linked(node.node, ring)).map_err(Failure::failed)?;
        say("asked", "the cluster is asked to count on it")?;
    }
    let others = welcome.nodes.iter().map(|it| it.id).filter(|id| *id != node.node);
    wait_until_counted(&mut own, (node.node, others.collect()), deadline, &say)
}

fn say(args: &Args, step: Step<'_>) -> Result<(), Failure> {
    if args.json {
        let json = serde_json::to_string(&step).map_err(Failure::failed)?;
        return print(&format!("{json}\n"));
    }
    print(&format!("{}: {}\n", step.node, step.text))
}

/// Connects to the first node of the cluster that answers.
fn reach(admins: &[String], config: &Path) -> Result<Client, Failure> {
    let folder = config.parent().filter(|it| !it.as_os_str().is_empty());
    let mut refused = Vec::new();
    for at in admins {
        match reach_one(at, folder.unwrap_or(Path::new("."))) {
            Ok(node) => {
                node.set_timeout(Some(TIMEOUT)).map_err(Failure::failed)?;
                return Ok(node);
            }
            Err(why) => refused.push(format!("{at}: {why}")),
        }
    }
    Err(Failure::Failed(format!(
        "no node of the cluster answers, and --by names another: {}",
        refused.join("; ")
    )))
}

fn reach_one(at: &str, folder: &Path) -> Result<Client, String> {
    if at.contains('/') {
        return Client::connect(at).map_err(|error| error.to_string());
    }
    let tls = Tls::admin_from_dir(folder).map_err(|error| error.to_string())?;
    let found = at.to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = found.ok_or("this name is not known here: give the host's address")?;
    Client::connect_tls(address, &tls, TIMEOUT).map_err(|error| error.to_string())
}

/// The folder gets the nodes and the key as they are now: both may have changed since the token was
/// made.
fn refresh(config: &Path, welcome: &WelcomeAnswer) -> Result<(), Failure> {
    let failed = |error| Failure::Failed(format!("cannot write {}: {error}", config.display()));
    let text = std::fs::read_to_string(config).map_err(failed)?;
    let text = node_list::replace(&text, &welcome.nodes)?;
    invitation::write(config, &text, false).map_err(failed)?;
    match &welcome.cluster_key {
        Some(key) => {
            invitation::write(&config.with_file_name(CLUSTER_KEY), key, true).map_err(failed)
        }
        None => Ok(()),
    }
}

/// People start the node, as they start nodes.
fn wait_for_start(
    node: &NodeConfig,
    config: &Path,
    deadline: Instant,
    say: &impl Fn(&'static str, &str) -> Result<(), Failure>,
) -> Result<Client, Failure> {
    let Some(socket) = &node.admin else {
        return Err(Failure::Usage(
            "the configuration names no admin socket: set admin = \"node.sock\"".into(),
        ));
    };
    let mut told = false;
    loop {
        match Client::connect(read_config(config)?.admin.as_ref().unwrap_or(socket)) {
            Ok(mut client) => {
                client.set_timeout(Some(TIMEOUT)).map_err(Failure::failed)?;
                let there = client.status().map_err(Failure::failed)?.node;
                if there == node.node {
                    return Ok(client);
                }
                return Err(Failure::Failed(format!(
                    "{there} runs on this host, and {} is to: stop that one first, or give {} another \
                     admin socket",
                    node.node, node.node
                )));
            }
            Err(error) if Instant::now() >= deadline => return Err(Failure::failed(error)),
            Err(_) if !told => {
                let mut text =
                    format!("start it now: steadfast node --config {}", config.display());
                if geteuid().is_root() {
                    let folder = config.parent().unwrap_or(Path::new("."));
                    text += &format!(
                        "; if another user runs it, give that one the keys before: chown steadfast {}/*.key",
                        folder.display()
                    );
                }
                say("waits for its start", &text)?;
                told = true;
            }
            Err(_) => {}
        }
        thread::sleep(GLANCE);
    }
}

fn wait_until_counted(
    own: &mut Client,
    (node, others): (NodeId, Vec<NodeId>),
    deadline: Instant,
    say: &impl Fn(&'static str, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut told = Vec::new();
    loop {
        let status = own.status().map_err(|error| match error {
            AdminError::Io(_) => {
                Failure::Failed("the node has ended: its log has the reason".into())
            }
            error => Failure::failed(error),
        })?;
        // Its own list has it from the start. The cluster's nodes may have gone meanwhile, but not all.
        let with_others = others
            .iter()
            .any(|other| status.ring.members.iter().any(|member| member.node == *other));
        let counts = status.nodes.counted.contains(&node) && with_others;
        if counts && status.ring.quorate == Some(true) {
            let others: Vec<String> = status.nodes.counted.iter().map(NodeId::to_string).collect();
            return say(
                "counts",
                &format!("it is one of the cluster's nodes: {}", others.join(", ")),
            );
        }
        if let Some(moving) = status.nodes.moving
            && moving.kept != told
        {
            let kept: Vec<String> = moving.kept.iter().map(NodeId::to_string).collect();
            say("is kept", &format!("on the disks of {}", kept.join(", ")))?;
            told = moving.kept;
        }
        if Instant::now() >= deadline {
            return Err(Failure::Failed(format!(
                "{node} does not count yet: `steadfast status` at a node of the cluster tells why; the \
                 change goes on all the same, and `steadfast retire {} --give-up` ends it",
                node.0
            )));
        }
        thread::sleep(GLANCE);
    }
}
