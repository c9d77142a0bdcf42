//! Exactly once: a group's memory of every client.
//!
//! The table changes in two steps. At a request's place in the order, [`Sessions::begin`] decides
//! whether it is executed. Only earlier messages of the order count, so every replica decides
//! alike. When its result is there, [`Sessions::finish`] keeps the reply.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::client::Refusal;
use wire::limits::{
    MAX_DEADLINE, MAX_KEPT_BYTES, MAX_NESTED_DEPTH, MAX_SESSION_REPLIES, MAX_SESSION_WINDOW,
    MAX_SESSIONS, SESSION_EXPIRY,
};
use wire::ordered::{KeptReply, SessionState, nested_window};
use wire::{ClientId, Time};

use crate::api::ServiceOutcome;

/// The decision on a request at its place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is new: execute it. This place among the executed requests goes with its result.
    Execute(u64),
    /// It is being executed: its reply will come.
    Running,
    /// It was executed: this is the reply.
    Done(ServiceOutcome),
    /// Another call was executed, or is being executed, with this number.
    Diverged,
    /// The client has announced that it has the reply, or gave it up; or the number is too far
    /// ahead.
    Stale,
    /// There is no room for another session.
    Full,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    /// The request's place among the executed ones.
    Running(u64),
    Done(u64, ServiceOutcome),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Session {
    unanswered: u64,
    last_used: Time,
    replies: BTreeMap<u64, Reply>,
    /// Digests of calls that groups made.
    asked: BTreeMap<u64, u64>,
}

impl Session {
    /// The decision on a call that was begun before.
    fn decided(&self, number: u64, asked: Option<u64>) -> Option<Decision> {
        let reply = self.replies.get(&number)?;
        if asked.is_some() && self.asked.get(&number) != asked.as_ref() {
            return Some(Decision::Diverged);
        }
        Some(match reply {
            Reply::Running(_) => Decision::Running,
            Reply::Done(_, outcome) => Decision::Done(outcome.clone()),
        })
    }
}

/// The sessions of one group at one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sessions {
    sessions: BTreeMap<ClientId, Session>,
    /// The same sessions by the ordered time of their last use.
    by_use: BTreeSet<(Time, ClientId)>,
    /// Kept replies in the order of their requests.
    kept: BTreeMap<u64, (ClientId, u64)>,
    /// Requests that were executed or are being executed.
    begun: u64,
    kept_bytes: usize,
}

const REPLY_SHED: &str = "the call was executed, but its reply is not kept any more: the group keeps \
    too many large replies; call less at a time, or ask for less";

fn size(outcome: &ServiceOutcome) -> usize {
    match outcome {
        ServiceOutcome::Ok(bytes) | ServiceOutcome::Error(bytes) => bytes.len(),
        ServiceOutcome::Refused(_, reason) => reason.len(),
    }
}

/// Removes a kept reply and returns its bytes. A reply that was shed is not counted any more.
fn drop_reply(kept: &mut BTreeMap<u64, (ClientId, u64)>, reply: Reply) -> usize {
    match reply {
        Reply::Done(place, outcome) if kept.remove(&place).is_some() => size(&outcome),
        _ => 0,
    }
}

/// An outcome in its wire form.
pub(crate) fn to_keep(outcome: &ServiceOutcome) -> KeptReply {
    match outcome {
        ServiceOutcome::Ok(bytes) => KeptReply::Ok(bytes.to_vec()),
        ServiceOutcome::Error(bytes) => KeptReply::Service(bytes.to_vec()),
        ServiceOutcome::Refused(refusal, reason) => KeptReply::Refused(*refusal, reason.clone()),
    }
}

/// An outcome from its wire form.
pub(crate) fn kept(reply: KeptReply) -> ServiceOutcome {
    match reply {
        KeptReply::Ok(bytes) => ServiceOutcome::Ok(bytes.into()),
        KeptReply::Service(bytes) => ServiceOutcome::Error(bytes.into()),
        KeptReply::Refused(refusal, reason) => ServiceOutcome::Refused(refusal, reason),
    }
}

