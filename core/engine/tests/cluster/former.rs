//! A replica keeps its state until it has read another's (`docs/protocol/group.md`, "The former
//! copy").

use steadfast_engine::Event;
use wire::client::Outcome;
use wire::ordered::{GroupOptions, Style};

use crate::harness::{Cluster, ms};
use crate::voting::Fault;

const STYLES: [Style; 5] =
    [Style::SemiActive, Style::Active, Style::Voting, Style::WarmPassive, Style::ColdPassive];

/// Each style, with services in the nodes and with programs, whose nodes keep journals.
fn all() -> impl Iterator<Item = (Style, bool)> {
    STYLES.into_iter().flat_map(|style| [(style, false), (style, true)])
}

/// Node 3 was away while the group of 1, 2 and 3 executed the second call, and cannot read the
/// state that it is given.
fn back_and_unable(style: Style, programs: bool) -> Cluster {
    let mut cluster = Cluster::new(5);
    let options = GroupOptions { style, ..GroupOptions::default() };
    for node in 1..=3 {
        match programs {
            true => cluster.host_program("log", node, options),
            false => cluster.host_with("log", node, options),
        }
        cluster.run_for(ms(20));
    }
    cluster.run_until_synced("log", 3);
    let client = cluster.client(1);
    let call = cluster.call(client, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()), "{style:?}, {programs}");
    cluster.run_for(ms(20));
    cluster.partition(&[3]);
    cluster.run_for(ms(300));
    cluster.learn_view(client, "log");
    let call = cluster.call(client, "log", 2, "b");
    assert_eq!(cluster.reply(call), Outcome::Ok("2:b".into()), "{style:?}, {programs}");
    cluster.spoil(3, Fault::CannotRead);
    cluster.heal();
    cluster.run_for(ms(300));
    cluster
}

/// The nodes of the others die, and come back in other lives.
fn others_begin_anew(cluster: &mut Cluster, options: GroupOptions) {
    [1, 2].into_iter().for_each(|node| cluster.kill(node));
    cluster.run_for(ms(300));
    for node in [1, 2] {
        cluster.restart(node);
        cluster.host_with("log", node, options);
    }
    cluster.run_for(ms(2_000));
}

fn went_back(cluster: &Cluster, node: u32) -> usize {
    let is_it =
        |event: &Event| matches!(event, Event::WentBack { member, .. } if member.node.0 == 3);
    cluster.times(node, is_it)
}

#[test]
fn a_state_that_cannot_be_read_does_not_cost_the_one_that_is_there() {
    // The backups of a cold passive group read no states.
    for (style, programs) in all().filter(|(style, _)| *style != Style::ColdPassive) {
        let mut cluster = back_and_unable(style, programs);
        others_begin_anew(&mut cluster, GroupOptions { style, ..GroupOptions::default() });
        let client = cluster.client(3);
        cluster.learn_view_of(client, 3, "log");
        let call = cluster.call(client, "log", 1, "c");
        assert_eq!(cluster.reply(call), Outcome::Ok("2:c".into()), "{style:?}, {programs}");
        for node in 3..=5 {
            assert_eq!(went_back(&cluster, node), 1, "node {node} tells it, {style:?}, {programs}");
        }
        cluster.run_until_synced("log", 3);
    }
}

/// A transfer that works replaces what was kept: the group does not go back to it.
#[test]
fn a_state_that_was_read_replaces_the_one_that_was_there() {
    for (style, programs) in all() {
        let mut cluster = back_and_unable(style, programs);
        cluster.mend(3);
        cluster.run_until_synced("log", 3);
        others_begin_anew(&mut cluster, GroupOptions { style, ..GroupOptions::default() });
        let client = cluster.client(3);
        cluster.learn_view_of(client, 3, "log");
        let call = cluster.call(client, "log", 1, "c");
        assert_eq!(cluster.reply(call), Outcome::Ok("3:c".into()), "{style:?}, {programs}");
        assert_eq!(went_back(&cluster, 3), 0, "{style:?}, {programs}");
    }
}

/// The kept state is the service's: it ends with its program.
#[test]
fn what_was_kept_ends_with_the_program() {
    let mut cluster = back_and_unable(Style::SemiActive, true);
    cluster.end_programs("log", &[3]);
    others_begin_anew(&mut cluster, GroupOptions::default());
    let client = cluster.client(3);
    cluster.learn_view_of(client, 3, "log");
    let call = cluster.call(client, "log", 1, "c");
    assert_eq!(cluster.reply(call), Outcome::NoReplica);
}
