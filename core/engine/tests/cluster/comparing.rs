//! Replicas compare their states.

use steadfast_engine::Event;
use wire::GroupId;
use wire::ordered::{About, GroupOptions, Style};

use crate::harness::service::WHO;
use crate::harness::{Cluster, Connection, ms};
use crate::voting::Fault;

/// The nodes whose replicas are said to be apart, alike at all nodes, and the first's words.
fn apart(cluster: &Cluster) -> (Vec<u32>, String) {
    let at = |node: u32| {
        let notes = cluster.node(node).state_notes(GroupId::of("log"));
        let notes = notes.into_iter().filter(|note| note.about == About::Apart);
        notes.map(|note| (note.member.node.0, note.text)).collect::<Vec<_>>()
    };
    let told = at(1);
    assert!((2..=5).all(|node| at(node) == told), "all nodes are told the same");
    let text = told.first().map(|(_, text)| text.clone()).unwrap_or_default();
    (told.into_iter().map(|(node, _)| node).collect(), text)
}

fn call(cluster: &mut Cluster, client: Connection, number: u64, body: &str) {
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", number, body);
    cluster.reply(call);
}

fn of(style: Style) -> GroupOptions {
    GroupOptions { style, ..GroupOptions::default() }
}

#[test]
fn a_service_that_is_not_deterministic_is_found_out_within_a_minute() {
    for style in [Style::SemiActive, Style::Active] {
        let mut cluster = Cluster::new(5);
        cluster.host_on_with("log", &[1, 2, 3], of(style));
        let client = cluster.client(1);
        call(&mut cluster, client, 1, "a");
        cluster.run_for(ms(3_000));
        assert_eq!(apart(&cluster).0, [], "{style}: it is deterministic so far");
        call(&mut cluster, client, 2, WHO);
        cluster.run_for(ms(61_000));
        let (nodes, text) = apart(&cluster);
        assert_eq!(nodes, [1, 2, 3], "{style}: no two are alike");
        assert!(text.starts_with("after call 2 its digest is "), "{text}");
        assert!(text.contains(", and n2 has ") && text.contains(", n3 has "), "{text}");
    }
}

#[test]
fn the_one_that_differs_is_told_of_until_it_has_the_others_state() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    cluster.spoil(3, Fault::Lies);
    call(&mut cluster, client, 1, "a");
    cluster.run_for(ms(3_000));
    assert_eq!(apart(&cluster).0, [3]);
    let told = |event: &Event| matches!(event, Event::StateNote { about: About::Apart, .. });
    assert_eq!(cluster.times(1, told), 1);
    call(&mut cluster, client, 2, "b");
    cluster.run_for(ms(61_000));
    assert_eq!((apart(&cluster).0, cluster.times(1, told)), (vec![3], 1), "it is no news");
    cluster.mend(3);
    cluster.unhost("log", 3);
    cluster.run_for(ms(500));
    cluster.host_with("log", 3, GroupOptions::default());
    cluster.run_until_synced("log", 3);
    call(&mut cluster, client, 3, "c");
    cluster.run_for(ms(61_000));
    assert_eq!(apart(&cluster).0, []);
}

#[test]
fn of_two_both_are_told_of_until_one_has_the_others_state() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2]);
    let client = cluster.client(1);
    call(&mut cluster, client, 1, WHO);
    cluster.run_for(ms(3_000));
    assert_eq!(apart(&cluster).0, [1, 2]);
    cluster.unhost("log", 2);
    cluster.run_for(ms(1_500));
    assert_eq!(apart(&cluster).0, [], "nobody is left from whom it could differ");
    cluster.host_with("log", 2, GroupOptions::default());
    cluster.run_until_synced("log", 2);
    cluster.run_for(ms(61_000));
    assert_eq!(apart(&cluster).0, []);
}

#[test]
fn where_the_primary_alone_executes_nothing_is_compared() {
    for style in [Style::WarmPassive, Style::ColdPassive] {
        let mut cluster = Cluster::new(5);
        cluster.host_on_with("log", &[1, 2, 3], of(style));
        let client = cluster.client(1);
        call(&mut cluster, client, 1, WHO);
        cluster.run_for(ms(3_000));
        assert_eq!(apart(&cluster).0, [], "{style}");
    }
}
