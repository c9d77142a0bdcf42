//! Calls that are known by what they ask, and sessions with keys.

use super::*;
use alloc::vec::Vec;

const C: ClientId = ClientId(7);
const DAY: u64 = 24 * 3_600;

fn ok() -> ServiceOutcome {
    ServiceOutcome::Ok(bytes::Bytes::from_static(b"done"))
}

fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000_000)
}

/// A call with a key arrives: its number, the lowest that is unanswered, and what it asks.
fn come(s: &mut Sessions, client: ClientId, call: (u64, u64, u64), now: Time) -> Decision {
    let (number, unanswered, asked) = call;
    s.begin((client, number), unanswered, now, (MAX_SESSION_WINDOW, Asked::Key(asked)))
}

/// A call with a key is executed.
fn execute(s: &mut Sessions, client: ClientId, call: (u64, u64, u64), now: Time) {
    match come(s, client, call, now) {
        Decision::Execute(place) => s.finish(place, client, call.0, ok()),
        other => panic!("{other:?}"),
    }
    s.check_invariants();
}

/// The same sessions after a transfer.
fn again(sessions: &Sessions) -> Sessions {
    let (states, keys) = sessions.export();
    let brought = Sessions::import(states, keys);
    brought.check_invariants();
    brought
}

#[test]
fn a_key_names_one_call() {
    let mut sessions = Sessions::default();
    let place = match come(&mut sessions, C, (1, 1, 5), at(0)) {
        Decision::Execute(place) => place,
        other => panic!("{other:?}"),
    };
    assert_eq!(come(&mut sessions, C, (1, 1, 6), at(0)), Decision::Diverged, "while it runs");
    sessions.finish(place, C, 1, ok());
    for mut sessions in [sessions.clone(), again(&sessions)] {
        assert_eq!(come(&mut sessions, C, (1, 1, 6), at(1)), Decision::Diverged);
        assert_eq!(come(&mut sessions, C, (1, 1, 5), at(1)), Decision::Done(ok()));
        let other = Asked::Key(6);
        assert_eq!(sessions.decided((C, 1), 1, other), Some(Decision::Diverged));
    }
}

#[test]
fn what_older_rules_executed_is_not_compared() {
    let mut sessions = Sessions::default();
    let told = (MAX_SESSION_WINDOW, Asked::Unsaid);
    assert_eq!(sessions.begin((C, 1), 1, at(0), told), Decision::Execute(1));
    sessions.finish(1, C, 1, ok());
    assert_eq!(sessions.export().1, None, "older programs can read it");
    assert_eq!(come(&mut sessions, C, (1, 1, 5), at(1)), Decision::Done(ok()));
    execute(&mut sessions, C, (2, 1, 5), at(1));
    assert_eq!(come(&mut sessions, C, (1, 1, 5), at(DAY)), Decision::Done(ok()), "it has keys now");
    assert_eq!(again(&sessions).sessions, sessions.sessions);
}

#[test]
fn a_session_with_keys_lives_for_a_day_and_others_for_minutes() {
    let mut sessions = Sessions::default();
    execute(&mut sessions, C, (1, 1, 5), at(0));
    let told = (MAX_SESSION_WINDOW, Asked::Client(5));
    sessions.begin((ClientId(8), 1), 1, at(0), told);
    assert_eq!(come(&mut sessions, C, (1, 1, 5), at(DAY - 1)), Decision::Done(ok()));
    assert_eq!(sessions.len(), 1);
    assert_eq!(come(&mut sessions, C, (1, 1, 5), at(2 * DAY - 2)), Decision::Done(ok()));
}

#[test]
fn a_call_of_a_forgotten_session_is_refused_or_new() {
    let mut sessions = Sessions::default();
    for number in 1..=3 {
        execute(&mut sessions, C, (number, 1, number), at(0));
    }
    sessions.expire(at(DAY + 1));
    assert_eq!(sessions.len(), 0);
    for mut sessions in [sessions.clone(), again(&sessions)] {
        let told = Asked::Key(3);
        assert_eq!(sessions.decided((C, 3), 1, told), Some(Decision::Forgotten));
        for number in 1..=3 {
            let repeated = come(&mut sessions, C, (number, 1, number), at(DAY + 1));
            assert_eq!(repeated, Decision::Forgotten);
        }
        // By an older gateway, which does not say that it has a key.
        let older = (MAX_SESSION_WINDOW, Asked::Client(3));
        assert_eq!(sessions.begin((C, 3), 3, at(DAY + 1), older), Decision::Forgotten);
        execute(&mut sessions, C, (4, 2, 4), at(DAY + 2));
        assert_eq!(come(&mut sessions, C, (3, 2, 3), at(DAY + 2)), Decision::Stale);
        assert_eq!(come(&mut sessions, C, (4, 2, 4), at(DAY + 2)), Decision::Done(ok()));
    }
}

