//! Bytes that are no messages, at every port of a node, while a client calls.

mod corpus;
mod sweep;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use steadfast::{Client, NodeId};

use crate::caller::Caller;
use crate::cluster::{Cluster, Plan, wall};
use crate::{Outcome, machine};

use sweep::Sweep;

const GROUP: &str = "thread";
/// The node whose ports are fed. It hosts the primary.
const VICTIM: NodeId = NodeId(1);
/// Growth of a node's memory that is a leak, in KiB: a byte for each of a hundred thousand inputs
/// would be a tenth of this.
const MAX_GROWTH_KIB: i64 = 1_024;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Inputs at each of the three ports.
    #[arg(long, default_value_t = 100_000)]
    count: usize,
    /// From which the inputs follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    let mut cluster =
        Cluster::start(Plan { nodes: 3, replicas: 3, groups: &[GROUP], ..Plan::default() })?;
    let caller = Caller::start(Client::connect(cluster.clients())?, GROUP);
    caller.wait_steady(0)?;
    if options.json {
        eprintln!("on {machine}");
    } else {
        println!("on {machine}");
        println!(
            "{:8}{:>9}{:>8}{:>9}{:>10}{:>10}{:>9}{:>9}{:>10}",
            "port", "inputs", "s", "refused", "RSS then", "RSS now", "calls", "failed", "gap ms"
        );
    }
    let (mut grown, mut unheard) = (Vec::new(), Vec::new());
    for sweep in Sweep::all(&cluster, VICTIM, options.seed)? {
        let name = sweep.name();
        let (growth, refused) = feed(options, &cluster, &caller, sweep)?;
        // It went somewhere else, or the node counts nothing.
        if refused <= 0 {
            unheard.push(format!("{name}: none of {} inputs", options.count));
        }
        if growth > MAX_GROWTH_KIB {
            grown.push(format!("{name}: {growth} KiB"));
        }
    }
    let failed = caller.failed();
    caller.wait_steady(wall())?;
    cluster.take_events();
    let status = status(&cluster.admin(VICTIM))?;
    if options.json {
        println!("{}", json!({"measure": "counters", "counters": status["counters"]}));
    } else {
        println!("counters of the node: {}", status["counters"]);
    }
    if let Some(error) = failed.first() {
        return Err(format!("{} calls failed: {error}", failed.len()).into());
    }
    if let Some(unheard) = unheard.first() {
        return Err(format!("most of it should be refused, and counted; {unheard} was").into());
    }
    match grown.first() {
        None => Ok(()),
        Some(grown) => Err(format!("memory grew: {grown}").into()),
    }
}

/// One sweep. Returns how much the node's memory grew, in KiB, after a first tenth of the inputs (those fill buffers that
/// stay), and how many the node counted as refused.
fn feed(
    options: &Options,
    cluster: &Cluster,
    caller: &Caller,
    mut sweep: Sweep,
) -> Outcome<(i64, i64)> {
    let process = cluster.process(VICTIM).ok_or("the node does not run")?;
    let before = status(&cluster.admin(VICTIM))?;
    let (started, at) = (Instant::now(), wall());
    let (good, failed) = (caller.good(), caller.failed().len());
    sweep.feed(options.count / 10)?;
    let then = resident(process)?;
    sweep.feed(options.count - options.count / 10)?;
    caller.wait_steady(wall())?;
    let now = resident(process)?;
    let after = status(&cluster.admin(VICTIM))?;
    let refused = sweep.refused(&after["counters"]) - sweep.refused(&before["counters"]);
    let (good, failed) = (caller.good() - good, caller.failed().len() - failed);
    let gap = caller.gap(at..).unwrap_or(0.0);
    let seconds = started.elapsed().as_secs_f64();
    if options.json {
        println!(
            "{}",
            json!({
                "peer": "steadfast", "measure": "bad input", "port": sweep.name(), "n": options.count,
                "refused": refused, "rss_then_kib": then, "rss_now_kib": now, "calls": good,
                "failed_calls": failed, "gap_ms": gap, "seconds": seconds,
            })
        );
    } else {
        println!(
            "{:8}{:9}{seconds:8.1}{refused:9}{then:10}{now:10}{good:9}{failed:9}{gap:10.1}",
            sweep.name(),
            options.count
        );
    }
    Ok((now - then, refused))
}

/// Memory of a process that is in use, in KiB.
fn resident(process: u32) -> Outcome<i64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS for the node's process")?.parse()?)
}

/// What the node says of itself.
fn status(admin: &Path) -> Outcome<Value> {
    let mut stream = UnixStream::connect(admin)?;
    stream.write_all(b"{\"status\":{}}\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
