//! Reads in whole clusters: answered without ordering, and never from the past.

use wire::client::{Access, Outcome};
use wire::ordered::Style;

use crate::harness::{Cluster, ms};

fn length(length: &'static str) -> Outcome {
    Outcome::Ok(length.into())
}

#[test]
fn any_replica_answers_a_read_in_a_round_trip_and_orders_nothing() {
    let mut cluster = Cluster::new(5);
    cluster.host_on("log", &[1, 2, 3]);
    let writer = cluster.client(1);
    let call = cluster.call(writer, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    for node in [1, 2, 3] {
        let client = cluster.client(node);
        cluster.learn_view(client, "log");
        cluster.run_for(ms(2));
        let before = cluster.node(node).status().ring.delivered;
        let read = cluster.call_with(client, "log", 1, "", Access::Read);
        assert_eq!(cluster.reply(read), length("1"));
        assert!(cluster.waited(read) < ms(2), "{node}: {:?}", cluster.waited(read));
        assert_eq!(cluster.node(node).status().ring.delivered, before);
    }
    for node in [1, 2, 3] {
        assert_eq!(cluster.state(node, "log"), ["a"]);
    }
    let stranger = cluster.client(4);
    cluster.forget_view(stranger);
    let read = cluster.call_with(stranger, "log", 1, "", Access::Read);
    assert_eq!(cluster.reply(read), Outcome::NotPrimary);
}

#[test]
fn who_is_cut_off_does_not_answer_from_the_past() {
    let mut cluster = Cluster::new(3);
    cluster.host_on("log", &[1, 2, 3]);
    let (at_1, at_2) = (cluster.client(1), cluster.client(2));
    cluster.learn_view(at_2, "log");
    let call = cluster.call(at_1, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    cluster.partition(&[1]);
    // It does not know yet.
    let read = cluster.call_with(at_1, "log", 2, "", Access::Read);
    cluster.run_for(ms(10));
    assert!(!cluster.is_answered(read));
    let call = cluster.call(at_2, "log", 1, "b");
    assert_eq!(cluster.reply(call), Outcome::Ok("2:b".into()));
    let read_2 = cluster.call_with(at_2, "log", 2, "", Access::Read);
    assert_eq!(cluster.reply(read_2), length("2"));
    assert_eq!(cluster.reply(read), Outcome::NoReplica);
}

#[test]
fn a_stale_read_is_answered_by_who_is_cut_off_as_long_as_its_bound_allows() {
    let mut cluster = Cluster::new(3);
    cluster.host_on("log", &[1, 2, 3]);
    let at_1 = cluster.client(1);
    let call = cluster.call(at_1, "log", 1, "a");
    assert_eq!(cluster.reply(call), Outcome::Ok("1:a".into()));
    let stale = Access::Stale { max_age_ms: 300 };
    let first = cluster.call_with(at_1, "log", 2, "", stale);
    assert_eq!(cluster.reply(first), length("1"));
    cluster.run_for(ms(5)); // its followers know, and it knows that
    cluster.partition(&[1]);
    for number in 3..=4 {
        let read = cluster.call_with(at_1, "log", number, "", stale);
        assert_eq!(cluster.reply(read), length("1"));
        assert!(cluster.waited(read) < ms(1), "{:?}", cluster.waited(read));
        cluster.run_for(ms(120)); // by now it knows
    }
    cluster.run_for(ms(300));
    let late = cluster.call_with(at_1, "log", 5, "", stale);
    assert_eq!(cluster.reply(late), Outcome::NoReplica);
}

#[test]
fn a_read_and_a_write_at_one_entry_share_the_acknowledgements() {
    let mut cluster = Cluster::new(3);
    cluster.host_on("log", &[1, 2, 3]);
    let client = cluster.client(1);
    let read = cluster.call_with(client, "log", 1, "", Access::Read);
    let write = cluster.call(client, "log", 2, "a");
    assert_eq!(cluster.reply(write), Outcome::Ok("1:a".into()));
    assert!(matches!(cluster.reply(read), Outcome::Ok(_)));
}

#[test]
fn reads_of_the_active_style_and_without_a_ring() {
    let mut cluster = Cluster::in_process(3);
    let options = wire::ordered::GroupOptions { style: Style::Active, ..Default::default() };
    cluster.host_on_with("log", &[1, 2, 3], options);
    let (at_1, at_3) = (cluster.client(1), cluster.client(3));
    cluster.learn_view(at_3, "log");
    for (number, seen) in [(1, "1"), (2, "2")] {
        let call = cluster.call(at_1, "log", number, "a");
        assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
        let read = cluster.call_with(at_3, "log", number, "", Access::Read);
        assert_eq!(cluster.reply(read), length(seen));
    }
}

#[test]
fn a_passive_primary_tells_only_what_is_in_an_update() {
    let mut cluster = Cluster::new(3);
    let options = wire::ordered::GroupOptions { style: Style::WarmPassive, ..Default::default() };
    cluster.host_on_with("log", &[1, 2, 3], options);
    let (at_1, at_2) = (cluster.client(1), cluster.client(2));
    cluster.learn_view(at_2, "log");
    let call = cluster.call(at_1, "log", 1, "a");
    assert!(matches!(cluster.reply(call), Outcome::Ok(_)));
    for (number, client) in [(2, at_1), (3, at_2)] {
        let read = cluster.call_with(client, "log", number, "", Access::Read);
        assert_eq!(cluster.reply(read), length("1"), "the primary and a backup");
    }
    // It executes calls when they come, and nobody hears of their update.
    let round = cluster.call_with(at_1, "log", 4, "", Access::Read);
    assert_eq!(cluster.reply(round), length("1"));
    cluster.partition(&[1]);
    let lost = cluster.call(at_1, "log", 5, "b");
    let stale = Access::Stale { max_age_ms: 10_000 };
    let read = cluster.call_with(at_1, "log", 6, "", stale);
    cluster.run_for(ms(10));
    assert_eq!(cluster.state(1, "log"), ["a", "b"], "it was executed");
    assert!(!cluster.is_answered(lost) && !cluster.is_answered(read));
    cluster.run_for(ms(500));
    let read = cluster.call_with(at_1, "log", 7, "", stale);
    assert_eq!(cluster.reply(read), Outcome::NoReplica, "what is here may be lost");
    cluster.heal();
    cluster.run_for(ms(1_000));
    let read = cluster.call_with(at_2, "log", 8, "", Access::Read);
    let seen = cluster.reply(read);
    assert!(seen == length("1") || seen == length("2"), "{seen:?}");
}
