//! A cluster of one's own on this machine, for who has none: nodes in one folder, which a process in
//! the background keeps while there is something to do.
//!
//! ```text
//! HOME/own/lock             the process that keeps the nodes has it
//! HOME/own/cluster.key      the key of the nodes' ring
//! HOME/own/node-1.toml      their configurations, made anew at each start: ports are free ones
//! HOME/own/node-1.sock      their admin sockets
//! HOME/own/node-1/          what they keep, with images in node-1/jobs
//! HOME/own/node-1.log       what they say
//! ```

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use admin::jobs::JobsStatus;
use job::{JobState, RankState};
use os::durable::lock;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steadfast::admin::Client as AdminClient;
use steadfast::{
    JobsKnobs, ManagerKnobs, NodeConfig, NodeId, founder, free_ring_addresses, key_file,
};

use super::minder::Minder;
use crate::commands::Failure;

/// The variable that names another folder.
const VARIABLE: &str = "STEADFAST_HOME";

/// The most nodes of such a cluster.
pub const MAX_NODES: u32 = 5;

/// How long the cluster may take to begin.
const BEGIN_WITHIN: Duration = Duration::from_secs(20);

/// The nodes stop when no job has run for so long.
const IDLE: Duration = Duration::from_secs(30);

/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The cluster's folder.
pub fn home() -> Result<PathBuf, Failure> {
    let variable =
        |name: &str| env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let state = || {
        let home = || Some(variable("HOME")?.join(".local/state"));
        Some(variable("XDG_STATE_HOME").or_else(home)?.join("steadfast"))
    };
    let home = variable(VARIABLE).or_else(state);
    let home =
        home.ok_or_else(|| Failure::Usage(format!("set HOME, or {VARIABLE} to a folder")))?;
    Ok(home.join("own"))
}

/// The folders of images of the cluster's nodes, those that are there.
pub fn folders() -> Result<Vec<PathBuf>, Failure> {
    let home = home()?;
    let folders = (1..=MAX_NODES).map(|node| home.join(format!("node-{node}/jobs")));
    Ok(folders.filter(|folder| folder.exists()).collect())
}

/// A node of it that answers, if it runs.
pub fn running() -> Result<Option<AdminClient>, Failure> {
    let home = home()?;
    let clients = (1..=MAX_NODES).map(|node| AdminClient::connect(socket(&home, node)));
    Ok(clients.filter_map(Result::ok).next())
}

/// Whether there is one, running or not.
pub fn exists() -> Result<bool, Failure> {
    Ok(home()?.join("cluster.key").exists())
}

