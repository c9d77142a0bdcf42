//! Requests that kill every service that executes them.

use steadfast_engine::Event;
use wire::GroupId;
use wire::client::{Outcome, Refusal};
use wire::ordered::{GroupOptions, Style};

use crate::harness::{Cluster, Connection, DELAY, Pending, ms};

const EXECUTED_BY_ALL: [Style; 3] = [Style::SemiActive, Style::Active, Style::Voting];

const WITH_STATE: [Style; 5] =
    [Style::SemiActive, Style::Active, Style::Voting, Style::WarmPassive, Style::ColdPassive];

/// More calls than a program that begins anew is given at once.
const LONG: u64 = 150;

fn of(style: Style) -> GroupOptions {
    GroupOptions { style, ..GroupOptions::default() }
}

/// The nodes at which a call's services died, as its caller is told.
fn died(outcome: &Outcome) -> Vec<u32> {
    let Outcome::Refused(Refusal::Poisoned, reason) = outcome else { panic!("{outcome:?}") };
    let (_, rest) = reason.split_once(", at ").expect("it names the nodes");
    let (nodes, _) = rest.split_once(": it").expect("and ends");
    nodes.split(", ").map(|node| node["node ".len()..].parse().unwrap()).collect()
}

/// A client asks, as clients do at the next in rank that lives as soon as it has lost the one
/// before: the answer that it is given.
fn call(cluster: &mut Cluster, client: Connection, number: u64, body: &str) -> Outcome {
    let mut asked: Option<(u32, Pending)> = None;
    for _ in 0..100_000 {
        let replicas = cluster.replicas_at(5, "log");
        let next = replicas.into_iter().find(|node| cluster.is_alive(*node)).expect("one lives");
        let answer = asked.filter(|(_, call)| cluster.is_answered(*call));
        match answer.map(|(_, call)| cluster.reply(call)) {
            Some(outcome @ (Outcome::Ok(_) | Outcome::Refused(..))) => return outcome,
            None if asked.is_some_and(|(node, _)| cluster.is_alive(node)) => {}
            _ => {
                let at = cluster.connect_as(client, next);
                cluster.learn_view_of(at, 5, "log");
                asked = Some((next, cluster.call(at, "log", number, body)));
            }
        }
        cluster.run_for(DELAY);
    }
    panic!("nobody has answered it");
}

/// Replicas that programs serve.
fn programs(nodes: &[u32], style: Style) -> Cluster {
    let mut cluster = Cluster::new(5);
    for (i, node) in nodes.iter().enumerate() {
        cluster.host_program("log", *node, of(style));
        cluster.run_until_synced("log", i + 1);
    }
    cluster
}

#[test]
fn a_request_that_ends_programs_ends_two_and_is_refused() {
    for style in EXECUTED_BY_ALL.into_iter().chain([Style::WarmPassive]) {
        let mut cluster = programs(&[1, 2, 3], style);
        let client = cluster.client(1);
        let other = cluster.client(1);
        assert_eq!(call(&mut cluster, other, 1, "a"), Outcome::Ok("1:a".into()));
        cluster.run_for(ms(5));
        let refused = call(&mut cluster, client, 1, "die");
        assert_eq!(died(&refused), [1, 2], "{style}");
        // A backup of a passive group executes nothing at all.
        let executed = u64::from(style != Style::WarmPassive);
        assert_eq!(
            cluster.executions(3) as u64,
            executed,
            "{style}: the third has not executed it"
        );
        assert_eq!(cluster.replicas("log"), [3], "{style}");
        assert_eq!(call(&mut cluster, other, 2, "b"), Outcome::Ok("2:b".into()), "{style}");
        for node in [1, 2] {
            cluster.host_program("log", node, of(style));
        }
        cluster.run_until_synced("log", 3);
        assert_eq!(call(&mut cluster, client, 1, "die"), refused, "{style}: as before");
        assert_eq!(call(&mut cluster, other, 3, "c"), Outcome::Ok("3:c".into()), "{style}");
        cluster.run_for(ms(5));
        for node in [1, 2, 3] {
            assert_eq!(cluster.state(node, "log"), ["a", "b", "c"], "{style} at {node}");
            let poisons = cluster.node(node).poisoned(GroupId::of("log")).expect("it is hosted");
            let kept: Vec<_> = poisons.iter().map(|it| (it.number, &it.body[..])).collect();
            assert_eq!(kept, [(2, &b"die"[..])], "{style} at {node}");
        }
        let told = |event: &Event| matches!(event, Event::Poisoned { .. });
        assert!(cluster.told(3, told), "{style}");
    }
}

#[test]
fn a_request_that_ends_nodes_ends_two_and_is_refused() {
    for style in EXECUTED_BY_ALL {
        let mut cluster = Cluster::new(5);
        cluster.host_on_with("log", &[1, 2, 3], of(style));
        let client = cluster.client(5);
        let other = cluster.client(5);
        assert_eq!(call(&mut cluster, other, 1, "a"), Outcome::Ok("1:a".into()));
        cluster.run_for(ms(5));
        let refused = call(&mut cluster, client, 1, "crash");
        assert_eq!(died(&refused), [1, 2], "{style}");
        assert_eq!(cluster.executions(3), 1, "{style}: the third has not executed it");
        assert_eq!(call(&mut cluster, other, 2, "b"), Outcome::Ok("2:b".into()), "{style}");
    }
}

