//! Large states are fetched by streams beside the order.

use steadfast_engine::Event;
use wire::client::Outcome;
use wire::ordered::{GroupOptions, Style};

use crate::base::Base;
use crate::harness::{Cluster, Connection, ms};

/// A group at nodes 1, 2 and 3 with a state that is fetched, called by node 2's client; node 1 has
/// been killed and is back.
fn returning<O: Base>(cluster: &mut Cluster<O>, style: Style) -> Connection {
    let options = GroupOptions { style, ..GroupOptions::default() };
    cluster.host_on_with("log", &[1, 2, 3], options);
    let client = cluster.client(2);
    answered(cluster, client, 1, &"x".repeat(1_000));
    cluster.kill(1);
    cluster.run_for(ms(5));
    cluster.restart(1);
    cluster.host_with("log", 1, options);
    cluster.run_until_streams(1);
    client
}

fn answered<O: Base>(cluster: &mut Cluster<O>, client: Connection, number: u64, body: &str) {
    let call = cluster.call(client, "log", number, body);
    assert_eq!(cluster.reply(call), Outcome::Ok(format!("{number}:{body}").into()));
}

fn is_there<O: Base>(cluster: &mut Cluster<O>) {
    cluster.run_until_synced("log", 3);
    cluster.run_for(ms(5));
    assert_eq!(cluster.replicas("log").len(), 3);
}

pub fn a_large_state_is_fetched_while_requests_flow<O: Base>(mut cluster: Cluster<O>) {
    let client = returning(&mut cluster, Style::SemiActive);
    let [(1, _, from)] = cluster.streams[..] else { panic!("{:?}", cluster.streams) };
    assert_eq!(from.0, 3, "the last in rank gives");
    answered(&mut cluster, client, 2, "b");
    assert!(!cluster.told(1, |event| matches!(event, Event::Transferred { .. })));
    cluster.end_streams(true);
    is_there(&mut cluster);
    assert_eq!(cluster.state(1, "log"), cluster.state(2, "log"));
    assert_eq!(cluster.state(1, "log").len(), 2);
}

pub fn a_cold_groups_log_is_fetched<O: Base>(mut cluster: Cluster<O>) {
    returning(&mut cluster, Style::ColdPassive);
    assert_eq!(cluster.streams.len(), 1);
    cluster.end_streams(true);
    is_there(&mut cluster);
    cluster.kill(2);
    cluster.kill(3);
    let at_1 = cluster.client(1);
    let call = cluster.call(at_1, "log", 1, "b");
    assert_eq!(cluster.reply(call), Outcome::Ok("2:b".into()), "it begins with what it fetched");
}

pub fn a_stream_that_breaks_is_replaced_by_chunks<O: Base>(mut cluster: Cluster<O>) {
    returning(&mut cluster, Style::SemiActive);
    cluster.end_streams(false);
    is_there(&mut cluster);
    assert_eq!(cluster.state(1, "log"), cluster.state(2, "log"));
    assert!(cluster.streams.is_empty(), "and nobody tries once more");
}

pub fn a_state_comes_from_the_next_when_its_giver_dies<O: Base>(mut cluster: Cluster<O>) {
    returning(&mut cluster, Style::SemiActive);
    let old = cluster.streams.clone();
    cluster.kill(3);
    cluster.run_until_streams(2);
    let [_, (1, transfer, from)] = cluster.streams[..] else { panic!("{:?}", cluster.streams) };
    assert_eq!(from.0, 2);
    assert_ne!(transfer, old[0].1);
    // The old stream ends late: nobody waits for it.
    cluster.streams = old;
    cluster.end_streams(false);
    cluster.streams = vec![(1, transfer, from)];
    cluster.end_streams(true);
    cluster.run_until_synced("log", 2);
    assert_eq!(cluster.state(1, "log"), cluster.state(2, "log"));
}

/// Node 4 was asked to have a group begin with a large state.
fn deposited<O: Base>(cluster: &mut Cluster<O>) {
    cluster.host_on("log", &[1]);
    let client = cluster.client(1);
    answered(cluster, client, 1, &"x".repeat(1_000));
    let saved = cluster.save(1, "log").expect("node 1 has the state");
    cluster.unhost("log", 1);
    cluster.run_for(ms(20));
    cluster.restore(4, &saved, false).expect("the group has ended");
}

pub fn a_deposit_is_there_for_its_own_node<O: Base>(mut cluster: Cluster<O>) {
    deposited(&mut cluster);
    cluster.host_with("log", 4, GroupOptions::default());
    cluster.run_until_synced("log", 1);
    assert!(cluster.streams.is_empty(), "it needs none");
    assert_eq!(cluster.state(4, "log").len(), 1);
}

pub fn a_deposit_is_fetched_from_who_was_asked<O: Base>(mut cluster: Cluster<O>) {
    deposited(&mut cluster);
    cluster.host_with("log", 2, GroupOptions::default());
    cluster.run_until_streams(1);
    let [(2, _, from)] = cluster.streams[..] else { panic!("{:?}", cluster.streams) };
    assert_eq!(from.0, 4);
    cluster.end_streams(true);
    cluster.run_until_synced("log", 1);
    assert_eq!(cluster.state(2, "log").len(), 1);
}
