//! Voting groups: what a majority agrees on is answered, and who deviates is replaced.

use steadfast_engine::{Deviation, Event};
use wire::client::{Outcome, Refusal};
use wire::ordered::{GroupOptions, Style};

use crate::harness::{Cluster, Connection, ms};

/// The fault of a node's services.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// They write down something else, until they begin anew.
    Lies,
    /// The same, and that they begin anew does not help.
    LiesAlways,
    /// They execute nothing any more, until they begin anew.
    Hangs,
    /// They ask another group something else, until they begin anew.
    AsksElse,
    /// They have no timeout with another group.
    AsksInHaste,
    /// They ask another group nothing, and answer something.
    AsksNothing,
    /// They cannot read another replica's state.
    CannotRead,
}

impl Fault {
    pub fn lies(self) -> bool {
        self != Fault::CannotRead
    }

    /// It outlasts that the service begins anew.
    pub fn lasts(&self) -> bool {
        matches!(self, Fault::LiesAlways | Fault::CannotRead)
    }
}

fn voting(replicas: &[u32]) -> Cluster {
    let mut cluster = Cluster::new(5);
    let options = GroupOptions { style: Style::Voting, ..GroupOptions::default() };
    cluster.host_on_with("log", replicas, options);
    cluster
}

fn ask(cluster: &mut Cluster, client: Connection, number: u64) -> Outcome {
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", number, "a");
    cluster.reply(call)
}

pub fn deviated(cluster: &Cluster, node: u32, of: u32) -> usize {
    cluster
        .times(node, |event| matches!(event, Event::Deviated { member, .. } if member.node.0 == of))
}

#[test]
fn every_entry_answers_what_all_have() {
    let mut cluster = voting(&[1, 2, 3]);
    for (node, reply) in [(3, "1:a"), (1, "2:a"), (2, "3:a")] {
        let client = cluster.client(node);
        assert_eq!(ask(&mut cluster, client, 1), Outcome::Ok(reply.into()));
    }
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a", "a", "a"]);
        assert_eq!([1, 2, 3].map(|of| deviated(&cluster, node, of)), [0, 0, 0]);
    }
}

#[test]
fn one_and_two_replicas_serve_too() {
    for replicas in [&[2][..], &[2, 3]] {
        let mut cluster = voting(replicas);
        let client = cluster.client(2);
        for number in 1..=3 {
            assert_eq!(
                ask(&mut cluster, client, number),
                Outcome::Ok(format!("{number}:a").into())
            );
        }
    }
}

#[test]
fn a_lie_is_answered_to_nobody_and_its_replica_is_replaced() {
    let mut cluster = voting(&[1, 2, 3]);
    let (at_1, at_3) = (cluster.client(1), cluster.client(3));
    assert_eq!(ask(&mut cluster, at_1, 1), Outcome::Ok("1:a".into()));
    cluster.spoil(3, Fault::Lies);
    // Also the client of the liar gets the truth: from the liar, when it has the state of another.
    assert_eq!(ask(&mut cluster, at_3, 1), Outcome::Ok("2:a".into()));
    cluster.run_until_synced("log", 3);
    for node in 1..=5 {
        assert_eq!(deviated(&cluster, node, 3), 1, "told by node {node}");
    }
    let figures = |event: &Event| {
        let Event::Deviated { position, cause, .. } = event else { return false };
        let Deviation::Outcome { told, agreed, voters } = cause else { return false };
        *position == 2 && told != agreed && *voters == 3
    };
    assert!(cluster.told(1, figures));
    assert_eq!(cluster.state(3, "log"), ["a", "a"]);
    assert_eq!(ask(&mut cluster, at_1, 2), Outcome::Ok("3:a".into()));
    assert_eq!(ask(&mut cluster, at_3, 2), Outcome::Ok("4:a".into()));
    assert_eq!(deviated(&cluster, 1, 3), 1, "it is good again");
}

#[test]
fn who_lies_again_and_again_is_kept_out_for_longer_and_longer() {
    let mut cluster = voting(&[1, 2, 3]);
    let client = cluster.client(1);
    cluster.spoil(3, Fault::LiesAlways);
    let mut number = 0;
    let mut calls = |cluster: &mut Cluster, span: u64| {
        for _ in 0..span / 10 {
            number += 1;
            assert!(matches!(ask(cluster, client, number), Outcome::Ok(_)));
            cluster.run_for(ms(10));
        }
    };
    calls(&mut cluster, 1_000);
    let first = deviated(&cluster, 1, 3);
    calls(&mut cluster, 2_000);
    let then = deviated(&cluster, 1, 3) - first;
    assert!((3..=5).contains(&first), "0, 100, 200 and 400 ms: {first}");
    assert!((1..=2).contains(&then), "800 ms, 1,600 ms: {then}");
}

