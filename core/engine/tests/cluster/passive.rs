//! Groups whose primary alone executes: handlers that are not deterministic, and updates.

use steadfast_engine::Event;
use wire::client::Outcome;
use wire::limits::UPDATE_CHUNK;
use wire::ordered::{GroupOptions, Style};

use crate::base::Base;
use crate::harness::service::WHO;
use crate::harness::{Cluster, ms};

const WARM: GroupOptions = GroupOptions {
    style: Style::WarmPassive,
    ack: wire::ordered::AckLevel::Majority,
    durability: wire::ordered::Durability::Memory,
};

/// Nodes 1, 2 and 3 of five have the group.
fn warm<O: Base>(mut cluster: Cluster<O>) -> Cluster<O> {
    cluster.host_on_with("log", &[1, 2, 3], WARM);
    cluster
}

fn failed<O: Base>(cluster: &Cluster<O>) -> Vec<u32> {
    let failed = |event: &Event| matches!(event, Event::UpdateFailed { .. });
    (1..=5).filter(|node| cluster.told(*node, failed)).collect()
}

#[test]
fn the_primary_alone_executes_and_its_backups_have_the_state() {
    let mut cluster = warm(Cluster::new(5));
    let client = cluster.client(1);
    for number in 1..=3 {
        let call = cluster.call(client, "log", number, "a");
        assert_eq!(cluster.reply(call), Outcome::Ok(format!("{number}:a").into()));
        assert!(cluster.waited(call) < ms(1), "{:?}", cluster.waited(call));
    }
    cluster.run_for(ms(5));
    for (node, executions) in [(1, 3), (2, 0), (3, 0)] {
        assert_eq!(cluster.state(node, "log"), ["a", "a", "a"]);
        assert_eq!(cluster.executions(node), executions);
    }
    assert_eq!(failed(&cluster), []);
}

#[test]
fn a_retry_at_the_next_primary_gets_what_the_first_one_drew() {
    let mut cluster = warm(Cluster::in_process(5));
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, WHO);
    assert_eq!(cluster.reply(call), Outcome::Ok("1:by 1".into()));
    cluster.kill(1);
    let other = cluster.connect_as(client, 2);
    let retry = cluster.call(other, "log", 1, WHO);
    assert_eq!(cluster.reply(retry), Outcome::Ok("1:by 1".into()));
    let next = cluster.call(other, "log", 2, WHO);
    assert_eq!(cluster.reply(next), Outcome::Ok("2:by 2".into()));
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(3, "log"), ["by 1", "by 2"]);
}

#[test]
fn what_a_primary_executed_that_was_cut_off_is_taken_back() {
    let mut cluster = warm(Cluster::new(5));
    let at_1 = cluster.client(1);
    let at_2 = cluster.client(2);
    cluster.partition(&[1]);
    let lost = cluster.call(at_1, "log", 1, WHO);
    assert_eq!(cluster.state(1, "log"), ["by 1"], "it does not know yet that it is alone");
    cluster.run_for(ms(300));
    assert!(!cluster.is_answered(lost));
    let kept = cluster.call(at_2, "log", 1, WHO);
    assert_eq!(cluster.reply(kept), Outcome::Ok("1:by 2".into()));
    cluster.heal();
    cluster.run_until_synced("log", 3);
    cluster.run_for(ms(20));
    // The client of what was lost still waits: it may have had it executed at the new primary.
    let state = cluster.state(2, "log").to_vec();
    assert!(state == ["by 2"] || state == ["by 2", "by 2"], "{state:?}");
    for node in [1, 3] {
        assert_eq!(cluster.state(node, "log"), state);
    }
    assert_eq!(failed(&cluster), []);
}

#[test]
fn a_primary_that_stays_so_orders_again_what_was_under_way() {
    let mut cluster = warm(Cluster::new(5));
    cluster.host_on("other", &[4]);
    let at_4 = cluster.client(4);
    let call = cluster.call(at_4, "other", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    // The token rests at node 4, and is lost with it.
    cluster.kill(4);
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, WHO);
    assert_eq!(cluster.state(1, "log"), ["by 1"]);
    assert_eq!(cluster.reply(call), Outcome::Ok("1:by 1".into()));
    cluster.run_for(ms(5));
    assert_eq!(cluster.executions(1), 1, "it is ordered again, and not executed again");
    assert_eq!(cluster.state(2, "log"), ["by 1"]);
    let next = cluster.call(client, "log", 2, WHO);
    assert_eq!(cluster.reply(next), Outcome::Ok("2:by 1".into()));
}

