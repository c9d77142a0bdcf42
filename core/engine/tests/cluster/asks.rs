//! Voting groups that call others: a majority asks (`docs/protocol/nested.md`, "Voting groups").

use steadfast_engine::{Deviation, Event};
use wire::GroupId;
use wire::client::{Access, Outcome};
use wire::ordered::{GroupOptions, Style};

use crate::harness::{Cluster, Connection, ms};
use crate::voting::{Fault, deviated};

/// A voting group that calls, and one that is called.
fn two_groups(callers: &[u32], size: u32, callee: Style) -> Cluster {
    let mut cluster = Cluster::new(size);
    let of = |style| GroupOptions { style, ..GroupOptions::default() };
    cluster.host_on_with("front", callers, of(Style::Voting));
    cluster.host_on_with("back", &[size - 1, size], of(callee));
    cluster
}

fn relay(cluster: &mut Cluster, client: Connection, number: u64, text: &str) -> Outcome {
    cluster.learn_view(client, "front");
    let call = cluster.call(client, "front", number, &format!("back>{text}"));
    cluster.reply(call)
}

fn ok(text: &str) -> Outcome {
    Outcome::Ok(text.to_owned().into())
}

fn orders(cluster: &Cluster) -> usize {
    let copies = |node| cluster.times(node, |event| matches!(event, Event::NestedCopy { .. }));
    (1..=5).map(copies).sum()
}

#[test]
fn a_voting_group_calls_a_group_of_any_style_once() {
    for style in [
        Style::SemiActive,
        Style::Active,
        Style::Voting,
        Style::WarmPassive,
        Style::ColdPassive,
        Style::Stateless,
    ] {
        let mut cluster = two_groups(&[1, 2, 3], 5, style);
        for (node, number) in [(1, 1), (2, 2), (3, 3)] {
            let client = cluster.client(node);
            // A stateless replica knows what it has done alone.
            let at = if style == Style::Stateless { "" } else { &format!("{number}:a") };
            match relay(&mut cluster, client, 1, "a") {
                Outcome::Ok(reply) => {
                    let reply = String::from_utf8(reply.to_vec()).expect("text");
                    let right = format!("{number}:back>a={at}");
                    assert!(reply.starts_with(&right), "{style}: {reply}");
                }
                other => panic!("{style}: {other:?}"),
            }
        }
        cluster.run_for(ms(20));
        let states = [1, 2, 3].map(|node| cluster.state(node, "front").to_vec());
        assert!(states.iter().all(|state| state.len() == 3 && *state == states[0]), "{states:?}");
        if style != Style::Stateless {
            assert_eq!(cluster.state(4, "back"), ["a", "a", "a"], "{style}");
            assert_eq!(orders(&cluster), 0, "{style}: each end is ordered once");
        }
        assert_eq!([1, 2, 3].map(|of| deviated(&cluster, 1, of)), [0, 0, 0], "{style}");
    }
}

#[test]
fn one_and_two_replicas_call_too() {
    for callers in [&[2][..], &[2, 3]] {
        let mut cluster = two_groups(callers, 5, Style::Active);
        let client = cluster.client(2);
        for number in 1..=3 {
            let right = format!("{number}:back>a={number}:a");
            assert_eq!(relay(&mut cluster, client, number, "a"), ok(&right));
        }
    }
}

/// The deviant may be any replica: also the first in rank, which would order on behalf of the
/// others, or one without a timeout, which would give up for them.
#[test]
fn who_asks_something_else_is_heard_by_nobody_and_replaced() {
    for fault in [Fault::AsksElse, Fault::AsksInHaste, Fault::AsksNothing] {
        for liar in [1, 2, 3] {
            let mut cluster = two_groups(&[1, 2, 3], 5, Style::SemiActive);
            let client = cluster.client(2);
            assert_eq!(relay(&mut cluster, client, 1, "a"), ok("1:back>a=1:a"));
            cluster.spoil(liar, fault);
            assert_eq!(relay(&mut cluster, client, 2, "b"), ok("2:back>b=2:b"));
            cluster.run_until_synced("front", 3);
            for node in 1..=5 {
                assert_eq!(deviated(&cluster, node, liar), 1, "told by node {node}");
            }
            // 1 is the outcome of the first call, of which the ask was 1: the second call's ask is 3.
            let told = |event: &Event| {
                let Event::Deviated { position, cause, .. } = event else { return false };
                *position == 3 && matches!(cause, Deviation::Outcome { voters: 3, .. })
            };
            assert!(cluster.told(4, told), "the third thing that is voted on");
            assert_eq!(cluster.state(4, "back"), ["a", "b"], "what a majority asks is done");
            assert_eq!(cluster.state(liar, "front"), ["back>a=1:a", "back>b=2:b"]);
            assert_eq!(relay(&mut cluster, client, 3, "c"), ok("3:back>c=3:c"));
            assert_eq!(deviated(&cluster, 5, liar), 1, "it is good again");
        }
    }
}