#[test]
fn a_replica_that_hangs_is_replaced() {
    let mut cluster = voting(&[1, 2, 3]);
    let client = cluster.client(1);
    assert_eq!(ask(&mut cluster, client, 1), Outcome::Ok("1:a".into()));
    cluster.spoil(2, Fault::Hangs);
    assert_eq!(ask(&mut cluster, client, 2), Outcome::Ok("2:a".into()));
    cluster.run_for(ms(1_900));
    assert_eq!(deviated(&cluster, 1, 2), 0);
    cluster.run_for(ms(200));
    let silent = |event: &Event| {
        matches!(event, Event::Deviated { cause: Deviation::Silent, position: 2, .. })
    };
    assert_eq!([1, 3, 5].map(|node| cluster.times(node, silent)), [1, 1, 1]);
    cluster.run_until_synced("log", 3);
    assert_eq!(cluster.state(2, "log"), ["a", "a"]);
    assert_eq!(ask(&mut cluster, client, 3), Outcome::Ok("3:a".into()));
}

#[test]
fn three_answers_are_an_error_and_told() {
    let mut cluster = voting(&[1, 2, 3]);
    let client = cluster.client(1);
    cluster.spoil(2, Fault::LiesAlways);
    cluster.spoil(3, Fault::LiesAlways);
    let Outcome::Refused(Refusal::Split, reason) = ask(&mut cluster, client, 1) else {
        panic!("nobody can know what is right");
    };
    assert!(reason.contains("no majority"), "{reason}");
    let split = |event: &Event| matches!(event, Event::Split { position: 1, answers: 3, .. });
    assert_eq!(cluster.times(1, split), 1);
    // A retry elsewhere is told the same.
    let elsewhere = cluster.connect_as(client, 2);
    let call = cluster.call(elsewhere, "log", 1, "a");
    assert!(matches!(cluster.reply(call), Outcome::Refused(Refusal::Split, _)));
}

#[test]
fn what_a_replica_leaves_before_the_verdict_is_answered_by_the_next_one_there() {
    let mut cluster = voting(&[1, 2, 3]);
    let client = cluster.client(3);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, "a");
    // It goes behind the call, and before anybody has told what came of that.
    cluster.unhost("log", 3);
    cluster.run_until_synced("log", 2);
    cluster.run_for(ms(5));
    let executions = [1, 2, 3].map(|node| cluster.executions(node));
    assert_eq!(executions, [1, 1, 0], "it was not its turn yet");
    let options = GroupOptions { style: Style::Voting, ..GroupOptions::default() };
    cluster.host_with("log", 3, options);
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    assert_eq!(cluster.executions(3), 0, "by the state that it was given");
}

#[test]
fn what_has_no_verdict_yet_does_not_hold_up_a_node_that_stops() {
    let mut cluster = voting(&[1, 2, 3]);
    let client = cluster.client(3);
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 1, "a");
    cluster.leave(3);
    cluster.run_for(ms(20));
    assert!(cluster.has_left(3) && !cluster.is_answered(call));
    let elsewhere = cluster.connect_as(client, 1);
    let retry = cluster.call(elsewhere, "log", 1, "a");
    assert_eq!(cluster.reply(retry), Outcome::Ok("1:a".into()));
    assert_eq!([1, 2].map(|node| cluster.executions(node)), [1, 1]);
}

#[test]
fn votes_are_told_anew_when_a_replica_dies_between_them() {
    let mut cluster = voting(&[1, 2, 3]);
    let client = cluster.client(1);
    assert_eq!(ask(&mut cluster, client, 1), Outcome::Ok("1:a".into()));
    cluster.kill(3);
    for number in 2..=4 {
        assert_eq!(ask(&mut cluster, client, number), Outcome::Ok(format!("{number}:a").into()));
    }
    cluster.restart(3);
    let options = GroupOptions { style: Style::Voting, ..GroupOptions::default() };
    cluster.host_with("log", 3, options);
    cluster.run_until_synced("log", 3);
    assert_eq!(ask(&mut cluster, client, 5), Outcome::Ok("5:a".into()));
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(3, "log").len(), 5);
    assert_eq!([1, 2, 3].map(|of| deviated(&cluster, 1, of)), [0, 0, 0]);
}
