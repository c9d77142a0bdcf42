//! The manager's decisions: the papers' examples, and what a dumb twin finds by trying everything.

mod looks;
mod paper;
mod placing;
mod relief;
mod scale;
mod shedding;
mod twin;

use std::time::Duration;

use qos::Task;
use steadfast_manager::cluster::{Group, Host};
use wire::{GroupId, NodeId, Share};

/// A host with one processor of which nothing is taken.
const IDLE: Host = Host { capacity: Share::ONE, other: Share::ZERO };

/// So many percent of a processor, at a rate in Hz.
fn task(percent: u64, rate: u64) -> Task {
    let period = Duration::from_micros(1_000_000 / rate);
    Task::new(period * percent as u32 / 100, period)
}

fn group(primary: u32, backups: &[u32], task: Task) -> Group {
    Group { primary: NodeId(primary), backups: backups.iter().copied().map(NodeId).collect(), task }
}

fn id(name: &str) -> GroupId {
    GroupId::of(name)
}
