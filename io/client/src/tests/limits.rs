//! The window, the queue, and everything that is refused before it is sent.

use wire::MethodId;
use wire::client::Refusal;
use wire::limits::{
    MAX_BODY, MAX_CALL_BYTES, MAX_DEADLINE, MAX_NAME, MAX_QUEUED_CALLS, MAX_SESSION_WINDOW,
};

use super::cluster::{Cluster, GROUP, Manner, ms};
use crate::{CallError, CallId, Invocation};

fn held(count: u32) -> Cluster {
    let mut cluster = Cluster::new(count);
    cluster.finish(ms(1_000)).unwrap();
    for node in 1..=count {
        cluster.node(node).manner = Manner::AckLevel;
    }
    cluster
}

/// The numbers of all requests, each once, in order of their first attempt.
fn numbers(cluster: &Cluster) -> Vec<u64> {
    let mut numbers: Vec<u64> = cluster.requests.iter().map(|(_, _, r)| r.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[test]
fn numbers_lie_within_one_window_of_the_lowest_without_a_reply() {
    let mut cluster = held(1);
    let first = cluster.call(ms(50));
    // All others are answered at once, but the first is not: the window stands still.
    cluster.run(ms(1));
    cluster.node(1).manner = Manner::ok();
    let others: Vec<CallId> = (0..2 * MAX_SESSION_WINDOW).map(|_| cluster.call(ms(500))).collect();
    cluster.run(ms(20));
    assert_eq!(*numbers(&cluster).last().unwrap(), 2 + MAX_SESSION_WINDOW - 1);
    // Its deadline frees its number, and the window moves on.
    assert_eq!(cluster.result(first), Err(CallError::DeadlineExceeded));
    for call in others {
        assert!(cluster.result(call).is_ok());
    }
    for (_, _, request) in &cluster.requests {
        assert!(request.unanswered <= request.number);
        assert!(request.number - request.unanswered < MAX_SESSION_WINDOW);
    }
    let all: Vec<u64> = (1..=2 + 2 * MAX_SESSION_WINDOW).collect();
    assert_eq!(numbers(&cluster), all, "each number is used, none twice");
}

#[test]
fn one_call_too_many_in_the_queue_is_refused() {
    let mut cluster = held(1);
    let window = usize::try_from(MAX_SESSION_WINDOW).unwrap();
    for _ in 0..window + MAX_QUEUED_CALLS {
        let call = cluster.call(ms(10_000));
        assert!(!cluster.done.contains_key(&call));
    }
    let call = cluster.call(ms(10_000));
    assert_eq!(cluster.result(call), Err(CallError::TooManyCalls));
}

#[test]
fn a_group_that_is_stuck_holds_up_no_other() {
    let mut cluster = Cluster::new(1);
    cluster.finish(ms(100)).unwrap();
    for _ in 0..MAX_QUEUED_CALLS {
        // Nobody has told yet whether there is such a group.
        let invocation = Invocation::new("other", MethodId(1)).within(ms(10_000));
        cluster.session.call(cluster.now, invocation);
    }
    assert!(cluster.finish(ms(100)).is_ok(), "a call that need not wait is not refused");
}

#[test]
fn bytes_of_arguments_are_limited() {
    let mut cluster = held(1);
    let mut call = |size: usize| {
        let invocation = Invocation::new(GROUP, MethodId(1)).body(vec![0; size]);
        let id = cluster.session.call(cluster.now, invocation.within(ms(1_000)));
        cluster.run(ms(0));
        while let Some(output) = cluster.session.poll_output() {
            if let crate::Output::Done { call, result, .. } = output {
                assert_eq!(call, id);
                return Some(result.unwrap_err());
            }
        }
        None
    };
    let refused = call(MAX_BODY + 1).expect("it is told at once");
    assert!(matches!(refused, CallError::Refused { refusal: Refusal::TooLarge, .. }));
    for _ in 0..MAX_CALL_BYTES / MAX_BODY {
        assert_eq!(call(MAX_BODY), None);
    }
    assert_eq!(call(1), Some(CallError::TooManyCalls));
}

#[test]
fn impossible_calls_are_refused_before_they_are_sent() {
    let mut cluster = Cluster::new(1);
    let long = MAX_DEADLINE + ms(1);
    assert_eq!(cluster.finish(long), Err(CallError::DeadlineTooLong(long)));
    assert_eq!(cluster.finish(ms(0)), Err(CallError::DeadlineExceeded));
    for name in [String::new(), "x".repeat(MAX_NAME + 1)] {
        let call = cluster.call_group(&name, ms(100));
        assert_eq!(cluster.result(call), Err(CallError::NoSuchGroup(name)));
    }
    assert!(cluster.dials.is_empty());
}

#[test]
fn a_cancelled_call_ends_silently_and_frees_its_number() {
    let mut cluster = held(1);
    let call = cluster.call(ms(1_000));
    cluster.run(ms(1));
    cluster.session.cancel(cluster.now, call);
    cluster.node(1).manner = Manner::ok();
    cluster.finish(ms(1_000)).unwrap();
    assert!(!cluster.done.contains_key(&call));
    let request = &cluster.requests.last().unwrap().2;
    assert_eq!((request.number, request.unanswered), (3, 3));
}

#[test]
fn timeout_is_what_is_left_of_the_deadline() {
    let mut cluster = held(2);
    let call = cluster.call(ms(200));
    let _ = cluster.result(call);
    let of: Vec<u32> =
        cluster.requests.iter().filter(|r| r.2.number == 2).map(|r| r.2.timeout_us).collect();
    assert_eq!(of, [200_000, 150_000]);
}
