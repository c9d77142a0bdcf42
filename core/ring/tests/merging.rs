//! Networks whose shape is bad but constant settle, those that flap do so ever more rarely, and a
//! change of the ring costs the same however many members it has.
#![allow(missing_docs)]

mod cluster;

use cluster::{CLUSTER, Cluster, Seen, Tune, check, micros, millis};
use steadfast_ring::{ConfigurationKind, Event};
use wire::NodeId;
use wire::ring::{Datagram, Message};

/// Regular configurations that the lives have seen, at the one that saw most.
fn views(cluster: &Cluster) -> usize {
    let regular = |seen: &&Seen| matches!(seen, Seen::Configuration(c) if c.kind == ConfigurationKind::Regular);
    cluster.lives.iter().map(|life| life.seen.iter().filter(regular).count()).max().unwrap_or(0)
}

/// Runs until the shape has shown itself, then looks whether anything still changes.
fn settles(cluster: &mut Cluster, at_most: usize, what: &str) {
    let before = views(cluster);
    cluster.run(millis(1_500));
    let settling = views(cluster) - before;
    assert!(settling <= at_most, "{what}: {settling} views until it settles");
    let settled = views(cluster);
    cluster.run(millis(3_000));
    assert_eq!(views(cluster), settled, "{what}: it goes on");
    check::all(cluster);
}

fn nodes(cluster: &Cluster, node: usize) -> Vec<usize> {
    cluster.ring(node).members().iter().map(|member| member.node.0 as usize).collect()
}

/// corosync#760: a hears b, and b does not hear a.
#[test]
fn a_link_that_carries_one_way_settles() {
    for n in [2, 3, 4] {
        for (from, to) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            for cold in [false, true] {
                let mut cluster = Cluster::new(n, 7, Tune::default());
                if cold {
                    cluster.cut(from, to);
                }
                for node in 0..n {
                    cluster.start(node);
                }
                if !cold {
                    cluster.run_until(500, Cluster::is_one_ring);
                    cluster.cut(from, to);
                }
                for node in 0..n {
                    cluster.multicast(node, 100);
                }
                settles(&mut cluster, 6, &format!("{n} nodes, {from} to {to} cut, cold {cold}"));
                cluster.heal();
                cluster.run_until(1_000, Cluster::is_one_ring);
            }
        }
    }
}

/// Where the node that does not get the token is the first to miss it, it speaks before it is
/// suspected. (Seed 679027: the same ring was formed again and again, for the one that was asked in
/// vain had just agreed to it.)
#[test]
fn who_speaks_and_does_not_hear_is_left_out() {
    for n in [3, 4, 5] {
        let mut cluster = Cluster::new(n, 7, Tune::default());
        cluster.configure = |config| {
            // All others have met a slow receipt.
            if config.me.node != NodeId(2) {
                config.timing.token_timeout *= 2;
            }
        };
        (0..n).for_each(|node| cluster.start(node));
        cluster.run_until(500, Cluster::is_one_ring);
        cluster.cut(1, 2);
        let before = views(&cluster);
        for _ in 0..300 {
            (0..n).for_each(|node| cluster.multicast(node, 100));
            cluster.run(millis(5));
        }
        let settling = views(&cluster) - before;
        assert!(settling <= 6, "{n} nodes: {settling} views");
        assert!(!nodes(&cluster, 1).contains(&2), "{n} nodes");
        check::all(&cluster);
    }
}

/// A node that all hear and that hears nobody, or the other way about.
#[test]
fn a_deaf_or_mute_node_settles() {
    for n in [3, 5] {
        for node in 0..n {
            for mute in [false, true] {
                let mut cluster = Cluster::started(n, Tune::default());
                for other in (0..n).filter(|other| *other != node) {
                    let (from, to) = if mute { (node, other) } else { (other, node) };
                    cluster.cut(from, to);
                }
                settles(&mut cluster, 4, &format!("{n} nodes, {node} mute {mute}"));
                let others = (node + 1) % n;
                assert_eq!(nodes(&cluster, others).len(), n - 1, "the others stay together");
                cluster.heal();
                cluster.run_until(1_000, Cluster::is_one_ring);
            }
        }
    }
}

/// a hears b and b hears c, both ways, and a and c do not hear each other.
#[test]
fn a_network_that_is_not_transitive_settles_and_the_larger_id_gives_way() {
    for n in [3, 4, 5] {
        for (a, c) in (0..n).flat_map(|a| (a + 1..n).map(move |c| (a, c))) {
            let mut cluster = Cluster::new(n, 3, Tune::default());
            cluster.world.network.cut_all(&[(a, c), (c, a)]);
            for node in 0..n {
                cluster.start(node);
            }
            settles(&mut cluster, 6, &format!("{n} nodes, {a} and {c} apart"));
            // Two that the token never passes between may stay together: what they do not hear
            // of each other, third ones send again.
            let members = nodes(&cluster, a);
            let apart = !members.contains(&c);
            assert_eq!(members.len(), n - usize::from(apart), "{n} nodes, {a} and {c} apart");
            assert!(apart || (a + 1) % n != c && (c + 1) % n != a, "{a} and {c} are neighbours");
            cluster.heal();
            cluster.run_until(1_000, Cluster::is_one_ring);
        }
    }
}

