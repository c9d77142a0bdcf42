//! How long a dead member stays in the registry, and what keeping it true costs, by each technique (`jgroup-arm.txt`, section 4).

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use steadfast::admin::Client as Admin;
use steadfast::registry::{Address, Epoch, Technique, Terms};
use steadfast::{NodeId, RegistryKnobs};

use crate::cluster::{Cluster, Plan, Where, wall};
use crate::figures::quantile;
use crate::idle::usage;
use crate::{Outcome, machine};

/// The group whose replicas are bound.
const GROUP: &str = "inline";

/// After the last change: what belongs to it is over by then.
const SETTLE: Duration = Duration::from_secs(3);

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

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
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

/// What is measured: under which technique, how many replicas there are, and what people call it.
const ROWS: &[(Option<Technique>, u32, &str)] = &[
    (None, 3, "not bound"),
    (Some(Technique::Notification), 3, "notification"),
    (Some(Technique::Lease), 3, "lease"),
    (Some(Technique::Both), 3, "both"),
    (Some(Technique::Both), 1, "both, the last one"),
];

pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    let Options { lease_ms, refresh_ms, nodes, kills, .. } = *options;
    if options.json {
        eprintln!("on {machine}");
    } else {
        println!(
            "on {machine}; {nodes} nodes, lease {lease_ms} ms, refreshed every {refresh_ms} ms; \
             a dead member is listed for so many ms after SIGKILL, {kills} times"
        );
        println!(
            "{:>20}{:>9}{:>9}{:>9}{:>9}{:>20}",
            "technique", "min", "p50", "p90", "max", "all: datagrams/s"
        );
    }
    for (technique, replicas, name) in ROWS {
        let (stale, datagrams) = measure(options, *technique, *replicas)?;
        show(options, name, *replicas, &stale, datagrams);
    }
    Ok(())
}

/// A cluster under one technique: how long each killed member stayed, and the datagrams a second of all nodes while nothing happened.
fn measure(
    options: &Options,
    technique: Option<Technique>,
    replicas: u32,
) -> Outcome<(Vec<f64>, f64)> {
    let (lease_ms, refresh_ms) = (options.lease_ms, options.refresh_ms);
    let terms = Terms { technique: technique.unwrap_or_default(), lease_ms, refresh_ms };
    let plan = Plan {
        nodes: options.nodes,
        replicas,
        groups: &[GROUP],
        placement: options.at.placement(),
        registry: Some(RegistryKnobs { on: true, groups: technique, terms }),
        ..Plan::default()
    };
    let mut cluster = Cluster::start(plan)?;
    let mut stale = Vec::new();
    if technique.is_some() {
        let watcher = NodeId(options.nodes);
        let mut admin = Admin::connect(cluster.admin(watcher))?;
        admin.set_timeout(Some(PATIENCE))?;
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
    thread::sleep(SETTLE);
    let all = || {
        let nodes = (1..=options.nodes).map(NodeId);
        nodes.map(|id| Ok(usage(&cluster, id)?.datagrams)).sum::<Outcome<u64>>()
    };
    let (before, start) = (all()?, Instant::now());
    thread::sleep(Duration::from_secs(options.seconds));
    let datagrams = (all()? - before) as f64 / start.elapsed().as_secs_f64();
    Ok((stale, datagrams))
}

/// Waits at the node until those who are listed are as wanted.
fn wait(admin: &mut Admin, wanted: impl Fn(&[NodeId]) -> bool) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
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
    Err(format!("waited {PATIENCE:?} for the registry").into())
}

fn show(options: &Options, name: &str, replicas: u32, stale: &[f64], datagrams: f64) {
    let at = |share| quantile(stale.to_vec(), share);
    let (min, p50, p90, max) = (at(0.0), at(0.5), at(0.9), at(1.0));
    if options.json {
        println!(
            "{}",
            json!({
                "peer": "steadfast", "measure": "registry", "technique": name, "replicas": replicas,
                "nodes": options.nodes, "lease_ms": options.lease_ms, "refresh_ms": options.refresh_ms,
                "kills": stale.len(), "stale_min_ms": min, "stale_p50_ms": p50, "stale_p90_ms": p90,
                "stale_max_ms": max, "stale_ms": stale, "datagrams_s": datagrams,
            })
        );
    } else {
        let text = |figure: Option<f64>| figure.map_or("-".into(), |ms| format!("{ms:.1}"));
        println!(
            "{name:>20}{:>9}{:>9}{:>9}{:>9}{datagrams:>20.1}",
            text(min),
            text(p50),
            text(p90),
            text(max)
        );
    }
}
