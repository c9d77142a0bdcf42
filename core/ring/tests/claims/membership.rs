//! The members, and how soon all know them.

use super::*;

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
            let before = cluster.now();
            cluster.multicast(detector, 0);
            cluster.run_until(20, Cluster::is_one_ring);
            // There and back: the refusal itself.
            let took = (cluster.now().since(before) - cluster.delay() * 2).as_nanos()
                / cluster.delay().as_nanos();
            println!("{n} nodes, node {detector} finds out: {took} one-way delays");
            assert!(took <= 5, "{n} nodes: {took} delays");
            assert!(n > 2 || took == 0);
        }
    }
}

#[test]
fn a_dead_host_is_left_out_after_the_token_time_out_and_no_consensus_time_out() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.world.refusals = false;
    cluster.crash(1);
    let before = cluster.now();
    cluster.run_until(200, |cluster| cluster.is_one_ring() && cluster.ring(0).members().len() == 2);
    let timing = cluster.tune.timing;
    let most = timing.heartbeat + timing.token_timeout + timing.suspect_wait + millis(1);
    assert!(cluster.now().since(before) <= most, "{:?}", cluster.now().since(before));
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
    let now = cluster.now() + timing.token_timeout * 3;
    let late = if cluster.ring(0).holds_token() { 1 } else { 0 };
    let ring = &mut cluster.world.machine_mut(late).ring;
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

/// Where processes have to wait for a processor, who is asked answers late. All wait for each other
/// in proportion to that, come to one ring, and stay in it; with waits of fixed length each was
/// accused before it could answer, and rings fell apart as soon as they stood.
#[test]
fn nodes_that_run_in_turns_leave_a_dead_one_out_and_stay_together() {
    const NODES: usize = 5;
    for span in [4, 12, 16, 20, 25, 30].map(millis) {
        let mut cluster = Cluster::started(NODES, Tune::default());
        cluster.world.refusals = false;
        cluster.crash(NODES - 1);
        let before = cluster.now();
        while !cluster.is_one_ring() {
            assert!(cluster.now().since(before) < millis(2_000), "each runs for {span:?}");
            take_turns(&mut cluster, NODES - 1, span);
        }
        let (ring, took) = (cluster.ring(0).id(), cluster.now().since(before));
        println!("each runs for {span:?} in turns: one ring after {took:?}");
        while cluster.now().since(before) < took + millis(2_000) {
            take_turns(&mut cluster, NODES - 1, span);
        }
        assert!(cluster.is_one_ring() && cluster.ring(0).id() == ring, "each runs for {span:?}");
    }
}

/// Each of so many nodes runs once for this long, while all others are held up.
fn take_turns(cluster: &mut Cluster, nodes: usize, span: Duration) {
    for node in 0..nodes {
        let others = (0..nodes).filter(|other| *other != node);
        others.for_each(|other| cluster.hold_up(other, span));
        cluster.run(span);
    }
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
    cluster.weather().latency = millis(30);
    cluster.multicast(2, 0);
    cluster.weather().latency = micros(50);
    cluster.world.refusals = false;
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
    cluster.world.refusals = false;
    cluster.crash(1);
    cluster.start(1);
    // Its join tells that the old life is over: nobody has to wait for the token's time-out.
    cluster.run_until(4, Cluster::is_one_ring);
    check::all(&cluster);
}

#[test]
fn who_leaves_is_not_waited_for() {
    let mut cluster = Cluster::started(3, Tune::default());
    let before = cluster.now();
    cluster.leave(0);
    cluster.run_until(5, |cluster| {
        cluster.ring(1).members().len() == 2 && cluster.ring(2).members().len() == 2
    });
    assert!(cluster.now().since(before) <= cluster.delay() * 5);
    assert_eq!(cluster.ring(0).state_name(), "left");
    assert_eq!(cluster.ring(0).next_timeout(), None);
    assert!(cluster.lives[0].events.iter().any(|(_, event)| *event == Event::Left));
    let refused = cluster.ask(0, |host, now| host.ring.multicast(now, Bytes::new(), Level::Agreed));
    assert_eq!(refused, Err(Refused::Left));
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