/// Calls that wait behind the poisonous one are tried one by one, and executed once.
#[test]
fn what_waits_behind_a_poisonous_request_is_executed() {
    for body in ["die", "crash"] {
        let mut cluster = Cluster::new(5);
        cluster.host_on("log", &[1, 2, 3]);
        let clients: Vec<Connection> = (0..6).map(|_| cluster.client(1)).collect();
        for client in &clients {
            cluster.learn_view(*client, "log");
        }
        for (i, client) in clients.iter().enumerate() {
            let word = format!("w{i}");
            cluster.call(*client, "log", 1, if i == 2 { body } else { &word });
        }
        assert_eq!(died(&call(&mut cluster, clients[2], 1, body)), [1, 2], "{body}");
        let mut words = Vec::new();
        for (i, client) in clients.into_iter().enumerate().filter(|(i, _)| *i != 2) {
            let word = format!("w{i}");
            let outcome = call(&mut cluster, client, 1, &word);
            assert!(matches!(outcome, Outcome::Ok(_)), "{body}: {word}: {outcome:?}");
            words.push(word);
        }
        cluster.run_for(ms(5));
        let mut state = cluster.state(3, "log").to_vec();
        state.sort();
        assert_eq!(state, words, "{body}");
    }
}

/// An operator who kills all programs at once makes no call a poisonous one: two were given it, and
/// had not begun it.
#[test]
fn what_was_given_to_programs_that_were_dead_already_is_executed() {
    for style in EXECUTED_BY_ALL.into_iter().chain([Style::WarmPassive]) {
        let mut cluster = programs(&[1, 2, 3], style);
        let client = cluster.client(5);
        assert_eq!(call(&mut cluster, client, 1, "unread"), Outcome::Ok("1:unread".into()));
        assert_eq!(cluster.replicas("log"), [3], "{style}");
    }
}

/// A host that is lost while it executes a harmless request does not make that a poisonous one.
#[test]
fn what_one_has_survived_is_executed_by_all() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    cluster.learn_view(client, "log");
    for (number, node) in [(1, 1), (2, 2)] {
        let primary = cluster.primary(5, "log").unwrap();
        assert_eq!(primary, node);
        let at = cluster.connect_as(client, node);
        cluster.learn_view(at, "log");
        cluster.call(at, "log", number, &format!("w{number}"));
        cluster.kill(node);
        cluster.run_for(ms(400));
    }
    let outcome = call(&mut cluster, client, 3, "w3");
    assert!(matches!(outcome, Outcome::Ok(_)), "{outcome:?}");
}

#[test]
fn a_group_whose_programs_all_die_goes_on_from_what_their_nodes_have() {
    for style in WITH_STATE {
        for replicas in [&[1][..], &[1, 2], &[1, 2, 3]] {
            let mut cluster = programs(replicas, style);
            let client = cluster.client(1);
            for number in 1..=3 {
                let answer = call(&mut cluster, client, number, "a");
                assert_eq!(answer, Outcome::Ok(format!("{number}:a").into()), "{style}");
            }
            cluster.end_programs("log", replicas);
            cluster.run_for(ms(20));
            let retry = call(&mut cluster, client, 3, "a");
            assert_eq!(retry, Outcome::Ok("3:a".into()), "{style} {replicas:?}: executed once");
            let next = call(&mut cluster, client, 4, "b");
            assert_eq!(next, Outcome::Ok("4:b".into()), "{style} {replicas:?}: nothing is lost");
        }
    }
}

/// The node's journal is longer than the part that a program is given at a time.
#[test]
fn a_program_is_given_a_long_journal_to_its_end() {
    for style in WITH_STATE {
        let mut cluster = programs(&[1, 2, 3], style);
        let client = cluster.client(1);
        for number in 1..=LONG {
            call(&mut cluster, client, number, "a");
        }
        cluster.end_programs("log", &[1, 2, 3]);
        cluster.run_for(ms(20));
        let next = call(&mut cluster, client, LONG + 1, "b");
        assert_eq!(next, Outcome::Ok(format!("{}:b", LONG + 1).into()), "{style}");
    }
}

#[test]
fn one_replica_alone_is_given_up_by_no_request() {
    for style in EXECUTED_BY_ALL.into_iter().chain([Style::WarmPassive]) {
        let mut cluster = programs(&[1], style);
        let (client, bad) = (cluster.client(1), cluster.client(1));
        assert_eq!(call(&mut cluster, client, 1, "a"), Outcome::Ok("1:a".into()), "{style}");
        let refused = call(&mut cluster, bad, 1, "die");
        assert_eq!(died(&refused), [1, 1], "{style}");
        assert_eq!(call(&mut cluster, client, 2, "b"), Outcome::Ok("2:b".into()), "{style}");
        cluster.end_programs("log", &[1]);
        cluster.run_for(ms(20));
        assert_eq!(call(&mut cluster, bad, 1, "die"), refused, "{style}: not executed again");
        assert_eq!(call(&mut cluster, client, 3, "c"), Outcome::Ok("3:c".into()), "{style}");
    }
}
