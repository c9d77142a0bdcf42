//! Whole clusters in virtual time over a network that loses, repeats, reorders and replays.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use proptest::prelude::*;
use steadfast_seal::{Envelope, Seal};
use wire::{Duration, NodeId, Random, Time};

use crate::{at, open, seal, sealed};

struct Network {
    now: Time,
    random: Random,
    /// In a hundred.
    lost: u64,
    nodes: Vec<Seal>,
    lives: u64,
    /// Everything that was ever sent: what the attacker replays.
    recorded: Vec<(usize, Vec<u8>)>,
    flights: BinaryHeap<Reverse<(Time, usize, Vec<u8>)>>,
    /// Datagrams opened, by receiver's life, with the sender's life inside.
    opened: BTreeSet<(u64, Vec<u8>)>,
    at: [u64; 3],
}

impl Network {
    fn new(seed: u64, lost: u64) -> Network {
        let nodes = (1..=3).map(|node| seal(node, 1, node as u8)).collect();
        let (recorded, flights) = (Vec::new(), BinaryHeap::new());
        let (random, opened) = (Random::new(seed), BTreeSet::new());
        let now = at(0);
        Network { now, random, lost, nodes, lives: 3, recorded, flights, opened, at: [1, 2, 3] }
    }

    fn restart(&mut self, node: usize) {
        self.lives += 1;
        self.at[node] = self.lives;
        self.nodes[node] = seal(node as u32 + 1, self.lives, self.lives as u8);
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) {
        self.recorded.push((to, bytes.clone()));
        let copies = 1 + u64::from(self.random.one_in(5));
        for _ in 0..copies {
            if self.random.below(100) >= self.lost {
                let delay = Duration::from_micros(20 + self.random.below(200));
                self.flights.push(Reverse((self.now + delay, to, bytes.clone())));
            }
        }
    }

    fn contacts(&mut self, node: usize) {
        while let Some(contact) = self.nodes[node].poll_contact() {
            self.send(contact.to.0 as usize - 1, contact.bytes.to_vec());
        }
    }

    /// Every node says something to all, and an attacker repeats something old; then time goes on.
    fn round(&mut self, number: u64) {
        for node in 0..3 {
            let life = self.at[node];
            let text = [life.to_le_bytes(), number.to_le_bytes()].concat();
            let datagram = sealed(&mut self.nodes[node], Envelope::ALL, &text);
            for to in (0..3).filter(|to| *to != node) {
                self.nodes[node].greet(self.now, NodeId(to as u32 + 1));
                self.contacts(node);
                self.send(to, datagram.clone());
            }
        }
        let old = self.random.below(self.recorded.len() as u64) as usize;
        let (_, bytes) = self.recorded[old].clone();
        let to = self.random.below(3) as usize;
        self.flights.push(Reverse((self.now + Duration::from_micros(50), to, bytes)));
        self.run_until(self.now + Duration::from_millis(1));
    }

    fn run_until(&mut self, end: Time) {
        while self.flights.peek().is_some_and(|flight| flight.0.0 <= end) {
            let Reverse((now, to, bytes)) = self.flights.pop().unwrap();
            self.now = now;
            if let Ok(Some(text)) = open(&mut self.nodes[to], now, &bytes) {
                let receiver = self.at[to];
                let sender = u64::from_le_bytes(text[..8].try_into().unwrap());
                let node = self.at.iter().position(|life| *life == sender);
                assert!(node.is_some() || self.is_known_to(to, sender), "of a life that is over");
                assert!(self.opened.insert((receiver, text)), "opened twice in one life");
            }
            self.contacts(to);
        }
        self.now = end;
    }

    /// The receiver has not met a later life of that node yet.
    fn is_known_to(&self, receiver: usize, life: u64) -> bool {
        let met = (1..=3).filter_map(|node| self.nodes[receiver].met(NodeId(node)));
        met.map(|member| member.incarnation.0).any(|known| known == life || known == 1 && life <= 3)
    }

    fn all_in_touch(&self) -> bool {
        (0..3).all(|node| {
            let others = (0..3).filter(|other| *other != node);
            others.map(|other| NodeId(other + 1)).all(|other| {
                let seal = &self.nodes[node as usize];
                let met = seal.met(other).map(|member| member.incarnation.0);
                let alive = self.at[other.0 as usize - 1];
                // The first lives all have incarnation 1.
                seal.is_in_touch(other) && (met == Some(alive) || alive <= 3)
            })
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_meet_and_nothing_is_opened_twice(
        seed in any::<u64>(),
        lost in 0..40u64,
        restarts in proptest::collection::vec((0..3usize, 0..60u64), 0..4),
    ) {
        meet(seed, lost, &restarts)?;
    }
}

/// A challenge of a node's former life came later than one of its present life: the other took
/// itself for out of touch for ever.
#[test]
fn a_late_challenge_of_a_former_life_puts_nobody_out_of_touch() {
    meet(12_852_852_345_542_897_516, 39, &[(1, 23), (0, 33)]).unwrap();
    meet(7_960_293_186_914_693_499, 37, &[(2, 20), (2, 12), (1, 40)]).unwrap();
}

fn meet(seed: u64, lost: u64, restarts: &[(usize, u64)]) -> Result<(), TestCaseError> {
    let mut network = Network::new(seed, lost);
    let mut number = 0;
    while number < 200 || !network.all_in_touch() {
        prop_assert!(number < 2_000, "two seconds after the last restart not all are in touch");
        for (node, _) in restarts.iter().filter(|(_, round)| *round == number) {
            network.restart(*node);
        }
        network.round(number);
        number += 1;
    }
    network.lost = 0;
    network.round(number);
    network.run_until(network.now + Duration::from_millis(1));
    let of_last = |(_, text): &&(u64, Vec<u8>)| text[8..] == number.to_le_bytes();
    let heard = network.opened.iter().filter(of_last).count();
    prop_assert_eq!(heard, 6, "everybody hears everybody");
    Ok(())
}

/// A view change after a start waits for the contact: it must take about a round trip.
#[test]
fn nodes_meet_within_two_round_trips_when_nothing_is_lost() {
    let mut network = Network::new(1, 0);
    network.round(0);
    assert!(network.all_in_touch(), "within a millisecond at 20 to 220 µs one way");
}
