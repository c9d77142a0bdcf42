//! Groups that get another style while they run.

use std::collections::BTreeMap;

use steadfast_engine::{Event, RestyleError};
use wire::client::Outcome;
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};

use crate::base::Base;
use crate::harness::{Cluster, ms};

fn style<O: Base>(cluster: &Cluster<O>, node: u32, group: &str) -> Style {
    let status = cluster.node(node).status();
    let group = status.groups.into_iter().find(|known| known.name == group);
    group.expect("the group").options.style
}

pub fn a_group_goes_through_its_styles_while_it_is_called<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let (at_1, at_3) = (cluster.client(1), cluster.client(3));
    let (mut number, mut told) = (0, BTreeMap::new());
    let styles = [
        Style::Active,
        Style::WarmPassive,
        Style::Voting,
        Style::SemiActive,
        Style::WarmPassive,
        Style::SemiActive,
        Style::Voting,
        Style::WarmPassive,
        Style::Active,
        Style::ColdPassive,
        Style::SemiActive,
        Style::ColdPassive,
        Style::WarmPassive,
        Style::ColdPassive,
        Style::Voting,
        Style::ColdPassive,
        Style::Active,
    ];
    for to in styles {
        let from = style(&cluster, 2, "log");
        cluster.learn_view(at_1, "log");
        // One is under way when the style changes, one comes after that by the old view, and one by
        // the new.
        let before = cluster.call(at_1, "log", 3 * number + 1, "a");
        cluster.restyle(4, "log", to).expect("begun");
        let view = cluster.restyled(4).expect("changed");
        let late = cluster.call(at_1, "log", 3 * number + 2, "a");
        assert!(matches!(cluster.reply(before), Outcome::Ok(_)), "{from} to {to}");
        let reply = cluster.whole_reply(late);
        assert!(matches!(reply.outcome, Outcome::Ok(_)), "{from} to {to}: {reply:?}");
        let targets = reply.targets.expect("the new style is news");
        assert_eq!((targets.style, targets.view), (to, view));
        cluster.learn_view(at_3, "log");
        let next = cluster.call(at_3, "log", number + 1, "a");
        assert!(matches!(cluster.reply(next), Outcome::Ok(_)), "{from} to {to}");
        number += 1;
        cluster.run_for(ms(5));
        for node in 1..=5 {
            assert_eq!(style(&cluster, node, "log"), to, "at {node}");
            let tells = |event: &Event| matches!(event, Event::Restyled { from: f, to: t, .. } if (*f, *t) == (from, to));
            let times = cluster.times(node, tells);
            let before = told.insert((node, from, to), times).unwrap_or(0);
            assert_eq!(times, before + 1, "everybody is told: {node}, {from} to {to}");
        }
        assert_eq!(cluster.replicas("log"), [1, 2, 3], "nobody is given the state anew");
    }
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log").len() as u64, 3 * number);
    }
    let given = |event: &Event| matches!(event, Event::TransferStarted { .. });
    let given: usize = (1..=3).map(|node| cluster.times(node, given)).sum();
    assert_eq!(given, 2, "but when the replicas joined");
}

pub fn a_change_that_cannot_be_is_refused_with_what_to_do<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2]);
    let view = cluster.node(1).status().groups[0].view;
    let mut ask = |group, style| {
        cluster.restyle(2, group, style).expect("begun");
        cluster.restyled(2)
    };
    assert_eq!(ask("log", Style::SemiActive), Ok(view), "it has it already");
    assert_eq!(ask("lag", Style::Active), Err(RestyleError::NoSuchGroup));
    let refused = RestyleError::LosesState { from: Style::SemiActive };
    assert!(refused.to_string().contains("steadfast state save"), "{refused}");
    assert_eq!(ask("log", Style::Stateless), Err(refused));
    assert_eq!(style(&cluster, 1, "log"), Style::SemiActive);
    // A node that is configured with a style that the group may have had joins; one with another
    // hold does not.
    cluster.restyle(1, "log", Style::Active).expect("begun");
    cluster.restyled(1).expect("changed");
    cluster.host_on_later("log", 3);
    let before = GroupOptions { style: Style::Stateless, ..GroupOptions::default() };
    cluster.host_with("log", 4, before);
    cluster.run_until_synced("log", 4);
    cluster.host_with("log", 5, GroupOptions { ack: AckLevel::All, ..GroupOptions::default() });
    cluster.run_for(ms(20));
    assert!(cluster.was_refused(5, "log"));
    cluster.partition(&[4, 5]);
    cluster.run_for(ms(2_000));
    cluster.restyle(4, "log", Style::SemiActive).expect("begun");
    assert_eq!(cluster.restyled(4), Err(RestyleError::NoQuorum));
}

