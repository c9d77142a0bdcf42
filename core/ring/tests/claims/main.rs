//! One test for each claim of docs/protocol/ring.md.
#![allow(missing_docs)]

#[path = "../cluster/mod.rs"]
mod cluster;
mod levels;
mod membership;
mod parking;
mod turns;

use std::collections::BTreeMap;

use bytes::Bytes;
use cluster::{CLUSTER, Cluster, Seen, Tune, check, fairness, micros, millis};
use steadfast_ring::{Config, ConfigError, Event, Level, Output, Refused, Ring, Timing};
use testkit::Simulation;
use wire::limits::{MAX_MESSAGE, MAX_SEND_QUEUE};
use wire::ring::{Datagram, Message};
use wire::{Duration, Incarnation, Member, NodeId, Time};

fn deliveries(cluster: &Cluster, life: usize) -> usize {
    cluster.lives[life].seen.iter().filter(|seen| matches!(seen, Seen::Delivery(_))).count()
}

fn alone() -> Ring {
    let me = Member { node: NodeId(0), incarnation: Incarnation(5) };
    let config = Config::new(CLUSTER, me, vec![NodeId(0), NodeId(1)]);
    Ring::new(config, Time::ZERO).unwrap()
}
