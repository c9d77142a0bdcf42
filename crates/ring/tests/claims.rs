//! One test for each claim of docs/protocol/ring.md.
#![allow(missing_docs)]

mod cluster;

use std::collections::BTreeMap;

use bytes::Bytes;
use cluster::{CLUSTER, Cluster, Seen, Tune, check, fairness, micros, millis};
use steadfast_ring::{Config, ConfigError, Event, Level, Output, Refused, Ring, Timing};
use wire::limits::{MAX_MESSAGE, MAX_SEND_QUEUE};
use wire::ring::Message;
use wire::{Incarnation, Member, NodeId, Time};

fn deliveries(cluster: &Cluster, life: usize) -> usize {
    cluster.lives[life].seen.iter().filter(|seen| matches!(seen, Seen::Delivery(_))).count()
}

fn alone() -> Ring {
    let me = Member { node: NodeId(0), incarnation: Incarnation(5) };
    let config = Config::new(CLUSTER, me, vec![NodeId(0), NodeId(1)]);
    Ring::new(config, Time::ZERO).unwrap()
}

#[test]
fn a_node_that_starts_waits_once_before_it_is_alone() {
    let mut ring = alone();
    let timeout = Config::new(
        CLUSTER,
        Member { node: NodeId(0), incarnation: Incarnation(5) },
        vec![NodeId(0)],
    )
    .timing
    .consensus_timeout;
    let mut now = Time::ZERO;
    while ring.state_name() != "operational" {
        assert!(now <= Time::ZERO + timeout, "not later than the consensus time-out");
        now = ring.next_timeout().unwrap();
        ring.handle_timeout(now);
    }
    assert_eq!(now, Time::ZERO + timeout);
}

#[test]
fn a_lone_node_orders_its_own_messages_at_once() {
    let mut ring = alone();
    while ring.state_name() != "operational" {
        let now = ring.next_timeout().unwrap();
        ring.handle_timeout(now);
    }
    while ring.poll_output().is_some() {}
    let now = ring.next_timeout().unwrap();
    ring.multicast(now, Bytes::from_static(b"hello"), Level::Agreed).unwrap();
    let outputs: Vec<_> = std::iter::from_fn(|| ring.poll_output()).collect();
    assert!(!outputs.iter().any(|output| matches!(output, Output::Send { .. })), "{outputs:?}");
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Deliver(d) if d.payload == "hello"))
    );
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Held { majority: 1, all: 1, .. }))
    );
}

#[test]
fn the_holder_sends_and_delivers_within_the_call() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast(1, 0);
    cluster.run(millis(1));
    assert!(cluster.ring(1).holds_token());
    let before = deliveries(&cluster, 1);
    cluster.multicast_at(Level::Held, 1, 0);
    assert_eq!(deliveries(&cluster, 1), before + 1);
    cluster.run(cluster.delay);
    assert_eq!(deliveries(&cluster, 0), before + 1, "one delay later the others deliver too");
    cluster.run(cluster.delay);
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
    // What is sent sets the interval back.
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
    // What was under way when it asked, the turn under way, one of each other, its own.
    let waited = cluster.ring(3).delivered() - before;
    assert!(waited <= (3 + 3) * turn as u64, "{waited} datagrams were sent before it");
}

#[test]
fn the_window_is_never_exceeded() {
    for parking in [true, false] {
        let window = 8;
        let tune = Tune { window, turn: 8, parking, ..Tune::default() };
        let mut cluster = Cluster::started(3, tune);
        cluster.loss = 100;
        for round in 0..200 {
            cluster.multicast(round % 3, 1_000);
        }
        let mut acked: BTreeMap<u64, u64> = BTreeMap::new();
        let end = cluster.now + millis(2_000);
        while cluster.step(end) && !cluster.is_quiet() {
            let id = cluster.ring(0).id();
            if !(0..3).all(|node| cluster.ring(node).id() == id) {
                continue;
            }
            let least = (0..3).map(|node| cluster.ring(node).delivered()).min().unwrap();
            let most = (0..3).map(|node| cluster.ring(node).delivered()).max().unwrap();
            *acked.entry(most - least).or_default() += 1;
            assert!(most - least <= window as u64);
        }
        assert!(cluster.is_quiet());
        check::all(&cluster);
    }
}

#[test]
fn a_message_of_a_mebibyte_survives_a_change_of_the_ring() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast(1, 1 << 20);
    cluster.run(micros(500));
    assert_eq!(cluster.ring(1).queued(), 1, "it is still being sent");
    cluster.crash(2);
    cluster.run_until(1_000, Cluster::is_quiet);
    check::all(&cluster);
    check::converged(&cluster);
    assert_eq!(deliveries(&cluster, 0), 1);
    assert!(
        cluster.life(0).seen.iter().filter(|s| matches!(s, Seen::Configuration(_))).count() > 1
    );
}

