//! The claims of docs/protocol/ring.md, "Confirming".
#![allow(missing_docs)]

mod cluster;

use cluster::{Cluster, Seen, Tune, millis};
use steadfast_ring::Level;

/// The rounds that were confirmed at this node, with their numbers.
fn confirmed(cluster: &Cluster, node: usize) -> Vec<(u64, u64)> {
    let told = |seen: &Seen| match seen {
        Seen::Confirmed { ring, round, upto } if *ring == cluster.ring(node).id() => {
            Some((*round, *upto))
        }
        _ => None,
    };
    cluster.life(node).seen.iter().filter_map(told).collect()
}

fn quiet(n: usize) -> Cluster {
    let mut cluster = Cluster::started(n, Tune::default());
    cluster.multicast(n - 1, 0);
    cluster.run(millis(20));
    cluster
}

#[test]
fn a_round_takes_a_round_trip_and_orders_nothing() {
    let mut cluster = quiet(4);
    let ordered = cluster.ring(1).delivered();
    let round = cluster.confirm(3).expect("a ring");
    assert_eq!(confirmed(&cluster, 3), []);
    cluster.run(cluster.delay() * 2);
    assert_eq!(confirmed(&cluster, 3), [(round, ordered)]);
    cluster.run(millis(20));
    assert_eq!(cluster.ring(1).delivered(), ordered);
    assert_eq!(confirmed(&cluster, 3).len(), 1, "once");
}

#[test]
fn who_asks_while_a_round_is_under_way_gets_the_next() {
    let mut cluster = quiet(3);
    let first = cluster.confirm(0);
    let later = cluster.confirm(0);
    assert_ne!(first, later);
    assert_eq!(cluster.confirm(0), later, "one for all who wait");
    cluster.run(cluster.delay() * 2);
    assert_eq!(confirmed(&cluster, 0).len(), 1);
    cluster.run(cluster.delay() * 2);
    let rounds: Vec<u64> = confirmed(&cluster, 0).into_iter().map(|(round, _)| round).collect();
    assert_eq!(rounds, [first.unwrap(), later.unwrap()]);
}

#[test]
fn the_number_is_the_furthest_of_those_who_answer() {
    let mut cluster = quiet(3);
    let before = cluster.ring(0).delivered();
    cluster.split(&[1, 0, 0]);
    cluster.multicast_at(Level::Held, 2, 0);
    cluster.run(cluster.delay() * 2);
    cluster.split(&[0, 0, 0]);
    assert_eq!(cluster.ring(0).delivered(), before, "a majority has it, and 0 has not");
    let round = cluster.confirm(0).unwrap();
    cluster.run(cluster.delay() * 2);
    assert_eq!(confirmed(&cluster, 0), [(round, before + 1)]);
}

#[test]
fn a_minority_is_never_confirmed() {
    let mut cluster = quiet(5);
    let ring = cluster.ring(0).id();
    cluster.split(&[0, 0, 1, 1, 1]);
    let round = cluster.confirm(0).expect("it does not know yet");
    cluster.run(millis(1_000));
    let of_the_old = |seen: &Seen| matches!(seen, Seen::Confirmed { ring: of, round: told, .. } if *of == ring && *told >= round);
    assert!(!cluster.life(0).seen.iter().any(of_the_old));
    assert_ne!(cluster.ring(0).id(), ring);
    assert_eq!(cluster.confirm(0), Some(1), "rounds begin anew in each ring");
}

#[test]
fn a_lost_question_is_asked_again() {
    let mut cluster = quiet(3);
    cluster.split(&[0, 1, 1]);
    let round = cluster.confirm(0).unwrap();
    cluster.run(cluster.delay() * 2);
    cluster.split(&[0, 0, 0]);
    assert_eq!(confirmed(&cluster, 0), []);
    cluster.run(millis(10));
    assert_eq!(confirmed(&cluster, 0).first().map(|(round, _)| *round), Some(round));
}

#[test]
fn acknowledgements_of_what_was_sent_since_confirm_too() {
    let mut cluster = quiet(3);
    let holder = (0..3).find(|node| cluster.ring(*node).holds_token()).expect("it rests");
    // The questions are lost, and what is sent after them arrives.
    cluster.weather().loss = 1_000;
    let round = cluster.confirm(holder).unwrap();
    cluster.weather().loss = 0;
    cluster.multicast_at(Level::Held, holder, 0);
    let number = cluster.ring(holder).delivered();
    cluster.run(cluster.delay() * 2);
    assert_eq!(confirmed(&cluster, holder), [(round, number)]);
}

#[test]
fn a_lone_node_is_its_own_majority() {
    let mut cluster = quiet(1);
    let round = cluster.confirm(0).unwrap();
    cluster.run(millis(1));
    assert_eq!(confirmed(&cluster, 0).last().map(|(round, _)| *round), Some(round));
}
