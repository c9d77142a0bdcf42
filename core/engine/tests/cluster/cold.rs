//! Groups whose backups log, and run nothing: checkpoints, promotions, and who is told a reply.

use steadfast_engine::{Checkpoints, Event, LogStatus};
use wire::client::Outcome;
use wire::limits::MAX_LOG_BYTES;
use wire::ordered::{GroupOptions, Style};
use wire::{Duration, GroupId};

use crate::base::Base;
use crate::harness::{Cluster, ms};

const COLD: GroupOptions = GroupOptions {
    style: Style::ColdPassive,
    ack: wire::ordered::AckLevel::Majority,
    durability: wire::ordered::Durability::Memory,
};

/// Nodes 1, 2 and 3 of five have the group, and take a checkpoint after so many requests.
fn cold<O: Base>(mut cluster: Cluster<O>, requests: u64) -> Cluster<O> {
    cluster.host_on_with("log", &[1, 2, 3], COLD);
    [1, 2, 3].iter().for_each(|node| after(&mut cluster, *node, requests));
    cluster
}

fn after<O: Base>(cluster: &mut Cluster<O>, node: u32, requests: u64) {
    let checkpoints =
        Checkpoints { requests, interval: Duration::from_secs(60), ..Checkpoints::default() };
    cluster.ask(node, |stack, now| stack.set_checkpoints(now, GroupId::of("log"), checkpoints));
}

fn log<O: Base>(cluster: &Cluster<O>, node: u32) -> LogStatus {
    let groups = cluster.node(node).status().groups;
    groups.iter().find(|group| group.name == "log").and_then(|group| group.log).expect("it logs")
}

fn promoted<O: Base>(cluster: &Cluster<O>, node: u32, replayed: u64) -> bool {
    cluster.told(
        node,
        |event| matches!(event, Event::Promoted { requests, .. } if *requests == replayed),
    )
}

#[test]
fn the_next_primary_has_the_checkpoint_and_replays_the_log() {
    let mut cluster = cold(Cluster::new(5), 3);
    let (client, early) = (cluster.client(1), cluster.client(1));
    for place in 1..=5 {
        let (client, number) = if place == 2 { (early, 1) } else { (client, place) };
        let call = cluster.call(client, "log", number, "a");
        assert_eq!(cluster.reply(call), Outcome::Ok(format!("{place}:a").into()));
        assert!(cluster.waited(call) < ms(1), "{:?}", cluster.waited(call));
    }
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        let log = log(&cluster, node);
        assert_eq!((log.requests, log.bytes, log.runs), (2, 2, node == 1));
        assert!(log.checkpoint_bytes > 0 && log.checkpointed.is_some());
    }
    assert_eq!([1, 2, 3].map(|node| cluster.executions(node)), [5, 0, 0]);
    assert_eq!([1, 2, 3].map(|node| cluster.starts(node)), [1, 0, 0]);
    cluster.kill(1);
    let (other, early) = (cluster.connect_as(client, 2), cluster.connect_as(early, 2));
    // One that is in the checkpoint, and one that is executed again.
    for (client, number, place) in [(early, 1, 2), (other, 5, 5)] {
        let retry = cluster.call(client, "log", number, "a");
        assert_eq!(cluster.reply(retry), Outcome::Ok(format!("{place}:a").into()));
    }
    let next = cluster.call(other, "log", 6, "b");
    assert_eq!(cluster.reply(next), Outcome::Ok("6:b".into()));
    assert_eq!(cluster.state(2, "log"), ["a", "a", "a", "a", "a", "b"]);
    assert_eq!([2, 3].map(|node| cluster.executions(node)), [3, 0], "two of the log, and the next");
    assert!(promoted(&cluster, 2, 2));
    assert_eq!(cluster.starts(3), 0);
}

#[test]
fn a_call_that_enters_at_a_backup_is_answered_there() {
    let mut cluster = cold(Cluster::new(5), 1_000);
    let client = cluster.client(2);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    let at_3 = cluster.connect_as(client, 3);
    let retry = cluster.call(at_3, "log", 1, "a");
    assert_eq!(cluster.reply(retry), Outcome::Ok("1:a".into()), "it was executed before");
    assert_eq!([1, 2, 3].map(|node| cluster.executions(node)), [1, 0, 0]);
}

#[test]
fn a_backup_lets_go_of_a_call_that_another_node_had_ordered() {
    let mut cluster = cold(Cluster::new(5), 1_000);
    let at_2 = cluster.client(2);
    cluster.learn_view(at_2, "log");
    let early = cluster.call(at_2, "log", 1, "a");
    cluster.run_for(ms(100));
    assert!(!cluster.is_answered(early), "it is for the primary to take it");
    let at_1 = cluster.connect_as(at_2, 1);
    let again = cluster.call(at_1, "log", 1, "a");
    assert_eq!(cluster.reply(again), Outcome::Ok("1:a".into()));
    assert_eq!(cluster.reply(early), Outcome::NotPrimary, "nobody tells node 2 what came of it");
    assert!(cluster.waited(early) < ms(101), "{:?}", cluster.waited(early));
    // Its client may have lost the way to node 1, and the answer: it asks again here.
    let at_2 = cluster.connect_as(at_2, 2);
    cluster.learn_view(at_2, "log");
    let retry = cluster.call(at_2, "log", 1, "a");
    assert_eq!(cluster.reply(retry), Outcome::Ok("1:a".into()));
    assert_eq!([1, 2, 3].map(|node| cluster.executions(node)), [1, 0, 0]);
}

