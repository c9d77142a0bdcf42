//! Properties of everything that all lives of all nodes saw.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use steadfast_ring::{Configuration, ConfigurationKind, Delivery, Level};
use wire::{Member, RingId};

use super::{Cluster, Life, Seen};

/// One life's stay in one ring: what it delivered there, and how it left.
#[derive(Debug)]
struct Stay<'a> {
    member: Member,
    ring: RingId,
    members: &'a [Member],
    deliveries: Vec<&'a Delivery>,
    /// How many of them in the regular configuration.
    regular: usize,
    /// The transitional configuration and the ring that followed.
    left: Option<(&'a [Member], RingId)>,
}

pub fn all(cluster: &Cluster) {
    let stays: Vec<Vec<Stay<'_>>> = cluster.lives.iter().map(stays).collect();
    for life in &cluster.lives {
        integrity(cluster, life);
    }
    let flat: Vec<&Stay<'_>> = stays.iter().flatten().collect();
    same_members(&flat);
    total_order(&flat);
    prefixes(&flat);
    together(&flat);
    held(cluster, &flat);
    safe(&flat);
    causes(cluster, &flat);
}

/// At the end of a run without faults: everybody who runs is together and nothing is lost.
pub fn converged(cluster: &Cluster) {
    assert!(cluster.is_one_ring(), "one ring");
    for life in cluster.lives.iter().filter(|life| life.alive) {
        let own = deliveries(life).filter(|d| d.sender == life.member).map(|d| &d.payload);
        assert!(own.eq(&life.sent), "{} delivers what it sent", life.member);
    }
    let last: Vec<_> = cluster
        .lives
        .iter()
        .filter(|life| life.alive)
        .map(|life| {
            let stay = stays(life).pop().expect("is in a ring");
            stay.deliveries.iter().map(|d| d.payload.clone()).collect::<Vec<Bytes>>()
        })
        .collect();
    assert!(
        last.windows(2).all(|pair| pair[0] == pair[1]),
        "all deliver the same in the last ring"
    );
}

fn deliveries(life: &Life) -> impl Iterator<Item = &Delivery> {
    life.seen.iter().filter_map(|seen| match seen {
        Seen::Delivery(delivery) => Some(delivery),
        _ => None,
    })
}

/// Only what was sent, each once, each sender's in its order, never two configurations mixed.
fn integrity(cluster: &Cluster, life: &Life) {
    let mut next: BTreeMap<Member, usize> = BTreeMap::new();
    for delivery in deliveries(life) {
        let sender =
            cluster.lives.iter().find(|l| l.member == delivery.sender).expect("a known sender");
        let text = String::from_utf8_lossy(&delivery.payload[..delivery.payload.len().min(40)])
            .into_owned();
        let number = text.split(['#', ':']).nth(1).and_then(|n| n.parse::<usize>().ok());
        let number =
            number.unwrap_or_else(|| panic!("{} got a torn message {text:?}", life.member));
        let whole = sender.sent.get(number) == Some(&delivery.payload);
        assert!(whole, "{} got a torn message", life.member);
        assert_eq!(sender.levels[number], delivery.level, "{} got {text}", life.member);
        let next = next.entry(delivery.sender).or_default();
        assert!(number >= *next, "{} got {text} twice or out of order", life.member);
        *next = number + 1;
    }
}

