//! Of a semi-active group the second target may answer what the first was asked.

use wire::client::{Access, Outcome};

use super::cluster::{Cluster, LATENCY, Manner, address, ms, targets};
use super::moving::bound;
use crate::Reading;

/// Nodes 1 to 3, of which the second answers what the first is asked, after this many milliseconds.
fn deputies(after: u64) -> Cluster {
    let mut cluster = bound(3);
    cluster.run(ms(10));
    assert!(cluster.is_connected(2), "the second target is kept connected");
    cluster.deputy = Some((2, ms(after)));
    cluster.session.deputies = true;
    cluster.requests.clear();
    cluster
}

#[test]
fn the_answer_of_the_second_target_ends_a_call_that_only_the_first_was_asked() {
    let mut cluster = deputies(0);
    let before = cluster.now;
    for _ in 0..20 {
        cluster.finish(ms(1_000)).unwrap();
    }
    assert_eq!(cluster.now - before, LATENCY * 40);
    assert!(cluster.requests.iter().all(|(_, to, r)| *to == address(1) && r.deputy));
    assert_eq!(cluster.requests.len(), 20);
    let stats = cluster.session.stats();
    assert_eq!((stats.deputies, stats.taken_back, stats.copies), (20, 0, 0));
}

#[test]
fn an_answer_that_takes_long_is_asked_for_again_where_the_call_was_sent() {
    let mut cluster = deputies(0);
    for _ in 0..40 {
        cluster.finish(ms(1_000)).unwrap();
    }
    cluster.requests.clear();
    cluster.deputy = Some((2, ms(50)));
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.now - before, ms(1) + LATENCY * 2, "the floor, and a round trip");
    let asked: Vec<_> =
        cluster.requests.iter().map(|(_, to, r)| (*to, r.number, r.deputy)).collect();
    let number = asked[0].1;
    assert_eq!(asked, [(address(1), number, true), (address(1), number, false)]);
    cluster.run(ms(60));
    let stats = cluster.session.stats();
    assert_eq!((stats.taken_back, stats.copies, stats.fail_overs), (1, 1, 0));
}

/// The first request was taken, and is being executed; only the second finds no room.
#[test]
fn a_call_that_is_declined_after_it_was_taken_back_may_have_been_executed() {
    let mut cluster = deputies(0);
    for _ in 0..40 {
        cluster.finish(ms(1_000)).unwrap();
    }
    cluster.deputy = Some((2, ms(100_000)));
    let call = cluster.call(ms(100));
    cluster.run(LATENCY);
    assert!(cluster.requests.last().expect("it was sent").2.deputy);
    let full = Outcome::Busy { retry_after_us: 50_000, reason: "full".into() };
    cluster.node(1).manner = Manner::Answer(full, None);
    let error = cluster.result(call).unwrap_err();
    assert!(!cluster.requests.last().expect("it was taken back").2.deputy);
    assert_eq!(error.was_executed(), None, "{error}");
}

#[test]
fn a_deputy_that_never_answers_costs_a_twentieth_of_the_calls_a_second_request() {
    let mut cluster = deputies(0);
    cluster.deputy = Some((2, ms(100_000)));
    for _ in 0..2_000 {
        cluster.finish(ms(1_000)).unwrap();
    }
    let stats = cluster.session.stats();
    assert!(stats.taken_back > 0 && stats.taken_back <= 1 + stats.calls / 20, "{stats:?}");
    let left = cluster.requests.iter().filter(|(.., request)| request.deputy).count() as u64;
    assert_eq!(left, stats.taken_back, "what cannot be taken back is not left to it");
    assert_eq!(stats.fail_overs, 0);
}

#[test]
fn when_the_deputys_connection_is_lost_the_call_is_taken_back_at_once() {
    let mut cluster = deputies(0);
    cluster.deputy = Some((2, ms(100_000)));
    let call = cluster.call(ms(1_000));
    cluster.kill(2);
    let killed = cluster.now;
    cluster.result(call).unwrap();
    assert_eq!(cluster.now - killed, LATENCY * 3, "the news, and a round trip");
    cluster.finish(ms(1_000)).unwrap();
    assert!(!cluster.requests.last().expect("the last call").2.deputy, "nobody is there to answer");
}

#[test]
fn when_the_first_target_is_lost_the_deputys_answer_still_counts() {
    let mut cluster = deputies(0);
    cluster.deputy = Some((2, ms(1)));
    cluster.node(2).manner = Manner::Hold;
    let call = cluster.call(ms(1_000));
    cluster.run(LATENCY * 2);
    cluster.kill(1);
    cluster.result(call).unwrap();
    assert_eq!(cluster.session.stats().deputies, 0, "it was asked itself by then");
}

#[test]
fn reads_other_styles_and_who_does_not_want_it_leave_nothing_to_a_deputy() {
    let mut cluster = deputies(0);
    let read = cluster.read(ms(1_000), Reading::Linearizable);
    cluster.result(read).unwrap();
    let (.., request) = cluster.requests.last().expect("the read");
    assert!(!request.deputy && request.access == Access::Read);

    let news = wire::client::Targets {
        style: wire::ordered::Style::WarmPassive,
        ..targets(2, &[1, 2, 3])
    };
    cluster.deputy = None;
    cluster.node(1).script.push_back(Manner::Answer(Outcome::Ok("x".into()), Some(news)));
    cluster.finish(ms(1_000)).unwrap();
    cluster.finish(ms(1_000)).unwrap();
    assert!(!cluster.requests.last().expect("a call").2.deputy);

    let mut cluster = deputies(0);
    cluster.session.deputies = false;
    cluster.finish(ms(1_000)).unwrap();
    assert!(!cluster.requests.last().expect("a call").2.deputy);
}
