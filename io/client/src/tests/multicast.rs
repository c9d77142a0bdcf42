//! Calls that all replicas are asked.

use bytes::Bytes;
use wire::client::{Bound, Frame, Outcome, Refusal, Targets};
use wire::ordered::Style;
use wire::{GroupId, MethodId, NodeId};

use super::cluster::{Cluster, GROUP, LATENCY, Manner, address, ms, targets};
use crate::attempts::BUSY_RETRIES;
use crate::output::CallId;
use crate::{Answer, Balancing, CallError, Invocation, Policy};

fn ok(text: &'static str) -> Result<Bytes, CallError> {
    Ok(Bytes::from_static(text.as_bytes()))
}

fn says(text: &'static str) -> Manner {
    Manner::Answer(Outcome::Ok(Bytes::from_static(text.as_bytes())), None)
}

/// A stateless group of three of four nodes, all of which are connected, and a client that asks all
/// and waits for so many.
fn cluster(balancing: Balancing) -> Cluster {
    of_style(Style::Stateless, balancing)
}

fn of_style(style: Style, balancing: Balancing) -> Cluster {
    let mut cluster = Cluster::given(4, &[3]);
    cluster.session.set_policy(Policy::default().balancing(balancing));
    cluster.all_say(Targets { style, ..targets(1, &[1, 2, 3]) });
    cluster.finish(ms(1_000)).unwrap();
    cluster.run(ms(5));
    cluster
}

fn answers(cluster: &Cluster, call: CallId) -> Vec<Answer> {
    let mut answers = cluster.answers[&call].clone();
    answers.sort_by_key(|answer| answer.node);
    answers
}

fn answer(node: u32, result: Result<Bytes, CallError>) -> Answer {
    Answer { node: NodeId(node), result }
}

fn is_split(result: &Result<Bytes, CallError>) -> bool {
    matches!(result, Err(CallError::Refused { refusal: Refusal::Split, .. }))
}

#[test]
fn all_are_asked_at_once_and_the_first_reply_is_the_result() {
    let mut cluster = cluster(Balancing::FirstReply);
    cluster.node(1).manner = Manner::AckLevel;
    cluster.node(2).manner = Manner::Later(ms(3), Outcome::Ok(Bytes::from_static(b"second")));
    cluster.node(3).manner = says("third");
    let before = cluster.now;
    let call = cluster.call(ms(1_000));
    assert_eq!(cluster.result(call), ok("third"));
    assert_eq!(cluster.now - before, LATENCY * 2);
    assert_eq!(cluster.path(2), [address(1), address(2), address(3)], "with one number");
    assert_eq!(answers(&cluster, call), [answer(3, ok("third"))]);
    cluster.run(ms(10));
    let stats = cluster.session.stats();
    assert_eq!((stats.copies, stats.fail_overs, stats.retries), (1, 0, 0));
}

#[test]
fn more_than_half_have_to_say_the_same() {
    let mut cluster = cluster(Balancing::Majority);
    cluster.node(1).manner = says("odd");
    cluster.node(2).manner = says("even");
    cluster.node(3).manner = Manner::Later(ms(3), Outcome::Ok(Bytes::from_static(b"even")));
    let before = cluster.now;
    let call = cluster.call(ms(1_000));
    assert_eq!(cluster.result(call), ok("even"));
    assert_eq!(cluster.now - before, LATENCY + ms(3), "two unlike answers are no majority");
    cluster.node(3).manner = says("else");
    let call = cluster.call(ms(1_000));
    let result = cluster.result(call);
    assert!(is_split(&result), "{result:?}");
    assert_eq!(result.unwrap_err().was_executed(), Some(true));
    assert_eq!(answers(&cluster, call).len(), 3);
    cluster.node(3).manner = Manner::AckLevel;
    cluster.node(2).manner = says("odd");
    assert_eq!(cluster.finish(ms(1_000)), ok("odd"), "the third is not waited for");
}

