//! Sessions of clients without keys, and of groups.

use super::*;
use alloc::vec;
use bytes::Bytes;

const C: ClientId = ClientId(7);

fn ok(text: &'static str) -> ServiceOutcome {
    ServiceOutcome::Ok(Bytes::from_static(text.as_bytes()))
}

fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000_000)
}

/// The same sessions after a transfer.
fn again(sessions: &Sessions) -> Sessions {
    let (states, keys) = sessions.export();
    assert_eq!(keys, None, "nothing is compared");
    Sessions::import(states, keys)
}

/// A client's request arrives.
fn come(s: &mut Sessions, client: ClientId, number: u64, unanswered: u64, now: Time) -> Decision {
    s.begin((client, number), unanswered, now, (MAX_SESSION_WINDOW, Asked::Unsaid))
}

/// Begins a request that is to be executed.
fn begin(sessions: &mut Sessions, number: u64, unanswered: u64, now: Time) -> u64 {
    match come(sessions, C, number, unanswered, now) {
        Decision::Execute(place) => place,
        other => panic!("{other:?}"),
    }
}

/// Executes a request.
fn execute(sessions: &mut Sessions, number: u64, now: Time, outcome: ServiceOutcome) {
    let place = begin(sessions, number, 1, now);
    sessions.finish(place, C, number, outcome);
}

#[test]
fn a_retry_gets_the_kept_reply() {
    let mut sessions = Sessions::default();
    let place = begin(&mut sessions, 1, 1, at(0));
    assert_eq!(come(&mut sessions, C, 1, 1, at(0)), Decision::Running);
    sessions.finish(place, C, 1, ok("one"));
    assert_eq!(come(&mut sessions, C, 1, 1, at(1)), Decision::Done(ok("one")));
    sessions.check_invariants();
}

#[test]
fn a_number_that_the_client_is_done_with_is_never_executed() {
    let mut sessions = Sessions::default();
    let place = begin(&mut sessions, 5, 5, at(0));
    assert_eq!(come(&mut sessions, C, 4, 4, at(0)), Decision::Stale, "given up before it came");
    sessions.finish(place, C, 5, ok("five"));
    begin(&mut sessions, 6, 6, at(0));
    assert_eq!(come(&mut sessions, C, 5, 5, at(0)), Decision::Stale);
    assert_eq!(sessions.classes[0].kept.bytes(), 0);
    assert_eq!(come(&mut sessions, C, 6 + MAX_SESSION_WINDOW, 6, at(0)), Decision::Stale);
}

#[test]
fn a_reply_that_is_shed_is_not_executed_again() {
    let mut sessions = Sessions::default();
    for number in 1..=3 {
        execute(&mut sessions, number, at(0), ok("four"));
    }
    sessions.shed(0, 8);
    sessions.check_invariants();
    let retry = come(&mut sessions, C, 1, 1, at(0));
    assert!(
        matches!(retry, Decision::Done(ServiceOutcome::Refused(Refusal::Stale, _))),
        "{retry:?}"
    );
    assert_eq!(come(&mut sessions, C, 2, 1, at(0)), Decision::Done(ok("four")));
    begin(&mut sessions, 4, 4, at(0));
    assert_eq!(sessions.classes[0].kept.bytes(), 0);
}

#[test]
fn a_new_session_pushes_out_only_one_that_no_retry_can_belong_to() {
    let mut sessions = Sessions::default();
    for client in 0..MAX_SESSIONS as u64 {
        come(&mut sessions, ClientId(client), 1, 1, at(client / 1000));
    }
    assert_eq!(come(&mut sessions, ClientId(u64::MAX), 1, 1, at(66)), Decision::Full);
    let later = come(&mut sessions, ClientId(u64::MAX), 1, 1, at(121));
    assert!(matches!(later, Decision::Execute(_)), "{later:?}");
    assert_eq!(sessions.len(), MAX_SESSIONS);
    sessions.check_invariants();
}