#[test]
fn a_killed_replica_is_given_the_state_while_calls_flow() {
    let mut cluster = warm(Cluster::new(5));
    let client = cluster.client(2);
    cluster.kill(1);
    cluster.run_for(ms(5));
    cluster.restart(1);
    cluster.host_with("log", 1, WARM);
    let big = "x".repeat(100_000);
    for number in 1..=40 {
        let call = cluster.call(client, "log", number, &big);
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
    cluster.run_until_synced("log", 3);
    assert_eq!(cluster.state(1, "log"), cluster.state(2, "log"));
    cluster.kill(2);
    cluster.kill(3);
    let at_1 = cluster.connect_as(client, 1);
    let retry = cluster.call(at_1, "log", 40, &big);
    assert_eq!(cluster.reply(retry), Outcome::Ok(format!("40:{big}").into()));
    assert_eq!(cluster.state(1, "log").len(), 40);
    assert_eq!(failed(&cluster), []);
}

#[test]
fn the_only_replica_gives_its_state_as_of_an_update() {
    let mut cluster = Cluster::new(3);
    cluster.host_on_with("log", &[1], WARM);
    let client = cluster.client(1);
    let big = "x".repeat(UPDATE_CHUNK);
    for number in 1..=3 {
        let call = cluster.call(client, "log", number, &big);
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
    cluster.host_with("log", 2, WARM);
    for number in 4..=20 {
        let call = cluster.call(client, "log", number, WHO);
        assert_eq!(cluster.reply(call), Outcome::Ok(format!("{number}:by 1").into()));
    }
    cluster.run_until_synced("log", 2);
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(2, "log"), cluster.state(1, "log"));
    cluster.unhost("log", 1);
    let at_2 = cluster.connect_as(client, 2);
    let call = cluster.call(at_2, "log", 21, WHO);
    assert_eq!(cluster.reply(call), Outcome::Ok("21:by 2".into()));
}

#[test]
fn a_clean_stop_orders_what_was_executed_before_it_hands_over() {
    let mut cluster = warm(Cluster::new(5));
    let client = cluster.client(1);
    let before = cluster.call(client, "log", 1, WHO);
    cluster.leave(1);
    assert_eq!(cluster.reply(before), Outcome::Ok("1:by 1".into()));
    cluster.run_for(ms(10));
    assert!(cluster.has_left(1));
    let other = cluster.client(2);
    let call = cluster.call(other, "log", 1, WHO);
    assert_eq!(cluster.reply(call), Outcome::Ok("2:by 2".into()));
    assert!(cluster.waited(call) < ms(5), "{:?}", cluster.waited(call));
}

#[test]
fn a_call_that_cannot_reach_the_primary_goes_by_way_of_a_backup() {
    let mut cluster = warm(Cluster::new(5));
    let client = cluster.client(3);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, WHO);
    assert_eq!(cluster.reply(call), Outcome::Ok("1:by 1".into()));
    cluster.run_for(ms(5));
    let at_2 = cluster.connect_as(client, 2);
    let retry = cluster.call(at_2, "log", 1, WHO);
    assert_eq!(cluster.reply(retry), Outcome::Ok("1:by 1".into()));
    assert_eq!([1, 2, 3].map(|node| cluster.executions(node)), [1, 0, 0]);
}

#[test]
fn a_passive_primary_moves_when_what_it_executed_is_ordered() {
    let mut cluster = warm(Cluster::new(5));
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    let before = cluster.call(client, "log", 1, WHO);
    cluster.move_primary(4, "log", 3).expect("asked");
    assert!(cluster.moved(4).is_ok());
    assert_eq!(cluster.reply(before), Outcome::Ok("1:by 1".into()));
    cluster.run_for(ms(1));
    assert_eq!(cluster.replicas("log"), [3, 1, 2]);
    // The client does not know yet: who was primary has its call brought to who is.
    let call = cluster.call(client, "log", 2, WHO);
    assert_eq!(cluster.reply(call), Outcome::Ok("2:by 3".into()));
    cluster.move_primary(3, "log", 1).expect("asked");
    assert!(cluster.moved(3).is_ok());
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 3, WHO);
    assert_eq!(cluster.reply(call), Outcome::Ok("3:by 1".into()));
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["by 1", "by 3", "by 1"]);
    }
    assert_eq!(failed(&cluster), []);
}
