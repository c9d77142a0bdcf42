//! Replicas whose services are hung.

use steadfast_engine::Event;
use wire::client::{Access, Outcome};
use wire::ordered::{GroupOptions, Style};

use crate::harness::{Cluster, Connection, Pending, ms};
use crate::voting::Fault;

fn of(style: Style) -> GroupOptions {
    GroupOptions { style, ..GroupOptions::default() }
}

/// A call whose caller waits for so long.
fn call(cluster: &mut Cluster, client: Connection, number: u64, timeout: u64) -> Pending {
    cluster.learn_view(client, "log");
    cluster.call_within(client, "log", number, "a", (Access::Change, ms(timeout)))
}

fn hung(cluster: &Cluster, node: u32) -> usize {
    cluster.times(node, |event| matches!(event, Event::Hung { .. }))
}

fn demoted(cluster: &Cluster, node: u32, of: u32) -> usize {
    cluster
        .times(node, |event| matches!(event, Event::Demoted { member, .. } if member.node.0 == of))
}

#[test]
fn a_hung_primary_goes_after_three_deadlines_and_comes_anew() {
    for style in [Style::SemiActive, Style::Active, Style::WarmPassive, Style::ColdPassive] {
        let mut cluster = Cluster::new(5);
        cluster.host_on_with("log", &[1, 2, 3], of(style));
        let at_1 = cluster.client(1);
        let first = call(&mut cluster, at_1, 1, 500);
        assert_eq!(cluster.reply(first), Outcome::Ok("1:a".into()));
        cluster.spoil(1, Fault::Hangs);
        call(&mut cluster, at_1, 2, 500);
        cluster.run_for(ms(2_900));
        assert_eq!((hung(&cluster, 1), cluster.primary(2, "log")), (0, Some(1)), "{style}");
        cluster.run_for(ms(200));
        assert_eq!(hung(&cluster, 1), 1, "{style}");
        assert!((1..=5).all(|node| demoted(&cluster, node, 1) == 1), "{style}: all are told");
        assert_eq!(cluster.replicas("log"), [2, 3], "{style}");
        let at_2 = cluster.connect_as(at_1, 2);
        let again = call(&mut cluster, at_2, 2, 500);
        assert_eq!(cluster.reply(again), Outcome::Ok("2:a".into()), "{style}: executed once");
        cluster.host_with("log", 1, of(style));
        cluster.run_until_synced("log", 3);
        assert_eq!(cluster.replicas("log"), [2, 3, 1], "{style}");
    }
}

#[test]
fn a_hung_backup_goes_too() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    cluster.spoil(3, Fault::Hangs);
    let first = call(&mut cluster, client, 1, 500);
    assert_eq!(cluster.reply(first), Outcome::Ok("1:a".into()));
    cluster.run_for(ms(3_100));
    assert_eq!(cluster.replicas("log"), [1, 2]);
    assert_eq!(demoted(&cluster, 1, 3), 1);
}

#[test]
fn who_is_busy_within_the_deadline_of_its_call_is_not_hung() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    cluster.spoil(1, Fault::Hangs);
    call(&mut cluster, client, 1, 8_000);
    cluster.run_for(ms(8_900));
    assert_eq!(
        hung(&cluster, 1),
        0,
        "an eighth is kept for the way back, and two more spans follow"
    );
    cluster.run_for(ms(200));
    assert_eq!(hung(&cluster, 1), 1);
}

#[test]
fn the_last_that_has_the_state_stays() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2]);
    let client = cluster.client(1);
    for node in [1, 2] {
        cluster.spoil(node, Fault::Hangs);
    }
    call(&mut cluster, client, 1, 500);
    cluster.run_for(ms(10_000));
    assert!((1..=2).all(|node| hung(&cluster, node) == 1), "one call hangs both");
    assert_eq!(cluster.replicas("log").len(), 1, "one went, and what was answered is there");
    let stays = cluster.replicas("log")[0];
    assert_eq!(cluster.primary(4, "log"), Some(stays));
    assert!(cluster.node(stays).status().groups[0].hung, "people are told");
    assert!(!cluster.node(4).status().groups[0].hung);
}
