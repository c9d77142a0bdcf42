//! The token rests, and who wants it gets it in bounded time.

use super::*;

#[test]
fn the_holder_sends_and_delivers_within_the_call() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast(1, 0);
    cluster.run(millis(1));
    assert!(cluster.ring(1).holds_token());
    let before = deliveries(&cluster, 1);
    cluster.multicast_at(Level::Held, 1, 0);
    assert_eq!(deliveries(&cluster, 1), before + 1);
    cluster.run(cluster.delay());
    assert_eq!(deliveries(&cluster, 0), before + 1, "one delay later the others deliver too");
    cluster.run(cluster.delay());
    let last = cluster.lives[1].seen.last().unwrap();
    assert!(matches!(last, Seen::Held { majority, all, .. } if majority == all), "{last:?}");
}

#[test]
fn an_idle_ring_sends_one_pulse_a_member_ever_more_rarely() {
    let mut cluster = Cluster::started(4, Tune::default());
    cluster.multicast_at(Level::Held, 2, 0);
    cluster.run(millis(1));
    cluster.counts.clear();
    let timing = cluster.tune.timing;
    // After 5, 10, 20 and then 25 ms each.
    cluster.run(timing.heartbeat * 7);
    assert_eq!(cluster.counts, BTreeMap::from([("pulse", 3 * 4)]));
    cluster.run(timing.heartbeat_max * 20);
    assert_eq!(cluster.counts, BTreeMap::from([("pulse", 23 * 4)]));
    // A send sets the interval back.
    cluster.multicast_at(Level::Held, 2, 0);
    cluster.run(millis(1));
    cluster.counts.clear();
    cluster.run(timing.heartbeat * 3);
    assert_eq!(cluster.counts, BTreeMap::from([("pulse", 2 * 4)]));
}

/// A lost pulse is not a lost member: the token goes round once, and the ring is quiet again.
#[test]
fn a_lost_pulse_costs_one_round() {
    let mut cluster = Cluster::started(4, Tune::default());
    cluster.multicast(2, 0);
    cluster.run(millis(100));
    let id = cluster.ring(0).id();
    cluster.drop_next = Some(|message| matches!(message, Message::Pulse(_)));
    cluster.counts.clear();
    cluster.run(cluster.tune.timing.heartbeat_max + millis(4));
    assert_eq!(cluster.counts["token"], 4, "{:?}", cluster.counts);
    assert_eq!(cluster.counts["ack"], 3, "{:?}", cluster.counts);
    cluster.run(millis(200));
    assert_eq!(cluster.counts["token"], 4, "{:?}", cluster.counts);
    assert_eq!(cluster.ring(0).id(), id);
}

#[test]
fn without_parking_the_token_never_rests() {
    let mut cluster = Cluster::started(4, Tune { parking: false, ..Tune::default() });
    cluster.counts.clear();
    cluster.run(millis(10));
    assert_eq!(cluster.counts["token"], 200, "one pass per delay of 50 us");
    for node in 0..4 {
        let rotations = cluster.ring(node).rotations().expect("it is back again and again");
        let last = rotations.spans().find(|(span, _)| span.contains(&200_000));
        assert!(
            last.is_some_and(|(_, count)| count >= 49),
            "a rotation takes four delays: {rotations:?}"
        );
    }
}

#[test]
fn a_wanter_waits_at_most_for_the_turns_of_the_others() {
    let turn = 4;
    let mut cluster = Cluster::started(4, Tune { turn, ..Tune::default() });
    // Everybody else has more to send than it can.
    for node in 0..3 {
        for _ in 0..400 {
            cluster.multicast(node, 1_000);
        }
    }
    cluster.run(millis(1));
    let before = cluster.ring(3).delivered();
    cluster.multicast(3, 0);
    cluster.run_until(50, |cluster| {
        cluster.lives[3]
            .seen
            .iter()
            .any(|seen| matches!(seen, Seen::Delivery(d) if d.sender.node == NodeId(3)))
    });
    // The datagrams under way when it asked, the turn under way, one of each other, its own.
    let waited = cluster.ring(3).delivered() - before;
    assert!(waited <= (3 + 3) * turn as u64, "{waited} datagrams were sent before it");
}

