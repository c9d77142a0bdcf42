//! How long a dead member stays in the registry, and what keeping it true costs, by each technique
//! (`jgroup-arm.txt`, section 4).

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use steadfast::admin::Client as Admin;
use steadfast::registry::{Address, Epoch, Technique, Terms};
use steadfast::{NodeId, RegistryKnobs};

use harness::cluster::{Books, Cluster, Plan, Where, wall};
use harness::figures::quantile;
use harness::{Experiment, Outcome, Run, usage};

/// The group whose replicas are bound.
const GROUP: &str = "inline";

/// Time after the last change until its effects are over.
const SETTLE: Duration = Duration::from_secs(3);

/// Longer than anything here may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a dead member stays in the registry, by notification, lease and both, and their
/// traffic.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How often a node with a replica is killed, by each technique.
    #[arg(long, default_value_t = 10)]
    kills: usize,
    /// Node processes.
    #[arg(long, default_value_t = 5)]
    nodes: u32,
    /// Milliseconds of a lease.
    #[arg(long, default_value_t = 1_000)]
    lease_ms: u32,
    /// Milliseconds between two refreshes.
    #[arg(long, default_value_t = 300)]
    refresh_ms: u32,
    /// How long to count datagrams while nothing happens, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[command(flatten)]
    at: Where,
}

/// Rows of the table: the technique, the number of replicas, and the name of the row.
const ROWS: &[(Option<Technique>, u32, &str)] = &[
    (None, 3, "not bound"),
    (Some(Technique::Notification), 3, "notification"),
    (Some(Technique::Lease), 3, "lease"),
    (Some(Technique::Both), 3, "both"),
    (Some(Technique::Both), 1, "both, the last one"),
];

impl Experiment for Options {
    const NAME: &'static str = "registry";
    const SMOKE: &'static str = "--kills 1 --nodes 4 --seconds 1 --lease-ms 500 --refresh-ms 150";

    fn run(&self, run: &Run) -> Outcome<()> {
        let Options { lease_ms, refresh_ms, nodes, kills, .. } = *self;
        run.begin(&format!(
            "{nodes} nodes, lease {lease_ms} ms, refreshed every {refresh_ms} ms; a dead member \
             is listed for so many ms after SIGKILL, {kills} times"
        ));
        let table = run.table(
            "technique:20, min=stale_min_ms:9.1, p50=stale_p50_ms:9.1, p90=stale_p90_ms:9.1, \
             max=stale_max_ms:9.1, all: datagrams/s=datagrams_s:20.1",
        );
        // Notification and lease are both in one of them.
        for (technique, replicas, name) in run.sized(ROWS, &ROWS[3..4]) {
            let settle = run.sized(SETTLE, Duration::ZERO);
            let (stale, datagrams) = measure(self, *technique, *replicas, settle)?;
            let at = |share| quantile(stale.clone(), share);
            table.row(&json!({
                "peer": "steadfast", "measure": "registry", "technique": name, "replicas": replicas,
                "nodes": nodes, "lease_ms": lease_ms, "refresh_ms": refresh_ms,
                "kills": stale.len(), "stale_min_ms": at(0.0), "stale_p50_ms": at(0.5),
                "stale_p90_ms": at(0.9), "stale_max_ms": at(1.0), "stale_ms": stale,
                "datagrams_s": datagrams,
            }));
        }
        Ok(())
    }
}

/// A cluster under one technique: how long each killed member stayed, and the datagrams a second of
/// all nodes while nothing happened.
fn measure(
    options: &Options,
    technique: Option<Technique>,
    replicas: u32,
    settle: Duration,
) -> Outcome<(Vec<f64>, f64)> {
    let (lease_ms, refresh_ms) = (options.lease_ms, options.refresh_ms);
    let terms = Terms { technique: technique.unwrap_or_default(), lease_ms, refresh_ms };
    let plan = Plan {
        placement: options.at.placement(),
        books: Books {
            registry: Some(RegistryKnobs { on: true, groups: technique, terms }),
            ..Books::default()
        },
        ..Plan::of(options.nodes, replicas, &[GROUP])
    };
    let mut cluster = Cluster::start(plan)?;
    let mut stale = Vec::new();
    if technique.is_some() {
        let watcher = NodeId(options.nodes);
        let mut admin = cluster.node(watcher)?;
        admin.set_timeout(Some(TIMEOUT))?;
        for number in 0..options.kills as u32 {
            let victim = NodeId(1 + number % replicas);
            wait(&mut admin, |nodes| nodes.len() == replicas as usize)?;
            let killed = cluster.signal(victim, Signal::KILL)?;
            wait(&mut admin, |nodes| !nodes.contains(&victim))?;
            stale.push(wall().saturating_sub(killed) as f64 / 1e6);
            cluster.start_node(victim)?;
            cluster.wait_until_whole()?;
            drop(cluster.take_events());
        }
        wait(&mut admin, |nodes| nodes.len() == replicas as usize)?;
    }
    thread::sleep(settle);
    let used = usage::watch(&cluster, options.nodes, Duration::from_secs(options.seconds))?;
    Ok((stale, used.iter().map(|used| used.datagrams).sum()))
}

/// Waits at the node until those who are listed are as wanted.
fn wait(admin: &mut Admin, wanted: impl Fn(&[NodeId]) -> bool) -> Outcome<()> {
    let deadline = Instant::now() + TIMEOUT;
    let mut since: Option<Epoch> = None;
    while Instant::now() < deadline {
        let told = admin.registry(Some(GROUP), since, Duration::from_secs(1))?;
        since = Some(told.epoch);
        let Some(bindings) = told.bindings else { continue };
        let node = |address: &Address| match address {
            Address::Replica(member) => Some(member.node),
            Address::At(_) => None,
        };
        let nodes: Vec<NodeId> = bindings.iter().filter_map(|it| node(&it.address)).collect();
        if wanted(&nodes) {
            return Ok(());
        }
    }
    Err(format!("waited {TIMEOUT:?} for the registry").into())
}
