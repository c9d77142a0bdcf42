//! Hosts that have too much to do for a call.

use wire::NodeId;
use wire::client::{Outcome, Refusal, Targets};
use wire::ordered::Style;

use super::cluster::{Cluster, LATENCY, Manner, address, ms, targets};
use crate::retry_budget::Credit;
use crate::{CallError, RetryBudget};

fn shed(instead: Option<u32>) -> Manner {
    let instead = instead.map(NodeId);
    Manner::Answer(Outcome::Shed { instead, reason: "too much to do".into() }, None)
}

fn refused() -> CallError {
    CallError::Refused { refusal: Refusal::Shed, reason: "too much to do".into() }
}

/// Three replicas of a group of this style, and a client that is connected to the first two.
fn cluster(style: Style) -> Cluster {
    let mut cluster = Cluster::new(3);
    cluster.all_say(Targets { style, ..targets(1, &[1, 2, 3]) });
    cluster.finish(ms(1_000)).unwrap();
    cluster.run(ms(5));
    cluster
}

#[test]
fn who_is_refused_is_told_at_once_and_asks_nobody_else() {
    for style in [Style::SemiActive, Style::Stateless] {
        let mut cluster = cluster(style);
        cluster.node(1).manner = shed(None);
        let before = cluster.now;
        let error = cluster.finish(ms(10_000)).unwrap_err();
        assert_eq!((error.was_executed(), error), (Some(false), refused()));
        assert_eq!(cluster.now - before, LATENCY * 2);
        assert_eq!(cluster.path(2), [address(1)]);
    }
}

#[test]
fn who_is_sent_on_goes_there_and_so_do_the_next_calls_for_a_while() {
    let mut cluster = cluster(Style::Stateless);
    cluster.node(1).manner = shed(Some(2));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(2), [address(1), address(2)]);
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(3), [address(2)], "without asking again");
    cluster.run(ms(1_001));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(4), [address(1), address(2)], "there may be room again");
    let stats = cluster.session.stats();
    assert_eq!((stats.shed, stats.sent_on), (2, 2));
}

#[test]
fn a_node_that_does_not_answer_alike_is_not_asked() {
    for (style, named) in [(Style::SemiActive, 2), (Style::Stateless, 1), (Style::Stateless, 7)] {
        let mut cluster = cluster(style);
        cluster.node(1).manner = shed(Some(named));
        assert_eq!(cluster.finish(ms(1_000)), Err(refused()), "{style:?}, {named}");
        assert_eq!(cluster.path(2), [address(1)]);
    }
}

#[test]
fn nobody_is_sent_on_twice_nor_without_credit() {
    let mut sent_about = cluster(Style::Stateless);
    sent_about.node(1).manner = shed(Some(2));
    sent_about.node(2).manner = shed(Some(3));
    assert_eq!(sent_about.finish(ms(1_000)), Err(refused()));
    assert_eq!(sent_about.path(2), [address(1), address(2)]);
    let mut poor = cluster(Style::Stateless);
    let few = RetryBudget { per_thousand: 0, per_second: 1, burst: 1 };
    poor.session.credit = Credit::new(few, poor.now);
    poor.session.credit.spend(poor.now).unwrap();
    poor.node(1).manner = shed(Some(2));
    assert_eq!(poor.finish(ms(500)), Err(refused()));
    assert_eq!(poor.path(2), [address(1)]);
}

/// To say that it was not executed could be a lie.
#[test]
fn what_may_have_been_executed_is_never_told_to_be_refused() {
    let mut cluster = cluster(Style::SemiActive);
    cluster.node(1).manner = Manner::AckLevel;
    cluster.node(2).manner = shed(None);
    cluster.node(3).manner = shed(None);
    let call = cluster.call(ms(500));
    cluster.run(ms(1));
    cluster.kill(1);
    let error = cluster.result(call).unwrap_err();
    assert_eq!((error.was_executed(), error), (None, CallError::DeadlineExceeded));
}

/// Nodes may take new rights one after the other: the one that was asked first may have done it.
#[test]
fn what_may_have_been_executed_is_never_told_to_be_denied() {
    let mut cluster = cluster(Style::SemiActive);
    cluster.node(1).manner = Manner::AckLevel;
    for node in [2, 3] {
        let denied = Outcome::Refused(Refusal::Denied, "rule \"orders\"".into());
        cluster.node(node).manner = Manner::Answer(denied, None);
    }
    let call = cluster.call(ms(500));
    cluster.run(ms(1));
    cluster.kill(1);
    let error = cluster.result(call).unwrap_err();
    assert_eq!((error.was_executed(), error), (None, CallError::DeadlineExceeded));
}