#[test]
fn a_session_that_ended_its_calls_is_known_by_the_last() {
    let mut sessions = Sessions::default();
    execute(&mut sessions, C, (70, 70, 1), at(0));
    assert_eq!(come(&mut sessions, C, (70, 71, 1), at(0)), Decision::Stale);
    sessions.expire(at(DAY + 1));
    assert_eq!(come(&mut sessions, C, (70, 70, 1), at(DAY + 1)), Decision::Forgotten);
    execute(&mut sessions, C, (71, 71, 1), at(DAY + 1));
}

#[test]
fn sessions_without_keys_take_no_room_of_those_with_keys() {
    let mut sessions = Sessions::default();
    execute(&mut sessions, C, (1, 1, 5), at(0));
    for client in 0..=MAX_SESSIONS as u64 {
        let told = (MAX_SESSION_WINDOW, Asked::Client(1));
        sessions.begin((ClientId(1 << 32 | client), 1), 1, at(1 + client / 200), told);
    }
    assert_eq!(come(&mut sessions, C, (1, 1, 5), at(400)), Decision::Done(ok()));
}

#[test]
fn replies_without_keys_take_no_room_of_those_with_keys() {
    let mut sessions = Sessions::default();
    execute(&mut sessions, C, (1, 1, 5), at(0));
    let large = ServiceOutcome::Ok(alloc::vec![0; MAX_KEPT_BYTES / 16].into());
    for number in 1..=9 {
        let told = (MAX_SESSION_WINDOW, Asked::Client(1));
        let place = match sessions.begin((ClientId(8), number), 1, at(1), told) {
            Decision::Execute(place) => place,
            other => panic!("{other:?}"),
        };
        sessions.finish(place, ClientId(8), number, large.clone());
        sessions.check_invariants();
    }
    assert_eq!(come(&mut sessions, C, (1, 1, 5), at(2)), Decision::Done(ok()));
}

#[test]
fn at_the_limits_what_is_forgotten_stays_known_for_a_day_and_new_sessions_wait() {
    let mut sessions = Sessions::default();
    let most = (MAX_KEYED_SESSIONS + wire::limits::MAX_FORGOTTEN) as u64;
    // Each 5 ms: all have been used within the day.
    let used = |client: u64| Time(client * 5_000_000);
    for client in 0..most {
        let begun = come(&mut sessions, ClientId(client), (1, 1, 1), used(client));
        let Decision::Execute(place) = begun else { panic!("{client}: {begun:?}") };
        sessions.finish(place, ClientId(client), 1, ok());
    }
    sessions.check_invariants();
    let now = used(most) + 3 * MAX_DEADLINE;
    assert_eq!(come(&mut sessions, ClientId(most), (1, 1, 1), now), Decision::Full);
    assert_eq!(come(&mut sessions, ClientId(0), (1, 1, 1), now), Decision::Forgotten);
    let sessions = &mut again(&sessions);
    let later = used(0) + KEY_EXPIRY + Duration::from_millis(1);
    execute(sessions, ClientId(most), (1, 1, 1), later);
    // The first one was dropped: only a call that says that others have ended may be its.
    assert_eq!(come(sessions, ClientId(0), (1, 1, 1), later), Decision::Full);
    assert!(!sessions.has_forgotten((ClientId(1 << 40), 1), 1, Asked::Key(1)));
}

#[test]
fn a_call_that_may_be_of_a_session_that_was_dropped_is_refused() {
    let mut sessions = Sessions::default();
    let mut forgotten = Forgotten::default();
    for client in 0..=wire::limits::MAX_FORGOTTEN as u64 {
        forgotten.add(ClientId(client), 9, at(client));
    }
    forgotten.check_invariants();
    sessions.forgotten = forgotten;
    let unknown = ClientId(u64::MAX);
    assert_eq!(come(&mut sessions, unknown, (9, 2, 1), at(DAY)), Decision::Forgotten);
    execute(&mut sessions, unknown, (9, 1, 1), at(DAY));
    execute(&mut sessions, ClientId(u64::MAX - 1), (10, 2, 1), at(DAY));
}

#[test]
fn backups_of_a_passive_group_know_what_was_asked() {
    let (mut primary, mut backup) = (Sessions::default(), Sessions::default());
    for (number, asked) in (1..=3).zip([Asked::Key(1), Asked::Key(2), Asked::Key(3)]) {
        execute(&mut primary, C, (number, 1, number), at(number));
        let (hash, key) = asked.to_entry();
        let told = (primary.unanswered(C), Asked::from_entry(hash, key));
        backup.record((C, number), told, at(number), ok());
    }
    assert_eq!(primary, backup);
    assert_eq!(come(&mut backup, C, (3, 1, 4), at(4)), Decision::Diverged);
    let clients: Vec<_> = [Asked::Unsaid, Asked::Client(3), Asked::Group(4)].into();
    for asked in clients {
        let (hash, key) = asked.to_entry();
        assert_eq!(Asked::from_entry(hash, key), asked);
    }
}