#[test]
fn all_replies_are_waited_for_and_listed() {
    let mut cluster = cluster(Balancing::All);
    cluster.node(3).manner = Manner::Later(ms(7), Outcome::Ok(Bytes::from_static(b"done")));
    let before = cluster.now;
    assert_eq!(cluster.finish(ms(1_000)), ok("done"));
    assert_eq!(cluster.now - before, LATENCY + ms(7));
    cluster.node(2).manner = Manner::Answer(Outcome::Service(Bytes::from_static(b"no")), None);
    let call = cluster.call(ms(1_000));
    assert!(is_split(&cluster.result(call)));
    let service = Err(CallError::Service(Bytes::from_static(b"no")));
    let all = [answer(1, ok("done")), answer(2, service), answer(3, ok("done"))];
    assert_eq!(answers(&cluster, call), all);
}

#[test]
fn who_is_silent_is_waited_for_until_the_deadline_and_then_named() {
    let mut cluster = cluster(Balancing::All);
    cluster.node(2).manner = Manner::AckLevel;
    let call = cluster.call(ms(700));
    assert_eq!(cluster.result(call), Err(CallError::DeadlineExceeded));
    let late = Err(CallError::DeadlineExceeded);
    let all = [answer(1, ok("done")), answer(2, late), answer(3, ok("done"))];
    assert_eq!(answers(&cluster, call), all);
    assert_eq!(cluster.path(2).len(), 3, "nobody is asked twice on one connection");
}

#[test]
fn what_one_has_executed_is_not_said_to_be_declined_by_all() {
    let mut cluster = cluster(Balancing::Majority);
    cluster.node(2).manner = Manner::Answer(Outcome::NotPrimary, None);
    cluster.node(3).manner = Manner::Answer(Outcome::NotPrimary, None);
    let call = cluster.call(ms(300));
    let error = cluster.result(call).unwrap_err();
    assert_eq!((error.was_executed(), error), (None, CallError::DeadlineExceeded));
    assert_eq!(answers(&cluster, call)[0], answer(1, ok("done")));
}

#[test]
fn who_leaves_the_group_is_not_waited_for_and_who_joins_is_asked() {
    let mut cluster = cluster(Balancing::All);
    cluster.node(3).manner = Manner::AckLevel;
    let call = cluster.call(ms(5_000));
    cluster.run(ms(5));
    let news = Targets { style: Style::Stateless, ..targets(2, &[1, 2]) };
    cluster.node(1).script.push_back(Manner::Answer(Outcome::Ok(Bytes::new()), Some(news)));
    cluster.call(ms(5_000));
    cluster.run(ms(5));
    assert_eq!(cluster.done[&call].1, ok("done"), "of the two that are left");
    let news = Targets { style: Style::Stateless, ..targets(3, &[1, 2, 3]) };
    cluster.node(1).script.push_back(Manner::AckLevel);
    cluster.node(2).script.push_back(Manner::Answer(Outcome::Ok(Bytes::new()), Some(news)));
    let call = cluster.call(ms(5_000));
    cluster.run(ms(5));
    assert!(!cluster.done.contains_key(&call));
    let number = cluster.requests.last().unwrap().2.number;
    assert_eq!(cluster.path(number), [address(1), address(2), address(3)]);
}

#[test]
fn who_is_lost_or_declines_is_asked_again() {
    let mut cluster = cluster(Balancing::All);
    cluster.node(2).script.push_back(Manner::Answer(Outcome::NoReplica, None));
    cluster.node(3).manner = Manner::AckLevel;
    let call = cluster.call(ms(5_000));
    cluster.run(ms(3));
    cluster.kill(3);
    cluster.run(ms(200));
    assert_eq!(cluster.path(2), [address(1), address(2), address(3), address(2)]);
    cluster.node(3).up = true;
    cluster.node(3).manner = Manner::ok();
    assert_eq!(cluster.result(call), ok("done"));
    assert_eq!(cluster.session.stats().retries, 1, "the one that may have been executed");
}

