//! The promises of calls between groups (`docs/protocol/nested.md`).

use steadfast_engine::Event;
use steadfast_engine::ordering::{InProcess, Ring};
use wire::Duration;
use wire::client::{Access, Outcome};
use wire::histogram::Times;
use wire::ordered::{AckLevel, End, GroupOptions, KeptReply, Style};
use wire::system::MANAGER;

use crate::base::Base;
use crate::harness::{Cluster, ms};

fn ok(text: &str) -> Outcome {
    Outcome::Ok(text.to_owned().into())
}

fn two_groups<O: Base>(mut cluster: Cluster<O>) -> Cluster<O> {
    cluster.host_on("front", &[1, 2, 3]);
    cluster.host_on("back", &[3, 4, 5]);
    cluster
}

fn copies<O: Base>(cluster: &Cluster<O>) -> bool {
    (1..=5).any(|node| cluster.told(node, |event| matches!(event, Event::NestedCopy { .. })))
}

#[test]
fn a_group_calls_another_and_every_replica_takes_the_same_reply() {
    let mut cluster = two_groups(Cluster::new(5));
    let client = cluster.client(1);
    let call = cluster.call(client, "front", 1, "back>a");
    assert_eq!(cluster.reply(call), ok("1:back>a=1:a"));
    let call = cluster.call(client, "front", 2, "back>b");
    assert_eq!(cluster.reply(call), ok("2:back>b=2:b"));
    cluster.run_for(ms(5));
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "front"), ["back>a=1:a", "back>b=2:b"]);
    }
    for node in [3, 4, 5] {
        assert_eq!(cluster.state(node, "back"), ["a", "b"]);
    }
    assert!(!copies(&cluster));
    // Both messages of a call are the primaries', who know how long they waited to be sent.
    let counted = |times: Times| times.spans().map(|(_, count)| count).sum::<u64>();
    for node in 1..=5 {
        let nested = cluster.node(node).status().nested;
        let told = [nested.call_delays, nested.services, nested.end_delays].map(counted);
        let expected = match node {
            1 => [2, 0, 0],
            3 => [0, 2, 2],
            _ => [0; 3],
        };
        assert_eq!(told, expected, "node {node}");
    }
}

/// Both of two replicas must have a call before its end is ordered. Where short datagrams overtake
/// long ones, the sender's acknowledgement arrives before the call. Even then nothing waits for the
/// ring's next sign of life.
#[test]
fn a_call_takes_round_trips_and_no_time_out_where_acknowledgements_overtake() {
    for options in [
        GroupOptions::default(),
        GroupOptions { ack: AckLevel::All, ..GroupOptions::default() },
        GroupOptions { style: Style::WarmPassive, ..GroupOptions::default() },
        GroupOptions { style: Style::ColdPassive, ..GroupOptions::default() },
        GroupOptions { style: Style::Active, ..GroupOptions::default() },
    ] {
        let mut cluster = Cluster::new(2);
        cluster.host_on_with("front", &[1, 2], options);
        cluster.host_on_with("back", &[2, 1], options);
        cluster.per_byte = Duration::from_nanos(300);
        let client = cluster.client(1);
        for number in 1..=20 {
            let call = cluster.call(client, "front", number, "back>a");
            assert_eq!(cluster.reply(call), ok(&format!("{number}:back>a={number}:a")));
            let waited = cluster.waited(call);
            // Requests, updates and ends: each waits for the token, and for its receipt.
            assert!(waited < ms(2), "{:?}, call {number}: {waited:?}", options.style);
            cluster.run_for(ms(number));
        }
    }
}

#[test]
fn active_groups_call_with_one_copy_of_each_message() {
    let active = GroupOptions { style: Style::Active, ..GroupOptions::default() };
    let mut cluster = Cluster::new(5);
    cluster.host_on_with("front", &[1, 2, 3], active);
    cluster.host_on_with("back", &[3, 4, 5], active);
    for number in 1..=20 {
        let client = cluster.client(2);
        cluster.learn_view(client, "front");
        let call = cluster.call(client, "front", 1, "back>a");
        assert_eq!(cluster.reply(call), ok(&format!("{number}:back>a={number}:a")));
    }
    assert!(!copies(&cluster));
    assert!((3..=5).all(|node| cluster.copies(node) == 0), "requests come once");
}

