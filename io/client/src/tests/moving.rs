//! Fail-over: losses, redirections, time-outs and pauses.

use bytes::Bytes;
use wire::Time;
use wire::client::{Bound, Frame, Outcome, Refusal};

use super::cluster::{Cluster, LATENCY, Manner, address, ms, targets};
use crate::attempts::BUSY_RETRIES;
use crate::{CallError, Cause, Event, Trouble};

pub(super) fn bound(count: u32) -> Cluster {
    let mut cluster = Cluster::new(count);
    cluster.finish(ms(1_000)).unwrap();
    // The warm connection is there.
    cluster.run(ms(1));
    cluster
}

fn answer(text: &'static str) -> Outcome {
    Outcome::Ok(Bytes::from_static(text.as_bytes()))
}

fn busy() -> Outcome {
    Outcome::Busy { retry_after_us: 3_000, reason: "the queue is full".into() }
}

#[test]
fn a_lost_connection_sends_the_call_over_the_warm_one_at_once() {
    let mut cluster = bound(3);
    cluster.node(1).manner = Manner::AckLevel;
    let call = cluster.call(ms(1_000));
    cluster.run(ms(5));
    let dials = cluster.dials.len();
    cluster.kill(1);
    let killed = cluster.now;
    assert!(cluster.result(call).is_ok());
    assert_eq!(cluster.now - killed, LATENCY * 3, "the news, and one round trip");
    assert_eq!(cluster.path(2), [address(1), address(2)], "the same number");
    assert!(cluster.dials[dials..].iter().all(|(_, to)| *to == address(3)), "a new standby");
    let (from, to, cause) = (address(1), address(2), Cause::Lost);
    let group = wire::GroupId::of(super::cluster::GROUP);
    let event = Event::FailedOver { group, number: 2, from, to, cause };
    assert!(cluster.events.contains(&event));
}

#[test]
fn what_a_target_has_lost_goes_to_the_next_one_at_once() {
    let mut cluster = bound(3);
    cluster.node(1).manner = Manner::Answer(Outcome::Gone, None);
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.now - before, LATENCY * 4, "two round trips");
    assert_eq!(cluster.path(2), [address(1), address(2)]);
    assert_eq!(cluster.session.stats().retries, 1, "it may have been executed");
    cluster.node(2).manner = Manner::Answer(Outcome::NotPrimary, None);
    cluster.node(3).manner = Manner::Answer(Outcome::NotPrimary, None);
    let error = cluster.finish(ms(1_000)).unwrap_err();
    assert_eq!((error.was_executed(), error), (None, CallError::DeadlineExceeded));
    let (requests, retries) = (cluster.requests.len(), cluster.session.stats().retries);
    assert!(requests < 100 && retries <= 21, "with pauses: {requests} requests, {retries} retries");
}

#[test]
fn who_knows_no_view_is_not_believed_after_a_target_has_answered_by_the_known_one() {
    let mut cluster = bound(2);
    cluster.node(1).manner = Manner::AckLevel;
    cluster.node(2).manner = Manner::AckLevel;
    cluster.node(2).bound = None;
    cluster.call(ms(5_000));
    cluster.run(ms(300));
    let group = wire::GroupId::of(super::cluster::GROUP);
    assert!(cluster.session.groups[&group].doubt, "all targets are silent, and nobody knew better");
    let link = cluster.link_to(1);
    cluster.inject(link, Cluster::reply(2, 1, answer("done")));
    let link = cluster.link_to(2);
    cluster.inject(link, Frame::Bound(Bound { group, targets: Some(targets(0, &[])) }));
    assert_eq!(cluster.session.groups[&group].view().0, 1);
    cluster.node(1).manner = Manner::ok();
    cluster.finish(ms(1_000)).unwrap();
}

#[test]
fn the_lost_target_is_avoided_until_it_answers_again() {
    let mut cluster = bound(3);
    cluster.kill(1);
    cluster.run(ms(10));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(2), [address(2)]);
    cluster.node(1).up = true;
    cluster.run(ms(600));
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(3), [address(1)], "it is dialled again, and is the first in rank");
    assert_eq!(cluster.session.stats().reconnects, 1);
}