#[test]
fn limits_are_refusals() {
    let mut ring = alone();
    let long = Bytes::from(vec![0; MAX_MESSAGE + 1]);
    assert_eq!(
        ring.multicast(Time::ZERO, long, Level::Agreed),
        Err(Refused::TooLarge(MAX_MESSAGE + 1))
    );
    for _ in 0..MAX_SEND_QUEUE {
        ring.multicast(Time::ZERO, Bytes::new(), Level::Safe).unwrap();
    }
    assert_eq!(ring.multicast(Time::ZERO, Bytes::new(), Level::Safe), Err(Refused::QueueFull));
    assert_eq!(ring.queued(), MAX_SEND_QUEUE);
    let me = Member { node: NodeId(0), incarnation: Incarnation(u64::MAX) };
    let config = Config::new(CLUSTER, me, vec![NodeId(0)]);
    assert!(matches!(Ring::new(config, Time::ZERO), Err(ConfigError::Incarnation(_))));
}

/// From the refusal, in one-way delays, whatever the size of the ring: the representative after
/// four, all others after five.
#[test]
fn a_killed_process_costs_five_delays_and_no_timer() {
    for n in [2, 3, 5, 7] {
        for detector in [0, 1] {
            let mut cluster = Cluster::started(n, Tune::default());
            if n == 2 && detector == 1 {
                continue; // The one who finds out is the one who is dead.
            }
            cluster.multicast(detector, 0);
            cluster.run(millis(1));
            cluster.crash(n - 1);
            let before = cluster.now;
            cluster.multicast(detector, 0);
            cluster.run_until(20, Cluster::is_one_ring);
            // There and back: the refusal itself.
            let took = (cluster.now.since(before) - cluster.delay * 2).as_nanos()
                / cluster.delay.as_nanos();
            println!("{n} nodes, node {detector} finds out: {took} one-way delays");
            assert!(took <= 5, "{n} nodes: {took} delays");
            assert!(n > 2 || took == 0);
        }
    }
}

#[test]
fn a_dead_host_is_left_out_after_the_token_time_out_and_no_consensus_time_out() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.refusals = false;
    cluster.crash(1);
    let before = cluster.now;
    cluster.run_until(200, |cluster| cluster.is_one_ring() && cluster.ring(0).members().len() == 2);
    let timing = cluster.tune.timing;
    let most = timing.heartbeat + timing.token_timeout + timing.suspect_wait + millis(1);
    assert!(cluster.now.since(before) <= most, "{:?}", cluster.now.since(before));
}

#[test]
fn a_node_that_was_held_up_accuses_nobody() {
    let mut cluster = Cluster::started(3, Tune::default());
    // Longer than the token's time-out: the others go on without it, it must not do so too.
    cluster.hold_up(2, cluster.tune.timing.token_timeout * 4);
    cluster.run(cluster.tune.timing.token_timeout * 4 + millis(40));
    cluster.run_until(200, Cluster::is_quiet);
    let events: Vec<_> = cluster.lives[2].events.iter().map(|(_, event)| event).collect();
    let accused =
        events.iter().any(|event| matches!(event, Event::Silent(_) | Event::TokenLost { .. }));
    assert!(!accused, "{events:?}");
}

#[test]
fn a_timer_that_fires_late_is_not_believed() {
    let mut cluster = Cluster::started(2, Tune::default());
    let timing = cluster.tune.timing;
    let now = cluster.now + timing.token_timeout * 3;
    let late = if cluster.ring(0).holds_token() { 1 } else { 0 };
    let ring = cluster.ring_mut(late);
    ring.handle_timeout(now);
    assert_eq!(ring.state_name(), "operational");
    let outputs: Vec<_> = std::iter::from_fn(|| ring.poll_output()).collect();
    assert!(outputs.iter().any(|o| matches!(o, Output::Event(Event::HeldUp(_)))), "{outputs:?}");
    // Half a period more, and it is: a longer one than before, for it has seen a hold-up.
    let end = now + timing.heartbeat + timing.token_timeout_max / 2;
    while let Some(due) = ring.next_timeout().filter(|due| *due <= end) {
        ring.handle_timeout(due);
    }
    assert_eq!(ring.state_name(), "gather");
}

#[test]
fn a_short_hold_up_tears_nothing_apart() {
    let mut cluster = Cluster::started(3, Tune::default());
    let id = cluster.ring(0).id();
    for node in [0, 1, 2, 1, 0] {
        cluster.hold_up(node, cluster.tune.timing.token_timeout / 2);
        cluster.run(millis(40));
    }
    assert_eq!(cluster.ring(0).id(), id);
    assert!(cluster.is_one_ring());
}

