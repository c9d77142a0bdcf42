//! The claims of docs/protocol/ring.md, "Links", one test each: nodes joined by several networks,
//! any of which is cut in one or both directions.
#![allow(missing_docs)]

use std::collections::BTreeMap;

use bytes::Bytes;
use steadfast_ring::{Event, LinkOutput, LinkTiming, Links, LinksConfig, Planted, Route};
use wire::report::Report;
use wire::{ClusterId, Duration, Extension, Incarnation, Member, NodeId, NodeSet, Time};

const CLUSTER: ClusterId = ClusterId(5);
/// One way, by any link.
const DELAY: Duration = Duration::from_micros(50);
const MS: Duration = Duration::from_millis(1);

/// Two nodes. Reports travel; what else would is asked of [`Links::choose`].
struct Pair {
    now: Time,
    nodes: [Option<Links>; 2],
    /// From this node nothing arrives by this link.
    cut: Vec<(usize, usize)>,
    /// Every second datagram is lost there.
    lossy: Vec<(usize, usize)>,
    sent: u64,
    flying: BTreeMap<(Time, u64), (usize, usize, Bytes)>,
    events: Vec<(Time, usize, Event)>,
    probes: Vec<(usize, usize)>,
    unreachable: usize,
}

fn member(place: usize, life: u64) -> Member {
    Member { node: NodeId(place as u32 + 1), incarnation: Incarnation(life) }
}

fn start(place: usize, life: u64, count: usize, now: Time) -> Links {
    let config = LinksConfig {
        cluster: CLUSTER,
        me: member(place, life),
        nodes: vec![NodeId(1), NodeId(2)],
        count,
        timing: LinkTiming::default(),
        planted: Planted::default(),
    };
    Links::new(config, now)
}

impl Pair {
    fn new(links: usize) -> Pair {
        let now = Time(1_000_000_000);
        Pair {
            now,
            nodes: [0, 1].map(|place| Some(start(place, 1, links, now))),
            cut: Vec::new(),
            lossy: Vec::new(),
            sent: 0,
            flying: BTreeMap::new(),
            events: Vec::new(),
            probes: Vec::new(),
            unreachable: 0,
        }
    }

    /// Two nodes that have found each other.
    fn joined(links: usize) -> Pair {
        let mut pair = Pair::new(links);
        pair.run(MS * 600);
        assert_eq!(pair.events, []);
        pair
    }

    fn drain(&mut self) {
        for from in 0..2 {
            while let Some(output) = self.nodes[from].as_mut().and_then(Links::poll_output) {
                match output {
                    LinkOutput::Report { to, link, datagram } => {
                        assert_eq!(to, 1 - from);
                        self.sent += 1;
                        let lost =
                            self.lossy.contains(&(from, link)) && self.sent.is_multiple_of(2);
                        if !self.cut.contains(&(from, link)) && !lost {
                            let key = (self.now + DELAY, self.sent);
                            self.flying.insert(key, (from, link, datagram));
                        }
                    }
                    LinkOutput::Probe { link, .. } => self.probes.push((from, link)),
                    LinkOutput::Unreachable(_) => self.unreachable += 1,
                    LinkOutput::Event(event) => self.events.push((self.now, from, event)),
                }
            }
        }
        self.nodes.iter().flatten().for_each(Links::check_invariants);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        self.drain();
        loop {
            let timer = self.nodes.iter().flatten().filter_map(Links::next_timeout).min();
            let flying = self.flying.first_key_value().map(|(key, _)| key.0);
            let Some(next) = timer.into_iter().chain(flying).min().filter(|next| *next <= end)
            else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry()
                && entry.key().0 <= self.now
            {
                let (from, link, bytes) = entry.remove();
                let (sender, report) = Report::decode(CLUSTER, &bytes).unwrap();
                if let Some(links) = &mut self.nodes[1 - from] {
                    links.handle_received(self.now, from, link);
                    links.handle_report(self.now, sender, link, &report);
                }
            }
            for node in self.nodes.iter_mut().flatten() {
                if node.next_timeout().is_some_and(|due| due <= self.now) {
                    node.handle_timeout(self.now);
                }
            }
            self.drain();
        }
        self.now = end;
    }