fn stays(life: &Life) -> Vec<Stay<'_>> {
    let mut stays: Vec<Stay<'_>> = Vec::new();
    let mut transitional: Option<&Configuration> = None;
    for seen in &life.seen {
        match seen {
            Seen::Configuration(c) if c.kind == ConfigurationKind::Transitional => {
                assert_eq!(c.ring, stays.last().expect("after a ring").ring);
                assert!(transitional.is_none() && c.members.contains(&life.member));
                transitional = Some(c);
            }
            Seen::Configuration(c) => {
                if let Some(stay) = stays.last_mut() {
                    let transitional = transitional.take().expect("a transitional one before");
                    assert!(transitional.members.iter().all(|m| c.members.contains(m)));
                    assert!(transitional.members.iter().all(|m| stay.members.contains(m)));
                    assert!(c.ring.sequence > stay.ring.sequence, "ring sequences grow");
                    stay.left = Some((&transitional.members, c.ring));
                }
                assert!(c.members.contains(&life.member));
                let deliveries = Vec::new();
                let member = life.member;
                stays.push(Stay {
                    member,
                    ring: c.ring,
                    members: &c.members,
                    deliveries,
                    regular: 0,
                    left: None,
                });
            }
            Seen::Delivery(delivery) => {
                let stay = stays.last_mut().expect("in a ring");
                assert_eq!(delivery.ring, stay.ring);
                assert!(delivery.contiguous || transitional.is_some());
                let last = stay.deliveries.last();
                assert!(last.is_none_or(|last| last.sequence <= delivery.sequence));
                assert!(last.is_none_or(|last| last.contiguous || !delivery.contiguous));
                stay.deliveries.push(delivery);
                stay.regular += usize::from(transitional.is_none());
            }
            Seen::Multicast(_) => {}
            Seen::Confirmed { ring, .. } => {
                assert_eq!(*ring, stays.last().expect("in a ring").ring, "of the present ring");
            }
            Seen::Held { ring, majority, all } => {
                assert_eq!(*ring, stays.last().expect("in a ring").ring);
                assert!(all <= majority);
            }
        }
    }
    stays
}

