//! Hosts that have too much to do refuse calls (`docs/protocol/manager.md`, "Shedding").

use steadfast_engine::Event;
use wire::client::{Access, Outcome};
use wire::ordered::{GroupOptions, Shedding, Style, Usage};
use wire::{GroupId, NodeId};

use crate::base::Base;
use crate::harness::{Cluster, Connection, ms};

/// Node 1 is to refuse calls below this for a second; node 3 has room.
fn order(level: u8) -> Shedding {
    Shedding { node: NodeId(1), level, term_ms: 1_000, room: vec![NodeId(5), NodeId(3)] }
}

fn tell<O: Base>(cluster: &mut Cluster<O>, level: u8) {
    assert!(cluster.ask(4, |stack, now| stack.shed(now, order(level))));
    cluster.run_for(ms(2));
}

fn ok(text: &str) -> Outcome {
    Outcome::Ok(text.to_owned().into())
}

/// If the call is refused: the node that may answer instead.
fn refused(outcome: &Outcome) -> Option<Option<NodeId>> {
    match outcome {
        Outcome::Shed { instead, reason } => {
            assert!(reason.contains("priority 5"), "{reason}");
            Some(*instead)
        }
        _ => None,
    }
}

pub fn a_host_refuses_calls_that_are_less_critical_and_no_others<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    let call = |cluster: &mut Cluster<O>, at: Connection, number, priority| {
        cluster.priority = priority;
        let call = cluster.call(at, "log", number, &format!("{number}"));
        cluster.reply(call)
    };
    assert_eq!(call(&mut cluster, client, 1, 0), ok("1:1"));
    tell(&mut cluster, 5);
    assert_eq!(refused(&call(&mut cluster, client, 2, 4)), Some(None), "nobody else orders");
    assert_eq!(call(&mut cluster, client, 3, 5), ok("2:3"));
    let again = cluster.connect_as(client, 1);
    assert_eq!(
        call(&mut cluster, again, 3, 0),
        ok("2:3"),
        "it was executed, and that is what is said"
    );
    // Others take what they took before.
    let elsewhere = cluster.client(2);
    assert_eq!(call(&mut cluster, elsewhere, 1, 0), ok("3:1"));
    // It is told who calls, and how many were refused.
    assert!(cluster.ask(1, |stack, now| stack.tell_usage(now, Usage::default())));
    cluster.run_for(ms(2));
    let usage = cluster.node(2).picture().usage(NodeId(1)).cloned().expect("it was told");
    assert_eq!((usage.classes.iter().collect::<Vec<u8>>(), usage.refused), (vec![0, 4, 5], 1));
    tell(&mut cluster, 0);
    assert_eq!(call(&mut cluster, client, 4, 0), ok("4:4"));
    for node in 1..=5 {
        let levels = |wanted| move |event: &Event| matches!(event, Event::Shedding { node: NodeId(1), level, .. } if *level == wanted);
        assert!(cluster.told(node, levels(5)) && cluster.told(node, levels(0)), "node {node}");
    }
}

pub fn who_says_nothing_is_as_critical_as_its_group<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    cluster.host_on("other", &[1, 2, 3]);
    cluster.ask(1, |stack, _| stack.set_criticalities([(GroupId::of("log"), 7)].into()));
    tell(&mut cluster, 5);
    let mut call = |group, priority| {
        let client = cluster.client(1);
        cluster.learn_view(client, group);
        cluster.priority = priority;
        let call = cluster.call(client, group, 1, "a");
        refused(&cluster.reply(call)).is_some()
    };
    assert!(!call("log", 0), "seven, by its group");
    assert!(call("log", 4), "what is said counts");
    assert!(call("other", 0));
}

pub fn what_a_host_was_told_ends_with_its_term_and_with_its_life<O: Base>(mut cluster: Cluster<O>) {
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    tell(&mut cluster, 5);
    cluster.run_for(ms(900));
    tell(&mut cluster, 5);
    cluster.run_for(ms(900));
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(refused(&cluster.reply(call)), Some(None), "it was told again");
    cluster.run_for(ms(200));
    let call = cluster.call(client, "log", 2, "a");
    assert_eq!(cluster.reply(call), ok("1:a"));
    tell(&mut cluster, 5);
    cluster.kill(1);
    cluster.run_for(ms(500));
    assert_eq!(cluster.node(2).picture().sheds.len(), 0);
}

pub fn who_may_answer_instead_is_named<O: Base>(mut cluster: Cluster<O>) {
    let style = |style| GroupOptions { style, ..GroupOptions::default() };
    for (group, style) in [
        ("stateless", style(Style::Stateless)),
        ("active", style(Style::Active)),
        ("semi-active", style(Style::SemiActive)),
        ("cold", style(Style::ColdPassive)),
    ] {
        cluster.host_on_with(group, &[1, 2, 3], style);
        let client = cluster.client(1);
        cluster.learn_view(client, group);
        let ask = |cluster: &mut Cluster<O>, number, access| {
            let call = cluster.call_with(client, group, number, "a", access);
            refused(&cluster.reply(call))
        };
        tell(&mut cluster, 5);
        let alike = matches!(style.style, Style::Stateless | Style::Active);
        let read = alike || style.style == Style::SemiActive;
        let named = |is_named: bool| Some(is_named.then_some(NodeId(3)));
        let told = [
            ask(&mut cluster, 1, Access::Change),
            ask(&mut cluster, 2, Access::Read),
            ask(&mut cluster, 3, Access::Stale { max_age_ms: 100 }),
        ];
        assert_eq!(told, [named(alike), named(read), named(read)], "{group}");
        tell(&mut cluster, 0);
    }
}
