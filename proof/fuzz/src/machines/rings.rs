//! Rings: one that is told anything, and three that must agree whatever the network does.

use bytes::Bytes;
use ring::{Level, Output, Ring};
use wire::ring::Datagram;
use wire::{ClusterId, Duration, Incarnation, Member, NodeId, RingId, Time};

use super::{STEPS, span};
use crate::Source;

const CLUSTER: ClusterId = ClusterId(0x0102_0304);

/// Datagrams that are kept to be delivered late, twice or spoilt.
const POOL: usize = 64;

/// The time of one datagram when all is well.
const HOP: Duration = Duration::from_micros(50);

/// A message's place, and its bytes.
type Delivered = (RingId, u64, Bytes);

struct Cluster {
    rings: Vec<Ring>,
    now: Time,
    pool: Vec<(usize, Bytes)>,
    /// The messages that each ring delivered without a gap.
    logs: Vec<Vec<Delivered>>,
}

impl Cluster {
    fn new(nodes: u32, parking: bool) -> Cluster {
        let now = Time(1_000_000);
        let ids: Vec<NodeId> = (1..=nodes).map(NodeId).collect();
        let make = |&node: &NodeId| {
            let me = Member { node, incarnation: Incarnation(1) };
            let mut config = ring::Config::new(CLUSTER, me, ids.clone());
            (config.parking, config.window, config.turn) = (parking, 8, 2);
            Ring::new(config, now).expect("knobs are in range")
        };
        let rings: Vec<Ring> = ids.iter().map(make).collect();
        let logs = ids.iter().map(|_| Vec::new()).collect();
        Cluster { rings, now, pool: Vec::new(), logs }
    }

    /// Takes all outputs; datagrams go to the pool, the oldest of a full one are lost.
    fn drain(&mut self) {
        for (node, ring) in self.rings.iter_mut().enumerate() {
            while let Some(output) = ring.poll_output() {
                match output {
                    Output::Send { to, datagram, .. } => {
                        self.pool.extend(to.iter().map(|to| (to, datagram.clone())));
                    }
                    Output::Deliver(delivery) if delivery.contiguous => {
                        let place = (delivery.ring, delivery.sequence, delivery.payload);
                        self.logs[node].push(place);
                    }
                    _ => {}
                }
            }
            ring.check_invariants();
        }
        let lost = self.pool.len().saturating_sub(POOL);
        self.pool.drain(..lost);
    }

    fn deliver(&mut self, to: usize, bytes: &Bytes) {
        if let Ok(datagram) = Datagram::decode(CLUSTER, wire::versions::RING, bytes) {
            self.rings[to].handle_message(self.now, datagram);
        }
        self.drain();
    }

    /// Timers that are due, of nodes that are looked at.
    fn timers(&mut self, looked: u8) {
        for (node, ring) in self.rings.iter_mut().enumerate() {
            if looked >> node & 1 == 0 && ring.next_timeout().is_some_and(|due| due <= self.now) {
                ring.handle_timeout(self.now);
            }
        }
        self.drain();
    }

    fn multicast(&mut self, source: &mut Source<'_>, number: &mut u64) {
        let node = source.below(self.rings.len());
        let level = if source.below(3) == 0 { Level::Safe } else { Level::Agreed };
        *number += 1;
        let mut body = number.to_le_bytes().to_vec();
        // Some are longer than a datagram.
        body.resize(8 + source.below(256) * if source.below(4) == 0 { 30 } else { 1 }, 0);
        let _ = self.rings[node].multicast(self.now, body, level);
        self.drain();
    }

    /// Everything arrives for a while, in order.
    fn flow(&mut self, datagrams: usize) {
        for _ in 0..datagrams {
            if self.pool.is_empty() {
                let due = self.rings.iter().filter_map(Ring::next_timeout).min();
                let Some(due) = due else { return };
                self.now = self.now.max(due);
                self.timers(0);
                continue;
            }
            // Time goes on also for those who are sent nothing.
            self.now += HOP;
            self.timers(0);
            if !self.pool.is_empty() {
                let (to, bytes) = self.pool.remove(0);
                self.deliver(to, &bytes);
            }
        }
    }
}

