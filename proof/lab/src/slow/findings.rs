//! The results of a slow node, for people and for programs.

use harness::{Findings, Run, name};
use node::{ChargeStatus, Fill};
use serde::Serialize;
use serde_json::{Value, json};
use steadfast::NodeId;

use super::brake::By;

/// One node's report of the exclusion.
#[derive(Serialize)]
pub struct Told {
    pub node: NodeId,
    /// Milliseconds after the node became slow.
    pub after_ms: f64,
    pub by: NodeId,
    pub charge: Option<ChargeStatus>,
}

/// How full a node's buffers were at most.
#[derive(Serialize)]
pub struct Buffers {
    pub node: NodeId,
    pub messages: Fill,
    pub bytes: Fill,
    pub datagrams: Fill,
    /// Bytes that waited in one socket of the ring, the kernel's bookkeeping included: at most, and
    /// the limit.
    pub socket: [u64; 2],
    /// Datagrams that found no room there.
    pub dropped: u64,
}

/// Everything that was found.
pub struct Found {
    pub nodes: u32,
    pub size: u32,
    pub classic: bool,
    pub slice_ms: u64,
    pub by: By,
    pub run: u32,
    pub control: Option<(u32, f64)>,
    pub before: Option<f64>,
    pub while_slow: Option<f64>,
    pub after: Option<f64>,
    pub again: Option<f64>,
    /// Milliseconds from the beginning to the first ring without it.
    pub excluded_ms: f64,
    pub told: Vec<Told>,
    /// The excluded node's status.
    pub status: Option<String>,
    pub held_off_ms: f64,
    /// Milliseconds from the end of its slowness to the first ring of all.
    pub back_ms: f64,
    pub buffers: Vec<Buffers>,
}

impl Findings for Found {
    fn json(&self) -> Value {
        let whole = |rate: Option<f64>| rate.map(f64::round);
        json!({
            "peer": "steadfast", "measure": "slow", "nodes": self.nodes, "size": self.size,
            "ring": if self.classic { "classic" } else { "parked" },
            "by": name(self.by), "run_pct": self.run, "slice_ms": self.slice_ms,
            "before_msgs_s": whole(self.before),
            "control_run_pct": self.control.map(|control| control.0),
            "control_msgs_s": whole(self.control.map(|control| control.1)),
            "slow_msgs_s": whole(self.while_slow), "after_msgs_s": whole(self.after),
            "again_msgs_s": whole(self.again), "excluded_ms": self.excluded_ms,
            "held_off_ms": self.held_off_ms, "back_ms": self.back_ms, "told": self.told,
            "status": self.status, "buffers": self.buffers,
        })
    }

    fn print(&self, run: &Run) {
        let rate = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{rate:.0}"));
        println!(
            "{} nodes, n1 sends {} bytes at full speed, n{} slow by {}; messages a second at n1:",
            self.nodes,
            self.size,
            self.nodes,
            match self.by {
                By::Quota => "a quota of processor time",
                By::Stop => "stops",
            }
        );
        println!("{:>12}  all well", rate(self.before));
        if let Some((run, figure)) = self.control {
            println!("{figure:12.0}  it may run {run} % of the time: it stays");
        }
        println!("{:>12}  it may run {} % of the time", rate(self.while_slow), self.run);
        println!("{:>12}  it is excluded, after {:.0} ms", rate(self.after), self.excluded_ms);
        println!(
            "{:>12}  it was quick again, and back after {:.0} ms (it was held off for {:.0} ms)",
            rate(self.again),
            self.back_ms,
            self.held_off_ms
        );
        println!("told:");
        for Told { node, after_ms, by, charge } in &self.told {
            let charge = charge.map_or("no figures".into(), |charge| charge.to_string());
            println!("  {node} after {after_ms:.0} ms: it stopped {by} {charge}");
        }
        println!("  its status: {}", self.status.as_deref().unwrap_or("nothing"));
        println!("buffers, at most, of their limits:");
        let table = run.table(
            "=node:6, messages=messages/most:12, of=messages/limit:10, bytes=bytes/most:12, \
             of=bytes/limit:12, datagrams=datagrams/most:12, of=datagrams/limit:10, \
             socket=socket/0:12, of=socket/1:12, dropped:9",
        );
        self.buffers.iter().for_each(|buffers| table.row(&json!(buffers)));
    }
}