#[test]
fn a_refusal_by_priority_counts_if_nobody_says_more() {
    let shed = || Outcome::Shed { instead: None, reason: "much".into() };
    let mut cluster = cluster(Balancing::FirstReply);
    cluster.node(1).manner = Manner::Answer(shed(), None);
    cluster.node(2).manner = Manner::Later(ms(2), Outcome::Ok(Bytes::from_static(b"done")));
    cluster.node(3).manner = Manner::Answer(shed(), None);
    assert_eq!(cluster.finish(ms(1_000)), ok("done"));
    cluster.node(2).manner = Manner::Answer(shed(), None);
    let is_shed =
        |error: &CallError| matches!(error, CallError::Refused { refusal: Refusal::Shed, .. });
    let error = cluster.finish(ms(1_000)).unwrap_err();
    assert!(is_shed(&error), "{error}");
    // Where the others decline it is the only answer there is.
    cluster.node(1).manner = Manner::Answer(Outcome::NotPrimary, None);
    cluster.node(3).manner = Manner::Answer(Outcome::NotPrimary, None);
    let before = cluster.now;
    let error = cluster.finish(ms(1_000)).unwrap_err();
    assert!(is_shed(&error) && cluster.now - before < ms(5), "{error}");
}

#[test]
fn a_group_that_orders_its_calls_is_called_at_its_primary() {
    let mut cluster = of_style(Style::SemiActive, Balancing::All);
    let call = cluster.call(ms(1_000));
    assert_eq!(cluster.result(call), ok("done"));
    assert_eq!(cluster.path(2), [address(1)]);
    assert_eq!(answers(&cluster, call), [answer(1, ok("done"))]);
}

#[test]
fn one_call_can_ask_all_whatever_the_policy_says() {
    let mut cluster = Cluster::new(3);
    cluster.all_say(Targets { style: Style::Active, ..targets(1, &[1, 2, 3]) });
    cluster.finish(ms(1_000)).unwrap();
    let call = cluster.gather(ms(1_000), Balancing::All);
    assert_eq!(cluster.result(call), ok("done"));
    let all = [1, 2, 3].map(|node| answer(node, ok("done")));
    assert_eq!(answers(&cluster, call), all, "with the two that were not connected");
}

#[test]
fn one_call_chooses_its_replicas_whatever_the_policy_says() {
    let asked = |policy, own: Balancing| {
        let mut cluster = cluster(policy);
        let before = cluster.requests.len();
        let invocation = Invocation::new(GROUP, MethodId(5)).within(ms(1_000)).balancing(own);
        let call = cluster.begin(invocation);
        cluster.result(call).unwrap();
        cluster.requests.len() - before
    };
    assert_eq!(asked(Balancing::Primary, Balancing::Majority), 3);
    assert_eq!(asked(Balancing::All, Balancing::Random), 1);
    assert_eq!(asked(Balancing::All, Balancing::Primary), 1);
}

#[test]
fn a_list_is_of_all_replicas_unless_fewer_are_asked_for() {
    let listed = |policy, own: Option<Balancing>| {
        let mut cluster = cluster(policy);
        cluster.node(3).manner = Manner::Later(ms(20), Outcome::Ok(Bytes::new()));
        let invocation = Invocation::new(GROUP, MethodId(5)).within(ms(1_000));
        let invocation = match own {
            Some(balancing) => invocation.balancing(balancing),
            None => invocation,
        };
        let call = cluster.session.gather(cluster.now, invocation);
        cluster.collect();
        let _ = cluster.result(call);
        answers(&cluster, call).len()
    };
    assert_eq!(listed(Balancing::Primary, None), 3);
    assert_eq!(listed(Balancing::FirstReply, None), 3);
    assert_eq!(listed(Balancing::All, Some(Balancing::Random)), 3);
    assert_eq!(listed(Balancing::All, Some(Balancing::Majority)), 2);
}

#[test]
fn an_answer_is_listed_also_when_the_group_has_no_targets_any_more() {
    let mut cluster = cluster(Balancing::FirstReply);
    for node in 1..=3 {
        cluster.node(node).manner = Manner::AckLevel;
    }
    let call = cluster.call(ms(1_000));
    cluster.run(ms(1));
    let group = GroupId::of(GROUP);
    cluster
        .inject(cluster.link_to(2), Frame::News(Bound { group, targets: Some(targets(2, &[])) }));
    let reply = Cluster::reply(2, 2, Outcome::Ok(Bytes::from_static(b"late")));
    cluster.inject(cluster.link_to(3), reply);
    assert_eq!(cluster.result(call), ok("late"));
    assert_eq!(answers(&cluster, call), [answer(3, ok("late"))]);
}