impl Sessions {
    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// A request has its place in the order, at ordered time `now`. Its number is in a window of
    /// this size. The digest of its arguments identifies a group's call, too.
    pub(crate) fn begin(
        &mut self,
        (client, number): (ClientId, u64),
        unanswered: u64,
        now: Time,
        (window, asked): (u64, Option<u64>),
    ) -> Decision {
        self.expire(now);
        if !self.touch(client, now) {
            return Decision::Full;
        }
        self.give_up(client, unanswered);
        let session = self.sessions.get_mut(&client).expect("a touched session exists");
        if number < session.unanswered || number - session.unanswered >= window {
            return Decision::Stale;
        }
        if let Some(decided) = session.decided(number, asked) {
            return decided;
        }
        if session.replies.len() >= MAX_SESSION_REPLIES {
            return Decision::Full;
        }
        self.begun += 1;
        session.replies.insert(number, Reply::Running(self.begun));
        session.asked.extend(asked.map(|asked| (number, asked)));
        Decision::Execute(self.begun)
    }

    /// The decision on a call that was begun before. Nothing changes.
    pub(crate) fn decided(
        &self,
        (client, number): (ClientId, u64),
        asked: Option<u64>,
    ) -> Option<Decision> {
        let session = self.sessions.get(&client)?;
        if number < session.unanswered {
            return Some(Decision::Stale);
        }
        session.decided(number, asked)
    }

    /// The client has no more use for its replies below `unanswered`.
    fn give_up(&mut self, client: ClientId, unanswered: u64) {
        let session = self.sessions.get_mut(&client).expect("a touched session exists");
        if unanswered > session.unanswered {
            session.unanswered = unanswered;
            // One by one: in two trees the session would need new memory for its next reply.
            while let Some(first) = session.replies.first_entry()
                && *first.key() < unanswered
            {
                self.kept_bytes -= drop_reply(&mut self.kept, first.remove());
            }
            while session.asked.first_entry().is_some_and(|first| *first.key() < unanswered) {
                session.asked.pop_first();
            }
        }
    }

    /// The first number of which the client may still want the reply.
    pub(crate) fn unanswered(&self, client: ClientId) -> u64 {
        self.sessions.get(&client).map_or(0, |session| session.unanswered)
    }

    /// The primary of a passive group has executed this call at ordered time `now`. `unanswered` is
    /// its knowledge of the client at that time. It has decided; this replica only keeps the reply.
    pub(crate) fn record(
        &mut self,
        (client, number): (ClientId, u64),
        (unanswered, asked): (u64, Option<u64>),
        now: Time,
        outcome: ServiceOutcome,
    ) {
        self.expire(now);
        if !self.touch(client, now) {
            // The primary found room: it saw more retries, and so knew the idle sessions better.
            let (_, oldest) = *self.by_use.first().expect("a full table has an oldest");
            self.forget(oldest);
            self.touch(client, now);
        }
        self.begun += 1;
        let place = self.begun;
        self.give_up(client, unanswered);
        let session = self.sessions.get_mut(&client).expect("a touched session exists");
        let depth = if asked.is_some() { MAX_NESTED_DEPTH } else { 0 };
        let window = nested_window(MAX_SESSION_WINDOW, depth);
        if number < session.unanswered || number - session.unanswered >= window {
            return;
        }
        session.asked.extend(asked.map(|asked| (number, asked)));
        let running = session.replies.insert(number, Reply::Running(place));
        if let Some(before) = running {
            self.kept_bytes -= drop_reply(&mut self.kept, before);
        }
        self.finish(place, client, number, outcome);
    }

    /// The digest of this call, if a group made it.
    pub(crate) fn asked(&self, client: ClientId, number: u64) -> Option<u64> {
        self.sessions.get(&client)?.asked.get(&number).copied()
    }

    /// The state of a call: unknown, running, or its reply.
    pub(crate) fn known(&self, client: ClientId, number: u64) -> Option<Option<ServiceOutcome>> {
        match self.sessions.get(&client)?.replies.get(&number)? {
            Reply::Running(_) => Some(None),
            Reply::Done(_, outcome) => Some(Some(outcome.clone())),
        }
    }

    /// The request that was begun at this place has this result.
    pub(crate) fn finish(
        &mut self,
        place: u64,
        client: ClientId,
        number: u64,
        outcome: ServiceOutcome,
    ) {
        // While it ran the session may have expired, or the client given the reply up, or both
        // have begun anew.
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let Some(reply) = session.replies.get_mut(&number) else { return };
        if *reply != Reply::Running(place) {
            return;
        }
        self.kept_bytes += size(&outcome);
        self.kept.insert(place, (client, number));
        *reply = Reply::Done(place, outcome);
        self.shed(MAX_KEPT_BYTES);
    }

