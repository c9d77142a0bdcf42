//! What each style promises beside the semi-active one, which the other tests are about.

use wire::client::Outcome;
use wire::ordered::{GroupOptions, Style};

use crate::harness::{Cluster, ms};

fn of(style: Style) -> GroupOptions {
    GroupOptions { style, ..GroupOptions::default() }
}

fn active() -> Cluster {
    let mut cluster = Cluster::new(5);
    cluster.host_on_with("log", &[1, 2, 3], of(Style::Active));
    cluster
}

#[test]
fn every_active_replica_takes_calls_and_answers_its_own_clients() {
    let mut cluster = active();
    for (node, reply) in [(3, "1:a"), (1, "2:a"), (2, "3:a")] {
        let client = cluster.client(node);
        cluster.learn_view(client, "log");
        let call = cluster.call(client, "log", 1, "a");
        assert_eq!(cluster.reply(call), Outcome::Ok(reply.into()));
        assert!(cluster.waited(call) < ms(2), "{node}: {:?}", cluster.waited(call));
    }
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a", "a", "a"]);
        assert_eq!(cluster.copies(node), 0);
    }
    let stranger = cluster.client(4);
    cluster.forget_view(stranger);
    let call = cluster.call(stranger, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::NotPrimary);
}

#[test]
fn a_call_that_two_active_replicas_take_is_executed_once_and_answered_by_both() {
    let mut cluster = active();
    let at_1 = cluster.client(1);
    let at_3 = cluster.connect_as(at_1, 3);
    let calls = [cluster.call(at_3, "log", 1, "a"), cluster.call(at_1, "log", 1, "a")];
    for call in calls {
        assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    }
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a"]);
        assert_eq!(cluster.copies(node), 1, "node {node} was given it twice");
    }
}

#[test]
fn an_active_replica_does_not_order_what_another_has_ordered() {
    let mut cluster = active();
    let at_1 = cluster.client(1);
    let call = cluster.call(at_1, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.run_for(ms(5));
    let at_3 = cluster.connect_as(at_1, 3);
    let copy = cluster.call(at_3, "log", 1, "a");
    assert_eq!(cluster.reply(copy), Outcome::Ok("1:a".into()));
    cluster.run_for(ms(5));
    assert_eq!([1, 2, 3].map(|node| cluster.copies(node)), [0, 0, 1]);
}

#[test]
fn active_replicas_go_on_without_the_one_that_was_killed() {
    let mut cluster = active();
    let at_2 = cluster.client(2);
    cluster.learn_view(at_2, "log");
    cluster.kill(1);
    let call = cluster.call(at_2, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    assert!(cluster.waited(call) < ms(5), "{:?}", cluster.waited(call));
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(3, "log"), ["a"]);
}
