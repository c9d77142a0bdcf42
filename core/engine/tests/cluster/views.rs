//! Services are told of their groups' views, among the calls
//! (`docs/protocol/group.md`, "Services and views").

use std::collections::BTreeMap;

use wire::client::Outcome;
use wire::ordered::{GroupOptions, Style};

use crate::harness::{Cluster, Connection, ms};

/// The newest view before each entry of a node's log, with its members.
fn before_entries(cluster: &Cluster, node: u32) -> BTreeMap<usize, (u64, Vec<u32>)> {
    let length = cluster.state(node, "log").len();
    let views = cluster.views(node, "log");
    let newest = |entry: usize| {
        let view = views.iter().rev().find(|(behind, _)| *behind <= entry);
        view.map(|(_, view)| (view.number, view.members.iter().map(|node| node.0).collect()))
    };
    (0..length).filter_map(|entry| Some((entry, newest(entry)?))).collect()
}

fn call(cluster: &mut Cluster, client: Connection, number: u64) {
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", number, "a");
    assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    cluster.run_for(ms(20));
}

#[test]
fn each_replica_is_told_of_a_view_at_the_same_place_of_the_calls() {
    for style in [Style::SemiActive, Style::Active, Style::Voting] {
        let options = GroupOptions { style, ..GroupOptions::default() };
        let mut cluster = Cluster::new(5);
        cluster.host_on_with("log", &[1, 2], options);
        let client = cluster.client(1);
        call(&mut cluster, client, 1);
        cluster.host_with("log", 3, options);
        cluster.run_until_synced("log", 3);
        call(&mut cluster, client, 2);
        cluster.unhost("log", 2);
        cluster.run_for(ms(200));
        call(&mut cluster, client, 3);
        cluster.partition(&[3]);
        cluster.run_for(ms(1_000));
        call(&mut cluster, client, 4);
        cluster.heal();
        cluster.run_until_synced("log", 2);
        call(&mut cluster, client, 5);
        let (first, other) = (before_entries(&cluster, 1), before_entries(&cluster, 3));
        let members: Vec<&[u32]> = first.values().map(|(_, members)| &members[..]).collect();
        assert_eq!(members, [&[1, 2][..], &[1, 2, 3], &[1, 3], &[1], &[1, 3]], "{style}");
        // It was given the state with the first and the fourth.
        for entry in [1, 2, 4] {
            assert_eq!(first.get(&entry), other.get(&entry), "{style}: before entry {entry}");
        }
    }
}

#[test]
fn who_comes_back_with_the_state_is_told_of_the_present_view() {
    let mut cluster = Cluster::new(3);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    call(&mut cluster, client, 1);
    cluster.partition(&[3]);
    cluster.run_for(ms(1_000));
    cluster.heal();
    cluster.run_until_synced("log", 3);
    call(&mut cluster, client, 2);
    let newest = [1, 2, 3].map(|node| before_entries(&cluster, node).get(&1).cloned());
    assert!(newest[0].is_some() && newest.iter().all(|view| *view == newest[0]), "{newest:?}");
}

#[test]
fn in_a_passive_group_the_primary_is_told_of_views() {
    let mut cluster = Cluster::new(3);
    let options = GroupOptions { style: Style::WarmPassive, ..GroupOptions::default() };
    cluster.host_on_with("log", &[1, 2, 3], options);
    let client = cluster.client(1);
    call(&mut cluster, client, 1);
    assert!(cluster.views(2, "log").is_empty() && !cluster.views(1, "log").is_empty());
    cluster.kill(1);
    cluster.run_for(ms(1_000));
    let told = cluster.views(2, "log").last().map(|(_, view)| view.clone());
    let told = told.expect("it is the primary now");
    assert_eq!(told.primary().map(|node| node.0), Some(2));
}