#[test]
fn a_node_that_comes_back_in_a_newer_view_is_dialled_at_once() {
    for round in 0..10 {
        let mut cluster = bound(3);
        let learn = |cluster: &mut Cluster, outcome, view, nodes: &[u32]| {
            let answer = Manner::Answer(outcome, Some(targets(view, nodes)));
            cluster.node(2).script.push_back(answer);
            cluster.finish(ms(1_000)).unwrap();
        };
        // It is dialled in vain again and again, and avoided for half a second at a time.
        cluster.kill(1);
        learn(&mut cluster, answer("ok"), 2, &[2, 1]);
        cluster.run(ms(3_000 + 50 * round));
        learn(&mut cluster, answer("ok"), 3, &[2, 3]);
        cluster.node(1).up = true;
        let before = cluster.now;
        learn(&mut cluster, Outcome::NotPrimary, 4, &[1, 2]);
        let took = cluster.now - before;
        assert!(took < ms(2), "a client that avoids it waits for {took:?}");
        assert_eq!(cluster.requests.last().unwrap().1, address(1));
    }
}

#[test]
fn not_primary_with_newer_targets_leads_there_at_once() {
    let mut cluster = bound(3);
    let news = Some(targets(2, &[3, 1]));
    cluster.node(1).script.push_back(Manner::Answer(Outcome::NotPrimary, news));
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(2), [address(1), address(3)]);
    assert!(cluster.now - before <= LATENCY * 8, "two round trips, and a dial if need be");
    assert_eq!(cluster.requests.last().unwrap().2.view.0, 2);
}

#[test]
fn news_in_one_reply_moves_all_calls_that_wait_elsewhere() {
    let mut cluster = bound(3);
    cluster.node(1).manner = Manner::AckLevel;
    let held = [cluster.call(ms(1_000)), cluster.call(ms(1_000))];
    cluster.node(1).script.push_back(Manner::AckLevel);
    cluster.node(1).script.push_back(Manner::AckLevel);
    let news = Manner::Answer(answer("ok"), Some(targets(2, &[2, 3])));
    cluster.node(1).script.push_back(news);
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    for call in held {
        assert!(cluster.result(call).is_ok());
    }
    assert!(cluster.now - before < ms(2), "no time-out is waited for");
    assert_eq!(cluster.path(2), [address(1), address(2)]);
}

#[test]
fn not_primary_without_news_pauses_and_asks_others() {
    let mut cluster = bound(2);
    cluster.node(1).manner = Manner::Answer(Outcome::NotPrimary, None);
    let call = cluster.call(ms(3_000));
    cluster.run(ms(1_000));
    let attempts = cluster.path(2).len();
    assert!((10..60).contains(&attempts), "pauses grow to 100 ms: {attempts} attempts");
    let asked = |node| cluster.binds.iter().filter(|(_, to)| *to == address(node)).count();
    assert!(asked(1) > 1 && asked(2) > 1, "all connected nodes are asked in turn");
    cluster.node(2).bound = Some(targets(2, &[2, 1]));
    cluster.run(ms(250));
    assert!(cluster.done[&call].1.is_ok());
}

#[test]
fn no_replica_makes_the_client_ask_nodes_that_it_was_given_but_is_not_connected_to() {
    // Node 1 is on the wrong side of a partition: it and its targets cannot help.
    let mut cluster = Cluster::given(3, &[1, 3]);
    cluster.node(1).bound = Some(targets(1, &[1]));
    cluster.node(1).manner = Manner::Answer(Outcome::NoReplica, None);
    cluster.node(3).bound = Some(targets(2, &[2, 3]));
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    assert!(cluster.now - before < ms(20));
    assert_eq!(*cluster.path(1).last().unwrap(), address(2));
}

#[test]
fn a_call_that_all_declined_ends_as_no_replica_because_it_was_not_executed() {
    let mut cluster = bound(1);
    cluster.node(1).manner = Manner::Answer(Outcome::NoReplica, None);
    let before = cluster.now;
    assert_eq!(cluster.finish(ms(300)), Err(CallError::NoReplica));
    assert_eq!(cluster.now - before, ms(300));
}