    /// The links by which node 0 sends this to node 1.
    fn route(&mut self, route: Route) -> Vec<usize> {
        let sets = self.nodes[0].as_mut().unwrap().choose(self.now, NodeSet::one(1), route);
        (0..sets.len()).filter(|link| sets[*link].contains(1)).collect()
    }

    fn lost(&self, at: usize) -> Vec<usize> {
        let lost = self.events.iter().filter(|(_, node, _)| *node == at);
        lost.filter_map(|(_, _, event)| match event {
            Event::LinkLost { link, .. } => Some(*link),
            _ => None,
        })
        .collect()
    }
}

#[test]
fn one_link_costs_nothing_and_a_refusal_on_it_is_proof() {
    let mut pair = Pair::new(1);
    pair.run(MS * 1_000);
    assert_eq!(pair.sent, 0, "there is nothing to find out");
    assert_eq!(pair.route(Route::Best), [0]);
    assert_eq!(pair.route(Route::Every), [0]);
    pair.nodes[0].as_mut().unwrap().handle_refused(pair.now, 1, 0);
    pair.drain();
    assert_eq!((pair.unreachable, pair.probes.len()), (1, 0));
}

#[test]
fn until_something_is_known_all_links_are_used_then_the_first() {
    let mut pair = Pair::new(3);
    assert_eq!(pair.route(Route::Best), [0, 1, 2]);
    pair.run(MS * 12);
    assert_eq!(pair.route(Route::Best), [0]);
    assert_eq!(pair.route(Route::Every), [0, 1, 2]);
}

#[test]
fn idle_links_cost_one_report_each_way_per_link_and_probe() {
    let mut pair = Pair::joined(2);
    let before = pair.sent;
    pair.run(MS * 10_000);
    let rounds = (pair.sent - before) as f64 / 4.0;
    assert!((35.0..=40.0).contains(&rounds), "{rounds} rounds of each node in ten seconds");
}

#[test]
fn what_is_sent_again_goes_by_all_links_and_so_does_the_rest_until_the_link_is_confirmed() {
    let mut pair = Pair::joined(2);
    assert_eq!(pair.route(Route::Every), [0, 1]);
    assert_eq!(pair.route(Route::Best), [0, 1], "in doubt both are used");
    pair.run(MS * 6);
    assert_eq!(pair.route(Route::Best), [0], "a round later it is known to carry");
    assert_eq!(pair.events, []);
}

#[test]
fn a_link_that_carries_traffic_is_left_at_once_and_reported_within_its_bound() {
    let mut pair = Pair::joined(2);
    pair.cut = vec![(0, 0), (1, 0)];
    let cut = pair.now;
    pair.route(Route::Every);
    assert_eq!(pair.route(Route::Best), [0, 1], "from the first retransmission on");
    for _ in 0..40 {
        pair.run(MS);
        assert!(pair.route(Route::Best).contains(&1), "never the dead one alone");
    }
    assert_eq!(pair.route(Route::Best), [1]);
    assert_eq!((pair.lost(0), pair.lost(1)), (vec![1], vec![1]));
    let bound = LinkTiming::default().timeout * 2;
    assert!(pair.events.iter().all(|(at, ..)| at.since(cut) <= bound), "{:?}", pair.events);
}

#[test]
fn a_silent_loss_of_the_standby_is_reported_before_it_is_needed() {
    let mut pair = Pair::joined(2);
    pair.cut = vec![(0, 1), (1, 1)];
    let cut = pair.now;
    pair.run(MS * 1_000);
    assert_eq!((pair.lost(0), pair.lost(1)), (vec![2], vec![2]));
    let LinkTiming { probe, timeout } = LinkTiming::default();
    let bound = 2 * (probe + probe / 8) + 2 * timeout;
    assert!(pair.events.iter().all(|(at, ..)| at.since(cut) <= bound), "{:?}", pair.events);
    assert_eq!(pair.route(Route::Best), [0]);
}

#[test]
fn a_one_way_cut_is_seen_by_the_side_whose_datagrams_are_lost() {
    let mut pair = Pair::joined(2);
    pair.cut = vec![(0, 0)];
    pair.run(MS * 1_000);
    assert_eq!((pair.lost(0), pair.lost(1)), (vec![1], vec![]));
    assert_eq!(pair.route(Route::Best), [1]);
}

