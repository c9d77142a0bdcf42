//! Whether nodes that live are suspected while other programs take all processors.
//!
//! Nobody is struck here: each ring that is given up, and each configuration after the first, is
//! a mistake. It is told what the mistakes cost the client.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use node::EventKind;
use serde_json::json;

use crate::caller::Caller;
use crate::cluster::{Cluster, Plan, Where, wall};
use crate::hosts::Way;
use crate::{Outcome, child, machine};

const GROUP: &str = "thread";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How long to watch, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Node processes.
    #[arg(long, default_value_t = 4)]
    nodes: u32,
    /// Processes that never sleep; by default two for each processor.
    #[arg(long)]
    spinners: Option<usize>,
    /// SCHED_FIFO priority of the nodes' data planes; 0: ordinary.
    #[arg(long, default_value_t = 0)]
    priority: u8,
    /// Of 1,000 datagrams that a host sends, so many are lost.
    #[arg(long, default_value_t = 1, requires = "hosts")]
    loss: u32,
    #[command(flatten)]
    at: Where,
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Ended when it is dropped.
struct Spinner(Child);

impl Spinner {
    fn start() -> Outcome<Spinner> {
        let (process, _stdin, _stdout) = child::spawn("spin", &[])?;
        Ok(Spinner(process))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Mistakes, and signs of them.
#[derive(Default)]
struct Count {
    tokens_lost: usize,
    silent: usize,
    configurations: usize,
    held_up: usize,
    retransmitted: u64,
}

impl Count {
    fn add(&mut self, kind: &EventKind) {
        match kind {
            EventKind::TokenLost { .. } => self.tokens_lost += 1,
            EventKind::Silent { .. } => self.silent += 1,
            EventKind::Configuration { .. } => self.configurations += 1,
            EventKind::HeldUp { .. } => self.held_up += 1,
            EventKind::Retransmitted { datagrams } => self.retransmitted += datagrams,
            _ => {}
        }
    }
}

pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    let plan = Plan {
        nodes: options.nodes,
        replicas: options.nodes.min(3),
        groups: &[GROUP],
        placement: options.at.placement(),
        priority: options.priority,
        ..Plan::default()
    };
    let mut cluster = Cluster::start(plan)?;
    cluster.wait_for_ring_without(None)?;
    let loss = if options.at.hosts { options.loss } else { 0 };
    for place in 1..=options.nodes as usize * usize::from(loss > 0) {
        for link in 0..options.at.links {
            cluster.hosts()?.lose(place, link, Way::Out, loss)?;
        }
    }
    let caller = Caller::start(cluster.connect()?, GROUP);
    caller.wait_steady(0)?;
    cluster.take_events();
    let start = wall();
    let cores = thread::available_parallelism()?.get();
    let spinners = options.spinners.unwrap_or(2 * cores);
    let _spinners = (0..spinners).map(|_| Spinner::start()).collect::<Outcome<Vec<_>>>()?;
    let (began, mut count) = (Instant::now(), Count::default());
    while began.elapsed() < Duration::from_secs(options.seconds) {
        thread::sleep(Duration::from_millis(100));
        cluster.take_events().iter().for_each(|event| count.add(&event.kind));
    }
    let gap = caller.gap(start).ok_or("no replies")?;
    let (good, failed) = caller.finish();
    if options.json {
        eprintln!("on {machine}");
        println!(
            "{}",
            json!({
                "peer": "steadfast", "measure": "suspicion", "nodes": options.nodes,
                "seconds": options.seconds, "spinners": spinners, "loss_permille": loss,
                "priority": options.priority, "tokens_lost": count.tokens_lost,
                "silent": count.silent, "configurations": count.configurations,
                "held_up": count.held_up, "retransmitted": count.retransmitted,
                "calls": good, "failed_calls": failed.len(), "worst_gap_ms": gap,
            })
        );
    } else {
        println!(
            "on {machine}\n{} nodes for {} s beside {spinners} processes that never sleep, {loss} of \
             1,000 datagrams lost, priority {}",
            options.nodes, options.seconds, options.priority
        );
        println!(
            "false: {} tokens given up, {} nodes held to be silent, {} configurations (each told by \
             every member of it)\nnodes held up {} times; {} datagrams sent again",
            count.tokens_lost,
            count.silent,
            count.configurations,
            count.held_up,
            count.retransmitted
        );
        println!("{good} calls answered, {} failed; longest gap {gap:.1} ms", failed.len());
    }
    Ok(())
}