#[test]
fn what_comes_late_from_an_old_ring_tears_nothing_apart() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast(2, 0);
    // These stay under way until the ring is another.
    cluster.delay = millis(30);
    cluster.multicast(2, 0);
    cluster.delay = micros(50);
    cluster.refusals = false;
    cluster.run(micros(10));
    cluster.crash(2);
    cluster.run_until(200, |cluster| cluster.is_one_ring() && cluster.ring(0).members().len() == 2);
    let id = cluster.ring(0).id();
    cluster.run(millis(60));
    assert_eq!(cluster.ring(0).id(), id);
}

#[test]
fn a_new_life_replaces_the_old_one() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.refusals = false;
    cluster.crash(1);
    cluster.start(1);
    // Its join tells that the old life is over: nobody has to wait for the token's time-out.
    cluster.run_until(4, Cluster::is_one_ring);
    check::all(&cluster);
}

#[test]
fn who_leaves_is_not_waited_for() {
    let mut cluster = Cluster::started(3, Tune::default());
    let before = cluster.now;
    cluster.leave(0);
    cluster.run_until(5, |cluster| {
        cluster.ring(1).members().len() == 2 && cluster.ring(2).members().len() == 2
    });
    assert!(cluster.now.since(before) <= cluster.delay * 5);
    assert_eq!(cluster.ring(0).state_name(), "left");
    assert_eq!(cluster.ring(0).next_timeout(), None);
    assert!(cluster.lives[0].events.iter().any(|(_, event)| *event == Event::Left));
    let now = cluster.now;
    assert_eq!(cluster.ring_mut(0).multicast(now, Bytes::new(), Level::Agreed), Err(Refused::Left));
    cluster.run(millis(100));
    assert_eq!(cluster.ring(1).members().len(), 2, "and it stays away");
}

#[test]
fn what_is_queued_while_a_ring_is_formed_is_sent_on_it() {
    let mut cluster = Cluster::new(3, 1, Tune::default());
    for node in 0..3 {
        cluster.start(node);
        cluster.multicast(node, 0);
    }
    cluster.run_until(50, |cluster| (0..3).all(|life| deliveries(cluster, life) == 3));
    check::all(&cluster);
    check::converged(&cluster);
}

#[test]
fn what_an_interrupted_recovery_promised_is_delivered() {
    cluster::promise::run(Tune::default());
}

/// Two members with more to send than the window holds must not pass the token past a third one
/// that is dead (found by seed 7706 of the swarm) or misses something.
#[test]
fn a_full_window_does_not_hide_a_dead_member() {
    let mut cluster = Cluster::started(3, Tune { window: 4, turn: 4, ..Tune::default() });
    cluster.refusals = false;
    cluster.crash(1);
    for _ in 0..20 {
        cluster.multicast(0, 1_000);
        cluster.multicast(2, 1_000);
    }
    cluster.run_until(100, Cluster::is_quiet);
    check::all(&cluster);
    check::converged(&cluster);
}

/// Totem (TOCS 1995), section 2, and EVS specification 7: when a member delivers a safe message in a
/// regular configuration, all of that configuration have it. The sender knows after one round trip.
#[test]
fn a_safe_message_is_delivered_one_round_trip_after_an_agreed_one() {
    let mut cluster = Cluster::started(4, Tune::default());
    cluster.multicast(1, 0);
    cluster.run(millis(1));
    let before = deliveries(&cluster, 1);
    cluster.multicast_safe(1);
    assert_eq!(deliveries(&cluster, 1), before, "nobody is known to have it");
    cluster.run(cluster.delay * 2);
    assert_eq!(deliveries(&cluster, 1), before + 1, "one round trip later all are");
    assert_eq!(deliveries(&cluster, 0), before, "and nobody else can know that");
    cluster.run(cluster.delay);
    assert!((0..4).all(|life| deliveries(&cluster, life) == before + 1));
}

/// One Stable to each member, however many safe messages and acknowledgements there are; and none
/// while data goes out that says the same.
#[test]
fn stability_is_told_once_not_for_each_acknowledgement() {
    let mut cluster = Cluster::started(4, Tune::default());
    cluster.multicast(1, 0);
    cluster.run(millis(1));
    cluster.counts.clear();
    for _ in 0..10 {
        cluster.multicast_safe(1);
    }
    cluster.run(millis(1));
    assert_eq!(cluster.counts["stable"], 3, "{:?}", cluster.counts);
    cluster.counts.clear();
    for _ in 0..40 {
        cluster.multicast_safe(1);
        cluster.run(cluster.delay / 2);
    }
    cluster.run(millis(1));
    assert_eq!(cluster.counts["stable"], 3, "only the last: {:?}", cluster.counts);
}

