//! The faults of a cluster of hosts, and the promises that must hold: checked, not only measured.
//!
//! Four nodes, each on a host of its own; a client on another host calls a thousand times a second
//! all along. At the end every replica must have executed exactly as many calls as were answered.

use std::time::{Duration, Instant};

use node::EventKind;
use serde_json::json;
use steadfast::NodeId;

use harness::caller::Caller;
use harness::cluster::{Cluster, Placement, Plan, wall};
use harness::hosts::{self, Place, Way};
use harness::{Experiment, Outcome, Run, bail, ensure, machine, name};

const GROUP: &str = "thread";
const NODES: u32 = 4;
const REPLICAS: u32 = 3;

/// The longest gap of a client, in milliseconds: the detection bound of default settings, several
/// times, because a test machine may be busy. It tells "calls go on" from "they do not"; how
/// quickly is measured by benchmarks.
const LONGEST_GAP: f64 = 1_000.0;

/// Rings that may be installed because of a host that is heard or hears in one direction only. A
/// member that is lost again and again is held off, so they do not grow with the time that it
/// lasts.
const ONE_WAY_RINGS: usize = 10;

/// Replicas that are behind catch up within this.
const CATCH_UP: Duration = Duration::from_secs(10);

/// Cut cables, deaf and mute hosts, random loss, two networks: checked on real sockets in network
/// namespaces.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Which; all of them if none is named.
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    /// The cables of the primary's host are cut, and mended.
    Cut,
    /// The primary's host hears nothing, but is heard.
    Deaf,
    /// The primary's host is not heard, but hears.
    Mute,
    /// One datagram in twenty is lost, each way.
    Loss,
    /// Two networks: one is cut and comes back, then the other.
    Links,
}

impl Scenario {
    const ALL: [Scenario; 5] =
        [Scenario::Cut, Scenario::Deaf, Scenario::Mute, Scenario::Loss, Scenario::Links];

    fn play(self, stage: &mut Stage) -> Outcome<()> {
        match self {
            Scenario::Cut => stage.cut(),
            Scenario::Deaf => stage.one_way(Way::In),
            Scenario::Mute => stage.one_way(Way::Out),
            Scenario::Loss => stage.loss(),
            Scenario::Links => stage.links(),
        }
    }
}

impl Experiment for Options {
    const NAME: &'static str = "hosts";
    const SMOKE: &'static str = "cut";

    fn impossible(&self) -> Option<String> {
        hosts::missing().map(|missing| format!("hosts in network namespaces need {missing}"))
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        eprintln!("on {}", machine::description());
        let chosen = if self.scenarios.is_empty() { &Scenario::ALL[..] } else { &self.scenarios };
        for &scenario in chosen {
            let links = if scenario == Scenario::Links { 2 } else { 1 };
            let mut stage = Stage::new(links, run.sized(LONGEST_GAP, f64::INFINITY))?;
            scenario.play(&mut stage)?;
            let Stage { gap, rings, .. } = stage;
            let (calls, name) = (stage.audit()?, name(scenario));
            let line = json!({
                "peer": "steadfast", "measure": "hosts", "scenario": name, "gap_ms": gap,
                "rings": rings, "calls": calls,
            });
            run.tell(&line, || {
                format!("{name}: {calls} calls, longest gap {gap:.1} ms, {rings} rings installed")
            });
        }
        Ok(())
    }
}

struct Stage {
    cluster: Cluster,
    caller: Caller,
    /// The longest gap that the client has seen, in milliseconds, and may see.
    gap: f64,
    longest: f64,
    /// The most rings that a node whose network was sound has installed because of a fault.
    rings: usize,
}

impl Stage {
    fn new(links: usize, longest: f64) -> Outcome<Stage> {
        let placement = Placement::Hosts { links };
        let plan = Plan { placement, ..Plan::of(NODES, REPLICAS, &[GROUP]) };
        let mut cluster = Cluster::start(plan)?;
        cluster.wait_for_ring_without(None)?;
        let caller = Caller::start(cluster.connect()?, GROUP);
        caller.wait_steady(0)?;
        cluster.take_events();
        Ok(Stage { cluster, caller, gap: 0.0, longest, rings: 0 })
    }

    fn primary(&self) -> Outcome<NodeId> {
        Ok(self.cluster.view(GROUP).primary.ok_or("the group has no primary")?)
    }

    /// Notes the longest gap since a fault: calls go on.
    fn check_gap(&mut self, fault: u64) -> Outcome<()> {
        self.caller.wait_steady(wall())?;
        let gap = self.caller.gap(fault..).ok_or("no replies around the fault")?;
        self.gap = self.gap.max(gap);
        if gap > self.longest {
            let most = self.longest;
            bail!("a gap of {gap:.1} ms, at most {most} are allowed");
        }
        Ok(())
    }

