//! A node of the demo, in a process of its own: the public API, embedded.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use node::Security;
use steadfast::{ManagerKnobs, Node, NodeConfig, NodeId};
use wire::Share;

use super::message::{Order, Tale};
use super::plan::CLUSTER;
use super::{child, choice};

/// The conductor's command line.
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
}

fn security(keys: &Path, node: u32) -> Security {
    let file = |name: String| Some(keys.join(name));
    Security {
        cluster_key: file("cluster.key".to_owned()),
        authority: file("authority.pem".to_owned()),
        certificate: file(format!("node-{node}.pem")),
        key: file(format!("node-{node}.key")),
        denied: None,
    }
}

/// Quicker than by default: a demo is short.
fn knobs() -> ManagerKnobs {
    let ms = wire::Duration::from_millis;
    ManagerKnobs {
        on: true,
        own: Some(Share::percent(choice::PART)),
        window: ms(400),
        period: ms(200),
        settle: ms(1_000),
        ..ManagerKnobs::default()
    }
}

/// Takes so many percent of a processor until the process ends.
fn work(percent: u64) {
    let span = Duration::from_millis(10);
    loop {
        let begin = Instant::now();
        while begin.elapsed() < span * percent as u32 / 100 {
            std::hint::spin_loop();
        }
        thread::sleep(span.saturating_sub(begin.elapsed()));
    }
}

/// Runs the process.
pub fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let (stop, stopped) = mpsc::channel();
    child::attach(move |order| match order {
        Order::Stop => {
            let _ = stop.send(());
        }
        Order::Work(percent) => {
            thread::spawn(move || work(percent));
        }
        Order::Go(_) => {}
    })?;
    // Into this process's log, whose end is shown if the node fails.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let config = NodeConfig {
        cluster: CLUSTER.to_owned(),
        security: arguments.keys.map(|keys| security(&keys, arguments.node)).unwrap_or_default(),
        admin: Some(arguments.admin),
        data_dir: Some(arguments.data),
        manager: knobs(),
        ..NodeConfig::member(NodeId(arguments.node), &arguments.rings)
    };
    let node = Node::start(config)?;
    child::tell(&Tale::Ready(node.client_address()));
    // The sender lives in a thread that ends with the process: this waits for the order.
    let _ = stopped.recv();
    node.stop()?;
    Ok(())
}