#[test]
fn an_attempt_waits_a_quarter_of_the_deadline_within_bounds() {
    for (deadline, expected) in [(200, 50), (40, 20), (5_000, 100)] {
        let mut cluster = bound(3);
        cluster.node(1).manner = Manner::AckLevel;
        cluster.finish(ms(deadline)).unwrap();
        let at: Vec<_> = cluster.requests.iter().filter(|r| r.2.number == 2).map(|r| r.0).collect();
        assert_eq!(at[1] - at[0], ms(expected));
        assert_eq!(cluster.path(2), [address(1), address(2)]);
    }
}

#[test]
fn the_first_reply_wins_and_the_other_is_ignored() {
    let mut cluster = bound(2);
    cluster.node(1).manner = Manner::Later(ms(120), answer("slow"));
    cluster.node(2).manner = Manner::Later(ms(200), answer("late"));
    assert_eq!(cluster.finish(ms(1_000)), Ok(Bytes::from_static(b"slow")));
    assert_eq!(cluster.path(2), [address(1), address(2)]);
    cluster.run(ms(500));
    assert_eq!(cluster.session.stats().late_replies, 1);
    cluster.node(1).manner = Manner::ok();
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(3), [address(1)], "it was late once, and is the first in rank");
}

#[test]
fn an_address_that_served_again_is_avoided_no_longer_than_after_its_first_failure() {
    let mut cluster = bound(2);
    for number in 2..10 {
        cluster.kill(1);
        cluster.run(ms(1));
        cluster.node(1).up = true;
        cluster.run(ms(60));
        cluster.finish(ms(1_000)).unwrap();
        assert_eq!(cluster.path(number), [address(1)]);
    }
}

#[test]
fn whoever_declines_is_not_the_last_to_be_asked_when_there_was_news() {
    let mut cluster = bound(1);
    cluster.node(1).script.push_back(Manner::Answer(Outcome::NoReplica, None));
    cluster.call(ms(1_000));
    cluster.run(LATENCY * 2);
    assert_eq!(cluster.binds.len(), 2, "asked at once, not after a pause");
}

#[test]
fn a_slow_call_is_not_sent_twice_to_a_node_and_its_connection_is_kept() {
    let mut cluster = bound(3);
    for node in [1, 2, 3] {
        cluster.node(node).manner = Manner::AckLevel;
    }
    cluster.node(1).manner = Manner::Later(ms(9_000), answer("at last"));
    assert_eq!(cluster.finish(ms(10_000)), Ok(Bytes::from_static(b"at last")));
    assert_eq!(cluster.path(2), [address(1), address(2), address(3)]);
    assert_eq!(cluster.session.stats().losses, 0, "nodes that answer questions live");
    // Nor does it make the next call avoid the primary.
    cluster.node(1).manner = Manner::ok();
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(3), [address(1)]);
}

#[test]
fn a_node_that_went_silent_is_dropped_and_later_calls_go_round_it() {
    let mut cluster = bound(3);
    cluster.node(1).mute = true;
    cluster.finish(ms(1_000)).unwrap();
    let before = cluster.now;
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(3), [address(2)]);
    assert_eq!(cluster.now - before, LATENCY * 2);
    cluster.run(ms(2_100));
    let lost = Event::Lost { address: address(1), trouble: Trouble::Silent };
    assert!(cluster.events.contains(&lost));
}

#[test]
fn the_deadline_ends_a_call_that_may_have_been_executed_and_its_number_is_not_used_again() {
    let mut cluster = bound(2);
    cluster.node(1).manner = Manner::AckLevel;
    cluster.node(2).manner = Manner::AckLevel;
    let before = cluster.now;
    assert_eq!(cluster.finish(ms(150)), Err(CallError::DeadlineExceeded));
    assert_eq!(cluster.now - before, ms(150));
    cluster.node(1).manner = Manner::ok();
    cluster.finish(ms(1_000)).unwrap();
    let request = &cluster.requests.last().unwrap().2;
    assert_eq!((request.number, request.unanswered), (3, 3));
}