#[test]
fn a_replica_that_joins_has_checkpoint_and_log_and_runs_nothing() {
    let mut cluster = cold(Cluster::in_process(5), 4);
    let client = cluster.client(2);
    cluster.kill(1);
    cluster.run_for(ms(5));
    let big = "x".repeat(100_000);
    for number in 1..=6 {
        let call = cluster.call(client, "log", number, &big);
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
    cluster.restart(1);
    cluster.host_with("log", 1, COLD);
    for number in 7..=10 {
        let call = cluster.call(client, "log", number, &big);
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
    cluster.run_until_synced("log", 3);
    cluster.run_for(ms(20));
    assert_eq!(log(&cluster, 1).requests, log(&cluster, 2).requests);
    assert_eq!(cluster.replicas("log"), [2, 3, 1], "a primary stays so");
    cluster.kill(2);
    cluster.run_for(ms(20));
    cluster.kill(3);
    let at_1 = cluster.connect_as(client, 1);
    let retry = cluster.call(at_1, "log", 10, &big);
    assert_eq!(cluster.reply(retry), Outcome::Ok(format!("10:{big}").into()));
    assert_eq!(cluster.state(1, "log").len(), 10);
}

#[test]
fn a_primary_that_moves_leaves_little_to_replay() {
    let mut cluster = cold(Cluster::new(5), 1_000);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    for number in 1..=50 {
        let call = cluster.call(client, "log", number, "a");
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
    cluster.move_primary(4, "log", 3).expect("asked");
    let during = cluster.call(client, "log", 51, "b");
    assert!(cluster.moved(4).is_ok());
    assert_eq!(cluster.reply(during), Outcome::Ok("51:b".into()));
    cluster.run_for(ms(5));
    assert_eq!(cluster.replicas("log"), [3, 1, 2]);
    assert!(cluster.executions(3) <= 1, "the fifty are in the checkpoint");
    assert_eq!(cluster.state(3, "log").len(), 51);
    // The client does not know yet: who was primary has its call ordered, and is told what became
    // of it.
    let call = cluster.call(client, "log", 52, "c");
    assert_eq!(cluster.reply(call), Outcome::Ok("52:c".into()));
    assert!(cluster.waited(call) < ms(5), "{:?}", cluster.waited(call));
    assert!(!log(&cluster, 1).runs && log(&cluster, 3).runs);
}

#[test]
fn a_primary_that_was_cut_off_is_a_backup_when_it_is_back() {
    let mut cluster = cold(Cluster::new(5), 2);
    let at_1 = cluster.client(1);
    let at_2 = cluster.client(2);
    let call = cluster.call(at_1, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.partition(&[1]);
    cluster.run_for(ms(300));
    for number in 1..=5 {
        let call = cluster.call(at_2, "log", number, "b");
        assert_eq!(cluster.reply(call), Outcome::Ok(format!("{}:b", number + 1).into()));
    }
    cluster.heal();
    cluster.run_until_synced("log", 3);
    cluster.run_for(ms(5));
    assert!(!log(&cluster, 1).runs && log(&cluster, 2).runs);
    cluster.kill(2);
    cluster.run_for(ms(20));
    let retry = cluster.connect_as(at_2, 3);
    let retry = cluster.call(retry, "log", 5, "b");
    assert_eq!(cluster.reply(retry), Outcome::Ok("6:b".into()));
}

#[test]
fn a_full_log_is_busy_until_a_checkpoint_has_made_room() {
    let mut cluster = Cluster::in_process(3);
    cluster.host_on_with("log", &[1, 2], COLD);
    [1, 2].iter().for_each(|node| after(&mut cluster, *node, u64::MAX));
    let never =
        Checkpoints { requests: u64::MAX, bytes: usize::MAX, interval: Duration::from_secs(3_600) };
    cluster.ask(1, |stack, now| stack.set_checkpoints(now, GroupId::of("log"), never));
    let client = cluster.client(1);
    let big = "x".repeat(1_000_000);
    let mut number = 0;
    while log(&cluster, 1).bytes < MAX_LOG_BYTES {
        number += 1;
        let call = cluster.call(client, "log", number, &big);
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
    number += 1;
    let call = cluster.call(client, "log", number, "a");
    assert!(matches!(cluster.reply(call), Outcome::Busy { .. }));
    assert_eq!(cluster.executions(1) as u64, number - 1);
    after(&mut cluster, 1, 10);
    cluster.run_for(ms(50));
    assert_eq!(log(&cluster, 2).bytes, 0);
    let again = cluster.call(client, "log", number + 1, "a");
    assert_eq!(cluster.reply(again), Outcome::Ok(format!("{number}:a").into()));
}
