//! `steadfast node`: the daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use os::threads::set_helper_priority;
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steadfast::events::{Event, Interest};
use steadfast::{
    DEFAULT_CONFIG, Folders, HostOptions, Node, NodeConfig, SHORT_CONFIG, StartError, Stopped,
    founder, key_file,
};

use super::{Failure, finish, log, notify, print, report};
use crate::services::{CounterService, Echo, Tally};

mod beside;

const EXAMPLES: &str = "\
Examples:
  steadfast node --print-config > node.toml    a configuration to start from: what people change
  steadfast node --print-config --all          every key, with its meaning and its default
  steadfast node --config node.toml
  steadfast node --config node.toml --log debug

SIGHUP has the node read its configuration again (`steadfast reload`).
SIGTERM and SIGINT stop the node cleanly: its replicas hand over, it leaves the ring, and the exit
code is 0. A second signal stops it at once. Under systemd (Type=notify) it reports when it is
ready and when it stops.";

/// Where the system's own node has its socket.
pub const RUNTIME: &str = "/run/steadfast";

/// Runs a node: one on each host of the cluster.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The node's configuration.
    #[arg(long, value_name = "FILE", required_unless_present = "print_config")]
    config: Option<PathBuf>,
    /// Begins a new cluster with this node: once, with an empty data_dir. `steadfast init` has marked
    /// its nodes already.
    #[arg(long, requires = "config")]
    found: bool,
    /// Prints a configuration to start from, and ends.
    #[arg(long, conflicts_with = "config")]
    print_config: bool,
    /// Prints every key, with its meaning and its default.
    #[arg(long, requires = "print_config")]
    all: bool,
    /// The folder for what the node writes, if not the configuration's: for relative `data_dir`,
    /// `[storage] folder` and `cluster_key`. A key that is not there yet is copied from the
    /// configuration's folder. Under systemd, by default, the unit's StateDirectory.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The folder for a relative `admin` socket, if not the configuration's. Under systemd, by
    /// default, the unit's RuntimeDirectory.
    #[arg(long, value_name = "DIR")]
    runtime: Option<PathBuf>,
    /// Stop when the process that has started it does.
    #[arg(long, hide = true)]
    tied: bool,
    /// The log level: error, warn, info, debug or trace, or a filter such as
    /// `info,steadfast_node=debug`. Without it the variable RUST_LOG decides, then `info`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    finish(match &args.config {
        Some(path) => daemon(path, args),
        None => print(if args.all { DEFAULT_CONFIG } else { SHORT_CONFIG }),
    })
}

/// Reads a node's configuration file, for commands about that node.
pub fn read_config(path: &Path) -> Result<NodeConfig, Failure> {
    let mut config = parse(path)?;
    config.resolve(&Folders::one(folder_of(path)));
    // The system's own node has its socket where its unit says.
    let socket = config.admin.as_deref().filter(|socket| !socket.exists());
    let elsewhere = socket.and_then(|socket| Some(Path::new(RUNTIME).join(socket.file_name()?)));
    if let Some(elsewhere) = elsewhere.filter(|socket| socket.exists()) {
        config.admin = Some(elsewhere);
    }
    Ok(config)
}

fn parse(path: &Path) -> Result<NodeConfig, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::Usage(format!(
            "cannot read the configuration {}: {error}; `steadfast node --print-config` prints one \
             to start from",
            path.display()
        ))
    })?;
    NodeConfig::from_toml(&text)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// The folder of "node.toml" is ".", since no program can be started in "".