#[test]
fn who_asks_nothing_in_time_is_replaced_and_delays_nobody() {
    let mut cluster = two_groups(&[1, 2, 3], 5, Style::SemiActive);
    let client = cluster.client(2);
    assert_eq!(relay(&mut cluster, client, 1, "a"), ok("1:back>a=1:a"));
    cluster.spoil(3, Fault::Hangs);
    assert_eq!(relay(&mut cluster, client, 2, "b"), ok("2:back>b=2:b"));
    cluster.run_for(ms(1_900));
    assert_eq!(deviated(&cluster, 1, 3), 0);
    cluster.run_for(ms(200));
    let silent = |event: &Event| {
        matches!(event, Event::Deviated { cause: Deviation::Silent, position: 3, .. })
    };
    assert_eq!([1, 2, 5].map(|node| cluster.times(node, silent)), [1, 1, 1]);
    cluster.run_until_synced("front", 3);
    assert_eq!(cluster.state(3, "front"), ["back>a=1:a", "back>b=2:b"]);
    assert_eq!(relay(&mut cluster, client, 3, "c"), ok("3:back>c=3:c"));
}

#[test]
fn where_all_ask_something_else_nothing_is_asked_and_all_are_told() {
    let mut cluster = two_groups(&[1, 2, 3], 5, Style::SemiActive);
    let client = cluster.client(1);
    cluster.spoil(2, Fault::AsksElse);
    cluster.spoil(3, Fault::AsksElse);
    let Outcome::Ok(reply) = relay(&mut cluster, client, 1, "a") else { panic!("it is answered") };
    let reply = String::from_utf8(reply.to_vec()).expect("text");
    assert!(
        reply.contains("Split") && reply.contains("no majority of the replicas asks"),
        "{reply}"
    );
    let split = |event: &Event| matches!(event, Event::Split { position: 1, answers: 3, .. });
    assert_eq!([1, 3, 5].map(|node| cluster.times(node, split)), [1, 1, 1]);
    assert_eq!(cluster.state(4, "back"), [""; 0], "nobody was asked");
    let states = [1, 2, 3].map(|node| cluster.state(node, "front").to_vec());
    assert!(states.iter().all(|state| *state == states[0]), "the same for all: {states:?}");
    assert_eq!([1, 2, 3].map(|of| deviated(&cluster, 1, of)), [0, 0, 0]);
}

/// Two of three have asked when a third dies, or comes.
#[test]
fn asks_are_told_anew_when_a_replica_dies_or_comes_while_they_are_counted() {
    let mut cluster = two_groups(&[1, 2, 3], 7, Style::SemiActive);
    let client = cluster.client(1);
    assert_eq!(relay(&mut cluster, client, 1, "a"), ok("1:back>a=1:a"));
    cluster.spoil(2, Fault::Hangs);
    cluster.learn_view(client, "front");
    cluster.kill(3);
    let call = cluster.call(client, "front", 2, "back>b");
    cluster.run_for(ms(500));
    assert!(!cluster.is_answered(call), "one of two is no majority");
    assert_eq!(cluster.state(6, "back"), ["a"]);
    // The other one of two is silent beyond its time: it comes anew, and its vote is not needed
    // before.
    assert_eq!(cluster.reply(call), ok("2:back>b=2:b"));
    cluster.restart(3);
    let options = GroupOptions { style: Style::Voting, ..GroupOptions::default() };
    cluster.host_with("front", 3, options);
    cluster.run_until_synced("front", 3);
    assert_eq!(relay(&mut cluster, client, 3, "c"), ok("3:back>c=3:c"));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "front").len(), 3, "node {node}");
    }
    assert_eq!([1, 3].map(|of| deviated(&cluster, 1, of)), [0, 0]);
}

