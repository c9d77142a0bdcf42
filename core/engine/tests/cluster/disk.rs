//! Groups on disk: what was answered is there after the loss of all lives.

use steadfast_engine::ordering::InProcess;
use steadfast_engine::{HostError, Stack};
use wire::GroupId;
use wire::client::Outcome;
use wire::ordered::{Durability, GroupOptions, Style};

use crate::base::Base;
use crate::fake_disk::SYNC;
use crate::harness::{Cluster, DELAY, ms};

fn on_disk() -> GroupOptions {
    GroupOptions { durability: Durability::Disk, ..GroupOptions::default() }
}

fn ok(outcome: Outcome) -> String {
    let Outcome::Ok(bytes) = outcome else { panic!("{outcome:?}") };
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Every node's process ends at once, and starts again with what its disk has.
fn lose_all<O: Base>(cluster: &mut Cluster<O>, nodes: &[u32], group: &str, hosts: &[u32]) {
    for node in nodes {
        cluster.kill(*node);
    }
    for node in nodes {
        cluster.restart(*node);
    }
    for node in hosts {
        cluster.host_with(group, *node, on_disk());
    }
}

pub fn what_was_answered_is_there_after_the_loss_of_all<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on_with("log", &[1, 2, 3], on_disk());
    let client = cluster.client(1);
    for (number, body) in [(1, "a"), (2, "b"), (3, "c")] {
        let call = cluster.call(client, "log", number, body);
        assert_eq!(ok(cluster.reply(call)), format!("{number}:{body}"));
        assert!(cluster.waited(call) >= SYNC, "not before a disk has it");
    }
    // At this very moment: nothing that was answered may still be on its way to a majority.
    lose_all(&mut cluster, &[1, 2, 3, 4, 5], "log", &[1, 2, 3]);
    cluster.run_until_synced("log", 3);
    let primary = cluster.primary(1, "log").unwrap();
    let again = cluster.connect_as(client, primary);
    let retry = cluster.call(again, "log", 3, "c");
    assert_eq!(ok(cluster.reply(retry)), "3:c", "executed once");
    let next = cluster.call(again, "log", 4, "d");
    assert_eq!(ok(cluster.reply(next)), "4:d");
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a", "b", "c", "d"]);
    }
}

#[test]
fn a_majority_of_the_nodes_goes_on_with_its_disks() {
    let mut cluster = Cluster::new_on_disk(5);
    cluster.host_on_with("log", &[1, 2, 3], on_disk());
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(ok(cluster.reply(call)), "1:a");
    for node in 1..=5 {
        cluster.kill(node);
    }
    // One of the three replicas, which may lack what the two others have.
    for node in [3, 4, 5] {
        cluster.restart(node);
    }
    cluster.host_with("log", 3, on_disk());
    cluster.run_for(ms(2_000));
    assert_eq!(cluster.primary(3, "log"), None, "two of them may know more");
    cluster.restart(2);
    cluster.host_with("log", 2, on_disk());
    cluster.run_for(ms(2_000));
    let primary = cluster.primary(3, "log").expect("two of three replicas are enough");
    let again = cluster.connect_as(client, primary);
    let retry = cluster.call(again, "log", 1, "a");
    assert_eq!(ok(cluster.reply(retry)), "1:a");
    assert_eq!(cluster.state(primary, "log"), ["a"]);
}

/// 1, 2 and 3 are a component while 4 and 5 are cut off, and then all lives end; 3, 4 and 5 are the
/// first who are back. Whether 3's disk knows that component is all that keeps them from going on
/// without it, for a majority of its own members' disks is not among theirs.
fn the_smaller_side_comes_back_first(stored: bool) -> Cluster {
    let mut cluster = Cluster::new_on_disk(5);
    cluster.host_on_with("log", &[1, 2, 4, 5], on_disk());
    cluster.run_for(ms(50));
    cluster.fake_disk(3).stuck = !stored;
    cluster.partition(&[4, 5]);
    cluster.run_for(ms(500));
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    cluster.run_for(ms(500));
    assert_eq!(cluster.is_answered(call), stored, "all members' disks have to know of it");
    for node in 1..=5 {
        cluster.kill(node);
    }
    cluster.heal();
    cluster.fake_disk(3).stuck = false;
    for node in 3..=5 {
        cluster.restart(node);
    }
    for node in [4, 5] {
        cluster.host_with("log", node, on_disk());
    }
    cluster.run_for(ms(2_000));
    cluster
}

