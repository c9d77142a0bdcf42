//! The promises of each style but the semi-active one, which the other tests cover.

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

fn stateless(nodes: &[u32]) -> Cluster {
    let mut cluster = Cluster::new(5);
    cluster.host_on_with("log", nodes, of(Style::Stateless));
    cluster
}

#[test]
fn a_stateless_call_is_executed_where_it_comes_and_the_ring_hears_nothing_of_it() {
    let mut cluster = stateless(&[1, 2, 3]);
    let ordered = cluster.node(1).status().ring.delivered;
    for node in [3, 1, 2] {
        let client = cluster.client(node);
        let call = cluster.call(client, "log", 1, "a");
        assert!(cluster.is_answered(call), "in the same step");
        assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
        assert_eq!(cluster.state(node, "log"), ["a"]);
    }
    cluster.run_for(ms(100));
    assert_eq!(cluster.node(1).status().ring.delivered, ordered);
}

#[test]
fn a_stateless_replica_serves_without_a_quorum_and_others_say_that_they_cannot() {
    let mut cluster = stateless(&[1, 2, 3]);
    cluster.partition(&[1, 5]);
    cluster.run_for(ms(500));
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    let stranger = cluster.client(5);
    let call = cluster.call(stranger, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::NoReplica);
    cluster.heal();
    cluster.run_until_synced("log", 3);
    assert_eq!(cluster.state(1, "log"), ["a"], "nobody has given it another state");
}

#[test]
fn a_stateless_replica_joins_without_a_transfer_and_leaves_when_it_likes() {
    let mut cluster = stateless(&[1]);
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.host_with("log", 2, of(Style::Stateless));
    cluster.run_until_synced("log", 2);
    assert!(cluster.state(2, "log").is_empty());
    cluster.unhost("log", 1);
    cluster.run_for(ms(20));
    assert_eq!(cluster.replicas("log"), [2]);
    cluster.forget_view(client);
    let call = cluster.call(client, "log", 2, "b");
    let reply = cluster.whole_reply(call);
    assert_eq!(reply.outcome, Outcome::NotPrimary);
    assert_eq!(reply.targets.expect("the client knew no view").nodes.len(), 1);
}

#[test]
fn a_client_of_a_stateless_group_is_sent_to_the_replica_that_it_has_found() {
    let mut cluster = stateless(&[1, 2, 3]);
    let client = cluster.client(2);
    cluster.forget_view(client);
    let call = cluster.call(client, "log", 1, "a");
    let targets = cluster.whole_reply(call).targets.expect("the client knew no view");
    assert_eq!(targets.nodes.iter().map(|target| target.node.0).collect::<Vec<_>>(), [2, 1, 3]);
    assert_eq!(targets.style, Style::Stateless);
}

#[test]
fn the_last_stateless_replica_that_dies_is_followed_by_any_other() {
    let mut cluster = stateless(&[2]);
    let client = cluster.client(3);
    cluster.learn_view(client, "log");
    cluster.kill(2);
    cluster.run_for(ms(50));
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::NoReplica, "it may come back");
    cluster.host_with("log", 3, of(Style::Stateless));
    cluster.run_for(ms(50));
    let call = cluster.call(client, "log", 2, "b");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:b".into()));
}
