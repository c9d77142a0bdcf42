//! One node of a loaded ring gets too little processor time: how much the others can still send,
//! how soon it is excluded, the reason that all nodes report, and how it returns.
//! docs/protocol/ring.md, "Slow receivers".
//!
//! First, as a control, the node is a little slow, and has to stay.

use std::thread;
use std::time::{Duration, Instant};

use node::{EventKind, EventRecord, Status};
use steadfast::NodeId;

use harness::cluster::{Cluster, Plan, Where, wall};
use harness::quota::ControlGroup;
use harness::{Experiment, Outcome, Run, bail, ensure};

mod brake;
mod findings;
mod load;
mod sockets;

use brake::{Brake, By};
use findings::{Buffers, Found, Told};
use load::Load;
use sockets::Waiting;

/// How often it is looked what happens.
const LOOK: Duration = Duration::from_millis(20);

const SENDER: NodeId = NodeId(1);

const EXAMPLES: &str = "\
Examples:
  steadfast-lab slow                          a quota of processor time, or stops
  steadfast-lab slow --by stop --run 25       stopped for 7.5 ms of every 10
  steadfast-lab slow --hosts --classic        each on a host of its own; the token circulates
  steadfast-lab slow --run 60 --slow-share 20      a little slow, where little is granted

A quota counts all threads of the node and is of one processor: how slow a node is that gets it
depends on what its load costs. With stops it runs that share of the time, whatever it does.";

/// A node with too little processor time: what the others can send, its exclusion with the reason,
/// its return.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Node processes; the first sends, the last becomes slow.
    #[arg(long, default_value_t = 4)]
    nodes: u32,
    /// How it is made slow. By default a quota, or stops where this process may set none.
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Percent of the time for which the slow node may run. By default 25 with stops, and 10 with a
    /// quota.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=99))]
    run: Option<u32>,
    /// The same for the control, in which it is a little slow and has to stay. By default 75 and
    /// 60.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=99))]
    control_run: Option<u32>,
    /// Seconds of the control; 0 leaves it out.
    #[arg(long, default_value_t = 5.0)]
    control: f64,
    /// Length of one period of running and not running, in milliseconds.
    #[arg(long, default_value_t = 10)]
    slice_ms: u64,
    /// Seconds for which the throughput is measured before, and when the node is back.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Bytes of a message.
    #[arg(long, default_value_t = 1024)]
    size: u32,
    /// The token always circulates, as in the paper.
    #[arg(long)]
    classic: bool,
    /// The nodes' `slow_share`, in percent, if it is to be another than by default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    slow_share: Option<u32>,
    /// The nodes' `token_timeout_ms`, if it is to be another; what is granted once is never less.
    #[arg(long)]
    token_timeout_ms: Option<u64>,
    /// After so many seconds it is a failure that the node is still there, or still away.
    #[arg(long, default_value_t = 30.0)]
    timeout: f64,
    #[command(flatten)]
    at: Where,
}

struct Stage<'a> {
    options: &'a Options,
    cluster: Cluster,
    load: Load,
    waiting: Waiting,
    victim: NodeId,
    by: By,
    events: Vec<EventRecord>,
}

impl Experiment for Options {
    const NAME: &'static str = "slow";
    const SMOKE: &'static str = "--nodes 3 --by stop --run 3 --slice-ms 33 --slow-share 10 \
         --token-timeout-ms 1000 --control 0 --seconds 0.3 --timeout 100";

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.nodes < 3 {
            return Err("--nodes: those who keep up have to be a majority: 3 or more".into());
        }
        let by = match (self.by, ControlGroup::impossible()) {
            (Some(By::Quota), Some(why)) => bail!("--by quota: {why}"),
            (Some(by), _) => by,
            (None, None) => By::Quota,
            (None, Some(why)) => {
                eprintln!("by stops, for a quota cannot be set: {why}");
                By::Stop
            }
        };
        let mut cluster = Cluster::start(Plan {
            nodes: self.nodes,
            placement: self.at.placement(),
            classic: self.classic,
            slow_share: self.slow_share,
            token_timeout: self.token_timeout_ms.map(Duration::from_millis),
            ..Plan::default()
        })?;
        cluster.wait_for_ring_without(None)?;
        let load = Load::start(SENDER, cluster.admin(SENDER), self.size);
        let (victim, waiting) = (NodeId(self.nodes), Waiting::default());
        let mut stage =
            Stage { options: self, cluster, load, waiting, victim, by, events: Vec::new() };
        let found = stage.play();
        let Stage { cluster, load, .. } = stage;
        drop(cluster);
        load.finish();
        let found = found?;
        run.begin("");
        run.found(&found);
        Ok(())
    }
}

