//! How much a turn may send, and what is lost of it.

use super::*;

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
fn the_window_is_never_exceeded() {
    for parking in [true, false] {
        let window = 8;
        let tune = Tune { window, turn: 8, parking, ..Tune::default() };
        let mut cluster = Cluster::started(3, tune);
        cluster.weather().loss = 100;
        for round in 0..200 {
            cluster.multicast(round % 3, 1_000);
        }
        let mut acked: BTreeMap<u64, u64> = BTreeMap::new();
        let end = cluster.now() + millis(2_000);
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

/// Two members with more to send than the window holds must not pass the token past a third one
/// that is dead (found by seed 7706 of the swarm) or misses something.
#[test]
fn a_full_window_does_not_hide_a_dead_member() {
    let mut cluster = Cluster::started(3, Tune { window: 4, turn: 4, ..Tune::default() });
    cluster.world.refusals = false;
    cluster.crash(1);
    for _ in 0..20 {
        cluster.multicast(0, 1_000);
        cluster.multicast(2, 1_000);
    }
    cluster.run_until(100, Cluster::is_quiet);
    check::all(&cluster);
    check::converged(&cluster);
}

/// Babay and Amir (ICDCS 2016): the next turn begins while the last datagrams of this one still
/// leave, so several senders order more in the same time.
#[test]
fn the_accelerated_ring_orders_more() {
    let ordered = |accelerated, parking| {
        let tune = Tune { turn: 8, accelerated, parking, ..Tune::default() };
        let mut cluster = Cluster::started(4, tune);
        cluster.weather().pace = micros(2);
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
    cluster.weather().pace = micros(5);
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
