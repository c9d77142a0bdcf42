//! Reads that may be stale are answered without a quorum, as long as their bound allows
//! (`docs/protocol/group.md`, "Reads").

use wire::GroupId;
use wire::client::{Access, Outcome};
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};

use crate::harness::{Cluster, Connection, ms};

const STYLES: [Style; 5] =
    [Style::SemiActive, Style::Active, Style::Voting, Style::WarmPassive, Style::ColdPassive];

const STALE: Access = Access::Stale { max_age_ms: 60_000 };

fn options(style: Style, durability: Durability) -> GroupOptions {
    GroupOptions { style, durability, ..GroupOptions::default() }
}

/// A read at this node that may be stale.
fn read(cluster: &mut Cluster, client: Connection, number: u64) -> Outcome {
    cluster.learn_view(client, "log");
    let read = cluster.call_with(client, "log", number, "", STALE);
    cluster.reply(read)
}

/// A group of one call, on nodes that have answered reads since; and a client at `node`.
fn called(options: GroupOptions, node: u32) -> (Cluster, Connection) {
    let mut cluster = match options.durability {
        Durability::Memory => Cluster::new(3),
        Durability::Disk => Cluster::new_on_disk(3),
    };
    cluster.host_on_with("log", &[1, 2, 3], options);
    let (writer, reader) = (cluster.client(1), cluster.client(node));
    cluster.learn_view(writer, "log");
    let call = cluster.call(writer, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.run_for(ms(200));
    assert!(matches!(read(&mut cluster, reader, 1), Outcome::Ok(_)), "in the component");
    cluster.run_for(ms(200));
    (cluster, reader)
}

#[test]
fn whoever_is_cut_off_answers_in_every_style_and_durability() {
    for durability in [Durability::Memory, Durability::Disk] {
        for (style, node) in STYLES.into_iter().flat_map(|style| [(style, 1), (style, 3)]) {
            let (mut cluster, reader) = called(options(style, durability), node);
            cluster.partition(&[node]);
            for (number, after) in [(2, ms(1)), (3, ms(20)), (4, ms(1_000)), (5, ms(10_000))] {
                cluster.run_for(after);
                let ordered = matches!(style, Style::Voting | Style::ColdPassive);
                if ordered && number == 2 {
                    continue; // it would be ordered, and by nobody else
                }
                let told = read(&mut cluster, reader, number);
                let what = format!("{style} in {durability:?} at {node}, {after:?} later");
                // Standbys of a cold passive group run no service.
                match style == Style::ColdPassive && node != 1 {
                    true => assert_eq!(told, Outcome::NoReplica, "{what}"),
                    false => assert!(
                        matches!(told, Outcome::Ok(_)),
                        "{what}: {told:?}, {:?}",
                        cluster.node(node).explain_lead(GroupId::of("log"))
                    ),
                }
            }
            cluster.run_for(ms(60_000));
            assert_eq!(read(&mut cluster, reader, 9), Outcome::NoReplica, "{style}: it is too old");
        }
    }
}

#[test]
fn the_last_of_three_nodes_answers_when_the_others_die_at_once() {
    for (style, node) in STYLES.into_iter().flat_map(|style| [(style, 1), (style, 3)]) {
        let (mut cluster, reader) = called(options(style, Durability::Memory), node);
        for other in [1, 2, 3].into_iter().filter(|other| *other != node) {
            cluster.kill(other);
        }
        cluster.run_for(ms(1_000));
        let told = read(&mut cluster, reader, 2);
        match style == Style::ColdPassive && node != 1 {
            true => assert_eq!(told, Outcome::NoReplica, "{style} at {node}"),
            false => assert!(matches!(told, Outcome::Ok(_)), "{style} at {node}: {told:?}"),
        }
    }
}

#[test]
fn a_read_that_waits_for_the_verdict_is_answered_with_it() {
    let (mut cluster, reader) = called(options(Style::SemiActive, Durability::Memory), 1);
    cluster.run_for(ms(3_000));
    cluster.partition(&[1]);
    cluster.learn_view(reader, "log");
    // The node's knowledge is too old for it: the node asks the others, who are away.
    let strict = cluster.call_with(reader, "log", 2, "", Access::Stale { max_age_ms: 1 });
    let lenient = cluster.call_with(reader, "log", 3, "", STALE);
    assert!(matches!(cluster.reply(lenient), Outcome::Ok(_)));
    assert_eq!(cluster.reply(strict), Outcome::NoReplica);
}

#[test]
fn nobody_shows_what_may_be_lost_or_what_only_the_entry_knows() {
    let (mut cluster, reader) = called(options(Style::SemiActive, Durability::Memory), 1);
    cluster.partition(&[1]);
    let lost = cluster.call(reader, "log", 2, "b");
    cluster.run_for(ms(1_000));
    assert!(!cluster.is_answered(lost));
    if cluster.state(1, "log") == ["a", "b"] {
        assert_eq!(read(&mut cluster, reader, 3), Outcome::NoReplica, "what is here may be lost");
    }
    let one = GroupOptions { ack: AckLevel::One, ..GroupOptions::default() };
    let (mut cluster, reader) = called(one, 1);
    cluster.partition(&[1]);
    cluster.run_for(ms(1_000));
    assert_eq!(read(&mut cluster, reader, 2), Outcome::NoReplica);
}
