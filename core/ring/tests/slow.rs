//! Flow control and a member that does not keep up.
#![allow(missing_docs)]

mod cluster;

use cluster::slow::{defaults, load, nobody_is_slow, ring, slow_reader, told_slow};
use cluster::{Cluster, Tune, check, micros, millis};
use expect_test::expect;
use steadfast_ring::{Charge, Event};
use wire::{NodeId, Time};

/// The ring that parks, and the one whose token always circulates.
fn both() -> [Tune; 2] {
    [true, false].map(|parking| Tune { parking, ..defaults() })
}

#[test]
fn a_member_that_stops_the_others_is_excluded_within_the_bound() {
    for tune in both() {
        let parking = tune.parking;
        for (n, senders) in [(3, 1), (3, 2), (4, 3), (5, 1)] {
            let took = slow_reader(n, senders, micros(300), tune.clone());
            println!("parking {parking}, {n} nodes, {senders} senders: a slow one stays {took:?}");
        }
        for (each, window) in [(400, 48), (200, 96)] {
            let tune = Tune { window, turn: 16, ..tune.clone() };
            let took = slow_reader(3, 2, micros(each), tune);
            println!("parking {parking}, {each} us each, window {window}: it stays {took:?}");
        }
    }
}

/// Stopped for 18 of every 20 milliseconds: between them it is as quick as the others.
#[test]
fn a_member_that_is_slow_by_spells_is_excluded() {
    for tune in both() {
        let parking = tune.parking;
        let mut cluster = ring(4, tune);
        load(&mut cluster, 1, millis(20));
        let before = cluster.now();
        while cluster.ring(0).members().len() == 4 {
            let took = cluster.now().since(before);
            assert!(took < millis(4_000), "parking {parking}: it is excluded");
            cluster.hold_up(3, millis(18));
            load(&mut cluster, 1, millis(20));
        }
        println!("parking {parking}: it stays {:?}", cluster.now().since(before));
        assert_eq!(told_slow(&cluster, before), [NodeId(3)]);
    }
}

/// The last datagram of a turn often comes before others of it: a member that has them all by then
/// says so again.
#[test]
fn without_parking_a_slow_member_is_found_where_datagrams_overtake_each_other() {
    let mut cluster = ring(3, Tune { parking: false, accelerated: 16, ..defaults() });
    cluster.weather().jitter = micros(200);
    cluster.world.read_slowly(1, micros(900));
    let before = cluster.now();
    while cluster.ring(2).members().len() == 3 {
        assert!(cluster.now().since(before) < millis(2_000), "it is excluded");
        while cluster.ring(2).queued() < 200 {
            cluster.multicast(2, 1_000);
        }
        cluster.run(millis(1));
    }
    assert_eq!(told_slow(&cluster, before), [NodeId(1)]);
}

/// The network itself is slow, so that the token takes long to come round, and one member is a
/// little slower.
#[test]
fn without_parking_whoever_is_a_little_slower_than_a_slow_network_is_waited_for() {
    let mut cluster = ring(3, Tune { parking: false, ..defaults() });
    cluster.weather().pace = micros(200);
    cluster.world.read_slowly(2, micros(500));
    let before = cluster.now();
    load(&mut cluster, 1, millis(2_500));
    assert!(cluster.counts["ack"] > 100, "it is asked who holds the token up");
    assert_eq!(told_slow(&cluster, before), []);
    assert_eq!(cluster.ring(0).members().len(), 3);
}

/// While it comes back soon, nobody is asked for an acknowledgement: the paper's ring.
#[test]
fn without_parking_nobody_is_asked_while_the_token_is_quick() {
    let mut cluster = ring(4, Tune { parking: false, ..defaults() });
    let before = cluster.counts.get("ack").copied();
    load(&mut cluster, 2, millis(300));
    assert_eq!(cluster.counts.get("ack").copied(), before);
}

/// It takes in what the others send at three quarters of their pace: the ring waits for it.
#[test]
fn a_member_that_is_a_little_slower_is_waited_for() {
    for tune in both() {
        let mut cluster = ring(3, tune);
        cluster.world.read_slowly(2, micros(30));
        let before = cluster.now();
        load(&mut cluster, 1, millis(1_500));
        assert_eq!(told_slow(&cluster, before), []);
        assert_eq!(cluster.ring(0).members().len(), 3);
    }
}

#[test]
fn members_that_keep_up_are_never_blamed() {
    for tune in both() {
        for (n, senders, window) in [(3, 1, 4), (3, 2, 16), (4, 3, 64), (5, 2, 4)] {
            nobody_is_slow(n, senders, window, tune.clone());
        }
    }
}

