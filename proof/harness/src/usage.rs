//! The resources that a node's process uses: processor time, wake-ups, datagrams, memory.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast::NodeId;

use crate::cluster::Cluster;
use crate::{Outcome, machine};

/// The resources that a process had used at a moment.
pub struct Usage {
    /// Nanoseconds on a processor, all threads.
    ran: u64,
    /// By the name of the thread.
    woken: BTreeMap<String, u64>,
    datagrams: u64,
    memory_kib: u64,
}

/// The resources that a node's process has used while it was watched.
pub struct Used {
    /// Which.
    pub node: NodeId,
    /// Percent of a processor.
    pub percent: f64,
    /// Wake-ups a second, by the name of the thread.
    pub woken: BTreeMap<String, f64>,
    /// Datagrams a second that it sent.
    pub datagrams: f64,
    /// Its memory at the end.
    pub memory_kib: u64,
}

/// The processor time that all threads of a process have used.
pub fn processor_time(process: u32) -> Outcome<Duration> {
    let mut ran = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        ran += text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(ran))
}

/// The processor time of a process, with that of threads that have ended: in ticks of a hundredth
/// of a second, as a rule.
pub fn processor_time_ever(process: u32) -> Outcome<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The program's name is in brackets, and may have spaces.
    let (_, rest) = stat.rsplit_once(')').ok_or("the kernel tells no times of a process")?;
    // Fields 14 and 15: in user mode and in the kernel.
    let ticks: u64 = rest.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

impl Usage {
    fn of(cluster: &Cluster, id: NodeId) -> Outcome<Usage> {
        let process = cluster.process(id).ok_or("a node does not run")?;
        Ok(Usage {
            ran: u64::try_from(processor_time(process)?.as_nanos())?,
            woken: machine::wake_ups_by_thread(process),
            datagrams: cluster.node(id)?.status()?.counters.datagrams_out,
            memory_kib: machine::resident_kib(process)?,
        })
    }

    /// The resources used from then to `now`.
    fn until(&self, now: &Usage, node: NodeId, seconds: f64) -> Used {
        let woken = now.woken.iter().map(|(thread, count)| {
            let before = self.woken.get(thread).copied().unwrap_or(0);
            let rate = count.saturating_sub(before) as f64 / seconds;
            (thread.clone(), (rate * 10.0).round() / 10.0)
        });
        Used {
            node,
            percent: (now.ran - self.ran) as f64 / 1e7 / seconds,
            woken: woken.collect(),
            datagrams: (now.datagrams - self.datagrams) as f64 / seconds,
            memory_kib: now.memory_kib,
        }
    }
}

impl Used {
    /// The fields of a row.
    pub fn json(&self) -> Value {
        json!({
            "peer": "steadfast", "node": self.node.0, "cpu_pct": self.percent,
            "datagrams_s": self.datagrams, "memory_mib": self.memory_kib as f64 / 1024.0,
        })
    }
}

/// The resources that each of the first `nodes` nodes uses within this time.
pub fn watch(cluster: &Cluster, nodes: u32, span: Duration) -> Outcome<Vec<Used>> {
    let ids: Vec<NodeId> = (1..=nodes).map(NodeId).collect();
    let all = || ids.iter().map(|id| Usage::of(cluster, *id)).collect::<Outcome<Vec<Usage>>>();
    let (before, start) = (all()?, Instant::now());
    thread::sleep(span);
    let (seconds, after) = (start.elapsed().as_secs_f64(), all()?);
    let pairs = ids.iter().zip(before.iter().zip(&after));
    Ok(pairs.map(|(id, (before, after))| before.until(after, *id, seconds)).collect())
}
