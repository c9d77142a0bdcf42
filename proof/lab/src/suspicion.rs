//! Whether nodes that live are suspected while other programs take all processors.
//!
//! Nobody is struck here: each ring that is given up, and each configuration after the first, is a
//! mistake. The report has the cost of the mistakes to the client, and the times at which the
//! machine itself stood still: a node without a processor for longer than its time-out is silent to
//! every observer.

use std::thread;
use std::time::{Duration, Instant};

use node::EventKind;
use node::sched::Class;
use serde::Serialize;
use serde_json::{Value, json};

use harness::caller::Caller;
use harness::cluster::{Cluster, Plan, Where, wall};
use harness::hog::{self, Under};
use harness::hosts::Way;
use harness::lateness::{LATE, Lateness};
use harness::process::{Process, Role};
use harness::report::row;
use harness::{Experiment, Findings, Outcome, Run};

const GROUP: &str = "thread";

/// Whether nodes are suspected wrongly while other programs take all processors.
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
    /// Lost datagrams of 1,000 that a host sends.
    #[arg(long, default_value_t = 1, requires = "hosts")]
    loss: u32,
    /// The ring's token time-out, in milliseconds, if not that by default.
    #[arg(long, value_name = "MS")]
    token_timeout_ms: Option<u64>,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    at: Where,
}

/// Mistakes, and signs of them.
#[derive(Default, Serialize)]
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

/// The events in order, with milliseconds since `start`.
fn time_line(mut all: Vec<(u64, Value)>, start: u64) -> Vec<Value> {
    all.sort_by_key(|(time, _)| *time);
    let line = |(time, what): (u64, Value)| {
        let at_ms = (time.saturating_sub(start) / 10_000) as f64 / 100.0;
        json!({ "at_ms": at_ms, "what": what })
    };
    all.into_iter().map(line).collect()
}

impl Experiment for Options {
    const NAME: &'static str = "suspicion";
    const SMOKE: &'static str = "--seconds 1 --nodes 3 --spinners 1";

    fn impossible(&self) -> Option<String> {
        hog::impossible(self.under.hogs)
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let class = match self.priority {
            0 => self.under.class(),
            priority => Class::Fifo(priority),
        };
        let mut cluster = Cluster::start(Plan {
            placement: self.at.placement(),
            class,
            token_timeout: self.token_timeout_ms.map(Duration::from_millis),
            ..Plan::of(self.nodes, self.nodes.min(3), &[GROUP])
        })?;
        cluster.wait_for_ring_without(None)?;
        let loss = if self.at.hosts { self.loss } else { 0 };
        for place in 1..=self.nodes as usize * usize::from(loss > 0) {
            for link in 0..self.at.links {
                cluster.hosts()?.lose(place, link, Way::Out, loss)?;
            }
        }
        let caller = Caller::start_in(cluster.connect()?, GROUP, self.under.class());
        caller.wait_steady(0)?;
        // This thread strikes and listens: it must not wait for the hogs either.
        hog::take(self.under.class())?;
        let _hogs = self.under.start()?;
        cluster.take_events();
        let start = wall();
        let cores = thread::available_parallelism()?.get();
        let spinners = self.spinners.unwrap_or(2 * cores);
        let spinning = (0..spinners).map(|_| Process::start(&Role::Spin));
        let _spinning = spinning.collect::<Outcome<Vec<_>>>()?;
        let (count, time_line, standstills) = self.watch(&mut cluster, start)?;
        let longest = standstills.iter().copied().fold(0.0, f64::max);
        let gap = caller.gap(start..).ok_or("no replies")?;
        let (calls, failed) = caller.finish();
        run.begin("");
        let of = json!({
            "peer": "steadfast", "measure": "suspicion", "nodes": self.nodes,
            "seconds": self.seconds, "spinners": spinners, "loss_permille": loss,
            "priority": self.priority, "hogs": self.under.hogs, "runtime_us": self.under.runtime_us, "calls": calls, "failed_calls": failed.len(),
            "worst_gap_ms": gap, "standstills": standstills.len(),
            "longest_standstill_ms": longest, "time_line": time_line,
        });
        run.found(&Found(row(count, of)));
        Ok(())
    }
}

impl Options {
    /// The mistakes, what happened when, and for how many milliseconds processors stood still.
    fn watch(&self, cluster: &mut Cluster, start: u64) -> Outcome<(Count, Vec<Value>, Vec<f64>)> {
        let lateness = Lateness::watch()?;
        if let Some(why) = &lateness.ordinary {
            eprintln!("the machine's own lateness cannot be told from the scheduler's: {why}");
        }
        let (began, mut count, mut line) = (Instant::now(), Count::default(), Vec::new());
        let mut standstills = Vec::new();
        while began.elapsed() < Duration::from_secs(self.seconds) {
            thread::sleep(Duration::from_millis(100));
            for event in cluster.take_events() {
                if count.add(&event.kind) {
                    line.push((event.time, json!(event)));
                }
            }
            for seen in lateness.take() {
                standstills.push(seen.span_ms);
                line.push((seen.until_ns, json!(seen)));
            }
        }
        Ok((count, time_line(line, start), standstills))
    }
}

/// All of it, as it is told to programs.
struct Found(Value);

impl Findings for Found {
    fn json(&self) -> Value {
        self.0.clone()
    }

    fn print(&self, run: &Run) {
        let whole = |field: &str| &self.0[field];
        let figure = |field: &str| self.0[field].as_f64().unwrap_or_default();
        let [nodes, seconds, spinners, loss, priority] =
            ["nodes", "seconds", "spinners", "loss_permille", "priority"].map(whole);
        let [tokens, silent, configurations, held_up, again] =
            ["tokens_lost", "silent", "configurations", "held_up", "retransmitted"].map(whole);
        let [calls, failed, standstills] = ["calls", "failed_calls", "standstills"].map(whole);
        let [gap, longest] = ["worst_gap_ms", "longest_standstill_ms"].map(figure);
        println!(
            "{nodes} nodes for {seconds} s beside {spinners} processes that never sleep, {loss} of \
             1,000 datagrams lost, priority {priority}\n\
             false: {tokens} tokens given up, {silent} nodes held to be silent, {configurations} \
             configurations (each told by every member of it)\n\
             nodes held up {held_up} times; {again} datagrams sent again\n\
             {calls} calls answered, {failed} failed; longest gap {gap:.1} ms\n\
             a processor stood still for {} ms or more {standstills} times, the longest for \
             {longest:.1} ms; in order:",
            LATE.as_millis()
        );
        let table = run.table("ms=at_ms:12, what:<0");
        whole("time_line").as_array().into_iter().flatten().for_each(|told| table.row(told));
    }
}