/// Slow for 300 ms of each second.
#[test]
fn a_slow_spell_is_forgiven() {
    let mut cluster = ring(4, defaults());
    let before = cluster.now();
    for round in 0..3 {
        cluster.world.read_slowly(1 + round % 3, micros(300));
        load(&mut cluster, 1, millis(300));
        cluster.world.read_slowly(1 + round % 3, micros(0));
        load(&mut cluster, 1, millis(100));
        cluster.run(millis(600));
    }
    assert_eq!(told_slow(&cluster, before), []);
    assert_eq!(cluster.ring(0).members().len(), 4);
}

/// Without the slow one, or the slow ones, no majority would be left: the ring goes on at their
/// pace.
#[test]
fn who_keeps_up_must_be_a_majority() {
    let shapes = [(2, vec![1]), (4, vec![2, 3]), (5, vec![1, 2, 3])];
    for (tune, (n, slow)) in
        both().into_iter().flat_map(|tune| shapes.clone().map(|it| (tune.clone(), it)))
    {
        let mut cluster = ring(n, tune);
        for node in slow {
            cluster.world.read_slowly(node, micros(200));
        }
        let (before, delivered) = (cluster.now(), cluster.ring(n - 1).delivered());
        load(&mut cluster, 1, millis(1_500));
        assert_eq!(told_slow(&cluster, before), [], "{n} nodes");
        assert_eq!(cluster.ring(0).members().len(), n);
        let rate = (cluster.ring(n - 1).delivered() - delivered) * 2 / 3;
        assert!(rate > 1_000, "{n} nodes: at the slow ones' pace, not {rate} a second");
    }
}

/// The sender's datagrams are often lost, or it is slow to read the others' answers.
#[test]
fn a_sender_does_not_blame_others_for_its_own_fault() {
    both().into_iter().for_each(own_fault);
}

fn own_fault(mut tune: Tune) {
    tune.timing.slow_limit = tune.timing.token_timeout_max;
    let mut cluster = ring(3, tune);
    let mut random = wire::Random::new(5);
    let before = cluster.now();
    for _ in 0..10 {
        cluster.heal();
        if random.one_in(2) {
            (1..3).for_each(|to| cluster.cut(0, to));
        }
        load(&mut cluster, 1, millis(1 + random.below(12)));
    }
    cluster.heal();
    for each in [100, 2_000] {
        cluster.world.read_slowly(0, micros(each));
        load(&mut cluster, 1, millis(400));
    }
    assert_eq!(told_slow(&cluster, before), []);
}

/// A node that was stopped finds late that the window was shut when it was: that is charged to
/// nobody.
#[test]
fn a_sender_that_is_held_up_does_not_charge_it_to_others() {
    for tune in both() {
        let mut cluster = ring(3, tune);
        cluster.world.read_slowly(2, micros(30));
        let before = cluster.now();
        for _ in 0..40 {
            load(&mut cluster, 1, millis(10));
            cluster.hold_up(0, millis(45));
            cluster.run(millis(45));
        }
        assert_eq!(told_slow(&cluster, before), []);
    }
}

fn told(cluster: &Cluster, node: usize, since: Time) -> Vec<&Event> {
    let events = &cluster.life(node).events;
    let new = events.iter().filter(|(at, _)| *at >= since).map(|(_, event)| event);
    new.filter(|event| matches!(event, Event::TooSlow { .. })).collect()
}

#[test]
fn every_member_and_the_excluded_one_are_told_why() {
    let mut cluster = ring(4, defaults());
    let before = cluster.now();
    cluster.world.read_slowly(2, micros(300));
    while cluster.ring(0).members().len() == 4 {
        assert!(cluster.now().since(before) < millis(2_000), "it is excluded");
        load(&mut cluster, 1, millis(5));
    }
    cluster.run(millis(40));
    let mut charges = Vec::new();
    for node in 0..4 {
        let [Event::TooSlow { member, by, charge: Some(charge) }] =
            told(&cluster, node, before)[..]
        else {
            panic!("n{node} is told {:?}", told(&cluster, node, before));
        };
        assert_eq!((member.node, by.node), (NodeId(2), NodeId(0)), "n0 is the one that sent");
        let Charge { stopped, within, limit, share } = *charge;
        assert!(stopped > millis(750) && stopped <= within && within < millis(2_000));
        assert_eq!((limit, share), (millis(500), 50));
        charges.push([stopped, within].map(|span| span.as_micros()));
    }
    assert_eq!(charges, vec![charges[0]; 4], "all are told the same figures, whoever told them");
    assert_eq!(cluster.ring(2).members().len(), 1, "it goes on alone");
    check::all(&cluster);
}

