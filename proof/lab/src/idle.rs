//! What a cluster costs while nobody asks anything of it.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use steadfast::NodeId;
use steadfast::admin::Client;

use crate::cluster::{Cluster, Plan, Where};
use crate::{Outcome, machine};

/// After the start: what belongs to it is over by then.
const SETTLE: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Node processes.
    #[arg(long, default_value_t = 4)]
    nodes: u32,
    /// How long to watch, in seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    #[command(flatten)]
    at: Where,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

/// What a process had used at a moment.
pub struct Usage {
    /// Nanoseconds on a processor, all threads.
    pub ran: u64,
    /// By the name of the thread.
    woken: BTreeMap<String, u64>,
    pub datagrams: u64,
    pub memory_kib: u64,
}

pub fn usage(cluster: &Cluster, id: NodeId) -> Outcome<Usage> {
    let process = cluster.process(id).ok_or("a node does not run")?;
    let mut ran = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        ran += text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory_kib = resident.and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok());
    let counters = Client::connect(cluster.admin(id))?.status()?.counters;
    Ok(Usage {
        ran,
        woken: machine::wake_ups_by_thread(process),
        datagrams: counters.datagrams_out,
        memory_kib: memory_kib.ok_or("the kernel does not tell the memory of a process")?,
    })
}

pub fn run(options: &Options) -> Outcome<()> {
    let plan = Plan {
        nodes: options.nodes,
        replicas: options.nodes.min(3),
        groups: &["inline"],
        placement: options.at.placement(),
        ..Plan::default()
    };
    let cluster = Cluster::start(plan)?;
    thread::sleep(SETTLE);
    let ids: Vec<NodeId> = (1..=options.nodes).map(NodeId).collect();
    let all = || ids.iter().map(|id| usage(&cluster, *id)).collect::<Outcome<Vec<Usage>>>();
    let (before, start) = (all()?, Instant::now());
    thread::sleep(Duration::from_secs(options.seconds));
    let (seconds, after) = (start.elapsed().as_secs_f64(), all()?);
    let machine = machine::description();
    if options.json {
        eprintln!("on {machine}");
    } else {
        println!("on {machine}; {} idle nodes watched for {seconds:.0} s", options.nodes);
        println!(
            "{:>6}{:>16}{:>12}{:>15}{:>13}  of the woken, by thread",
            "node", "% of a core", "woken/s", "datagrams/s", "memory MiB"
        );
    }
    for ((id, before), after) in ids.iter().zip(&before).zip(&after) {
        let percent = (after.ran - before.ran) as f64 / 1e7 / seconds;
        let of = |usage: &Usage, thread: &String| usage.woken.get(thread).copied().unwrap_or(0);
        let each = |thread: &String| {
            let more = of(after, thread).saturating_sub(of(before, thread));
            (thread.clone(), (more as f64 / seconds * 10.0).round() / 10.0)
        };
        let by_thread: BTreeMap<String, f64> = after.woken.keys().map(each).collect();
        let woken: f64 = by_thread.values().sum();
        let datagrams = (after.datagrams - before.datagrams) as f64 / seconds;
        let memory = after.memory_kib as f64 / 1024.0;
        if options.json {
            println!(
                "{}",
                json!({
                    "peer": "steadfast", "measure": "idle", "node": id.0, "nodes": options.nodes,
                    "cpu_pct": percent, "woken_s": woken, "datagrams_s": datagrams,
                    "memory_mib": memory, "woken_by_thread_s": by_thread,
                })
            );
        } else {
            println!(
                "{:>6}{percent:16.3}{woken:12.1}{datagrams:15.1}{memory:13.1}  {}",
                id.to_string(),
                by_thread
                    .iter()
                    .map(|(name, rate)| format!("{name} {rate}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
    }
    Ok(())
}