#[test]
fn who_sheds_a_call_does_not_speak_for_those_who_may_have_executed_it() {
    let shed = || Outcome::Shed { instead: None, reason: "much".into() };
    let mut cluster = cluster(Balancing::Majority);
    cluster.node(1).manner = Manner::Answer(shed(), None);
    cluster.node(2).manner = Manner::Later(ms(3), Outcome::Ok(Bytes::from_static(b"done")));
    cluster.node(3).manner = Manner::Answer(shed(), None);
    let call = cluster.call(ms(1_000));
    let result = cluster.result(call);
    assert!(is_split(&result), "two of three have refused what the other did: {result:?}");

    cluster.node(2).manner = Manner::AckLevel;
    cluster.node(3).manner = Manner::AckLevel;
    let call = cluster.call(ms(300));
    cluster.run(ms(1));
    let told = Targets { style: Style::Stateless, ..targets(2, &[1, 2]) };
    let group = GroupId::of(GROUP);
    cluster.inject(cluster.link_to(2), Frame::News(Bound { group, targets: Some(told) }));
    let told = Targets { style: Style::Stateless, ..targets(3, &[1]) };
    cluster.inject(cluster.link_to(2), Frame::News(Bound { group, targets: Some(told) }));
    let error = cluster.result(call).unwrap_err();
    assert_eq!(error, CallError::DeadlineExceeded, "nodes 2 and 3 were asked and have left");
}

/// A client that asks all of an active group, and none of its nodes has room for it.
fn where_none_has_room(retry_after_us: u32) -> (Cluster, CallId) {
    let mut cluster = of_style(Style::Active, Balancing::FirstReply);
    let outcome = Outcome::Busy { retry_after_us, reason: "full".into() };
    (1..=3).for_each(|node| cluster.node(node).manner = Manner::Answer(outcome.clone(), None));
    let call = cluster.call(ms(50_000));
    cluster.run(ms(2));
    (cluster, call)
}

fn news(cluster: &mut Cluster, view: u64, nodes: &[u32]) {
    let told = Targets { style: Style::Active, ..targets(view, nodes) };
    let told = Bound { group: GroupId::of(GROUP), targets: Some(told) };
    cluster.inject(cluster.link_to(2), Frame::News(told));
}

/// Simulator seed 76338: the refusals of all nodes were counted, and with each view the call came
/// at once.
#[test]
fn who_finds_no_room_anywhere_waits_as_long_as_with_one_node() {
    let (mut cluster, call) = where_none_has_room(3_000);
    let before = cluster.now;
    for view in 2.. {
        if cluster.done.contains_key(&call) {
            break;
        }
        news(&mut cluster, view, &[1, 2, 3]);
        cluster.run(ms(20));
    }
    let result = &cluster.done[&call].1;
    assert!(matches!(result, Err(CallError::Refused { refusal: Refusal::Busy, .. })), "{result:?}");
    assert_eq!(cluster.path(2).len(), 3 * (BUSY_RETRIES as usize + 1));
    assert!(cluster.now - before > ms(5_000), "{:?}", cluster.now - before);
}

#[test]
fn who_joins_where_the_others_have_no_room_is_asked_at_once() {
    let (mut cluster, call) = where_none_has_room(400_000);
    assert_eq!(cluster.path(2), [address(1), address(2), address(3)]);
    news(&mut cluster, 2, &[1, 2]);
    cluster.node(3).manner = Manner::ok();
    cluster.run(ms(5));
    assert_eq!(cluster.path(2).len(), 3);
    news(&mut cluster, 3, &[1, 2, 3, 4]);
    cluster.run(ms(5));
    assert_eq!(cluster.path(2)[3..], [address(4)], "nobody else");
    assert_eq!(cluster.result(call), ok("done"));
}