    /// Replaces the kept outcome of an executed call.
    pub(crate) fn amend(&mut self, client: ClientId, number: u64, outcome: ServiceOutcome) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let Some(Reply::Done(place, old)) = session.replies.get_mut(&number) else { return };
        if self.kept.contains_key(place) {
            self.kept_bytes = self.kept_bytes - size(old) + size(&outcome);
        }
        *old = outcome;
    }

    /// Keeps no more than `limit` bytes of replies: the oldest go. Their requests stay known as
    /// executed, so a retry gets an error instead of a second execution.
    fn shed(&mut self, limit: usize) {
        while self.kept_bytes > limit
            && let Some((place, (client, number))) = self.kept.pop_first()
        {
            let session = self.sessions.get_mut(&client).expect("a kept reply has a session");
            let reply = session.replies.get_mut(&number).expect("a kept reply is in its session");
            let shed = ServiceOutcome::Refused(Refusal::Stale, REPLY_SHED.into());
            let Reply::Done(_, outcome) = core::mem::replace(reply, Reply::Done(place, shed))
            else {
                unreachable!("a kept reply is done")
            };
            self.kept_bytes -= size(&outcome);
        }
    }

    fn drop_replies(&mut self, replies: BTreeMap<u64, Reply>) {
        for reply in replies.into_values() {
            self.kept_bytes -= drop_reply(&mut self.kept, reply);
        }
    }

    /// The session's last use is now. A new session may replace the one unused for longest, but
    /// none whose call may still be under way. False if there is no room.
    fn touch(&mut self, client: ClientId, now: Time) -> bool {
        if let Some(session) = self.sessions.get_mut(&client) {
            self.by_use.remove(&(session.last_used, client));
            session.last_used = now;
        } else {
            if self.sessions.len() >= MAX_SESSIONS {
                let (used, oldest) = *self.by_use.first().expect("a full table has an oldest");
                if now.since(used) <= 2 * MAX_DEADLINE {
                    return false;
                }
                self.forget(oldest);
            }
            let session = Session { last_used: now, ..Session::default() };
            self.sessions.insert(client, session);
        }
        self.by_use.insert((now, client));
        true
    }

    fn expire(&mut self, now: Time) {
        while let Some(&(used, client)) = self.by_use.first()
            && now.since(used) > SESSION_EXPIRY
        {
            self.forget(client);
        }
    }

    fn forget(&mut self, client: ClientId) {
        let Some(session) = self.sessions.remove(&client) else { return };
        self.by_use.remove(&(session.last_used, client));
        self.drop_replies(session.replies);
    }

    /// The sessions for a state transfer.
    ///
    /// # Panics
    /// If a request is running: a snapshot is taken between requests.
    pub(crate) fn export(&self) -> Vec<SessionState> {
        let kept = |reply: &Reply| match reply {
            Reply::Running(_) => panic!("a snapshot is taken between requests"),
            Reply::Done(_, outcome) => to_keep(outcome),
        };
        let sessions = self.sessions.iter().map(|(client, session)| SessionState {
            client: *client,
            unanswered: session.unanswered,
            last_used: session.last_used,
            replies: session.replies.iter().map(|(n, reply)| (*n, kept(reply))).collect(),
            asked: session.asked.iter().map(|(number, asked)| (*number, *asked)).collect(),
        });
        sessions.collect()
    }

    /// The sessions of a state transfer.
    pub(crate) fn import(states: Vec<SessionState>) -> Sessions {
        let mut sessions = Sessions::default();
        for state in states {
            let mut session = Session {
                unanswered: state.unanswered,
                last_used: state.last_used,
                replies: BTreeMap::new(),
                asked: state.asked.into_iter().collect(),
            };
            for (number, reply) in state.replies {
                let outcome = kept(reply);
                sessions.begun += 1;
                sessions.kept_bytes += size(&outcome);
                sessions.kept.insert(sessions.begun, (state.client, number));
                session.replies.insert(number, Reply::Done(sessions.begun, outcome));
            }
            sessions.by_use.insert((session.last_used, state.client));
            sessions.sessions.insert(state.client, session);
        }
        sessions
    }

    /// Invariants.
    pub(crate) fn check_invariants(&self) {
        assert!(self.sessions.len() <= MAX_SESSIONS, "sessions are bounded");
        assert_eq!(self.sessions.len(), self.by_use.len(), "each session is in the order of use");
        assert!(self.kept_bytes <= MAX_KEPT_BYTES, "kept replies are bounded");
        let mut bytes = 0;
        for (client, number) in self.kept.values() {
            match self.sessions.get(client).and_then(|session| session.replies.get(number)) {
                Some(Reply::Done(_, outcome)) => bytes += size(outcome),
                other => panic!("{other:?} is no kept reply"),
            }
        }
        assert_eq!(self.kept_bytes, bytes, "what is kept is counted");
        for session in self.sessions.values() {
            assert!(session.replies.len() <= MAX_SESSION_REPLIES, "a window is bounded");
            assert!(session.asked.len() <= session.replies.len(), "what was asked is of replies");
        }
    }
}

