//! A second replica of an active group is asked when the first takes longer than usual.

use std::time::Duration;

use wire::client::{Outcome, Targets};
use wire::ordered::Style;

use super::cluster::{Cluster, LATENCY, Manner, address, ms, targets};
use super::moving::bound;

/// Nodes 1 to 3, all replicas of an active group, of which the client has seen some quick answers.
fn active() -> Cluster {
    let mut cluster = bound(3);
    let news = Targets { style: Style::Active, ..targets(2, &[1, 2, 3]) };
    cluster.all_say(news.clone());
    cluster.node(1).script.push_back(Manner::Answer(Outcome::Ok("done".into()), Some(news)));
    for _ in 0..40 {
        cluster.finish(ms(1_000)).unwrap();
    }
    cluster.requests.clear();
    cluster
}

fn late(after: Duration) -> Manner {
    Manner::Later(after, Outcome::Ok("done".into()))
}

#[test]
fn the_second_replica_is_asked_with_the_same_number_and_the_first_reply_wins() {
    let mut cluster = active();
    cluster.node(1).script.push_back(late(ms(8)));
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    let asked: Vec<_> = cluster.requests.iter().map(|(_, to, r)| (*to, r.number)).collect();
    assert_eq!(asked.len(), 2);
    assert_eq!((asked[0].0, asked[1].0), (address(1), address(2)));
    assert_eq!(asked[0].1, asked[1].1, "the sessions can suppress the copy");
    assert_eq!(cluster.now - before, ms(1) + LATENCY * 2, "the floor, and a round trip");
    let stats = cluster.session.stats();
    assert_eq!((stats.hedges, stats.copies, stats.fail_overs), (1, 0, 0));
    cluster.run(ms(10));
    assert_eq!(cluster.session.stats().copies, 1, "the first answers too, in the end");
    assert_eq!(cluster.session.under_way(), 0);
}

#[test]
fn quick_answers_and_other_styles_are_asked_once() {
    let mut cluster = active();
    for _ in 0..50 {
        cluster.finish(ms(1_000)).unwrap();
    }
    assert_eq!(cluster.session.stats().hedges, 0);

    let mut cluster = bound(3);
    cluster.node(1).manner = late(ms(8));
    for _ in 0..50 {
        cluster.finish(ms(1_000)).unwrap();
    }
    assert_eq!(cluster.session.stats().hedges, 0, "semi-active");
}

#[test]
fn a_replica_that_is_always_slow_is_expected_to_be() {
    let mut cluster = active();
    cluster.node(1).manner = late(ms(6));
    for _ in 0..2_000 {
        cluster.finish(ms(1_000)).unwrap();
    }
    let stats = cluster.session.stats();
    assert!(stats.hedges <= 1 + stats.calls / 20, "{stats:?}");
    assert!(stats.copies <= stats.hedges, "{stats:?}");
}

#[test]
fn half_of_the_calls_slow_are_no_reason_to_ask_more_than_a_twentieth_twice() {
    let mut cluster = active();
    for place in 0..2_000 {
        if place % 2 == 0 {
            cluster.node(1).script.push_back(late(ms(9)));
        }
        cluster.finish(ms(1_000)).unwrap();
    }
    let stats = cluster.session.stats();
    assert!(stats.hedges > 0 && stats.hedges <= 1 + stats.calls / 20, "{stats:?}");
}

#[test]
fn a_loss_after_the_second_was_asked_waits_for_the_second_and_a_decline_for_the_first() {
    let mut cluster = active();
    cluster.node(1).manner = Manner::AckLevel;
    cluster.node(2).script.push_back(late(ms(5)));
    let call = cluster.call(ms(1_000));
    cluster.run(ms(3));
    cluster.kill(1);
    let killed = cluster.now;
    assert!(cluster.result(call).is_ok());
    assert!(cluster.now - killed < ms(5), "nobody else is asked");
    assert_eq!(cluster.requests.len(), 2);

    let mut cluster = active();
    cluster.node(1).script.push_back(late(ms(8)));
    cluster.node(2).script.push_back(Manner::Answer(Outcome::NoReplica, None));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.requests.len(), 2);
    assert_eq!(cluster.session.stats().pauses, 0);
}