#[test]
fn each_direction_finds_its_way_when_one_is_left_on_each_link() {
    let mut pair = Pair::joined(2);
    pair.cut = vec![(0, 0), (1, 1)];
    pair.run(MS * 1_000);
    assert_eq!((pair.lost(0), pair.lost(1)), (vec![1], vec![2]));
    assert_eq!(pair.route(Route::Best), [1]);
}

#[test]
fn a_link_that_returns_proves_itself_first_and_longer_each_time() {
    let mut pair = Pair::joined(2);
    let mut waits = Vec::new();
    for _ in 0..3 {
        pair.cut = vec![(0, 0), (1, 0)];
        pair.run(MS * 1_000);
        pair.cut.clear();
        pair.events.clear();
        let healed = pair.now;
        pair.run(MS * 8_000);
        let back = pair.events.iter().find(|(_, node, _)| *node == 0).expect("it comes back");
        assert_eq!(back.2, Event::LinkBack { node: NodeId(2), link: 1 });
        waits.push(back.0.since(healed));
        pair.events.clear();
    }
    assert!(waits[0] >= MS * 500, "{waits:?}");
    assert!(waits[1] > waits[0] * 3 / 2 && waits[2] > waits[1] * 3 / 2, "{waits:?}");
    assert_eq!(pair.route(Route::Best), [0]);
}

#[test]
fn random_loss_is_no_loss_of_the_link() {
    let mut pair = Pair::joined(2);
    pair.lossy = vec![(0, 0), (0, 1)];
    for _ in 0..2_000 {
        pair.run(MS);
        pair.route(Route::Every);
    }
    assert_eq!(pair.events, []);
}

#[test]
fn a_peer_that_falls_silent_is_not_asked_quickly_for_ever() {
    let mut pair = Pair::joined(2);
    pair.nodes[1] = None;
    pair.run(MS * 2_000);
    let before = pair.sent;
    for _ in 0..1_000 {
        // A ring that beacons to it.
        pair.route(Route::Every);
        pair.run(MS);
    }
    assert!(pair.sent - before <= 10, "{} reports in a second", pair.sent - before);
    assert_eq!(pair.events, [], "that it is gone is the ring's to say");
    pair.nodes[1] = Some(start(1, 2, 2, pair.now));
    pair.run(MS * 300);
    assert_eq!(pair.route(Route::Best), [0], "its next life is known again");
}

#[test]
fn a_refusal_on_one_link_accuses_nobody_whose_other_link_lives() {
    let mut pair = Pair::joined(2);
    pair.nodes[0].as_mut().unwrap().handle_refused(pair.now, 1, 1);
    pair.run(MS * 100);
    assert_eq!(pair.unreachable, 0);
    assert!(pair.probes.contains(&(0, 0)), "the other link is asked: {:?}", pair.probes);
    pair.nodes[0].as_mut().unwrap().handle_refused(pair.now, 1, 1);
    pair.nodes[0].as_mut().unwrap().handle_refused(pair.now, 1, 0);
    pair.drain();
    assert_eq!(pair.unreachable, 1, "refused on all");
}

#[test]
fn with_one_link_lost_the_other_ones_refusal_is_proof() {
    let mut pair = Pair::joined(2);
    pair.cut = vec![(0, 0), (1, 0)];
    pair.run(MS * 1_000);
    pair.nodes[0].as_mut().unwrap().handle_refused(pair.now, 1, 1);
    pair.drain();
    assert_eq!(pair.unreachable, 1);
}

#[test]
fn reports_that_cannot_be_true_change_nothing() {
    let mut pair = Pair::joined(2);
    let links = pair.nodes[0].as_mut().unwrap();
    let lie = Report {
        round: u64::MAX,
        wanted: false,
        heard: vec![u64::MAX, 0],
        extension: Extension::default(),
    };
    links.handle_report(pair.now, member(1, 1), 0, &lie);
    links.handle_report(pair.now, member(1, 0), 0, &lie);
    links.handle_report(pair.now, member(0, 9), 0, &lie);
    links.handle_report(pair.now, member(7, 9), 0, &lie);
    links.handle_report(pair.now, member(1, 1), 9, &lie);
    pair.run(MS * 1_000);
    assert_eq!(pair.events, []);
    assert_eq!(pair.route(Route::Best), [0]);
}
