//! Histories that part and meet again: what is given up is told
//! (`docs/protocol/group.md`, "Histories that meet").

use steadfast_engine::Event;
use wire::GroupId;
use wire::client::Outcome;
use wire::ordered::{About, GroupOptions, Style};

use crate::harness::{Cluster, Connection, ms};

const STYLES: [Style; 5] =
    [Style::SemiActive, Style::Active, Style::Voting, Style::WarmPassive, Style::ColdPassive];

/// The calls that each node's replica says that it gave up.
fn discarded(cluster: &Cluster) -> Vec<u64> {
    let at = |node| {
        let calls = cluster.events(node).filter_map(|event| match event {
            Event::Discarded { calls, .. } => Some(*calls),
            _ => None,
        });
        calls.sum()
    };
    (1..=5).map(at).collect()
}

fn calls(cluster: &mut Cluster, client: Connection, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        cluster.learn_view(client, "log");
        let body = format!("{}.{number}", client.client);
        let call = cluster.call(client, "log", number, &body);
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    }
}

/// A group on five nodes that was called twice, parted in two and three, and called again there.
fn parted(style: Style, few: u64, many: u64) -> Cluster {
    parted_of(style, (few, many), false)
}

fn parted_of(style: Style, (few, many): (u64, u64), merges: bool) -> Cluster {
    let mut cluster = Cluster::forking(5);
    let options = GroupOptions { style, ..GroupOptions::default() };
    cluster.host_on_with("log", &[1, 2, 3, 4, 5], options);
    if merges {
        cluster.merge("log", &[1, 2, 3, 4, 5]);
    }
    let (at_1, at_3) = (cluster.client(1), cluster.client(3));
    calls(&mut cluster, at_1, 1..=2);
    cluster.run_for(ms(100));
    cluster.partition(&[1, 2]);
    cluster.run_for(ms(1_000));
    calls(&mut cluster, at_1, 3..=2 + few);
    calls(&mut cluster, at_3, 1..=many);
    cluster.run_for(ms(500));
    cluster.heal();
    cluster.run_for(ms(2_000));
    cluster
}

#[test]
fn a_side_that_gives_up_its_calls_says_how_many_in_every_style() {
    for style in STYLES {
        let mut cluster = parted(style, 3, 2);
        assert_eq!(discarded(&cluster), [3, 3, 0, 0, 0], "{style}");
        for node in 1..=5 {
            let notes = cluster.node(node).state_notes(GroupId::of("log"));
            let of = notes.iter().filter(|note| note.about == About::Discarded);
            let told: Vec<_> = of.map(|note| (note.member.node.0, note.text.as_str())).collect();
            let text = "3 acknowledged calls";
            assert_eq!(told, [(1, text), (2, text)], "{style}, all nodes know");
        }
        let reader = cluster.client(4);
        calls(&mut cluster, reader, 1..=1);
        cluster.run_for(ms(500));
        let primary = cluster.primary(4, "log").expect("one is");
        assert_eq!(cluster.state(primary, "log").len(), 5, "{style}: two, two and one are left");
    }
}

/// The calls that each node's replica says were merged.
fn merged(cluster: &Cluster) -> Vec<u64> {
    let at = |node| {
        let calls = cluster.events(node).filter_map(|event| match event {
            Event::Merged { calls, .. } => Some(*calls),
            _ => None,
        });
        calls.sum()
    };
    (1..=5).map(at).collect()
}

#[test]
fn where_services_merge_the_union_is_there_in_every_style() {
    for style in STYLES {
        let mut cluster = parted_of(style, (3, 2), true);
        assert_eq!(discarded(&cluster), [0; 5], "{style}");
        assert_eq!(merged(&cluster), [3, 3, 0, 0, 0], "{style}");
        let reader = cluster.client(4);
        calls(&mut cluster, reader, 1..=1);
        cluster.run_for(ms(500));
        let runs =
            |node: &u32| style != Style::ColdPassive || cluster.primary(4, "log") == Some(*node);
        for node in (1..=5).filter(runs).collect::<Vec<u32>>() {
            let mut state = cluster.state(node, "log").to_vec();
            state.sort();
            state.dedup();
            assert_eq!(state.len(), 2 + 3 + 2 + 1, "{style} at {node}: {state:?}");
            assert_eq!(cluster.state(node, "log").len(), state.len(), "{style}: none twice");
        }
    }
}

