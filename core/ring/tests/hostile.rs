//! A datagram may say anything: nothing panics, nothing grows, and the ring finds together again.
#![allow(missing_docs)]

mod cluster;

use bytes::Bytes;
use cluster::{CLUSTER, Cluster, Tune, check};
use wire::limits::{MAX_MEMBERS, MAX_RETRANSMIT_REQUESTS};
use wire::ring::{
    Ack, Beacon, Charge, Commit, CommitMember, CommitStep, Data, Datagram, Join, Level, Message,
    Origin, Pulse, Stable, Stored, Token, Want, push_chunk,
};
use wire::versions::RING;
use wire::{Extension, Incarnation, Member, NodeId, Random, RingId, Speaks, VersionRange};

/// Numbers near what the ring uses, and far off.
fn number(random: &mut Random, near: u64) -> u64 {
    match random.below(6) {
        0 => random.next_u64(),
        1 => u64::MAX - random.below(3),
        2 => 1 << 60,
        3 => random.below(3),
        _ => near.saturating_add(random.below(8)).saturating_sub(3),
    }
}

fn ring_id(random: &mut Random, cluster: &Cluster, node: usize) -> RingId {
    let id = cluster.ring(node).id();
    match random.below(4) {
        0 => RingId {
            sequence: number(random, id.sequence),
            representative: NodeId(random.below(5) as u32),
        },
        _ => id,
    }
}

fn member(random: &mut Random, cluster: &Cluster) -> Member {
    let life = &cluster.lives[random.below(cluster.lives.len() as u64) as usize];
    match random.below(6) {
        0 => Member {
            node: NodeId(random.below(6) as u32),
            incarnation: Incarnation(number(random, 1_000)),
        },
        _ => life.member,
    }
}

fn members(random: &mut Random, cluster: &Cluster) -> Vec<Member> {
    let mut members: Vec<_> = (0..random.below(6)).map(|_| member(random, cluster)).collect();
    members.sort_unstable();
    members.dedup_by_key(|member| member.node);
    members
}

fn data(random: &mut Random, cluster: &Cluster, node: usize, ring: RingId, hop: u64) -> Data {
    let near = cluster.ring(node).delivered();
    let mut body = Vec::new();
    let level = if random.one_in(2) { Level::Safe } else { Level::Agreed };
    for _ in 0..random.below(4) {
        push_chunk(&mut body, random.one_in(2), random.one_in(2), level, &[1; 30]);
    }
    let origin = random.one_in(3).then(|| Origin {
        ring: ring_id(random, cluster, node),
        sender: member(random, cluster),
        sequence: number(random, near).max(1),
    });
    Data {
        ring,
        ack_wanted: random.one_in(2),
        complete: random.one_in(2),
        hop,
        sequence: number(random, near).max(1),
        stable: number(random, near),
        origin,
        body: body.into(),
    }
}

fn join(random: &mut Random, cluster: &Cluster, node: usize) -> Join {
    let proposed = members(random, cluster);
    let bits = |random: &mut Random| random.below(1 << proposed.len());
    let failed = bits(random);
    let slow = failed & bits(random);
    let charge = |member: usize| Charge {
        member: member as u8,
        by: random.below(proposed.len() as u64) as u8,
        stopped_us: 0,
        within_us: random.next_u64() as u32,
        limit_us: random.next_u64() as u32,
        share: random.below(101) as u8,
    };
    let charges = (0..proposed.len()).filter(|place| slow >> place & 1 == 1).map(charge).collect();
    Join {
        failed,
        slow,
        heard: bits(random),
        ring_sequence: number(random, cluster.ring(node).id().sequence),
        proposed,
        charges,
        speaks: speaks(random),
        extension: Extension::default(),
    }
}

/// The versions of a node, as it says: mostly the truth.
fn speaks(random: &mut Random) -> Speaks {
    match random.one_in(20) {
        true => Speaks { ring: VersionRange::new(2, 3), ..Speaks::ALL },
        false => Speaks::ALL,
    }
}

fn commit_step(random: &mut Random, cluster: &Cluster, node: usize) -> CommitStep {
    let near = cluster.ring(node).delivered();
    let mut all = members(random, cluster);
    all.push(member(random, cluster));
    all.sort_unstable();
    all.dedup_by_key(|member| member.node);
    let entry = |random: &mut Random, member| CommitMember {
        member,
        old_ring: ring_id(random, cluster, node),
        aru: number(random, near),
        high: number(random, near),
        stable: number(random, near),
        obliged: random.next_u64(),
    };
    match random.below(3) {
        0 => CommitStep::Call(all),
        1 => CommitStep::Entry(entry(random, all[0])),
        _ => CommitStep::Entries(all.into_iter().map(|member| entry(random, member)).collect()),
    }
}