#[test]
fn a_standing_ring_that_is_no_longer_transitive_settles() {
    for n in [3, 4, 5] {
        for (a, c) in (0..n).flat_map(|a| (a + 1..n).map(move |c| (a, c))) {
            for sender in 0..n {
                let mut cluster = Cluster::started(n, Tune::default());
                cluster.world.network.cut_all(&[(a, c), (c, a)]);
                cluster.multicast(sender, 100);
                settles(&mut cluster, 6, &format!("{n} nodes, {a} and {c} apart, {sender} sends"));
            }
        }
    }
}

/// Also when it is the sender who answers every request first, by the way that is cut (simulator
/// seed 1665 of the world `rings`).
#[test]
fn what_two_do_not_hear_of_each_other_third_ones_send_again() {
    let mut cluster = Cluster::started(3, Tune { parking: false, ..Tune::default() });
    cluster.cut(2, 1); // The token goes from 0 to 1 to 2: never this way.
    let before = views(&cluster);
    for _ in 0..100 {
        cluster.multicast(2, 1_000);
    }
    cluster.run_until(2_000, Cluster::is_quiet);
    assert_eq!(views(&cluster), before);
    check::all(&cluster);
}

/// A link that fails and heals all the time changes the ring ever more rarely.
#[test]
fn a_link_that_flaps_is_held_off() {
    let mut cluster = Cluster::started(3, Tune::default());
    let before = views(&cluster);
    for _ in 0..100 {
        cluster.split(&[0, 0, 1]);
        cluster.run(millis(60));
        cluster.heal();
        cluster.run(millis(60));
    }
    // 12 s: the hold-off reaches 400 ms after five losses, and each costs two views.
    let flaps = views(&cluster) - before;
    assert!(flaps <= 2 * (6 + 12_000 / 400), "{flaps} views");
    let events = cluster.lives.iter().flat_map(|life| &life.events);
    let reasons = events.filter(
        |(_, event)| matches!(event, Event::HeldOff { member, .. } if member.node == NodeId(2)),
    );
    assert!(reasons.count() > 5, "and it says why");
    cluster.run_until(1_000, Cluster::is_one_ring);
}

/// Messages sent while a ring was formed may come when that ring stands, or a later one (simulator
/// seed 79611: a sealed datagram that had been held back for seconds). They break no ring,
/// whichever of the nodes in different rings gets them.
#[test]
fn what_was_said_before_the_rings_that_stand_changes_nothing() {
    for (n, cuts) in [(3, vec![(2, 0)]), (3, vec![(0, 2), (2, 0)]), (5, vec![(4, 0)])] {
        let mut cluster = Cluster::new(n, 7, Tune::default());
        cluster.keep = Some(Vec::new());
        cluster.world.network.cut_all(&cuts);
        for node in 0..n {
            cluster.start(node);
        }
        cluster.run(millis(1_500));
        let settled = views(&cluster);
        let sequence = (0..n).map(|node| cluster.ring(node).id().sequence).min().unwrap();
        let said = cluster.keep.take().unwrap();
        let mut late = 0;
        for (to, bytes) in said {
            let datagram =
                Datagram::decode(CLUSTER, wire::versions::RING, &bytes).expect("as it was sent");
            let from = datagram.sender.node.0 as usize;
            let before = match &datagram.message {
                Message::Join(join) => join.ring_sequence < sequence,
                Message::Beacon(beacon) => beacon.ring.sequence < sequence,
                _ => false,
            };
            if before && cluster.world.network.reaches(from, to) {
                late += 1;
                cluster.inject(to, datagram);
                cluster.run(millis(20));
                assert_eq!(views(&cluster), settled, "{n} nodes, {cuts:?}: {from} said so to {to}");
            }
        }
        assert!(late > n, "{n} nodes, {cuts:?}: {late} late ones");
        check::all(&cluster);
    }
}

/// One partition, however long, costs nobody a hold-off.
#[test]
fn a_partition_that_heals_merges_at_once() {
    let mut cluster = Cluster::started(4, Tune::default());
    cluster.split(&[0, 0, 1, 1]);
    cluster.run(millis(500));
    cluster.heal();
    let before = cluster.now();
    cluster.run_until(100, Cluster::is_one_ring);
    let took = cluster.now().since(before);
    assert!(took <= cluster.tune.timing.beacon_interval + millis(4), "{took:?}");
}

