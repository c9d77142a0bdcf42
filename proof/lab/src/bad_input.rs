//! Bytes that are no messages, at every port of a node, while a client calls.

mod corpus;
mod sweep;

use std::time::Instant;

use serde_json::{Value, json};
use steadfast::NodeId;

use harness::caller::Caller;
use harness::cluster::{Cluster, Plan, wall};
use harness::{Experiment, Outcome, Run, Table, bail, machine};

use sweep::Sweep;

const GROUP: &str = "thread";
/// The node whose ports are fed. It hosts the primary.
const VICTIM: NodeId = NodeId(1);
/// Growth of a node's memory that is a leak, in KiB: a byte for each of a hundred thousand inputs
/// would be a tenth of this.
const MAX_GROWTH_KIB: u64 = 1_024;

/// Truncated and mutated bytes at every port of a node while a client calls.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Inputs at each of the three ports.
    #[arg(long, default_value_t = 100_000)]
    count: usize,
    /// From which the inputs follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Experiment for Options {
    const NAME: &'static str = "badinput";
    const SMOKE: &'static str = "--count 200";

    fn run(&self, run: &Run) -> Outcome<()> {
        let plan = Plan::of(3, 3, &[GROUP]);
        let mut cluster = Cluster::start(plan)?;
        let caller = Caller::start(cluster.connect()?, GROUP);
        caller.wait_steady(0)?;
        run.begin("");
        let table = run.table(
            "port:<8, inputs=n:9, s=seconds:8.1, refused:9, RSS then=rss_then_kib:10, \
             RSS now=rss_now_kib:10, calls:9, failed=failed_calls:9, gap ms=gap_ms:10.1",
        );
        let (mut grown, mut unheard) = (Vec::new(), Vec::new());
        for sweep in Sweep::all(&cluster, GROUP, VICTIM, self.seed)? {
            let name = sweep.name();
            let (growth, refused) = feed(self, &cluster, &caller, sweep, &table)?;
            // It went somewhere else, or the node counts nothing.
            if refused <= 0 {
                unheard.push(format!("{name}: none of {} inputs", self.count));
            }
            // A few inputs are not enough to fill the buffers that stay.
            if growth > MAX_GROWTH_KIB && !run.smoke {
                grown.push(format!("{name}: {growth} KiB"));
            }
        }
        let failed = caller.failed();
        caller.wait_steady(wall())?;
        cluster.take_events();
        let counters = counters(&cluster)?;
        let line = json!({ "measure": "counters", "counters": counters });
        run.tell(&line, || format!("counters of the node: {counters}"));
        if let Some(error) = failed.first() {
            bail!("{} calls failed: {error}", failed.len());
        }
        if let Some(unheard) = unheard.first() {
            bail!("most of it should be refused, and counted; {unheard} was");
        }
        match grown.first() {
            None => Ok(()),
            Some(grown) => Err(format!("memory grew: {grown}").into()),
        }
    }
}

/// One sweep. Returns how much the node's memory grew, in KiB, after a first tenth of the inputs
/// (those fill buffers that stay), and how many the node counted as refused.
fn feed(
    options: &Options,
    cluster: &Cluster,
    caller: &Caller,
    mut sweep: Sweep,
    table: &Table,
) -> Outcome<(u64, i64)> {
    let process = cluster.process(VICTIM).ok_or("the node does not run")?;
    let before = counters(cluster)?;
    let (started, at) = (Instant::now(), wall());
    let (good, failed) = (caller.good(), caller.failed().len());
    sweep.feed(options.count / 10)?;
    let then = machine::resident_kib(process)?;
    sweep.feed(options.count - options.count / 10)?;
    caller.wait_steady(wall())?;
    let now = machine::resident_kib(process)?;
    let refused = sweep.refused(&counters(cluster)?) - sweep.refused(&before);
    let (good, failed) = (caller.good() - good, caller.failed().len() - failed);
    table.row(&json!({
        "peer": "steadfast", "measure": "bad input", "port": sweep.name(), "n": options.count,
        "refused": refused, "rss_then_kib": then, "rss_now_kib": now, "calls": good,
        "failed_calls": failed, "gap_ms": caller.gap(at..).unwrap_or(0.0),
        "seconds": started.elapsed().as_secs_f64(),
    }));
    Ok((now.saturating_sub(then), refused))
}

/// The node's counters.
fn counters(cluster: &Cluster) -> Outcome<Value> {
    Ok(serde_json::to_value(cluster.node(VICTIM)?.status()?.counters)?)
}