#[test]
fn calls_go_through_several_groups_and_never_in_a_circle() {
    let mut cluster = Cluster::<InProcess>::in_process(5);
    for group in ["a", "b", "c", "d", "e"] {
        cluster.host_on(group, &[1, 2, 3]);
    }
    let client = cluster.client(1);
    let call = cluster.call(client, "a", 1, "b>c>d>x");
    assert_eq!(cluster.reply(call), ok("1:b>c>d>x=1:c>d>x=1:d>x=1:x"));
    let call = cluster.call(client, "a", 2, "b>c>d>e>x");
    assert_eq!(cluster.reply(call), ok("2:b>c>d>e>x=2:c>d>e>x=2:d>e>x=2:e>x=TooDeep"));
    let call = cluster.call(client, "a", 3, "b>c>a>x");
    assert_eq!(cluster.reply(call), ok("3:b>c>a>x=3:c>a>x=3:a>x=Cycle"));
    let call = cluster.call(client, "a", 4, "a>x");
    assert_eq!(cluster.reply(call), ok("4:a>x=Cycle"));
    let call = cluster.call(client, "a", 5, "nobody>x");
    assert_eq!(cluster.reply(call), ok("5:nobody>x=NoSuchGroup"));
}

/// A caller of this group could start programs on every host.
#[test]
fn handlers_do_not_reach_the_managers_group() {
    let mut cluster = Cluster::<InProcess>::in_process(2);
    cluster.host_on("front", &[1, 2]);
    cluster.host_on(MANAGER, &[1, 2]);
    let client = cluster.client(1);
    let text = format!("{MANAGER}>x");
    let call = cluster.call(client, "front", 1, &text);
    assert_eq!(cluster.reply(call), ok(&format!("1:{text}=NoSuchGroup")));
    assert!(cluster.state(1, MANAGER).is_empty(), "it has executed nothing");
}

#[test]
fn whichever_side_dies_the_call_is_executed_once() {
    for (victim, heir) in [(1, 2), (3, 2), (4, 2)] {
        let mut cluster = Cluster::new(5);
        cluster.host_on("front", &[1, 2, 5]);
        cluster.host_on("back", &[3, 4, 5]);
        let client = cluster.client(heir);
        cluster.learn_view(client, "front");
        let entry = cluster.connect_as(client, 1);
        for number in 1..=10u64 {
            let text = format!("back>{number}");
            let at = if victim == 1 && number > 5 { client } else { entry };
            let first = cluster.call(at, "front", number, &text);
            if number == 5 {
                // Somewhere on its way.
                cluster.run_for(Duration::from_micros(100));
                cluster.kill(victim);
            }
            let last = match victim {
                1 if number == 5 => cluster.call(client, "front", number, &text),
                _ => first,
            };
            let right = ok(&format!("{number}:{text}={number}:{number}"));
            assert_eq!(cluster.reply(last), right, "node {victim} dies");
        }
        cluster.run_for(ms(50));
        for node in [4, 5].into_iter().filter(|node| *node != victim) {
            assert_eq!(cluster.state(node, "back").len(), 10, "node {victim} dies");
        }
    }
}

#[test]
fn a_call_that_nobody_answers_ends_by_its_parents_deadline_alike_everywhere() {
    let mut cluster = two_groups(Cluster::new(5));
    // Two who wait for each other.
    let (one, other) = (cluster.client(1), cluster.client(3));
    let a = cluster.call_within(one, "front", 1, "back>x", (Access::Change, ms(300)));
    let b = cluster.call_within(other, "back", 1, "front>y", (Access::Change, ms(300)));
    let (a, b) = (cluster.reply(a), cluster.reply(b));
    let Outcome::Ok(a) = a else { panic!("{a:?}") };
    let Outcome::Ok(b) = b else { panic!("{b:?}") };
    let gave_up = |bytes: &[u8]| bytes.ends_with(b"=Deadline");
    assert!(gave_up(&a) || gave_up(&b), "{a:?} {b:?}");
    cluster.run_for(ms(1_000));
    for (group, nodes) in [("front", [1, 2, 3]), ("back", [3, 4, 5])] {
        let states = nodes.map(|node| cluster.state(node, group).to_vec());
        assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
    }
    let next = cluster.call(one, "front", 2, "back>z");
    assert!(matches!(cluster.reply(next), Outcome::Ok(bytes) if bytes.ends_with(b":z")));
}

#[test]
fn a_replica_that_joins_while_a_call_is_under_way_has_it_in_its_state() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("front", &[1, 2]);
    cluster.host_on("back", &[4, 5]);
    let client = cluster.client(1);
    cluster.learn_view(client, "front");
    for number in 1..=3 {
        cluster.call(client, "front", number, &format!("back>{number}"));
    }
    cluster.host_on_later("front", 3);
    cluster.run_until_synced("front", 3);
    cluster.learn_view(client, "front");
    let call = cluster.call(client, "front", 4, "back>4");
    assert_eq!(cluster.reply(call), ok("4:back>4=4:4"));
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(3, "front"), cluster.state(1, "front"));
    // It derives the same calls as the others.
    cluster.kill(1);
    cluster.kill(2);
    cluster.restart(2);
    let other = cluster.connect_as(client, 3);
    let retry = cluster.call(other, "front", 4, "back>4");
    assert_eq!(cluster.reply(retry), ok("4:back>4=4:4"));
}