#[test]
fn a_loss_leaves_doubt_even_if_others_then_decline() {
    let mut cluster = bound(2);
    cluster.node(1).manner = Manner::AckLevel;
    cluster.node(2).manner = Manner::Answer(Outcome::NoReplica, None);
    let call = cluster.call(ms(300));
    cluster.run(ms(1));
    cluster.kill(1);
    assert_eq!(cluster.result(call), Err(CallError::DeadlineExceeded));
}

#[test]
fn busy_is_tried_again_and_told_at_the_deadline() {
    let mut cluster = bound(2);
    cluster.node(1).script.extend([Manner::Answer(busy(), None), Manner::Answer(busy(), None)]);
    assert!(cluster.finish(ms(1_000)).is_ok());
    assert_eq!(cluster.path(2), [address(1); 3]);
    cluster.node(1).manner = Manner::Answer(busy(), None);
    let result = cluster.finish(ms(300));
    let reason = "the queue is full".into();
    assert_eq!(result, Err(CallError::Refused { refusal: Refusal::Busy, reason }));
}

#[test]
fn who_is_told_when_there_is_room_comes_then_and_not_all_at_once() {
    let mut cluster = bound(2);
    cluster.node(1).script.extend([Manner::Answer(busy(), None), Manner::Answer(busy(), None)]);
    cluster.finish(ms(1_000)).unwrap();
    let times: Vec<Time> =
        cluster.requests.iter().filter(|request| request.2.number == 2).map(|r| r.0).collect();
    let [first, second, third] = times[..] else { panic!("{times:?}") };
    for (gap, told) in [(second - first, ms(3)), (third - second, ms(6))] {
        assert!(gap >= told + LATENCY * 2 && gap <= told * 3 / 2 + LATENCY * 2, "{gap:?}");
    }
}

#[test]
fn news_do_not_end_the_wait_for_room_where_the_call_stays() {
    let full = |view, nodes: &[u32]| Manner::Answer(busy(), Some(targets(view, nodes)));
    let mut cluster = bound(2);
    cluster.node(1).script.extend([full(2, &[1, 2]), full(3, &[1, 2]), full(4, &[2, 1])]);
    cluster.finish(ms(1_000)).unwrap();
    assert_eq!(cluster.path(2), [address(1), address(1), address(1), address(2)]);
    let times: Vec<Time> =
        cluster.requests.iter().filter(|request| request.2.number == 2).map(|r| r.0).collect();
    assert!(times[1] - times[0] >= ms(3), "{times:?}");
    assert!(times[2] - times[1] >= ms(6), "{times:?}");
    assert_eq!(times[3] - times[2], LATENCY * 2, "there may be room");
}

#[test]
fn a_call_for_which_there_is_never_room_is_given_back() {
    let mut cluster = bound(2);
    let outcome = Outcome::Busy { retry_after_us: 100, reason: "full".into() };
    cluster.node(1).manner = Manner::Answer(outcome, None);
    let before = cluster.now;
    let reason = "full".into();
    assert_eq!(
        cluster.finish(ms(50_000)),
        Err(CallError::Refused { refusal: Refusal::Busy, reason })
    );
    assert!(cluster.now - before < ms(20_000), "{:?}", cluster.now - before);
    assert_eq!(cluster.path(2).len(), BUSY_RETRIES as usize + 1);
    // Not if it may have been executed elsewhere: that would be a lie.
    let mut cluster = bound(2);
    cluster.node(1).manner = Manner::AckLevel;
    let outcome = Outcome::Busy { retry_after_us: 100, reason: "full".into() };
    cluster.node(2).manner = Manner::Answer(outcome, None);
    let call = cluster.call(ms(30_000));
    cluster.run(ms(1));
    cluster.kill(1);
    assert_eq!(cluster.result(call), Err(CallError::DeadlineExceeded));
}

