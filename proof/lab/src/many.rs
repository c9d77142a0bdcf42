//! A cluster of many nodes, each of which has deployed replicas and binds a name. What every node
//! tells of deployments and names is compared; then the idle cost of a node is measured, and a node
//! is killed.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use manager::cluster_state::{Deployment, Distribution};
use rustix::process::Signal;
use serde_json::json;
use steadfast::status::DeploymentStatus;
use steadfast::{ManagerKnobs, NodeId, RegistryKnobs};

use harness::cluster::{Books, Cluster, Plan};
use harness::figures::median_and_worst;
use harness::process::Role;
use harness::wait::until;
use harness::{Experiment, Outcome, Run, bail, machine, usage};

/// Everything is to be as wanted within this.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(20);

/// Time after the start until its effects are over.
const SETTLE: Duration = Duration::from_secs(2);

/// Nodes' names begin so.
const NAME: &str = "name-";

/// Many nodes: deployments and names on all of them, the idle cost of each, and a loss.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Node processes.
    #[arg(long, default_value_t = 32)]
    nodes: u32,
    /// Replicas of each of the deployed groups, of which there is one for every so many nodes.
    #[arg(long, default_value_t = 4)]
    replicas: u32,
    /// How long to watch the idle nodes, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

impl Experiment for Options {
    const NAME: &'static str = "many";
    const SMOKE: &'static str = "--nodes 3 --replicas 2 --seconds 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.replicas < 2 || self.nodes < 3 {
            bail!("a node is to be lost: give 2 replicas or more, and 3 nodes");
        }
        eprintln!("on {}; {} nodes", machine::description(), self.nodes);
        let began = Instant::now();
        let mut cluster = Cluster::start(Plan {
            manager: Some(ManagerKnobs { on: true, ..ManagerKnobs::default() }),
            books: Books {
                registry: Some(RegistryKnobs { on: true, ..RegistryKnobs::default() }),
                ..Books::default()
            },
            ..Plan::of(self.nodes, 0, &[])
        })?;
        let whole = self.introduced(&cluster).map(|()| began.elapsed())?;
        let began = Instant::now();
        self.deploy(&cluster)?;
        self.bind(&cluster)?;
        let groups = self.same_everywhere(&cluster, None)?;
        let deployed = began.elapsed();
        run.tell(
            &json!({
                "peer": "steadfast", "measure": "many", "nodes": self.nodes, "groups": groups,
                "whole_s": whole.as_secs_f64(), "deployed_s": deployed.as_secs_f64(),
            }),
            || {
                format!(
                    "all {} nodes know each other after {:.1} s; {groups} groups and {} names, told alike by \
                     each, after {:.1} s",
                    self.nodes,
                    whole.as_secs_f64(),
                    self.nodes,
                    deployed.as_secs_f64()
                )
            },
        );
        self.idle(run, &cluster)?;
        self.lose_one(run, &mut cluster)
    }
}

impl Options {
    fn ids(&self) -> impl Iterator<Item = NodeId> {
        (1..=self.nodes).map(NodeId)
    }

    /// Waits until every node knows of all that they may have replicas.
    fn introduced(&self, cluster: &Cluster) -> Outcome<()> {
        let all: Vec<NodeId> = self.ids().collect();
        until(TIMEOUT, LOOK, || {
            for id in self.ids() {
                let told = cluster.node(id)?.deployments();
                let known = told.map(|told| {
                    let present = told.nodes.into_iter().filter(|it| it.present);
                    present.map(|it| it.node).collect::<Vec<NodeId>>()
                });
                if known.as_ref().ok() != Some(&all) {
                    return Ok(Err(format!("{id} does not know all nodes: {known:?}")));
                }
            }
            Ok(Ok(()))
        })
    }

    /// Nodes that share a host measure the same load: each group is told which nodes are its own.
    fn deploy(&self, cluster: &Cluster) -> Outcome<()> {
        let log = cluster.folder().join("objects.log");
        let command = Role::Objects { log }.command()?;
        let mut admin = cluster.node(NodeId(1))?;
        let nodes: Vec<NodeId> = self.ids().collect();
        for nodes in nodes.chunks(self.replicas as usize) {
            let (name, replicas) = (format!("group-of-{}", nodes[0]), u32::try_from(nodes.len())?);
            let distribution = Distribution::Pinned(nodes.to_vec());
            let deployment = Deployment::new(&name, command.clone(), replicas);
            admin.deploy(&Deployment { distribution, ..deployment }, false)?;
        }
        Ok(())
    }