#[test]
fn who_executes_a_log_again_tells_its_handlers_what_they_were_told() {
    let cold = GroupOptions { style: Style::ColdPassive, ..GroupOptions::default() };
    let mut cluster = Cluster::new(5);
    cluster.host_on_with("front", &[1, 2], cold);
    cluster.host_on("back", &[3, 4, 5]);
    let client = cluster.client(1);
    for number in 1..=5 {
        // The callee keeps no reply to the calls before.
        let call = cluster.call(client, "front", number, &format!("back>{number}"));
        assert_eq!(cluster.reply(call), ok(&format!("{number}:back>{number}={number}:{number}")));
    }
    cluster.host_with("front", 3, cold);
    cluster.run_until_synced("front", 3);
    cluster.kill(1);
    cluster.kill(2);
    let heir = cluster.connect_as(client, 3);
    let call = cluster.call(heir, "front", 6, "back>6");
    assert_eq!(cluster.reply(call), ok("6:back>6=6:6"));
    let told = (1..=6).map(|n| format!("back>{n}={n}:{n}"));
    assert_eq!(cluster.state(3, "front"), told.collect::<Vec<_>>());
    cluster.run_for(ms(5));
    assert_eq!(cluster.state(4, "back"), ["1", "2", "3", "4", "5", "6"]);
}

fn reply(text: &str) -> End {
    End::Reply(KeptReply::Ok(text.into()))
}

/// Nothing is ordered but the end: so a call to another cell is made by the caller's primary alone,
/// and by the next one under the same names.
#[test]
fn a_call_to_another_cell_is_made_again_by_the_next_primary_and_ends_once() {
    let mut cluster = Cluster::<Ring>::new(3);
    cluster.host_on("front", &[1, 2, 3]);
    let client = cluster.client(2);
    cluster.learn_view(client, "front");
    let entry = cluster.connect_as(client, 1);
    let text = "line-a.porto:back>a";
    cluster.call(entry, "front", 1, text);
    cluster.run_for(ms(5));
    assert!(cluster.away(2).is_empty() && cluster.away(3).is_empty());
    let first = cluster.away(1).pop().expect("the primary makes it");
    assert_eq!((first.cell.as_str(), &*first.group), ("line-a.porto", "back"));
    assert_eq!((first.number, first.unanswered, &first.body[..]), (1, 1, &b"a"[..]));

    cluster.kill(1);
    cluster.run_for(ms(500));
    let call = cluster.call(client, "front", 1, text);
    let second = cluster.away(2).pop().expect("the next primary makes it");
    assert_eq!((second.wait, second.client, second.number), (first.wait, first.client, 1));
    cluster.end_away(3, second.wait, reply("no primary speaks so"));
    cluster.end_away(2, second.wait, reply("1"));
    cluster.end_away(2, second.wait, reply("once more"));
    assert_eq!(cluster.reply(call), ok("1:line-a.porto:back>a=1"));
    cluster.run_for(ms(5));
    for node in [2, 3] {
        assert_eq!(cluster.state(node, "front"), ["line-a.porto:back>a=1"]);
    }
}

#[test]
fn calls_to_other_cells_that_cannot_be_end_alike_everywhere() {
    for style in [Style::SemiActive, Style::Active, Style::WarmPassive, Style::Stateless] {
        let mut cluster = Cluster::<InProcess>::in_process(3);
        cluster.host_on_with(
            "front",
            &[1, 2, 3],
            GroupOptions { style, ..GroupOptions::default() },
        );
        let client = cluster.client(1);
        let call = cluster.call(client, "front", 1, "*:back>a");
        assert_eq!(cluster.reply(call), ok("1:*:back>a=NoSuchGroup"), "{style:?}");
        let call = cluster.call(client, "front", 2, "line-a.porto:back>a");
        cluster.run_for(ms(100));
        let made = cluster.away(1).pop().expect("the first replica makes it");
        assert_eq!(made.number, 2);
        cluster.end_away(1, made.wait, End::NoReplica);
        assert_eq!(cluster.reply(call), ok("2:line-a.porto:back>a=NoReplica"), "{style:?}");
    }
}