/// A state of several pieces is a call as any other: programs that die are given it again.
#[test]
fn a_large_state_is_merged_and_stays_so_when_all_programs_die() {
    const LARGE: usize = 150_000;
    for style in STYLES {
        let mut cluster = Cluster::forking(5);
        let options = GroupOptions { style, ..GroupOptions::default() };
        for node in 1..=5 {
            cluster.host_program("log", node, options);
            cluster.run_until_synced("log", node as usize);
        }
        cluster.run_for(ms(200));
        cluster.merge("log", &[1, 2, 3, 4, 5]);
        let (at_1, at_3) = (cluster.client(1), cluster.client(3));
        calls(&mut cluster, at_1, 1..=1);
        cluster.partition(&[1, 2]);
        cluster.run_for(ms(1_000));
        for number in 2..=6 {
            cluster.learn_view(at_1, "log");
            let body = format!("{number} {}", "x".repeat(LARGE));
            let call = cluster.call(at_1, "log", number, &body);
            assert!(matches!(cluster.reply(call), Outcome::Ok(_)), "{style}");
        }
        calls(&mut cluster, at_3, 1..=2);
        cluster.run_for(ms(500));
        cluster.heal();
        cluster.run_for(ms(2_000));
        assert_eq!(merged(&cluster), [5, 5, 0, 0, 0], "{style}");
        let length = |cluster: &mut Cluster, node| {
            let client = cluster.client(node);
            cluster.learn_view(client, "log");
            let call = cluster.call(client, "log", 1, "end");
            match cluster.reply(call) {
                Outcome::Ok(reply) => String::from_utf8(reply.to_vec()).unwrap(),
                other => panic!("{style}: {other:?}"),
            }
        };
        assert_eq!(length(&mut cluster, 3), format!("{}:end", 1 + 5 + 2 + 1), "{style}");
        cluster.end_programs("log", &[1, 2, 3, 4, 5]);
        cluster.run_for(ms(100));
        let primary = cluster.primary(4, "log").expect("one goes on");
        assert_eq!(length(&mut cluster, primary), format!("{}:end", 1 + 5 + 2 + 2), "{style}");
    }
}

/// Those that are not merged are told all the same.
#[test]
fn a_state_that_is_not_merged_is_told_as_discarded() {
    let mut cluster = Cluster::forking(5);
    cluster.host_on("log", &[1, 2, 3, 4, 5]);
    cluster.merge("log", &[1]);
    let (at_1, at_3) = (cluster.client(1), cluster.client(3));
    calls(&mut cluster, at_1, 1..=2);
    cluster.partition(&[1, 2]);
    cluster.run_for(ms(1_000));
    calls(&mut cluster, at_1, 3..=5);
    calls(&mut cluster, at_3, 1..=2);
    cluster.end_programs("log", &[1]);
    cluster.heal();
    cluster.run_for(ms(2_000));
    let [at_1, at_2] =
        [1, 2].map(|node| (discarded(&cluster)[node - 1], merged(&cluster)[node - 1]));
    assert_eq!((at_1, at_2), ((0, 0), (3, 0)));
}

#[test]
fn nothing_is_told_where_nothing_is_given_up() {
    assert_eq!(discarded(&parted(Style::SemiActive, 0, 2)), [0; 5]);
    let mut cluster: Cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3, 4, 5]);
    let (at_1, at_3) = (cluster.client(1), cluster.client(3));
    calls(&mut cluster, at_1, 1..=2);
    cluster.partition(&[1, 2]);
    let lost = cluster.call(at_1, "log", 3, "lost");
    cluster.run_for(ms(1_000));
    calls(&mut cluster, at_3, 1..=2);
    cluster.heal();
    cluster.run_for(ms(2_000));
    assert!(cluster.is_answered(lost), "it is ordered again");
    assert_eq!(discarded(&cluster), [0; 5]);
}

#[test]
fn sides_that_part_again_and_again_tell_all_of_it() {
    let mut cluster = parted(Style::SemiActive, 3, 2);
    let (at_1, at_3) = (cluster.client(1), cluster.client(3));
    cluster.partition(&[1, 2]);
    cluster.run_for(ms(1_000));
    calls(&mut cluster, at_1, 1..=1);
    calls(&mut cluster, at_3, 1..=1);
    cluster.partition(&[1]);
    cluster.run_for(ms(1_000));
    cluster.partition(&[1, 2]);
    cluster.run_for(ms(1_000));
    cluster.heal();
    cluster.run_for(ms(2_000));
    let told = discarded(&cluster);
    assert_eq!(told.iter().filter(|calls| **calls == 4).count(), 1, "{told:?}");
    assert!(told[2..] == [0, 0, 0] && told[1] >= 3, "{told:?}");
}

#[test]
fn clusters_that_were_founded_apart_have_nothing_in_common() {
    let mut cluster: Cluster = Cluster::forking(5);
    cluster.partition(&[1, 2]);
    cluster.run_for(ms(1_000));
    cluster.host_with("log", 1, GroupOptions::default());
    cluster.host_with("log", 3, GroupOptions::default());
    cluster.host_with("log", 4, GroupOptions::default());
    cluster.run_for(ms(500));
    let (at_1, at_3) = (cluster.client(1), cluster.client(3));
    calls(&mut cluster, at_1, 1..=7);
    calls(&mut cluster, at_3, 1..=1);
    cluster.heal();
    cluster.run_for(ms(2_000));
    assert_eq!(discarded(&cluster), [7, 0, 0, 0, 0]);
}