    /// Counts the rings that nodes but `victim` have installed since the last look.
    fn count_rings(&mut self, victim: Option<NodeId>) -> usize {
        let mut counts = [0; NODES as usize + 1];
        for event in self.cluster.take_events() {
            let installed = matches!(event.kind, EventKind::Installed { .. });
            counts[event.node.0 as usize] += usize::from(installed && Some(event.node) != victim);
        }
        let most = counts.into_iter().max().unwrap_or(0);
        self.rings += most;
        most
    }

    fn no_ring(&mut self) -> Outcome<()> {
        match self.count_rings(None) {
            0 => Ok(()),
            rings => Err(format!("{rings} rings were installed, and nobody was gone").into()),
        }
    }

    /// The victim is out of the ring of the others, which serve.
    fn wait_until_excluded(&mut self, victim: NodeId) -> Outcome<()> {
        self.cluster.wait("the others to be a ring", |cluster| {
            let moved = cluster.view(GROUP).primary.is_some_and(|primary| primary != victim);
            moved && cluster.members_at_most(victim, NODES as usize - 1)
        })
    }

    fn heal(&mut self) -> Outcome<()> {
        self.cluster.hosts()?.heal()?;
        self.cluster.wait_for_ring_without(None)?;
        self.cluster.wait_until_whole()
    }

    fn cut(&mut self) -> Outcome<()> {
        let victim = self.primary()?;
        let fault = wall();
        self.cluster.hosts()?.isolate(victim.0 as Place, Way::Both)?;
        self.wait_until_excluded(victim)?;
        self.check_gap(fault)?;
        let back = wall();
        self.heal()?;
        self.check_gap(back)?;
        self.count_rings(Some(victim));
        Ok(())
    }

    fn one_way(&mut self, way: Way) -> Outcome<()> {
        let victim = self.primary()?;
        let fault = wall();
        self.cluster.hosts()?.isolate(victim.0 as Place, way)?;
        self.wait_until_excluded(victim)?;
        self.caller.wait_steady(wall())?;
        self.caller.wait_for(1_000)?;
        let rings = self.count_rings(Some(victim));
        ensure!(
            rings <= ONE_WAY_RINGS,
            "{rings} rings while a host was {way:?}: it does not settle"
        );
        self.check_gap(fault)?;
        let back = wall();
        self.heal()?;
        self.check_gap(back)
    }

    fn loss(&mut self) -> Outcome<()> {
        let fault = wall();
        for node in 1..=NODES {
            self.cluster.hosts()?.lose(node as Place, 0, Way::Out, 50)?;
        }
        self.caller.wait_for(3_000)?;
        self.cluster.hosts()?.heal()?;
        self.no_ring()?;
        self.check_gap(fault)
    }

    fn links(&mut self) -> Outcome<()> {
        for network in 0..2 {
            let fault = wall();
            for node in 1..=NODES {
                self.cluster.hosts()?.lose(node as Place, network, Way::Both, 1_000)?;
            }
            let gone = |kind: &EventKind| match kind {
                EventKind::LinkLost { peer, link } if *link == network + 1 => Some(*peer),
                _ => None,
            };
            let pairs = (NODES * (NODES - 1)) as usize;
            self.cluster.wait("all nodes to tell of the loss of all others", |cluster| {
                cluster.told_of(gone).len() == pairs
            })?;
            self.check_gap(fault)?;
            self.cluster.hosts()?.heal()?;
            let back = |kind: &EventKind| match kind {
                EventKind::LinkBack { peer, link } if *link == network + 1 => Some(*peer),
                _ => None,
            };
            self.cluster.wait("the network to be back for all", |cluster| {
                cluster.told_of(back).len() == pairs
            })?;
            self.no_ring()?;
        }
        Ok(())
    }

    /// Every call was answered, and executed exactly once by every replica. Tells how many.
    fn audit(self) -> Outcome<usize> {
        let Stage { cluster, caller, .. } = self;
        let (answered, failed) = caller.finish();
        if let Some(error) = failed.first() {
            bail!("{} calls failed, the first: {error}", failed.len());
        }
        let deadline = Instant::now() + CATCH_UP;
        for id in (1..=REPLICAS).map(NodeId) {
            let mut admin = cluster.node(id)?;
            loop {
                let (_, state) = admin.state(GROUP)?;
                let count = u64::from_le_bytes(state.try_into().map_err(|_| "no count")?) as usize;
                if count == answered {
                    break;
                }
                if count > answered || Instant::now() > deadline {
                    bail!("{answered} calls answered, {id} executed {count}");
                }
            }
        }
        Ok(answered)
    }
}