#[test]
fn an_idle_session_expires_by_ordered_time() {
    let mut sessions = Sessions::default();
    execute(&mut sessions, 1, at(0), ok("one"));
    come(&mut sessions, ClientId(8), 1, 1, at(301));
    assert_eq!(sessions.len(), 1);
    sessions.check_invariants();
}

#[test]
fn a_session_that_expires_during_a_call_does_not_take_its_result_for_that_of_the_next() {
    let mut slow = Sessions::default();
    let first = begin(&mut slow, 1, 1, at(0));
    let second = begin(&mut slow, 1, 1, at(301));
    slow.finish(first, C, 1, ok("first"));
    assert_eq!(come(&mut slow, C, 1, 1, at(302)), Decision::Running);
    slow.finish(second, C, 1, ok("second"));

    // Another replica's executor is ahead: both remember the same.
    let mut quick = Sessions::default();
    execute(&mut quick, 1, at(0), ok("first"));
    execute(&mut quick, 1, at(301), ok("second"));
    come(&mut quick, C, 1, 1, at(302));
    assert_eq!(slow, quick);
    slow.check_invariants();
}

#[test]
fn what_a_primary_has_executed_is_known_to_its_backups() {
    let (mut primary, mut backup) = (Sessions::default(), Sessions::default());
    for number in 1..=3 {
        execute(&mut primary, number, at(number), ok("done"));
        let unanswered = primary.unanswered(C);
        backup.record((C, number), (unanswered, Asked::Unsaid), at(number), ok("done"));
    }
    assert_eq!(primary, backup);
    assert_eq!(come(&mut backup, C, 3, 1, at(4)), Decision::Done(ok("done")));
    backup.record((C, 70), (65, Asked::Unsaid), at(5), ok("far"));
    assert_eq!(come(&mut backup, C, 3, 1, at(6)), Decision::Stale);
    backup.check_invariants();
}

#[test]
fn a_backup_always_has_room_for_what_its_primary_executed() {
    let mut backup = Sessions::default();
    for client in 0..=MAX_SESSIONS as u64 {
        backup.record((ClientId(client), 1), (1, Asked::Unsaid), at(1), ok("done"));
    }
    assert_eq!(backup.len(), MAX_SESSIONS);
    backup.check_invariants();
}

#[test]
fn a_groups_call_is_known_by_what_it_asks() {
    let mut sessions = Sessions::default();
    let window = MAX_SESSION_WINDOW << 8;
    let mut ask = |number, unanswered, asked| {
        sessions.begin((C, number), unanswered, at(0), (window, Asked::Group(asked)))
    };
    assert_eq!(ask(0x301, 0x300, 5), Decision::Execute(1));
    assert_eq!(ask(0x301, 0x300, 5), Decision::Running);
    assert_eq!(ask(0x301, 0x300, 6), Decision::Diverged, "while it runs");
    assert_eq!(ask(0x3ff + (62 << 8), 0x300, 6), Decision::Execute(2), "the window is wider");
    sessions.finish(1, C, 0x301, ok("one"));
    let mut ask = |number, unanswered, asked| {
        sessions.begin((C, number), unanswered, at(0), (window, Asked::Group(asked)))
    };
    assert_eq!(ask(0x301, 0x300, 5), Decision::Done(ok("one")));
    assert_eq!(ask(0x301, 0x300, 6), Decision::Diverged);
    assert_eq!(ask(0x401, 0x400, 6), Decision::Execute(3));
    assert_eq!(sessions.sessions[&C].calls.len(), 2, "what is not wanted is forgotten");
    sessions.finish(2, C, 0x3ff + (62 << 8), ok("two"));
    sessions.finish(3, C, 0x401, ok("three"));
    assert_eq!(again(&sessions).export(), sessions.export());
    sessions.check_invariants();
}

#[test]
fn a_transfer_carries_everything() {
    let mut sessions = Sessions::default();
    execute(&mut sessions, 1, at(3), ok("one"));
    execute(&mut sessions, 2, at(4), ServiceOutcome::Error(Bytes::from(vec![1, 2])));
    assert_eq!(again(&sessions), sessions);
}