/// Starts it in the background, and waits until it takes jobs. `nodes`: how many, if it is new.
pub fn start(nodes: u32) -> Result<AdminClient, Failure> {
    let home = home()?;
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", home.display()));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&home).map_err(failed)?;
    let log = File::options().create(true).append(true).open(home.join("keeper.log"));
    let log = log.map_err(failed)?;
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command
        .args(["job", "keep", "--nodes", &nodes.to_string()])
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log)
        // An interrupt from the terminal is not for it.
        .process_group(0);
    let mut keeper = command.spawn().map_err(failed)?;
    let until = Instant::now() + BEGIN_WITHIN;
    loop {
        if let Some(mut node) = running()?
            && node.jobs(None, Duration::ZERO).is_ok_and(|status| is_ready(&home, &status))
        {
            return Ok(node);
        }
        let over = keeper.try_wait().map_err(failed)?;
        if over.is_some_and(|status| !status.success()) || Instant::now() > until {
            return Err(Failure::Failed(format!(
                "the cluster of this machine's own does not begin: {} has what its nodes say",
                home.join("*.log").display()
            )));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// All nodes that were begun have agents: ranks can be anywhere.
fn is_ready(home: &Path, status: &JobsStatus) -> bool {
    let begun = (1..=MAX_NODES).filter(|node| home.join(format!("node-{node}.toml")).exists());
    let hosts = status.jobs.iter().flat_map(|jobs| jobs.hosts()).count();
    status.current && hosts >= begun.count()
}

fn socket(home: &Path, node: u32) -> PathBuf {
    home.join(format!("node-{node}.sock"))
}

/// Keeps the nodes until no job has run for a while: the background process.
pub fn keep(nodes: u32) -> Result<(), Failure> {
    let home = home()?;
    // Another one that keeps them may be about to end.
    let until = Instant::now() + BEGIN_WITHIN;
    let _lock = loop {
        match lock(&home, "lock") {
            Ok(lock) => break lock,
            Err(_) if Instant::now() > until => return Ok(()),
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    };
    // As many as there were: each has a part of the book.
    let there = (1..=MAX_NODES).filter(|node| home.join(format!("node-{node}")).exists()).count();
    let nodes = if there == 0 { nodes.clamp(1, MAX_NODES) } else { there as u32 };
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(Failure::failed)?;
    while run(&home, nodes, &mut signals)? {}
    Ok(())
}

/// Runs the nodes until there is nothing to do, or a signal comes. True: something has come at the last
/// moment.
fn run(home: &Path, nodes: u32, signals: &mut Signals) -> Result<bool, Failure> {
    prepare(home, nodes)?;
    let _minders: Vec<Minder> =
        (1..=nodes).map(|node| mind(home, node)).collect::<Result<_, _>>()?;
    let mut busy = Instant::now();
    while busy.elapsed() < IDLE {
        thread::sleep(LOOK);
        if signals.pending().next().is_some() {
            return Ok(false);
        }
        // Without an answer there may be something to do.
        if running()?.and_then(is_busy).unwrap_or(true) {
            busy = Instant::now();
        }
    }
    // From here on nobody finds a node to submit to.
    let last = running()?;
    for node in 1..=nodes {
        let _ = fs::remove_file(socket(home, node));
    }
    Ok(last.and_then(is_busy) == Some(true))
}

fn is_busy(mut node: AdminClient) -> Option<bool> {
    let status = node.jobs(None, Duration::ZERO).ok()?;
    let jobs = status.jobs.filter(|_| status.current)?;
    let busy = jobs.jobs().any(|(_, job)| {
        let runs = |rank: &job::Rank| matches!(rank.state, RankState::At(_));
        job.state == JobState::Running || job.ranks.iter().any(runs)
    });
    Some(busy)
}

/// Writes the nodes' configurations.
fn prepare(home: &Path, nodes: u32) -> Result<(), Failure> {
    let key = home.join("cluster.key");
    if !key.exists() {
        key_file::create(&key).map_err(Failure::failed)?;
    }
    let rings = free_ring_addresses(nodes as usize);
    for node in 1..=nodes {
        let folder = home.join(format!("node-{node}"));
        let own = folder.join("cluster.key");
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        // The key may change while nodes run, so each has its own.
        let copied = made.and_then(|()| if own.exists() { Ok(0) } else { fs::copy(&key, &own) });
        copied.map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))?;
        let mut config = NodeConfig {
            cluster: "own".into(),
            client: None,
            admin: Some(socket(home, node)),
            data_dir: Some(folder.join("data")),
            storage: Some(folder.join("store")),
            manager: ManagerKnobs { on: true, ..ManagerKnobs::default() },
            jobs: JobsKnobs { folder: Some(folder.join("jobs")), listen: None },
            ..NodeConfig::member(NodeId(node), &rings)
        };
        config.security.cluster_key = Some(own);
        let data = folder.join("data");
        if nodes == 1 && !data.exists() {
            founder::mark(&data).map_err(Failure::failed)?;
        }
        let path = home.join(format!("node-{node}.toml"));
        fs::write(&path, config.to_toml())
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

fn mind(home: &Path, node: u32) -> Result<Minder, Failure> {
    let (config, log) =
        (home.join(format!("node-{node}.toml")), home.join(format!("node-{node}.log")));
    let make = move || {
        let log = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new(env::current_exe()?);
        command.args(["node", "--tied", "--config"]).arg(&config).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        Ok(command)
    };
    Minder::start(format!("node {node}"), make).map_err(Failure::failed)
}