fn message(random: &mut Random, cluster: &Cluster, node: usize) -> Message {
    let ring = ring_id(random, cluster, node);
    let near = cluster.ring(node).delivered();
    let hop = number(random, near * 3);
    let missing =
        |random: &mut Random, n: u64| (0..random.below(n)).map(|_| number(random, near)).collect();
    match random.below(10) {
        0 => Message::Data(data(random, cluster, node, ring, hop)),
        1 => {
            let n = if random.one_in(3) { 1 + random.below(MAX_MEMBERS as u64) } else { 4 };
            Message::Token(Token {
                ring,
                hop,
                sequence: number(random, near),
                arus: (0..n).map(|_| number(random, near)).collect(),
                done: random.next_u64(),
                received: random.next_u64(),
                wants: random.next_u64(),
                home: random.below(n) as u8,
                missing: missing(random, MAX_RETRANSMIT_REQUESTS as u64),
                following: random.next_u64() as u16,
            })
        }
        2 => {
            Message::Ack(Ack { ring, hop, aru: number(random, near), missing: missing(random, 64) })
        }
        3 => Message::Want(Want { ring }),
        4 => Message::Join(join(random, cluster, node)),
        5 => Message::Commit(Commit { ring, step: commit_step(random, cluster, node) }),
        6 => Message::Stable(Stable { ring, hop, stable: number(random, near) }),
        7 => Message::Pulse(Pulse {
            ring,
            hop,
            number: number(random, near),
            home: random.below(5) as u8,
            stable: number(random, near),
            sequence: number(random, near),
            next: random.next_u64() >> random.below(64),
        }),
        8 => Message::Stored(Stored {
            ring,
            stored: number(random, near),
            question: random.one_in(2),
        }),
        _ => {
            let nodes = |random: &mut Random| -> Vec<NodeId> {
                (0..5).filter(|_| random.one_in(2)).map(NodeId).collect()
            };
            let heard = nodes(random);
            let welcome = random.below(1 << heard.len());
            let (members, speaks) = (nodes(random), speaks(random));
            let extension = Extension::default();
            Message::Beacon(Beacon { ring, members, heard, welcome, speaks, extension })
        }
    }
}

#[test]
fn whatever_a_datagram_says() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut cluster = Cluster::started(4, Tune { window: 16, ..Tune::default() });
        for _ in 0..400 {
            let node = random.below(4) as usize;
            if random.one_in(10) {
                cluster.multicast(node, random.below(3_000) as usize);
            }
            let sender = member(&mut random, &cluster);
            let message = message(&mut random, &cluster, node);
            // Through the bytes, as everything comes: what cannot be read never reaches a ring.
            let datagram = Datagram::new(CLUSTER, RING.least, sender, message);
            if let Ok(datagram) = Datagram::decode(CLUSTER, RING, &datagram.encode()) {
                cluster.inject(node, datagram);
            }
            cluster.run(cluster::micros(random.below(200)));
        }
    }
}

/// Real datagrams with some bits turned.
#[test]
fn mutated_datagrams() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut cluster = Cluster::started(3, Tune::default());
        cluster.keep = Some(Vec::new());
        for round in 0..300 {
            cluster.multicast(round % 3, random.below(200) as usize);
            if random.one_in(60) {
                let node = random.below(3) as usize;
                cluster.crash(node);
                cluster.start(node);
            }
            cluster.run(cluster::micros(random.below(300)));
            let kept = cluster.keep.as_mut().expect("kept");
            let drawn = random.below(kept.len().max(1) as u64) as usize;
            if kept.is_empty() {
                continue;
            }
            let (_, bytes) = kept.swap_remove(drawn);
            let mut bytes = bytes.to_vec();
            kept.truncate(100);
            for _ in 0..random.below(4) {
                let at = 4 + random.below(bytes.len() as u64 - 4) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            if let Ok(datagram) = Datagram::decode(CLUSTER, RING, &Bytes::from(bytes)) {
                cluster.inject(random.below(3) as usize, datagram);
            }
        }
    }
}

/// Late, doubled and reordered datagrams, however many, are no lies: all promises hold.
#[test]
fn replayed_datagrams_change_nothing() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let mut cluster = Cluster::started(3, Tune::default());
        cluster.keep = Some(Vec::new());
        for round in 0..300 {
            cluster.multicast(round % 3, random.below(200) as usize);
            cluster.run(cluster::micros(random.below(300)));
            let kept = cluster.keep.as_ref().expect("kept");
            let (to, bytes) = kept[random.below(kept.len() as u64) as usize].clone();
            let datagram = Datagram::decode(CLUSTER, RING, &bytes).expect("a ring's own");
            cluster.inject(to, datagram);
        }
        cluster.run_until(1_000, Cluster::is_quiet);
        check::all(&cluster);
        check::converged(&cluster);
    }
}