fn folder_of(path: &Path) -> &Path {
    let named = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// Where the node's relative paths lie: as the command line says, or the unit that started it.
fn folders(path: &Path, args: &Args) -> Folders {
    let config = folder_of(path);
    let chosen = |said: &Option<PathBuf>, unit: &str| {
        // systemd separates several by colons.
        let unit = std::env::var_os(unit).and_then(|all| std::env::split_paths(&all).next());
        said.clone().or(unit).unwrap_or_else(|| config.into())
    };
    Folders {
        state: chosen(&args.state, "STATE_DIRECTORY"),
        runtime: chosen(&args.runtime, "RUNTIME_DIRECTORY"),
        config: config.into(),
    }
}

/// The cluster's key changes while nodes run, so it lies in the folder that the node may write. The
/// first time it is copied from where the configuration was installed.
fn take_key(config: &NodeConfig, folders: &Folders) -> Result<(), Failure> {
    let Some(key) = &config.security.cluster_key else { return Ok(()) };
    let (installed, kept) = (folders.config.join(key), folders.state.join(key));
    if kept.exists() || !installed.exists() {
        return Ok(());
    }
    let keys = key_file::read(&installed).map_err(Failure::failed)?;
    key_file::replace(&kept, &keys).map_err(Failure::failed)
}

/// The mark of a new cluster comes with the configuration, and counts in the folder that the node
/// writes.
fn take_mark(config: &NodeConfig, folders: &Folders) -> Result<(), Failure> {
    let Some(data_dir) = &config.data_dir else { return Ok(()) };
    let (installed, kept) = (folders.config.join(data_dir), folders.state.join(data_dir));
    if installed == kept {
        return Ok(());
    }
    founder::bring(&installed, &kept).map_err(Failure::failed)
}

/// The node begins a new cluster.
fn found(config: &NodeConfig, folders: &Folders) -> Result<(), Failure> {
    let Some(data_dir) = &config.data_dir else { return Ok(()) };
    let kept = folders.state.join(data_dir);
    founder::mark(&kept)
        .map_err(|error| Failure::Usage(format!("--found: data_dir {}: {error}", kept.display())))
}

fn daemon(path: &Path, args: &Args) -> Result<(), Failure> {
    if args.tied {
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(Failure::failed)?;
    }
    let folders = folders(path, args);
    let installed = parse(path)?;
    if args.found {
        found(&installed, &folders)?;
    }
    take_mark(&installed, &folders)?;
    take_key(&installed, &folders)?;
    let file = path.to_owned();
    let read = move || -> Result<NodeConfig, Failure> {
        let mut config = parse(&file)?;
        config.resolve(&folders);
        check_services(&config)?;
        Ok(config)
    };
    let config = read()?;
    // Before the first thread, so that each inherits it: a refusal is told by the node.
    set_helper_priority(config.realtime.helper_priority);
    let log = log::start(args.log.as_deref())?;
    let ended = serve(path, &config, read);
    log.flush();
    ended
}

/// Runs the node until it is told to stop, or ends by itself.
fn serve(
    path: &Path,
    config: &NodeConfig,
    read: impl Fn() -> Result<NodeConfig, Failure> + Send + Sync + 'static,
) -> Result<(), Failure> {
    // Before the node starts: a signal that comes while it starts must not kill it half-way.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Failure::Failed(format!("cannot handle signals: {error}")))?;
    let node = Node::start(config.clone()).map_err(|error| match error {
        StartError::Config(_) | StartError::Unfounded(_) => Failure::usage(error),
        error => Failure::failed(error),
    })?;
    let gateway = beside::gateway(config, path)?.map(Arc::new);
    let carrier = beside::carrier(config, path)?.map(Arc::new);
    let renewed: Vec<_> = gateway.iter().chain(&carrier).cloned().collect();
    node.reloads_from(move || {
        let config = read().map_err(Failure::text)?;
        // They have certificates and rights of their own, of the same file.
        renewed.iter().for_each(|process| process.signal(Signal::HUP));
        Ok(config)
    });
    host(&node, config)?;
    let agent = beside::agent(config)?;
    match node.client_address() {
        Some(address) => tracing::info!(node = node.id().0, clients = %address, "ready"),
        None => tracing::info!(node = node.id().0, "ready; takes no clients"),
    }
    tell_systemd("READY=1");
    let woken_by = wait(&node, signals);
    tracing::info!("stopping: handing over and leaving the ring");
    tell_systemd("STOPPING=1");
    // Ranks and callers go on elsewhere.
    drop(agent);
    gateway.iter().chain(&carrier).for_each(|process| process.stop());
    node.stop().map_err(|stopped| match stopped {
        // It does not get better by starting again.
        Stopped::Retired => Failure::usage(stopped),
        stopped => Failure::failed(stopped),
    })?;
    tracing::info!("stopped");
    match woken_by {
        Wake::Signal => Ok(()),
        _ => Err(Failure::Failed("the node ended by itself: start it anew".to_owned())),
    }
}

/// The causes that wake the daemon's main thread.
enum Wake {
    /// It is told to stop.
    Signal,
    /// It is told to read its configuration again.
    Reload,
    /// The node's place in its cluster, or a group's view, has changed.
    Changed,
    /// The node reports no more events.
    Silent,
}

/// Wakes that may wait. They are rare, and each is as good as the last.
const WAKES: usize = 16;

/// Waits for a signal, or for the node to end by itself; tells systemd how it fares meanwhile.
fn wait(node: &Node, mut signals: Signals) -> Wake {
    let (wake, woken) = mpsc::sync_channel(WAKES);
    let by_signal = wake.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            let wake = if signal == SIGHUP { Wake::Reload } else { Wake::Signal };
            // A terminal that closes while the node hands over is no second signal.
            if by_signal.send(wake).is_err() && signal != SIGHUP {
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
            Ok(Wake::Reload) => reload(node),
            // The oldest of too many subscribers is ended: that says nothing of the node.
            Ok(Wake::Silent) if node.status().ring.state != "stopped" => watch(node, wake.clone()),
            Ok(wake) => return wake,
            Err(_) => return Wake::Silent,
        }
    }
}

/// Reads the configuration again, as `steadfast reload` has it done.
fn reload(node: &Node) {
    match node.reload() {
        Err(error) => tracing::error!("{error}"),
        Ok(restart) if restart.is_empty() => {}
        Ok(restart) => tracing::warn!(tables = restart.join(", "), "restart the node for these"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_beside_the_shell_has_a_folder_where_programs_can_start() {
        for (file, folder) in [("node.toml", "."), ("./node.toml", "."), ("a/node.toml", "a")] {
            assert_eq!(folder_of(Path::new(file)), Path::new(folder));
        }
        assert_eq!(folder_of(Path::new("/node.toml")), Path::new("/"));
    }
}