#[test]
fn nothing_is_answered_in_a_component_that_not_all_its_disks_know() {
    let cluster = the_smaller_side_comes_back_first(false);
    assert!(cluster.primary(3, "log").is_some(), "they know of nothing else");
    assert!(cluster.state(4, "log").is_empty());
}

#[test]
fn who_knows_of_a_later_component_waits_for_its_members() {
    let mut cluster = the_smaller_side_comes_back_first(true);
    let quorate = cluster.node(3).status().ring.quorate;
    assert_eq!(quorate, Some(false), "1 and 2 may have answered");
    for node in [1, 2] {
        cluster.restart(node);
        cluster.host_with("log", node, on_disk());
    }
    cluster.run_until_synced("log", 4);
    assert_eq!(cluster.state(4, "log"), ["a"]);
}

#[test]
fn while_there_may_be_groups_in_memory_all_nodes_are_waited_for() {
    let mut cluster = Cluster::new_on_disk(3);
    cluster.host_on_with("log", &[1, 2, 3], on_disk());
    cluster.host_on("volatile", &[1, 2, 3]);
    cluster.run_for(ms(20));
    for node in 1..=3 {
        cluster.kill(node);
    }
    for node in [1, 2] {
        cluster.restart(node);
        cluster.host_with("log", node, on_disk());
    }
    cluster.run_for(ms(2_000));
    assert_eq!(cluster.node(1).status().ring.quorate, Some(false));
    cluster.restart(3);
    cluster.host_with("log", 3, on_disk());
    cluster.run_until_synced("log", 3);
}

#[test]
fn a_snapshot_stands_for_the_log() {
    let mut cluster = Cluster::new_on_disk(3);
    cluster.snapshot_after = 4;
    for node in 1..=3 {
        cluster.kill(node);
        cluster.restart(node);
    }
    cluster.host_on_with("log", &[1, 2, 3], on_disk());
    let client = cluster.client(1);
    let mut expected = Vec::new();
    for number in 1..=11 {
        let body = format!("entry {number}");
        let call = cluster.call(client, "log", number, &body);
        ok(cluster.reply(call));
        expected.push(body);
    }
    cluster.run_for(ms(20));
    assert!((1..=3).all(|node| cluster.fake_disk(node).has_snapshot(Some(GroupId::of("log")))));
    lose_all(&mut cluster, &[1, 2, 3], "log", &[1, 2, 3]);
    cluster.run_until_synced("log", 3);
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), expected);
        let status = cluster.node(node).status();
        assert_eq!(status.groups[0].executed, Some(11), "node {node}");
        assert_eq!(status.groups[0].sessions, Some(1), "node {node}");
    }
}

#[test]
fn a_replica_that_is_hosted_late_brings_its_group_back() {
    let mut cluster = Cluster::new_on_disk(3);
    cluster.host_on_with("log", &[1, 2, 3], on_disk());
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    ok(cluster.reply(call));
    lose_all(&mut cluster, &[1, 2, 3], "log", &[]);
    cluster.run_for(ms(1_000));
    assert_eq!(cluster.primary(1, "log"), None);
    cluster.host_with("log", 1, on_disk());
    cluster.run_for(ms(100));
    assert_eq!(cluster.primary(1, "log"), None, "one of three may lack what was answered");
    cluster.host_with("log", 2, on_disk());
    cluster.run_for(ms(100));
    assert!(cluster.primary(1, "log").is_some());
    cluster.host_with("log", 3, on_disk());
    cluster.run_until_synced("log", 3);
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a"]);
    }
}

/// The simulator's world `everything`, seed 136: in the second component of its node's life nobody
/// knew any more whose state it was. It gave that up, and was said to have it when another came.
#[test]
fn a_replica_that_is_hosted_late_is_known_in_later_components() {
    let mut cluster = Cluster::new_on_disk(4);
    cluster.host_on_with("log", &[1, 2, 3], on_disk());
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    ok(cluster.reply(call));
    lose_all(&mut cluster, &[1, 2, 3, 4], "log", &[]);
    cluster.run_for(ms(1_000));
    cluster.host_with("log", 1, on_disk());
    for _ in 0..2 {
        cluster.run_for(ms(100));
        cluster.kill(4);
        cluster.run_for(ms(300));
        cluster.restart(4);
        cluster.run_for(ms(1_000));
        assert_eq!(cluster.primary(1, "log"), None, "one of three may lack what was answered");
    }
    cluster.host_with("log", 2, on_disk());
    cluster.run_for(ms(100));
    assert!(cluster.primary(1, "log").is_some(), "two of three have what was answered");
    cluster.host_with("log", 3, on_disk());
    cluster.run_until_synced("log", 3);
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a"]);
    }
}