#[cfg(test)]
mod tests {
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

    /// A client's request arrives.
    fn come(
        s: &mut Sessions,
        client: ClientId,
        number: u64,
        unanswered: u64,
        now: Time,
    ) -> Decision {
        s.begin((client, number), unanswered, now, (MAX_SESSION_WINDOW, None))
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
        assert_eq!(sessions.kept_bytes, 0);
        assert_eq!(come(&mut sessions, C, 6 + MAX_SESSION_WINDOW, 6, at(0)), Decision::Stale);
    }

    #[test]
    fn a_reply_that_is_shed_is_not_executed_again() {
        let mut sessions = Sessions::default();
        for number in 1..=3 {
            execute(&mut sessions, number, at(0), ok("four"));
        }
        sessions.shed(8);
        sessions.check_invariants();
        let retry = come(&mut sessions, C, 1, 1, at(0));
        assert!(
            matches!(retry, Decision::Done(ServiceOutcome::Refused(Refusal::Stale, _))),
            "{retry:?}"
        );
        assert_eq!(come(&mut sessions, C, 2, 1, at(0)), Decision::Done(ok("four")));
        begin(&mut sessions, 4, 4, at(0));
        assert_eq!(sessions.kept_bytes, 0);
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
            backup.record((C, number), (unanswered, None), at(number), ok("done"));
        }
        assert_eq!(primary, backup);
        assert_eq!(come(&mut backup, C, 3, 1, at(4)), Decision::Done(ok("done")));
        backup.record((C, 70), (65, None), at(5), ok("far"));
        assert_eq!(come(&mut backup, C, 3, 1, at(6)), Decision::Stale);
        backup.check_invariants();
    }

    #[test]
    fn a_backup_always_has_room_for_what_its_primary_executed() {
        let mut backup = Sessions::default();
        for client in 0..=MAX_SESSIONS as u64 {
            backup.record((ClientId(client), 1), (1, None), at(1), ok("done"));
        }
        assert_eq!(backup.len(), MAX_SESSIONS);
        backup.check_invariants();
    }

    #[test]
    fn a_groups_call_is_known_by_what_it_asks() {
        let mut sessions = Sessions::default();
        let window = MAX_SESSION_WINDOW << 8;
        let mut ask = |number, unanswered, asked| {
            sessions.begin((C, number), unanswered, at(0), (window, Some(asked)))
        };
        assert_eq!(ask(0x301, 0x300, 5), Decision::Execute(1));
        assert_eq!(ask(0x301, 0x300, 5), Decision::Running);
        assert_eq!(ask(0x301, 0x300, 6), Decision::Diverged, "while it runs");
        assert_eq!(ask(0x3ff + (62 << 8), 0x300, 6), Decision::Execute(2), "the window is wider");
        sessions.finish(1, C, 0x301, ok("one"));
        let mut ask = |number, unanswered, asked| {
            sessions.begin((C, number), unanswered, at(0), (window, Some(asked)))
        };
        assert_eq!(ask(0x301, 0x300, 5), Decision::Done(ok("one")));
        assert_eq!(ask(0x301, 0x300, 6), Decision::Diverged);
        assert_eq!(ask(0x401, 0x400, 6), Decision::Execute(3));
        assert_eq!(sessions.sessions[&C].asked.len(), 2, "what is not wanted is forgotten");
        sessions.finish(2, C, 0x3ff + (62 << 8), ok("two"));
        sessions.finish(3, C, 0x401, ok("three"));
        assert_eq!(
            Sessions::import(sessions.export()).sessions[&C].asked,
            sessions.sessions[&C].asked
        );
        sessions.check_invariants();
    }

    #[test]
    fn a_transfer_carries_everything() {
        let mut sessions = Sessions::default();
        execute(&mut sessions, 1, at(3), ok("one"));
        execute(&mut sessions, 2, at(4), ServiceOutcome::Error(Bytes::from(vec![1, 2])));
        assert_eq!(Sessions::import(sessions.export()), sessions);
    }
}