impl Stage<'_> {
    fn play(&mut self) -> Outcome<Found> {
        let Options { seconds, control, .. } = *self.options;
        let (slow, little) = match self.by {
            By::Stop => (25, 75),
            By::Quota => (10, 60),
        };
        let (run, little) =
            (self.options.run.unwrap_or(slow), self.options.control_run.unwrap_or(little));
        eprintln!("{seconds} s as it is ...");
        // The load begins, and a benchmark tells of itself five times a second.
        self.watch_for(1.0)?;
        let before = self.measure(seconds)?;
        let control = match control > 0.0 {
            true => {
                eprintln!("{control} s with {} a little slow ({little} %) ...", self.victim);
                let brake = self.brake(little)?;
                let rate = self.measure(control)?;
                drop(brake);
                self.nobody_left()?;
                rate.map(|rate| (little, rate))
            }
            false => None,
        };
        eprintln!("{} runs {run} % of the time ...", self.victim);
        self.events.clear();
        let slow_at = wall();
        let brake = self.brake(run)?;
        let excluded_at = self.wait_for_ring(self.options.nodes as usize - 1, slow_at)?;
        let while_slow = self.load.rate(slow_at, excluded_at);
        eprintln!("excluded; those who keep up go on ...");
        // It comes back when it is not held off any more, slow or not.
        let held_off_ms = self.held_off().ok_or("nobody says for how long it is held off")?;
        self.watch_for(0.9 * held_off_ms / 1e3)?;
        let after = self.load.rate(excluded_at, wall());
        eprintln!("it is quick again ...");
        drop(brake);
        let quick_at = wall();
        let back_at = self.wait_for_ring(self.options.nodes as usize, quick_at)?;
        let told = self.told(slow_at)?;
        self.watch_for(0.5)?;
        let again = self.measure(seconds)?;
        Ok(Found {
            nodes: self.options.nodes,
            size: self.options.size,
            classic: self.options.classic,
            slice_ms: self.options.slice_ms,
            by: self.by,
            run,
            control,
            before,
            while_slow,
            after,
            again,
            excluded_ms: ms(slow_at, excluded_at),
            told,
            status: self
                .status(self.victim)?
                .ring
                .excluded
                .map(|excluded| format!("{}. {}", excluded.why(), excluded.remedy())),
            held_off_ms,
            back_ms: ms(quick_at, back_at),
            buffers: self.buffers()?,
        })
    }

    /// In the control nobody may be excluded.
    fn nobody_left(&self) -> Outcome<()> {
        for event in &self.events {
            match &event.kind {
                EventKind::TooSlow { member, by, charge } => {
                    let charge = charge.map_or("no figures".into(), |charge| charge.to_string());
                    let (node, by) = (member.node, by.node);
                    bail!(
                        "only a little slow, and yet {node} was excluded: it stopped {by} {charge}"
                    );
                }
                EventKind::TokenLost { .. } | EventKind::Silent { .. } => {
                    let node = event.node;
                    bail!(
                        "{node} took a node for dead ({:?}): this machine is busy, raise \
                         --token-timeout-ms",
                        event.kind
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn brake(&self, run: u32) -> Outcome<Brake> {
        let process = self.cluster.process(self.victim).ok_or("the node does not run")?;
        Brake::hold(self.by, process, run, Duration::from_millis(self.options.slice_ms))
    }

    fn look(&mut self) -> Outcome<()> {
        thread::sleep(LOOK);
        self.events.extend(self.cluster.take_events());
        for id in (1..=self.options.nodes).map(NodeId) {
            let process = self.cluster.process(id).ok_or("a node has ended")?;
            self.waiting.look(id, process, self.cluster.ring(id));
        }
        Ok(())
    }

    fn watch_for(&mut self, seconds: f64) -> Outcome<()> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end {
            self.look()?;
        }
        Ok(())
    }

    fn measure(&mut self, seconds: f64) -> Outcome<Option<f64>> {
        let from = wall();
        self.watch_for(seconds)?;
        Ok(self.load.rate(from, wall()))
    }

    /// Waits until all but the victim, and it too if so many are wanted, are in a ring of so many.
    /// Tells when the last of them was, of those that came to it after `since`.
    fn wait_for_ring(&mut self, wanted: usize, since: u64) -> Outcome<u64> {
        let timeout = Duration::from_secs_f64(self.options.timeout);
        let began = Instant::now();
        loop {
            self.look()?;
            let arrived = |id: &NodeId| {
                let last = self.events.iter().rev().find_map(|event| match &event.kind {
                    EventKind::Configuration { members, .. } if event.node == *id => {
                        Some((event.time, members.len()))
                    }
                    _ => None,
                });
                last.filter(|(time, members)| *members == wanted && *time >= since).map(|it| it.0)
            };
            let times: Option<Vec<u64>> =
                (1..=wanted as u32).map(|id| arrived(&NodeId(id))).collect();
            if let Some(last) = times.and_then(|times| times.into_iter().max()) {
                return Ok(last);
            }
            ensure!(
                began.elapsed() <= timeout,
                "after {timeout:?} no ring of {wanted}: is the node slow enough (--run), or \
                     is more granted than it takes (--slow-share)?"
            );
        }
    }

    /// For how many milliseconds the victim is held off, as the sender says.
    fn held_off(&self) -> Option<f64> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::HeldOff { member, span_ns }
                if member.node == self.victim && event.node == SENDER =>
            {
                Some(*span_ns as f64 / 1e6)
            }
            _ => None,
        })
    }

    /// Every node's report, which must name the victim. Without any report the victim was lost in
    /// another way.
    fn told(&self, since: u64) -> Outcome<Vec<Told>> {
        let mut told: Vec<Told> = Vec::new();
        for event in &self.events {
            if let EventKind::TooSlow { member, by, charge } = &event.kind
                && told.iter().all(|told| told.node != event.node)
            {
                ensure!(member.node == self.victim, "{} was excluded, and kept up", member.node);
                let after_ms = ms(since, event.time);
                told.push(Told { node: event.node, after_ms, by: by.node, charge: *charge });
            }
        }
        told.sort_by_key(|told| told.node);
        match told.is_empty() {
            true => Err("it was left out, and not for being slow: raise --token-timeout-ms".into()),
            false => Ok(told),
        }
    }

    fn status(&self, id: NodeId) -> Outcome<Status> {
        Ok(self.cluster.node(id)?.status()?)
    }

    fn buffers(&self) -> Outcome<Vec<Buffers>> {
        let of = |node| {
            let status = self.status(node)?;
            let node::BufferStatus { messages, bytes, datagrams } = status.ring.buffers;
            let (most, dropped) = self.waiting.of(node);
            let socket = [most, status.sockets.receive_buffer as u64];
            Ok(Buffers { node, messages, bytes, datagrams, socket, dropped })
        };
        (1..=self.options.nodes).map(NodeId).map(of).collect()
    }
}

fn ms(from: u64, to: u64) -> f64 {
    (to.saturating_sub(from) as f64 / 1e5).round() / 10.0
}