#[test]
fn who_has_waited_long_for_room_does_not_sleep_past_its_end() {
    let mut cluster = bound(2);
    let outcome = Outcome::Busy { retry_after_us: 1_000, reason: "full".into() };
    cluster.node(1).manner = Manner::Answer(outcome, None);
    let end = cluster.now + ms(2_000);
    let call = cluster.call(ms(2_000));
    cluster.run(ms(1_900));
    cluster.node(1).manner = Manner::ok();
    assert!(cluster.result(call).is_ok(), "there is room in its last 100 ms");
    let times: Vec<Time> =
        cluster.requests.iter().filter(|request| request.2.number == 2).map(|r| r.0).collect();
    for gap in times.windows(2) {
        let most = (end.since(gap[0]) / 4).max(ms(1)) * 3 / 2 + LATENCY * 2;
        assert!(gap[1] - gap[0] <= most, "{:?} of {:?}", gap[1] - gap[0], end.since(gap[0]));
    }
}

#[test]
fn other_refusals_and_the_services_error_end_a_call() {
    use Refusal::*;
    for (refusal, executed) in [
        (TooLarge, Some(false)),
        (NoSuchMethod, Some(false)),
        (BadArguments, Some(false)),
        (Failed, Some(true)),
        (Stale, None),
        (ReplyTooLarge, Some(true)),
        (Window, Some(false)),
        (Poisoned, Some(false)),
        (Denied, Some(false)),
    ] {
        let mut cluster = bound(2);
        let outcome = Outcome::Refused(refusal, "because".into());
        cluster.node(1).manner = Manner::Answer(outcome, None);
        let reason = "because".into();
        let error = cluster.finish(ms(300)).unwrap_err();
        assert_eq!(error.was_executed(), executed, "{refusal:?}");
        assert_eq!(error, CallError::Refused { refusal, reason });
        assert_eq!(cluster.path(2).len(), 1);
    }
    let mut cluster = bound(2);
    let error = Bytes::from_static(b"overdrawn");
    cluster.node(1).manner = Manner::Answer(Outcome::Service(error.clone()), None);
    assert_eq!(cluster.finish(ms(300)), Err(CallError::Service(error)));
}

#[test]
fn a_cluster_that_began_anew_with_smaller_views_is_believed() {
    let mut cluster = Cluster::given(5, &[3, 4, 5]);
    cluster.finish(ms(1_000)).unwrap();
    cluster.all_say(targets(90, &[1, 2]));
    cluster.node(1).script.push_back(Manner::Answer(answer("x"), Some(targets(90, &[1, 2]))));
    cluster.finish(ms(1_000)).unwrap();
    // All nodes are restarted; the group is on other nodes now.
    cluster.kill(1);
    cluster.kill(2);
    cluster.run(ms(1));
    cluster.all_say(targets(1, &[3]));
    let before = cluster.now;
    assert!(cluster.finish(ms(2_000)).is_ok());
    assert!(cluster.now - before < ms(5), "{:?}", cluster.now - before);
    assert_eq!(*cluster.path(3).last().unwrap(), address(3));
}

#[test]
fn a_refused_warm_dial_harms_nothing() {
    let mut cluster = Cluster::new(3);
    cluster.node(2).up = false;
    cluster.finish(ms(1_000)).unwrap();
    cluster.run(ms(3_000));
    assert!(cluster.finish(ms(1_000)).is_ok());
    let dials = cluster.dials.iter().filter(|(_, to)| *to == address(2)).count();
    assert!(
        (4..20).contains(&dials),
        "{dials} dials in 3 s: they go on, further and further apart"
    );
}

/// Simulator world `everything`, seed 776: a client that had asked two nodes was taken to have no
/// answer of the first.
#[test]
fn a_request_says_whether_another_node_may_answer_it() {
    let beside = |cluster: &Cluster| -> Vec<bool> {
        let of = cluster.requests.iter().filter(|request| request.2.number == 2);
        of.map(|request| request.2.beside).collect()
    };
    let mut silent = bound(2);
    silent.node(1).manner = Manner::AckLevel;
    assert!(silent.finish(ms(1_000)).is_ok());
    assert_eq!(beside(&silent), [false, true]);
    let mut lost = bound(2);
    lost.node(1).manner = Manner::AckLevel;
    let call = lost.call(ms(1_000));
    lost.run(ms(1));
    lost.kill(1);
    assert!(lost.result(call).is_ok());
    assert_eq!(beside(&lost), [false, false]);
}