/// Every node in turn leaves and comes back: two rings each, and nobody waits for a timer but the
/// one that starts, for the intervals at which it and the others show themselves.
#[test]
fn a_rolling_restart_costs_two_views_a_node_and_no_time_out() {
    for n in [3, 5, 7] {
        let mut cluster = Cluster::started(n, Tune::default());
        for node in 0..n {
            let witness = (node + 1) % n;
            let count = |cluster: &Cluster| {
                let regular = |seen: &&Seen| matches!(seen, Seen::Configuration(c) if c.kind == ConfigurationKind::Regular);
                cluster.life(witness).seen.iter().filter(regular).count()
            };
            let before = (count(&cluster), cluster.now());
            cluster.leave(node);
            cluster.run_until(5, |c| {
                (0..n).filter(|i| *i != node).all(|i| {
                    c.ring(i).members().len() == n - 1 && c.ring(i).state_name() == "operational"
                })
            });
            assert!(cluster.now().since(before.1) <= cluster.delay() * 6, "leaving {node} of {n}");
            cluster.crash(node);
            let started = cluster.now();
            cluster.start(node);
            cluster.run_until(50, Cluster::is_one_ring);
            let took = cluster.now().since(started);
            let most = cluster.delay() * 12 + cluster.tune.timing.join_interval;
            assert!(took <= most, "starting {node} of {n}: {took:?}");
            assert_eq!(count(&cluster) - before.0, 2, "restarting {node} of {n}");
        }
        check::all(&cluster);
    }
}

/// A ring of `n` that has grown node by node.
fn grown(n: usize) -> Cluster {
    let mut cluster = Cluster::new(n, 5, Tune::default());
    for node in 0..n {
        cluster.start(node);
        cluster.run_until(50, Cluster::is_one_ring);
    }
    cluster
}

/// From the crash of one of `n` to the next ring at all the others, in one-way delays.
fn delays(n: usize, refusals: bool) -> u64 {
    let mut cluster = grown(n);
    cluster.world.refusals = refusals;
    cluster.multicast(0, 0);
    cluster.run(millis(1));
    cluster.crash(n - 1);
    let before = cluster.now();
    cluster.multicast(0, 0);
    cluster.run_until(200, Cluster::is_one_ring);
    (cluster.now().since(before).as_nanos() / cluster.delay().as_nanos()) as u64
}

/// The growth of the paper's membership, which goes round the ring, is not ours.
#[test]
fn a_view_change_costs_32_members_at_most_twice_what_it_costs_3() {
    for refusals in [true, false] {
        let three = delays(3, refusals);
        for n in [4, 8, 16, 32] {
            let delays = delays(n, refusals);
            println!("{n} members, refusals {refusals}: {delays} delays, 3 members: {three}");
            assert!(delays <= three * 2, "{n} members: {delays} delays, 3: {three}");
            assert!(!refusals || delays <= 7, "two of them are the refusal itself");
        }
    }
}

/// Every message of the membership fits into a datagram: the network of these tests refuses larger
/// ones, and 40 entries take three.
#[test]
fn a_large_ring_forms_and_changes() {
    let mut cluster = grown(40);
    cluster.crash(39);
    cluster.multicast(0, 10);
    cluster
        .run_until(100, |cluster| cluster.is_one_ring() && cluster.ring(0).members().len() == 39);
    check::all(&cluster);
}

/// Nodes that start together tell all others what they know three times at once, and then once in a
/// quarter of `join_interval`; else they answer one by one. So it is some datagrams for each pair
/// of them, not one for each three.
#[test]
fn many_nodes_that_start_at_once_talk_in_pairs() {
    for n in [4, 8, 16, 32, 64] {
        for (delay, spread) in [(50, 0), (50, 2_000), (500, 5_000)] {
            let mut cluster = Cluster::new(n, 1, Tune::default());
            cluster.weather().latency = micros(delay);
            let mut random = wire::Random::new(n as u64);
            let mut starts: Vec<_> = (0..n).map(|node| (random.below(spread + 1), node)).collect();
            starts.sort_unstable();
            let begin = cluster.now();
            for (at, node) in starts {
                cluster.run((begin + micros(at)).since(cluster.now()));
                cluster.start(node);
            }
            cluster.run_until(5_000, Cluster::is_one_ring);
            let (joins, pairs) = (cluster.counts["join"], (n * (n - 1)) as u64);
            let took = cluster.now().since(begin);
            println!("{n} nodes within {spread} us, {delay} us apart: {joins} joins, {took:?}");
            let quarters = took.as_nanos() / (cluster.tune.timing.join_interval / 4).as_nanos();
            let most = (6 + quarters as u64) * pairs;
            assert!(joins <= most, "{n} nodes: {joins} joins, not {most}");
        }
    }
}