/// It comes back by itself; the longer it is held off the more often it was slow.
#[test]
fn who_was_slow_comes_back_later_each_time() {
    let mut cluster = ring(3, defaults());
    let mut away = Vec::new();
    for _ in 0..3 {
        cluster.world.read_slowly(2, micros(300));
        let from = cluster.now();
        while cluster.ring(0).members().len() == 3 {
            assert!(cluster.now().since(from) < millis(2_500), "it is excluded");
            load(&mut cluster, 1, millis(10));
        }
        cluster.world.read_slowly(2, micros(0));
        let from = cluster.now();
        while cluster.ring(0).members().len() < 3 {
            assert!(cluster.now().since(from) < millis(9_000), "it comes back");
            cluster.run(millis(10));
        }
        away.push(cluster.now().since(from).as_millis());
    }
    println!("away for {away:?} ms");
    // 2 * slow_limit, doubling; beacons come ten times a second.
    assert!((1_000..1_400).contains(&away[0]), "{away:?}");
    assert!((2_000..2_400).contains(&away[1]), "{away:?}");
    assert!((4_000..4_400).contains(&away[2]), "{away:?}");
    cluster.run_until(3_000, Cluster::is_quiet);
    check::all(&cluster);
}

/// With a share of 100 percent nobody is excluded.
#[test]
fn it_can_be_switched_off() {
    let mut cluster = ring(3, Tune { slow_share: 100, ..defaults() });
    let before = cluster.now();
    cluster.world.read_slowly(2, micros(300));
    load(&mut cluster, 1, millis(2_000));
    assert_eq!(told_slow(&cluster, before), []);
    assert_eq!(cluster.ring(0).members().len(), 3);
}

/// The moment in which the account is full: the sender says why, all others join, and so the slow
/// one hears it last.
#[test]
fn a_slow_member_is_excluded() {
    let mut cluster = Cluster::started(3, Tune { window: 4, turn: 4, ..Tune::default() });
    cluster.world.read_slowly(2, micros(500));
    while cluster.ring(0).state_name() == "operational" {
        cluster.start_trace();
        while cluster.ring(0).queued() < 8 {
            cluster.multicast(0, 1_000);
        }
        cluster.run(micros(100));
    }
    cluster.run(millis(3));
    let membership = ["join", "commit", "TooSlow", "HeldOff", "Regular"];
    cluster.trace().check_only(&membership, expect![[r#"
        0    us  n0 TooSlow { member: n2.i3000, by: n0.i1000, charge: Some(Charge { stopped: 285.2001ms, within: 370.4001ms, limit: 100ms, share: 50 }) }
        0    us  n0 -> n1 join [n0,n1,n2] failed [n2] slow [n2] (n2 stopped n0 285200 of 370400 us, granted 100000 us and 50 %)
        0    us  n0 -> n2 join [n0,n1,n2] failed [n2] slow [n2] (n2 stopped n0 285200 of 370400 us, granted 100000 us and 50 %)
        50   us  n1 TooSlow { member: n2.i3000, by: n0.i1000, charge: Some(Charge { stopped: 285.2ms, within: 370.4ms, limit: 100ms, share: 50 }) }
        50   us  n1 -> n0 join [n0,n1,n2] failed [n2] slow [n2] (n2 stopped n0 285200 of 370400 us, granted 100000 us and 50 %)
        100  us  n0 -> n1 commit r3943028@n0 call [n0,n1]
        150  us  n1 -> n0 commit r3943028@n0 entry [n1 r3943027@n0 568/572..572]
        200  us  n0 -> n1 commit r3943028@n0 entries [n0 r3943027@n0 568/572..572; n1 r3943027@n0 568/572..572]
        200  us  n0 Regular r3943028@n0 [n0, n1]
        200  us  n0 HeldOff { member: n2.i3000, span: 200ms }
        250  us  n1 Regular r3943028@n0 [n0, n1]
        250  us  n1 HeldOff { member: n2.i3000, span: 200ms }
        1750 us  n2 TooSlow { member: n2.i3000, by: n0.i1000, charge: Some(Charge { stopped: 285.2ms, within: 370.4ms, limit: 100ms, share: 50 }) }
        1750 us  n2 -> n0 join [n0,n1,n2] failed []
        1750 us  n2 -> n1 join [n0,n1,n2] failed []
    "#]]);
}