/// A ring among two others that receives their messages, old ones again, and forged ones.
pub(crate) fn ring(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut cluster = Cluster::new(3, source.below(4) != 0);
    let mut number = 0;
    cluster.flow(source.below(256));
    for _ in 0..STEPS {
        if source.is_empty() {
            break;
        }
        match source.below(10) {
            0 => cluster.multicast(&mut source, &mut number),
            1 => cluster.now += span(&mut source),
            2 => {
                let (node, other) = (source.below(3), source.below(4) as u32);
                let now = cluster.now;
                cluster.rings[node].handle_unreachable(now, NodeId(other + 1));
                cluster.drain();
            }
            3 => {
                let raw = Bytes::copy_from_slice(source.bytes(120));
                cluster.deliver(0, &raw);
            }
            4 => cluster.flow(source.below(16)),
            5 => cluster.timers(source.byte()),
            6 if source.below(16) == 0 => {
                let (node, now) = (source.below(3), cluster.now);
                cluster.rings[node].leave(now);
                cluster.drain();
            }
            _ => spoil(&mut source, &mut cluster),
        }
    }
}

/// A datagram that was sent arrives with other bytes in it.
fn spoil(source: &mut Source<'_>, cluster: &mut Cluster) {
    if cluster.pool.is_empty() {
        return;
    }
    let at = source.below(256) % cluster.pool.len();
    let (to, bytes) = cluster.pool[at].clone();
    let mut bytes = bytes.to_vec();
    for _ in 0..source.below(6) {
        let place = source.below(256) % bytes.len();
        bytes[place] = source.byte();
    }
    cluster.deliver(to, &bytes.into());
}

/// Three rings and a network that loses, doubles and delays as the input tells it. Any two deliver
/// the same without a gap in one ring, one maybe further than the other. When all arrives again,
/// they form one ring.
pub(crate) fn schedule(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut cluster = Cluster::new(3, source.below(4) != 0);
    let mut number = 0;
    for _ in 0..STEPS {
        if source.is_empty() {
            break;
        }
        match source.below(10) {
            0 | 1 => cluster.multicast(&mut source, &mut number),
            2 => cluster.now += span(&mut source),
            3 => cluster.timers(source.byte()),
            4 => cluster.flow(source.below(32)),
            kind => {
                if cluster.pool.is_empty() {
                    continue;
                }
                let at = source.below(256) % cluster.pool.len();
                let (to, bytes) = cluster.pool[at].clone();
                if kind != 5 {
                    cluster.pool.remove(at);
                }
                if kind < 9 {
                    cluster.deliver(to, &bytes);
                }
            }
        }
    }
    agree(&cluster.logs);
    cluster.pool.clear();
    let together = |cluster: &Cluster| {
        let id = cluster.rings[0].id();
        cluster.rings.iter().all(|ring| {
            let members = ring.members().len() == 3 && ring.id() == id;
            members && ring.state_name() == "operational" && ring.queued() == 0
        })
    };
    for _ in 0..400 {
        if together(&cluster) {
            return agree(&cluster.logs);
        }
        cluster.flow(50);
    }
    let states: Vec<_> = cluster.rings.iter().map(|ring| format!("{ring:?}")).collect();
    panic!("all arrives, and they do not find together: {states:#?}");
}

fn agree(logs: &[Vec<Delivered>]) {
    for one in logs {
        for other in logs {
            for (ring, ..) in one {
                let of = |log: &[Delivered]| -> Vec<Delivered> {
                    log.iter().filter(|delivered| delivered.0 == *ring).cloned().collect()
                };
                let (one, other) = (of(one), of(other));
                let same = one.iter().zip(&other).all(|(one, other)| one == other);
                assert!(same, "two orders of {ring}");
            }
        }
    }
}