fn same_members(stays: &[&Stay<'_>]) {
    let mut rings: BTreeMap<RingId, &[Member]> = BTreeMap::new();
    for stay in stays {
        let members = rings.entry(stay.ring).or_insert(stay.members);
        assert_eq!(*members, stay.members, "{} has one membership", stay.ring);
    }
}

/// A place in the order holds the same message for all.
fn total_order(stays: &[&Stay<'_>]) {
    let mut places: BTreeMap<(RingId, u64), Vec<&Bytes>> = BTreeMap::new();
    for stay in stays {
        let mut mine: BTreeMap<(RingId, u64), Vec<&Bytes>> = BTreeMap::new();
        for d in &stay.deliveries {
            mine.entry((d.ring, d.sequence)).or_default().push(&d.payload);
        }
        for (place, payloads) in mine {
            let known = places.entry(place).or_insert_with(|| payloads.clone());
            assert!(*known == payloads, "{place:?} is the same for all");
        }
    }
}

/// Agreed delivery: without a gap, so of two nodes one has what the other has, and more.
fn prefixes(stays: &[&Stay<'_>]) {
    let mut longest: BTreeMap<RingId, Vec<&Bytes>> = BTreeMap::new();
    for stay in stays {
        let mine: Vec<_> =
            stay.deliveries.iter().filter(|d| d.contiguous).map(|d| &d.payload).collect();
        let known = longest.entry(stay.ring).or_default();
        let common = known.len().min(mine.len());
        assert!(known[..common] == mine[..common], "no gaps in {}", stay.ring);
        if mine.len() > known.len() {
            *known = mine;
        }
    }
}

/// Members that go on with a transitional configuration have the same messages: all that one of
/// them delivered before the next ring, every other delivers too before it goes anywhere.
fn together(stays: &[&Stay<'_>]) {
    for a in stays {
        let Some((transitional, next)) = a.left else { continue };
        for b in stays.iter().filter(|b| b.ring == a.ring && transitional.contains(&b.member)) {
            let Some((others, after)) = b.left else { continue };
            if after == next {
                assert_eq!(transitional, others, "one transitional configuration from {}", a.ring);
                assert_eq!(
                    a.regular, b.regular,
                    "{} and {} left {} with different messages in its configurations",
                    a.member, b.member, a.ring
                );
                let same = a
                    .deliveries
                    .iter()
                    .map(|d| &d.payload)
                    .eq(b.deliveries.iter().map(|d| &d.payload));
                assert!(
                    same,
                    "{} and {} left {} with different messages",
                    a.member, b.member, a.ring
                );
            }
            let theirs: BTreeSet<_> = b.deliveries.iter().map(|d| &d.payload).collect();
            let lost = a.deliveries.iter().find(|d| !theirs.contains(&d.payload));
            assert!(
                lost.is_none(),
                "{} broke its promise to {}: {}/{}",
                b.member,
                a.member,
                a.ring,
                lost.unwrap().sequence
            );
        }
    }
}

/// Messages reported as held by a majority are delivered by every majority that goes on.
fn held(cluster: &Cluster, stays: &[&Stay<'_>]) {
    let mut most: BTreeMap<RingId, (u64, u64)> = BTreeMap::new();
    for life in &cluster.lives {
        for seen in &life.seen {
            if let Seen::Held { ring, majority, all } = seen {
                let most = most.entry(*ring).or_default();
                *most = (most.0.max(*majority), most.1.max(*all));
            }
        }
    }
    let mut known: BTreeMap<RingId, BTreeSet<(u64, &Bytes)>> = BTreeMap::new();
    for stay in stays {
        known
            .entry(stay.ring)
            .or_default()
            .extend(stay.deliveries.iter().map(|d| (d.sequence, &d.payload)));
    }
    for stay in stays {
        let (Some((transitional, _)), Some((majority, all))) = (stay.left, most.get(&stay.ring))
        else {
            continue;
        };
        let bound = if transitional.len() * 2 > stay.members.len() { *majority } else { *all };
        let mine: BTreeSet<_> = stay.deliveries.iter().map(|d| &d.payload).collect();
        for (sequence, payload) in known[&stay.ring].iter().take_while(|(s, _)| *s <= bound) {
            assert!(
                mine.contains(payload),
                "{} lost {}/{sequence}, which was held",
                stay.member,
                stay.ring
            );
        }
    }
}

/// Safe delivery: what one member delivered as safe in the regular configuration, every other
/// delivers before it goes anywhere, with whomever it does. (In a transitional configuration the
/// same is said of its members: see `together`.)
fn safe(stays: &[&Stay<'_>]) {
    let mut promised: BTreeMap<RingId, BTreeSet<&Bytes>> = BTreeMap::new();
    for stay in stays {
        let regular = stay.deliveries[..stay.regular].iter();
        let safe = regular.filter(|d| d.level == Level::Safe).map(|d| &d.payload);
        promised.entry(stay.ring).or_default().extend(safe);
    }
    for stay in stays.iter().filter(|stay| stay.left.is_some()) {
        let mine: BTreeSet<_> = stay.deliveries.iter().map(|d| &d.payload).collect();
        let lost = promised[&stay.ring].difference(&mine).next();
        assert!(
            lost.is_none(),
            "{} left {} without a safe message: {:?}",
            stay.member,
            stay.ring,
            lost.map(|payload| String::from_utf8_lossy(&payload[..payload.len().min(20)])),
        );
    }
}

/// Messages of a ring that a sender had delivered when it sent a message are delivered before it.
/// Without a gap the order ensures that; after one it is why some messages are not delivered.
fn causes(cluster: &Cluster, stays: &[&Stay<'_>]) {
    for stay in stays {
        let mut before: BTreeSet<&Bytes> = BTreeSet::new();
        for delivery in &stay.deliveries {
            if !delivery.contiguous {
                let sender = cluster.lives.iter().find(|l| l.member == delivery.sender);
                let sender = sender.expect("a known sender");
                let sent = |seen: &&Seen| match seen {
                    Seen::Multicast(number) => sender.sent[*number] != delivery.payload,
                    _ => true,
                };
                for seen in sender.seen.iter().take_while(sent) {
                    if let Seen::Delivery(cause) = seen
                        && cause.ring == stay.ring
                    {
                        let known = before.contains(&cause.payload);
                        assert!(known, "{} lacks a cause: {}", stay.member, cause.sequence);
                    }
                }
            }
            before.insert(&delivery.payload);
        }
    }
}