#[test]
fn a_slow_disk_is_not_waited_for_where_a_majority_has_it() {
    let mut cluster = Cluster::new_on_disk(3);
    cluster.host_on_with("log", &[1, 2, 3], on_disk());
    cluster.fake_disk(3).stuck = true;
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(ok(cluster.reply(call)), "1:a");
    assert!(cluster.waited(call) < SYNC + DELAY * 10, "{:?}", cluster.waited(call));
    cluster.fake_disk(2).stuck = true;
    let call = cluster.call(client, "log", 2, "b");
    cluster.run_for(ms(500));
    assert!(!cluster.is_answered(call), "on one disk of three");
    cluster.fake_disk(2).stuck = false;
    assert_eq!(ok(cluster.reply(call)), "2:b");
}

#[test]
fn a_joiner_counts_when_its_disk_has_the_state() {
    let mut cluster = Cluster::new_on_disk(3);
    cluster.host_on_with("log", &[1, 2], on_disk());
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    ok(cluster.reply(call));
    cluster.run_for(ms(10));
    cluster.fake_disk(3).stuck = true;
    cluster.host_with("log", 3, on_disk());
    cluster.run_for(ms(200));
    assert_eq!(cluster.state(3, "log"), ["a"], "it has the state");
    let synced = |cluster: &Cluster| {
        let group = &cluster.node(1).status().groups[0];
        group.replicas.iter().filter(|replica| replica.synced).count()
    };
    assert_eq!(synced(&cluster), 2, "but its disk has not");
    cluster.fake_disk(3).stuck = false;
    cluster.run_until_synced("log", 3);
}

#[test]
fn a_group_on_disk_needs_a_disk() {
    let mut cluster = Cluster::<InProcess>::in_process(1);
    let host = |stack: &mut Stack<InProcess>, now| stack.host(now, "log", on_disk());
    assert_eq!(cluster.ask(1, host), Err(HostError::NoStorage));
}

#[test]
fn every_style_with_a_state_comes_back() {
    for style in Style::ALL.into_iter().filter(|style| style.has_state()) {
        let options = GroupOptions { style, ..on_disk() };
        let mut cluster = Cluster::new_on_disk(3);
        cluster.host_on_with("log", &[1, 2, 3], options);
        let client = cluster.client(1);
        let call = cluster.call(client, "log", 1, "a");
        ok(cluster.reply(call));
        for node in 1..=3 {
            cluster.kill(node);
            cluster.restart(node);
        }
        for node in 1..=3 {
            cluster.host_with("log", node, options);
        }
        cluster.run_until_synced("log", 3);
        let again = cluster.connect_as(client, cluster.primary(1, "log").unwrap());
        let retry = cluster.call(again, "log", 1, "a");
        assert_eq!(ok(cluster.reply(retry)), "1:a", "{style}");
    }
}

#[test]
fn a_cluster_that_stops_cleanly_comes_back_with_its_groups() {
    let mut cluster = Cluster::new_on_disk(3);
    cluster.host_on_with("log", &[1, 2, 3], on_disk());
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(ok(cluster.reply(call)), "1:a");
    for node in [1, 2, 3] {
        cluster.leave(node);
        cluster.run_for(ms(700));
        assert!(cluster.has_left(node), "node {node}");
    }
    lose_all(&mut cluster, &[1, 2, 3], "log", &[1, 2, 3]);
    cluster.run_until_synced("log", 3);
    let again = cluster.connect_as(client, cluster.primary(1, "log").unwrap());
    let retry = cluster.call(again, "log", 1, "a");
    assert_eq!(ok(cluster.reply(retry)), "1:a");
}

/// The simulator's seed 4344 of the world of disks: a group's first replica was gone before its
/// disk knew of that life, and could never say that the life had stored nothing.
#[test]
fn a_node_with_a_new_disk_joins_its_groups_when_that_knows_of_its_life() {
    let mut cluster: Cluster = Cluster::starting_on_disk(3);
    cluster.fake_disk(1).stuck = true;
    cluster.host_with("log", 1, on_disk());
    cluster.run_for(ms(500));
    let status = cluster.node(2).status();
    assert_eq!(status.ring.quorate, Some(true));
    assert!(status.groups.is_empty(), "its disk does not know of this life yet");
    cluster.kill(1);
    cluster.restart(1);
    cluster.fake_disk(1).stuck = false;
    cluster.host_with("log", 1, on_disk());
    cluster.run_until_synced("log", 1);
}
