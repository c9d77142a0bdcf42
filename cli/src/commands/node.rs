//! `steadfast node`: the daemon.

mod log;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steadfast::events::{Event, Interest};
use steadfast::{DEFAULT_CONFIG, HostOptions, Node, NodeConfig, StartError};

use super::{Failure, finish, notify, print, report};
use crate::services::{CounterService, Echo, Tally};

const EXAMPLES: &str = "\
Examples:
  steadfast node --print-config > node.toml    the default configuration, with every knob explained
  steadfast node --config node.toml
  steadfast node --config node.toml --log debug

SIGTERM and SIGINT stop the node cleanly: its replicas hand over, it leaves the ring, and the exit
code is 0. A second signal stops it at once. Under systemd (Type=notify) it reports when it is
ready and when it stops.";

/// Runs a node: one on each host of the cluster.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The node's configuration.
    #[arg(long, value_name = "FILE", required_unless_present = "print_config")]
    config: Option<PathBuf>,
    /// Prints the default configuration, which is the manual of all knobs, and ends.
    #[arg(long, conflicts_with = "config")]
    print_config: bool,
    /// What to log: error, warn, info, debug or trace, or a filter such as
    /// `info,steadfast_node=debug`. Without it the variable RUST_LOG decides, then `info`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.config {
        Some(path) => daemon(path, args.log.as_deref()),
        None => print(DEFAULT_CONFIG),
    })
}

/// Reads the configuration file of a node, for this and other commands.
pub fn read_config(path: &Path) -> Result<NodeConfig, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::Usage(format!(
            "cannot read the configuration {}: {error}; `steadfast node --print-config` prints one \
             to start from",
            path.display()
        ))
    })?;
    let mut config = NodeConfig::from_toml(&text)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    // The folder of "node.toml" is "", which joins to the same path.
    config.resolve(path.parent().unwrap_or(Path::new("")));
    Ok(config)
}

fn daemon(path: &Path, log: Option<&str>) -> Result<(), Failure> {
    let config = read_config(path)?;
    check_services(&config)?;
    let log = log::start(log)?;
    let ended = serve(&config);
    log.flush();
    ended
}

/// Runs the node until it is told to stop, or ends by itself.
fn serve(config: &NodeConfig) -> Result<(), Failure> {
    // Before the node starts: a signal that comes while it starts must not kill it half-way.
    let signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| Failure::Failed(format!("cannot handle signals: {error}")))?;
    let node = Node::start(config.clone()).map_err(|error| match error {
        StartError::Config(_) => Failure::usage(error),
        error => Failure::failed(error),
    })?;
    host(&node, config)?;
    match node.client_address() {
        Some(address) => tracing::info!(node = node.id().0, clients = %address, "ready"),
        None => tracing::info!(node = node.id().0, "ready; takes no clients"),
    }
    tell_systemd("READY=1");
    let woken_by = wait(&node, signals);
    tracing::info!("stopping: handing over and leaving the ring");
    tell_systemd("STOPPING=1");
    node.stop().map_err(Failure::failed)?;
    tracing::info!("stopped");
    match woken_by {
        Wake::Signal => Ok(()),
        _ => Err(Failure::Failed("the node ended by itself: start it anew".to_owned())),
    }
}

/// What the daemon's main thread waits for.
enum Wake {
    /// It is told to stop.
    Signal,
    /// The node's place in its cluster, or a group's view, has changed.
    Changed,
    /// The node tells no more events.
    Silent,
}

/// Wakes that may wait. They are rare, and each is as good as the last.
const WAKES: usize = 16;

/// Waits for a signal, or for the node to end by itself; tells systemd how it fares meanwhile.
fn wait(node: &Node, mut signals: Signals) -> Wake {
    let (wake, woken) = mpsc::sync_channel(WAKES);
    let by_signal = wake.clone();
    thread::spawn(move || {
        for _ in signals.forever() {
            if by_signal.send(Wake::Signal).is_err() {
                eprintln!("error: a second signal: stopped at once, without handing over");
                std::process::exit(1);
            }
        }
    });
    watch(node, wake.clone());
    let mut told = String::new();
    loop {
        let status = node.status();
        let report = report::line(&status);
        if report != told {
            tell_systemd(&format!("STATUS={report}"));
            told = report;
        }
        match woken.recv() {
            Ok(Wake::Changed) => {}
            // The oldest of too many subscribers is ended: that says nothing of the node.
            Ok(Wake::Silent) if node.status().ring.state != "stopped" => watch(node, wake.clone()),
            Ok(wake) => return wake,
            Err(_) => return Wake::Silent,
        }
    }
}

/// Wakes the main thread when something changes at the node, and when no more is told.
fn watch(node: &Node, wake: SyncSender<Wake>) {
    let events = node.subscribe_to(Interest::Membership);
    thread::spawn(move || {
        for (_, event) in events {
            let changed = matches!(event, Event::View { .. } | Event::Quorum { .. });
            if changed && wake.send(Wake::Changed).is_err() {
                return;
            }
        }
        // When the node is being stopped nobody listens any more, and nobody needs to.
        let _ = wake.send(Wake::Silent);
    });
}

/// A wrong service is a fault of the configuration: found before anything is started.
fn check_services(config: &NodeConfig) -> Result<(), Failure> {
    match config.replicas.iter().find(|replica| !BUILT_IN.contains(&replica.service.as_str())) {
        None => Ok(()),
        Some(replica) => Err(Failure::Usage(format!(
            "[[replica]] group = \"{}\": this program has no service \"{}\"; it has {}. A service \
             of your own is hosted by a program of your own: see steadfast::Node::host",
            replica.group,
            replica.service,
            BUILT_IN.join(" and "),
        ))),
    }
}

/// The services that [`host`] knows.
const BUILT_IN: [&str; 2] = ["echo", "counter"];

fn host(node: &Node, config: &NodeConfig) -> Result<(), Failure> {
    for replica in &config.replicas {
        let options = HostOptions { group: replica.options(), execution: replica.execution };
        let hosted = match replica.service.as_str() {
            "echo" => node.host(&replica.group, options, || Echo),
            "counter" => {
                node.host(&replica.group, options, || CounterService::new(Tally::default()))
            }
            service => unreachable!("{service} was checked to be built in"),
        };
        hosted.map_err(|error| {
            Failure::Failed(format!("cannot host a replica of {}: {error}", replica.group))
        })?;
    }
    Ok(())
}

/// A node that runs is worth more than the report of it.
fn tell_systemd(message: &str) {
    if let Err(error) = notify::systemd(message) {
        tracing::warn!("cannot reach NOTIFY_SOCKET: {error}");
    }
}