/// Calls that the group made before it votes go on as before. Calls that wait for votes when it
/// stops voting go on, too.
#[test]
fn a_call_under_way_outlives_that_its_group_begins_and_ceases_to_vote() {
    for (from, to) in [(Style::Active, Style::Voting), (Style::Voting, Style::Active)] {
        let mut cluster = Cluster::new(5);
        let of = |style| GroupOptions { style, ..GroupOptions::default() };
        cluster.host_on_with("front", &[1, 2, 3], of(from));
        cluster.host_on_with("back", &[4, 5], of(Style::SemiActive));
        let client = cluster.client(1);
        assert_eq!(relay(&mut cluster, client, 1, "a"), ok("1:back>a=1:a"));
        if from == Style::Voting {
            // One of three asks: that is no majority.
            cluster.spoil(2, Fault::Hangs);
            cluster.spoil(3, Fault::Hangs);
        }
        let call = cluster.call(client, "front", 2, "back>b");
        // Its handler asks when the group has another style.
        let other = cluster.client(1);
        cluster.learn_view(other, "front");
        let next = cluster.call(other, "front", 1, "back>n");
        let during = if from == Style::Voting { ms(20) } else { ms(0) };
        cluster.run_for(during);
        assert_eq!(cluster.state(4, "back"), ["a"]);
        cluster.restyle(4, "front", to).expect("begun");
        cluster.restyled(4).expect("changed");
        assert_eq!(cluster.reply(call), ok("2:back>b=2:b"), "{from} to {to}");
        assert_eq!(cluster.reply(next), ok("3:back>n=3:n"), "{from} to {to}");
        if from == Style::Active {
            for number in 4..=6 {
                let right = format!("{number}:back>c={number}:c");
                assert_eq!(relay(&mut cluster, client, number, "c"), ok(&right));
            }
            assert_eq!([1, 2, 3].map(|of| deviated(&cluster, 1, of)), [0, 0, 0]);
        }
    }
}

/// The parent's deadline ends what is asked, for all alike, and only when a majority asks it.
#[test]
fn a_majority_gives_a_call_up_when_its_time_is_over() {
    let mut cluster = two_groups(&[1, 2, 3], 5, Style::SemiActive);
    let client = cluster.client(1);
    cluster.learn_view(client, "front");
    cluster.spoil(4, Fault::Hangs);
    let call = cluster.call_within(client, "front", 1, "back>a", (Access::Change, ms(400)));
    let reply = cluster.reply(call);
    assert_eq!(reply, ok("1:back>a=Deadline"));
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "front"), ["back>a=Deadline"]);
    }
    assert_eq!([1, 2, 3].map(|of| deviated(&cluster, 5, of)), [0, 0, 0]);
}

/// The last voter leaves while its handler waits for votes. No replica could settle them any more,
/// so it leaves at once.
#[test]
fn the_last_replica_does_not_wait_for_votes_when_it_goes() {
    let mut cluster = two_groups(&[1, 2], 5, Style::SemiActive);
    let client = cluster.client(1);
    assert_eq!(relay(&mut cluster, client, 1, "a"), ok("1:back>a=1:a"));
    cluster.spoil(2, Fault::Hangs);
    let call = cluster.call(client, "front", 2, "back>b");
    cluster.run_for(ms(20));
    assert!(!cluster.is_answered(call));
    cluster.unhost("front", 1);
    cluster.run_for(ms(20));
    assert_eq!(cluster.replicas("front"), [2]);
    assert!(cluster.node(1).is_hosting(GroupId::of("front")), "it may be told what is right yet");
    cluster.unhost("front", 2);
    cluster.run_for(ms(20));
    let status = cluster.node(5).status();
    assert!(status.groups.iter().all(|group| group.name != "front"), "the group is gone");
    assert!(!cluster.node(1).is_hosting(GroupId::of("front")));
}