/// Nobody waits to know who holds a lone agreed message: one is asked for many of them, and all is
/// known soon after.
#[test]
fn lone_agreed_messages_cost_few_acknowledgements() {
    let acks = |level| {
        let tune = Tune { timing: Timing::default(), window: 256, turn: 64, ..Tune::default() };
        let mut cluster = Cluster::started(4, tune);
        cluster.multicast(1, 0);
        cluster.run(millis(30));
        cluster.counts.clear();
        for _ in 0..1_000 {
            cluster.multicast_at(level, 1, 100);
            cluster.run(micros(200));
        }
        cluster.run(millis(5));
        let last = cluster.lives[1].seen.last().unwrap();
        assert!(matches!(last, Seen::Held { all: 1_001, .. }), "{last:?}");
        assert_eq!(cluster.counts.get("token"), None);
        println!("{level:?}: {:?}", cluster.counts);
        cluster.counts["ack"]
    };
    assert_eq!(acks(Level::Held), 3_000);
    assert!(acks(Level::Agreed) <= 3 * 1_000 / 5);
}

/// Many who have something to send ask once each, and then the token knows.
#[test]
fn wants_of_many_are_few() {
    let n = 32;
    let mut cluster = Cluster::started(n, Tune { window: 256, ..Tune::default() });
    cluster.weather().pace = micros(1);
    cluster.counts.clear();
    // More than they can send in that time.
    for round in 0..16 {
        for node in 0..n {
            while cluster.ring(node).queued() < 100 {
                cluster.multicast(node, 1_000);
            }
        }
        cluster.run(millis(1));
        let wants = cluster.counts["want"];
        assert!(wants <= 3 * (n * n) as u64, "{wants} after {round} ms");
    }
    println!("all have much to send: {:?}", cluster.counts);
    check::all(&cluster);
}

/// In an idle ring a member that wants the token asks only its holder.
#[test]
fn in_an_idle_ring_the_holder_alone_is_asked() {
    let n = 32;
    let mut cluster = Cluster::started(n, Tune::default());
    cluster.run(millis(50));
    cluster.counts.clear();
    for round in 0..100 {
        cluster.multicast(7 * round % n, 100);
        cluster.run(millis(4));
    }
    assert!(cluster.counts["want"] <= 100, "{:?}", cluster.counts);
    assert_eq!(cluster.ring(0).delivered(), 100);
}

/// docs/protocol/ring.md, "Longest wait for the token": a member in the token's `wants` gets the
/// token before anybody has it twice, and nobody sends more than a turn meanwhile.
#[test]
fn nobody_is_passed_over_and_no_turn_is_longer_than_it_may_be() {
    for seed in 0..30 {
        fairness::run(seed, Tune::default());
    }
}

/// The same bound in time, without loss.
#[test]
fn a_modest_sender_waits_no_longer_than_the_formula() {
    for n in [2, 4, 7] {
        for accelerated in [0, 8] {
            fairness::modest(n, Tune { accelerated, ..Tune::default() });
        }
    }
}

/// Acknowledgements leave before all else, and what they say holds for what leaves behind them: a
/// member that waits to know who has a message needs no further word when the message itself comes
/// last.
#[test]
fn what_overtakes_the_message_that_it_is_about_counts_when_that_comes() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(millis(1));
    let (ring, members) = (cluster.ring(0).id(), cluster.ring(0).members().to_vec());
    let before = cluster.ring(0).delivered();
    let known = |cluster: &Cluster| {
        let of = |node: usize| {
            let ring_1 = cluster.ring(1);
            (ring_1.reached(ring, members[node]), ring_1.stored(ring, members[node]))
        };
        [of(0), of(2)]
    };
    cluster.keep = Some(Vec::new());
    cluster.filter =
        |from, to, message| (from, to) == (0, 1) && matches!(message, Message::Data(_));
    cluster.multicast_at(Level::Held, 0, 0);
    cluster.run(cluster.delay());
    for node in [0, 2] {
        cluster.acknowledge(node, members[1]);
        cluster.tell_stored(node, before + 1);
    }
    cluster.run(cluster.delay());
    assert_eq!(known(&cluster), [(before, before); 2], "node 1 has not seen it");
    let sent = cluster.keep.take().expect("kept").into_iter().filter(|(to, _)| *to == 1);
    let mut sent = sent.map(|(_, bytes)| {
        Datagram::decode(CLUSTER, wire::versions::RING, &bytes).expect("it was sent")
    });
    let late = sent.find(|late| matches!(late.message, Message::Data(_))).expect("data");
    cluster.inject(1, late);
    assert_eq!(known(&cluster), [(before + 1, before + 1); 2]);
    let told = cluster.life(1).seen.iter().rev().find(|seen| matches!(seen, Seen::Held { .. }));
    assert!(matches!(told, Some(Seen::Held { all, .. }) if *all == before + 1), "{told:?}");
}