    fn bind(&self, cluster: &Cluster) -> Outcome<()> {
        for id in self.ids() {
            let address = cluster.client(id).ok_or("it takes no clients")?.to_string();
            cluster.node(id)?.bind(&format!("{NAME}{id}"), &address, None)?;
        }
        Ok(())
    }

    /// Waits until every node but one tells the same: all replicas have the state, and every node
    /// has one and a name. Returns the number of groups.
    fn same_everywhere(&self, cluster: &Cluster, away: Option<NodeId>) -> Outcome<usize> {
        let here: Vec<NodeId> = self.ids().filter(|id| Some(*id) != away).collect();
        until(TIMEOUT, LOOK, || {
            let mut told = BTreeSet::new();
            let mut groups = 0;
            for id in &here {
                let mut admin = cluster.node(*id)?;
                let (deployments, names) =
                    (admin.deployments()?, admin.registry(None, None, Duration::ZERO)?);
                groups = deployments.deployments.len();
                let whole = |it: &&DeploymentStatus| {
                    it.seats.iter().all(|seat| Some(seat.node) != away || !seat.on)
                };
                let mut whole = deployments.deployments.iter().filter(whole);
                if let Some(late) = whole.find(|it| !it.settled) {
                    return Ok(Err(format!("{id}: {} is not settled", late.deployment.group)));
                }
                let seats = deployments.nodes.iter().filter(|it| it.present);
                let seats: Vec<_> = seats.map(|it| (it.node, it.replicas.clone())).collect();
                if let Some((node, _)) = seats.iter().find(|(_, replicas)| replicas.is_empty()) {
                    return Ok(Err(format!("{id}: {node} has no replica")));
                }
                // Each replica of what is deployed has a name, too.
                let names: Vec<(String, String)> = names
                    .bindings
                    .into_iter()
                    .flatten()
                    .map(|it| (it.name, it.address.to_string()))
                    .collect();
                let own = names.iter().filter(|(name, _)| name.starts_with(NAME)).count();
                if own != here.len() || seats.len() != here.len() {
                    let nodes = seats.len();
                    return Ok(Err(format!(
                        "{id} tells {own} names and {nodes} nodes of {}",
                        here.len()
                    )));
                }
                told.insert((seats, names));
            }
            Ok(if told.len() == 1 { Ok(groups) } else { Err("nodes tell different things".into()) })
        })
    }

    fn idle(&self, run: &Run, cluster: &Cluster) -> Outcome<()> {
        thread::sleep(run.sized(SETTLE, Duration::ZERO));
        let used = usage::watch(cluster, self.nodes, Duration::from_secs(self.seconds))?;
        let of = |figure: fn(&usage::Used) -> f64| {
            median_and_worst(used.iter().map(figure).collect()).ok_or("nothing was watched")
        };
        let (cpu, datagrams) = (of(|it| it.percent)?, of(|it| it.datagrams)?);
        let woken = of(|it| it.woken.values().sum())?;
        let memory = of(|it| it.memory_kib as f64 / 1024.0)?;
        let line = json!({
            "measure": "many-idle", "nodes": self.nodes, "cpu_pct": cpu.0, "worst_cpu_pct": cpu.1,
            "woken_s": woken.0, "datagrams_s": datagrams.0, "memory_mib": memory.0,
        });
        run.tell(&line, || {
            format!(
                "an idle node: {:.2} % of a core (worst {:.2}), woken {:.0} times/s, {:.0} datagrams/s, {:.0} MiB",
                cpu.0, cpu.1, woken.0, datagrams.0, memory.0
            )
        });
        Ok(())
    }

    /// The last node is killed, and its name goes.
    fn lose_one(&self, run: &Run, cluster: &mut Cluster) -> Outcome<()> {
        let lost = NodeId(self.nodes);
        cluster.wait_for_ring_without(None)?;
        let began = Instant::now();
        cluster.signal(lost, Signal::KILL)?;
        cluster.wait_for_ring_without(Some(lost))?;
        let ring = began.elapsed().as_secs_f64() * 1e3;
        self.same_everywhere(cluster, Some(lost))?;
        let well = began.elapsed().as_secs_f64();
        let line = json!({
            "measure": "many-loss", "nodes": self.nodes, "ring_ms": ring, "alike_s": well,
        });
        run.tell(&line, || {
            format!(
                "a node is killed: the ring of the others after {ring:.1} ms; its name gone, told alike by each, \
                 after {well:.1} s"
            )
        });
        Ok(())
    }
}
