//! Sessions whose callers count the calls.

use bytes::Bytes;
use wire::MethodId;
use wire::client::Refusal;
use wire::limits::MAX_SESSION_WINDOW;

use super::cluster::{Cluster, GROUP, Manner, address, ms};
use crate::{CallError, CallId, Invocation, Key};

fn key(number: u64, unanswered: u64) -> Key {
    Key { number, unanswered }
}

fn begin(cluster: &mut Cluster, key: Key) -> CallId {
    let invocation = Invocation::new(GROUP, MethodId(5)).body("args").within(ms(500));
    cluster.begin(invocation.keyed(key))
}

/// Number and first unanswered call of each request, in order.
fn sent(cluster: &Cluster) -> Vec<(u64, u64)> {
    cluster.requests.iter().map(|(_, _, request)| (request.number, request.unanswered)).collect()
}

fn refusal(cluster: &Cluster, call: CallId) -> Refusal {
    match &cluster.done[&call].1 {
        Err(CallError::Refused { refusal, .. }) => *refusal,
        other => panic!("{other:?} is no refusal"),
    }
}

#[test]
fn requests_carry_the_callers_numbers() {
    let mut cluster = Cluster::keyed(2);
    for key in [key(7, 3), key(9, 8), key(8, 8)] {
        let call = begin(&mut cluster, key);
        assert_eq!(cluster.result(call), Ok(Bytes::from_static(b"done")));
    }
    assert_eq!(sent(&cluster), [(7, 3), (9, 8), (8, 8)]);
}

#[test]
fn a_call_keeps_its_number_where_it_fails_over() {
    let mut cluster = Cluster::keyed(2);
    cluster.node(1).manner = Manner::AckLevel;
    let call = begin(&mut cluster, key(7, 3));
    cluster.run(ms(2));
    cluster.kill(1);
    assert!(cluster.result(call).is_ok());
    assert_eq!(cluster.path(7), [address(1), address(2)]);
    assert_eq!(sent(&cluster), [(7, 3), (7, 3)]);
}

#[test]
fn the_newest_attempt_of_a_repeated_call_has_the_answer() {
    let mut cluster = Cluster::keyed(1);
    cluster.node(1).script = [Manner::AckLevel].into();
    let first = begin(&mut cluster, key(4, 4));
    cluster.run(ms(2));
    let second = begin(&mut cluster, key(4, 4));
    assert_eq!(cluster.result(first), Err(CallError::Repeated));
    assert!(cluster.result(second).is_ok());
    // One that waits for targets is repeated alike.
    let mut cluster = Cluster::keyed(1);
    let first = begin(&mut cluster, key(4, 4));
    let second = begin(&mut cluster, key(4, 4));
    assert_eq!(cluster.result(first), Err(CallError::Repeated));
    assert!(cluster.result(second).is_ok());
    assert_eq!(sent(&cluster), [(4, 4)]);
}

#[test]
fn a_call_that_its_caller_gave_up_ends_and_cannot_be_made_again() {
    let mut cluster = Cluster::keyed(1);
    cluster.node(1).script = [Manner::AckLevel].into();
    let first = begin(&mut cluster, key(4, 4));
    cluster.run(ms(2));
    let second = begin(&mut cluster, key(5, 5));
    assert_eq!(cluster.result(first), Err(CallError::Repeated));
    assert!(cluster.result(second).is_ok());
    let again = begin(&mut cluster, key(4, 4));
    assert_eq!(refusal(&cluster, again), Refusal::Stale);
}

/// A late reply to the first would be taken for the second's.
#[test]
fn two_calls_of_one_number_are_never_sent_by_one_client() {
    let mut cluster = Cluster::keyed(1);
    let other = |key| Invocation::new(GROUP, MethodId(5)).body("others").within(ms(500)).keyed(key);
    let first = begin(&mut cluster, key(4, 4));
    assert!(cluster.result(first).is_ok());
    let second = cluster.begin(other(key(4, 4)));
    assert_eq!(cluster.result(second), Err(CallError::NumberTaken(4)));
    assert_eq!(CallError::NumberTaken(4).was_executed(), None);
    let again = begin(&mut cluster, key(4, 4));
    assert!(cluster.result(again).is_ok(), "it is the same");
    let next = cluster.begin(other(key(5, 5)));
    assert!(cluster.result(next).is_ok());
    assert_eq!(sent(&cluster), [(4, 4), (4, 4), (5, 5)]);
    assert!(cluster.requests.iter().all(|(_, _, request)| request.has_key));
}

#[test]
fn keys_that_no_session_can_have_are_refused() {
    let mut cluster = Cluster::keyed(1);
    let most = u64::MAX;
    for bad in [key(0, 0), key(3, 0), key(3, 4), key(MAX_SESSION_WINDOW + 1, 1), key(most, most)] {
        let call = begin(&mut cluster, bad);
        assert_eq!(refusal(&cluster, call), Refusal::Window);
    }
    let call = begin(&mut cluster, key(MAX_SESSION_WINDOW, 1));
    assert!(cluster.result(call).is_ok());
}

#[test]
fn a_session_takes_calls_with_keys_or_calls_without() {
    let mut cluster = Cluster::keyed(1);
    let call = cluster.call(ms(500));
    assert_eq!(refusal(&cluster, call), Refusal::BadArguments);
    let mut cluster = Cluster::new(1);
    let call = begin(&mut cluster, key(1, 1));
    assert_eq!(refusal(&cluster, call), Refusal::BadArguments);
}