pub fn changes_at_the_same_time_take_place_one_after_the_other<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    cluster.restyle(4, "log", Style::Active).expect("begun");
    let again = cluster.restyle(4, "log", Style::Voting);
    assert_eq!(again, Err(RestyleError::UnderWay(Style::Active)));
    cluster.restyle(5, "log", Style::Voting).expect("begun");
    cluster.move_primary(3, "log", 3).expect("begun");
    let (first, second) =
        (cluster.restyled(4).expect("changed"), cluster.restyled(5).expect("changed"));
    cluster.moved(3).expect("moved");
    assert_ne!(first, second, "each has a view of its own");
    cluster.run_for(ms(2));
    let last = if first > second { Style::Active } else { Style::Voting };
    assert!((1..=5).all(|node| style(&cluster, node, "log") == last));
    assert!((1..=5).all(|node| cluster.primary(node, "log") == Some(3)));
}

pub fn a_style_outlives_the_death_of_who_ordered_it<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(2);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, "a");
    cluster.restyle(4, "log", Style::Active).expect("begun");
    cluster.kill(1);
    cluster.restyled(4).expect("changed");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    // Its file says the style of before: it joins, and goes by what the group has.
    cluster.restart(1);
    cluster.host_on_later("log", 1);
    cluster.run_until_synced("log", 3);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, "b");
    assert_eq!(cluster.reply(call), Outcome::Ok("2:b".into()), "it is an entry like any other");
    assert!((1..=5).all(|node| style(&cluster, node, "log") == Style::Active));
}

/// Calls that are under way where the primary alone executes, and that come to others meanwhile,
/// have their place before or after the change, and are executed once.
#[test]
fn what_a_warm_passive_primary_has_taken_is_ordered_before_all_execute() {
    let mut cluster = Cluster::new(5);
    let options = GroupOptions { style: Style::WarmPassive, ..GroupOptions::default() };
    cluster.host_on_with("log", &[1, 2, 3], options);
    let clients: Vec<_> = [1, 1, 2, 3].map(|node| cluster.client(node)).into();
    clients.iter().for_each(|client| cluster.learn_view(*client, "log"));
    for round in 0..6 {
        let (first, to) = match round % 2 {
            0 => (Style::WarmPassive, Style::SemiActive),
            _ => (Style::SemiActive, Style::WarmPassive),
        };
        assert_eq!(style(&cluster, 1, "log"), first);
        let number = 2 * round + 1;
        let mut calls: Vec<_> =
            clients.iter().map(|client| cluster.call(*client, "log", number, "a")).collect();
        cluster.restyle(1 + round as u32 % 5, "log", to).expect("begun");
        calls.extend(clients.iter().map(|client| cluster.call(*client, "log", number + 1, "b")));
        cluster.restyled(1 + round as u32 % 5).expect("changed");
        for (place, call) in calls.into_iter().enumerate() {
            let mut outcome = cluster.reply(call);
            if outcome == Outcome::NotPrimary {
                // A client that chose its entry by an old view is sent on.
                let at_1 = cluster.connect_as(clients[place % clients.len()], 1);
                let (which, word) = [(0, "a"), (1, "b")][place / clients.len()];
                let again = cluster.call(at_1, "log", number + which, word);
                outcome = cluster.reply(again);
            }
            assert!(matches!(outcome, Outcome::Ok(_)), "{outcome:?}");
        }
    }
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        let state = cluster.state(node, "log");
        assert_eq!(state.len(), 6 * 2 * clients.len(), "each once, at {node}");
        assert_eq!(state, cluster.state(1, "log"));
    }
}

/// A voting group whose primary lies is given another style: what is settled by then counts.
#[test]
fn who_has_deviated_does_not_go_on_when_the_votes_end() {
    let mut cluster = Cluster::new(5);
    let options = GroupOptions { style: Style::Voting, ..GroupOptions::default() };
    cluster.host_on_with("log", &[1, 2, 3], options);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    cluster.spoil(3, crate::voting::Fault::Lies);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.restyle(4, "log", Style::Active).expect("begun");
    cluster.restyled(4).expect("changed");
    cluster.run_until_synced("log", 3);
    let next = cluster.call(client, "log", 2, "b");
    assert_eq!(cluster.reply(next), Outcome::Ok("2:b".into()));
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a", "b"], "at {node}");
    }
}

#[test]
fn a_group_on_disk_keeps_its_style_when_all_lives_end() {
    let mut cluster = Cluster::new_on_disk(3);
    let options = GroupOptions { durability: Durability::Disk, ..GroupOptions::default() };
    cluster.host_on_with("log", &[1, 2, 3], options);
    cluster.restyle(2, "log", Style::Active).expect("begun");
    cluster.restyled(2).expect("changed");
    let client = cluster.client(3);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    (1..=3).for_each(|node| cluster.kill(node));
    (1..=3).for_each(|node| cluster.restart(node));
    for node in 1..=3 {
        cluster.host_with("log", node, options);
    }
    cluster.run_until_synced("log", 3);
    let client = cluster.client(3);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, "b");
    assert_eq!(cluster.reply(call), Outcome::Ok("2:b".into()));
    assert!((1..=3).all(|node| style(&cluster, node, "log") == Style::Active));
}
