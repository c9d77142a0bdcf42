//! Whether nodes that live are suspected while other programs take all processors.
//!
//! Nobody is struck here: each ring that is given up, and each configuration after the first, is
//! a mistake. It is told what the mistakes cost the client, and when the machine itself stood still: a node whose
//! processor is taken away for longer than its time-out is silent, whoever looks.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use node::{EventKind, EventRecord};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::cluster::{Cluster, Plan, Where, wall};
use crate::hosts::Way;
use crate::lateness::{LATE, Lateness, Standstill};
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
    /// True for a mistake or a sign of one: its time is of interest.
    fn add(&mut self, kind: &EventKind) -> bool {
        match kind {
            EventKind::TokenLost { .. } => self.tokens_lost += 1,
            EventKind::Silent { .. } => self.silent += 1,
            EventKind::Configuration { .. } => self.configurations += 1,
            EventKind::HeldUp { .. } => self.held_up += 1,
            EventKind::Retransmitted { datagrams } => {
                self.retransmitted += datagrams;
                return false;
            }
            _ => return false,
        }
        true
    }
}

/// What happened when.
#[derive(Default)]
struct TimeLine(Vec<(u64, Value)>);

impl TimeLine {
    fn event(&mut self, event: &EventRecord) {
        self.0.push((event.time, json!(event)));
    }

    fn standstill(&mut self, seen: Standstill) {
        self.0.push((seen.until_ns, json!(seen)));
    }

    /// In order, with milliseconds since `start`.
    fn told(mut self, start: u64) -> Vec<Value> {
        self.0.sort_by_key(|(time, _)| *time);
        let line = |(time, what): (u64, Value)| {
            let at_ms = (time.saturating_sub(start) / 10_000) as f64 / 100.0;
            json!({ "at_ms": at_ms, "what": what })
        };
        self.0.into_iter().map(line).collect()
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
    let lateness = Lateness::watch()?;
    if let Some(why) = &lateness.ordinary {
        eprintln!("the machine's own lateness cannot be told from the scheduler's: {why}");
    }
    let (began, mut count, mut line) = (Instant::now(), Count::default(), TimeLine::default());
    let mut standstills = Vec::new();
    while began.elapsed() < Duration::from_secs(options.seconds) {
        thread::sleep(Duration::from_millis(100));
        for event in cluster.take_events() {
            if count.add(&event.kind) {
                line.event(&event);
            }
        }
        for seen in lateness.take() {
            standstills.push(seen.span_ms);
            line.standstill(seen);
        }
    }
    let longest = standstills.iter().copied().fold(0.0, f64::max);
    let gap = caller.gap(start..).ok_or("no replies")?;
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
                "standstills": standstills.len(), "longest_standstill_ms": longest,
                "time_line": line.told(start),
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
        println!(
            "a processor stood still for {} ms or more {} times, the longest for {longest:.1} ms; in order:",
            LATE.as_millis(),
            standstills.len()
        );
        for told in line.told(start) {
            println!("{:>12} ms  {}", told["at_ms"], told["what"]);
        }
    }
    Ok(())
}