/// There is one order: an agreed message waits for a safe one before it, and not for one behind.
#[test]
fn levels_do_not_change_the_order() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.multicast(0, 0);
    cluster.run(millis(1));
    let before = deliveries(&cluster, 0);
    cluster.multicast(0, 0);
    cluster.multicast_safe(0);
    cluster.multicast(0, 0);
    assert_eq!(deliveries(&cluster, 0), before + 1, "only the first can be delivered");
    cluster.run(cluster.delay);
    assert_eq!(deliveries(&cluster, 1), before + 1);
    cluster.run(millis(1));
    assert!((0..3).all(|life| deliveries(&cluster, life) == before + 3));
    check::all(&cluster);
}

/// Without parking a safe message needs what the paper's needs: the token tells who has what.
#[test]
fn without_parking_stability_comes_with_the_token() {
    let mut cluster = Cluster::started(3, Tune { parking: false, ..Tune::default() });
    let before = deliveries(&cluster, 0);
    cluster.multicast_safe(1);
    cluster.run(cluster.delay * 3 * 3);
    assert!((0..3).all(|life| deliveries(&cluster, life) == before + 1), "within three rotations");
    assert_eq!(cluster.counts.get("ack"), None, "nobody acknowledges: {:?}", cluster.counts);
    assert_eq!(cluster.counts.get("want"), None);
}

/// A slow member holds up safe messages, and what comes after them, for as long as it is silent; then
/// it is left out, and the rest deliver them in the transitional configuration.
#[test]
fn a_silent_member_holds_up_safe_messages_until_it_is_left_out() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.refusals = false;
    cluster.multicast(0, 0);
    cluster.run(millis(1));
    cluster.crash(2);
    let before = deliveries(&cluster, 1);
    cluster.multicast_safe(0);
    cluster.multicast(0, 0);
    cluster.run(millis(5));
    assert_eq!(deliveries(&cluster, 1), before);
    cluster.run_until(200, |cluster| cluster.is_one_ring() && cluster.ring(0).members().len() == 2);
    assert_eq!(deliveries(&cluster, 1), before + 2);
    check::all(&cluster);
}

/// Babay and Amir (ICDCS 2016): the next turn begins while the last datagrams of this one still
/// leave, so several senders order more in the same time.
#[test]
fn the_accelerated_ring_orders_more() {
    let ordered = |accelerated, parking| {
        let tune = Tune { turn: 8, accelerated, parking, ..Tune::default() };
        let mut cluster = Cluster::started(4, tune);
        cluster.pace = micros(2);
        for round in 0..12_000 {
            cluster.multicast(round % 4, 1_000);
        }
        let before = cluster.ring(0).delivered();
        cluster.run(millis(10));
        check::all(&cluster);
        let again = cluster.lives.iter().flat_map(|life| &life.events);
        let again = again.filter(|(_, event)| matches!(event, Event::Retransmitted(_))).count();
        assert_eq!(again, 0, "what is on its way is not asked for");
        cluster.ring(0).delivered() - before
    };
    for parking in [true, false] {
        let (classic, accelerated) = (ordered(0, parking), ordered(8, parking));
        println!("parking {parking}: {classic} datagrams, accelerated {accelerated}");
        assert!(accelerated * 10 >= classic * 12, "{accelerated} against {classic}");
    }
}

/// Datagrams of the last turn that are lost after the token has overtaken them are found.
#[test]
fn a_lost_datagram_that_followed_the_token_is_sent_again() {
    let mut cluster = Cluster::started(3, Tune { turn: 4, accelerated: 4, ..Tune::default() });
    cluster.pace = micros(5);
    cluster.filter = |from, to, message| {
        let tail = |data: &wire::ring::Data| data.sequence % 4 == 1 && data.hop < 12;
        from == 1 && to == 2 && matches!(message, Message::Data(data) if tail(data))
    };
    for round in 0..60 {
        cluster.multicast(round % 3, 1_000);
    }
    cluster.run_until(100, Cluster::is_quiet);
    check::all(&cluster);
    check::converged(&cluster);
    let again = cluster.lives.iter().flat_map(|life| &life.events);
    assert!(again.clone().any(|(_, event)| matches!(event, Event::Retransmitted(_))));
}

/// Nobody waits to know who holds a lone agreed message: one is asked for many of them, and all is known soon after.
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
    cluster.pace = micros(1);
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

/// Who asks in an idle ring asks the one who has the token.
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

/// docs/protocol/ring.md, "Who waits how long": whoever is in the token's `wants` gets the token
/// before anybody has it twice, and nobody sends more than a turn meanwhile.
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
