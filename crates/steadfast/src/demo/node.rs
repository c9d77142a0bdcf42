//! A node of the demo, in a process of its own: the public API, embedded.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use node::Security;
use steadfast::{Execution, HostOptions, Node, NodeConfig, NodeId};

use super::message::{Order, Tale};
use super::network::Network;
use super::service::{PassengerInformation, PassengersService};
use super::{CLUSTER, GROUP, child};

/// What the conductor says on the command line.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Which node this is.
    #[arg(long)]
    node: u32,
    /// The ring addresses of nodes 1, 2, ...
    #[arg(long, value_delimiter = ',')]
    rings: Vec<SocketAddr>,
    /// The admin socket's path.
    #[arg(long)]
    admin: PathBuf,
    /// Where the node keeps which of its lives this is.
    #[arg(long)]
    data: PathBuf,
    /// The folder with its keys, if it has any.
    #[arg(long)]
    keys: Option<PathBuf>,
    /// It has a replica of the passenger information.
    #[arg(long)]
    replica: bool,
}

fn security(keys: &Path, node: u32) -> Security {
    let file = |name: String| Some(keys.join(name));
    Security {
        cluster_key: file("cluster.key".to_owned()),
        authority: file("authority.pem".to_owned()),
        certificate: file(format!("node-{node}.pem")),
        key: file(format!("node-{node}.key")),
    }
}

/// Runs the process.
pub fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let (stop, stopped) = mpsc::channel();
    child::attach(move |order| {
        if order == Order::Stop {
            let _ = stop.send(());
        }
    })?;
    // Into this process's log, whose end is shown if the node fails.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let config = NodeConfig {
        cluster: CLUSTER.to_owned(),
        security: arguments.keys.map(|keys| security(&keys, arguments.node)).unwrap_or_default(),
        admin: Some(arguments.admin),
        data_dir: Some(arguments.data),
        ..NodeConfig::member(NodeId(arguments.node), &arguments.rings)
    };
    let node = Node::start(config)?;
    if arguments.replica {
        let network = Arc::new(Network::porto());
        // The handlers take some microseconds: less than to wake a thread for them.
        let options = HostOptions { execution: Execution::Inline, ..HostOptions::default() };
        node.host(GROUP, options, move || {
            PassengersService::new(PassengerInformation::new(network.clone()))
        })?;
    }
    child::tell(&Tale::Ready(node.client_address()));
    // The sender lives in a thread that ends with the process: this waits for the order.
    let _ = stopped.recv();
    node.stop()?;
    Ok(())
}
