//! Exactly once: a group's memory of every client.
//!
//! The table changes in two steps. At a request's place in the order, [`Sessions::begin`] decides
//! whether it is executed. Only earlier messages of the order count, so every replica decides
//! alike. When its result is there, [`Sessions::finish`] keeps the reply.
//!
//! A session of a client with keys lives for a day, others for minutes, and neither kind takes the
//! other's room. Of a session with keys that is forgotten the last call stays known (`forgotten`):
//! its calls are refused, or new.

mod asked;
mod forgotten;
mod kept;
mod transfer;

use alloc::collections::{BTreeMap, BTreeSet};

use wire::client::Refusal;
use wire::limits::{
    KEY_EXPIRY, MAX_DEADLINE, MAX_KEPT_BYTES, MAX_KEYED_SESSIONS, MAX_NESTED_DEPTH,
    MAX_SESSION_REPLIES, MAX_SESSION_WINDOW, MAX_SESSIONS, SESSION_EXPIRY,
};
use wire::ordered::{KeptReply, nested_window};
use wire::{ClientId, Duration, Time};

use crate::api::ServiceOutcome;
pub(crate) use asked::{Asked, asks};
use forgotten::Forgotten;
use kept::Kept;

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
    /// Its session is forgotten, and may have made the call.
    Forgotten,
    /// There is no room for another session.
    Full,
}

/// A call that has its place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ordered {
    /// The digest of the arguments, where that is compared.
    asked: Option<u64>,
    reply: Reply,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    /// The request's place among the executed ones.
    Running(u64),
    Done(u64, ServiceOutcome),
}

/// The owner of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// A client's, which makes no attempt after a call's deadline.
    #[default]
    Client,
    /// A client's that counts calls by keys, and may repeat them for a day.
    Key,
    /// That of a group's calls for one client.
    Group,
}

impl Kind {
    /// Sessions with keys and all others are counted apart.
    fn class(self) -> usize {
        usize::from(self == Kind::Key)
    }

    fn most(self) -> usize {
        if self == Kind::Key { MAX_KEYED_SESSIONS } else { MAX_SESSIONS }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Session {
    unanswered: u64,
    last_used: Time,
    kind: Kind,
    calls: BTreeMap<u64, Ordered>,
}

impl Session {
    /// The decision on a call that was begun before.
    fn decided(&self, number: u64, asked: Asked) -> Option<Decision> {
        let Ordered { asked: before, reply } = self.calls.get(&number)?;
        if asked.digest().zip(*before).is_some_and(|(now, before)| now != before) {
            return Some(Decision::Diverged);
        }
        Some(match reply {
            Reply::Running(_) => Decision::Running,
            Reply::Done(_, outcome) => Decision::Done(outcome.clone()),
        })
    }

    /// The client has no more use for its replies below `unanswered`.
    fn give_up(&mut self, unanswered: u64, classes: &mut [Class; 2]) {
        if unanswered > self.unanswered {
            self.unanswered = unanswered;
            let kept = &mut classes[self.kind.class()].kept;
            // One by one: in two trees the session would need new memory for its next reply.
            while let Some(first) = self.calls.first_entry()
                && *first.key() < unanswered
            {
                drop_reply(kept, first.remove().reply);
            }
        }
    }

    /// The last call that may have been executed.
    fn last(&self) -> u64 {
        let begun = self.calls.last_key_value().map_or(0, |(number, _)| *number);
        begun.max(self.unanswered.saturating_sub(1))
    }
}

/// Sessions of clients with keys, or all others: what each kind has of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Class {
    /// By the ordered time of their last use.
    by_use: BTreeSet<(Time, ClientId)>,
    kept: Kept,
}

/// The sessions of one group at one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sessions {
    sessions: BTreeMap<ClientId, Session>,
    classes: [Class; 2],
    /// Requests that were executed or are being executed.
    begun: u64,
    forgotten: Forgotten,
}

/// Another call has the number.
pub(crate) const REUSED: &str = "this key names another call, with another method or other arguments, so this one was not executed: \
    give each call a number of its own (steadfast-call), and each program a session of its own";

/// The replies of the session are gone.
pub(crate) const FORGOTTEN: &str = "the session was not used for so long that its replies are forgotten: this call may have been executed then, and is \
    not executed again. Find out whether it was; for new calls draw a new session";

/// Another call of the number is being executed.
pub(crate) const ANOTHER_RUNS: &str = "another call with this key is being executed: give each call a number of its own, or ask again when that has ended";

const REPLY_SHED: &str = "the call was executed, but its reply is not kept any more: the group keeps \
    too many large replies; call less at a time, or ask for less";

fn size(outcome: &ServiceOutcome) -> usize {
    match outcome {
        ServiceOutcome::Ok(bytes) | ServiceOutcome::Error(bytes) => bytes.len(),
        ServiceOutcome::Refused(_, reason) => reason.len(),
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
    /// this size. What it asks identifies it, too, where that is compared.
    pub(crate) fn begin(
        &mut self,
        (client, number): (ClientId, u64),
        unanswered: u64,
        now: Time,
        (window, asked): (u64, Asked),
    ) -> Decision {
        self.expire(now);
        if !self.sessions.contains_key(&client) {
            if self.has_forgotten((client, number), unanswered, asked) {
                return Decision::Forgotten;
            }
            if !self.make_room(Kind::of(asked), now) {
                return Decision::Full;
            }
        }
        let session = touch(
            &mut self.sessions,
            (&mut self.classes, &mut self.forgotten),
            (client, now, asked),
        );
        session.give_up(unanswered, &mut self.classes);
        if number < session.unanswered || number - session.unanswered >= window {
            return Decision::Stale;
        }
        if let Some(decided) = session.decided(number, asked) {
            return decided;
        }
        if session.calls.len() >= MAX_SESSION_REPLIES {
            return Decision::Full;
        }
        self.begun += 1;
        let (asked, reply) = (asked.digest(), Reply::Running(self.begun));
        session.calls.insert(number, Ordered { asked, reply });
        Decision::Execute(self.begun)
    }

    /// The decision on a call that was begun before, or whose session is forgotten. Nothing changes.
    pub(crate) fn decided(
        &self,
        (client, number): (ClientId, u64),
        unanswered: u64,
        asked: Asked,
    ) -> Option<Decision> {
        let Some(session) = self.sessions.get(&client) else {
            let forgotten = self.has_forgotten((client, number), unanswered, asked);
            return forgotten.then_some(Decision::Forgotten);
        };
        if number < session.unanswered {
            return Some(Decision::Stale);
        }
        session.decided(number, asked)
    }

    /// A call of a session that is not there may have been executed before that was forgotten.
    pub(crate) fn has_forgotten(
        &self,
        (client, number): (ClientId, u64),
        unanswered: u64,
        asked: Asked,
    ) -> bool {
        match (self.forgotten.last(client), asked) {
            (_, Asked::Group(_)) => false,
            (Some(last), _) => number <= last,
            (None, Asked::Key(_)) => self.forgotten.may_have_dropped(number, unanswered),
            (None, _) => false,
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
        (unanswered, asked): (u64, Asked),
        now: Time,
        outcome: ServiceOutcome,
    ) {
        self.expire(now);
        if !self.sessions.contains_key(&client) && !self.make_room(Kind::of(asked), now) {
            // The primary found room: it saw more retries, and so knew the idle sessions better.
            let by_use = &self.classes[Kind::of(asked).class()].by_use;
            let (_, oldest) = *by_use.first().expect("a full table has an oldest");
            self.forget(oldest);
        }
        let session = touch(
            &mut self.sessions,
            (&mut self.classes, &mut self.forgotten),
            (client, now, asked),
        );
        self.begun += 1;
        let place = self.begun;
        session.give_up(unanswered, &mut self.classes);
        let depth = if asked.of_group().is_some() { MAX_NESTED_DEPTH } else { 0 };
        let window = nested_window(MAX_SESSION_WINDOW, depth);
        if number < session.unanswered || number - session.unanswered >= window {
            return;
        }
        let (asked, reply) = (asked.digest(), Reply::Running(place));
        if let Some(before) = session.calls.insert(number, Ordered { asked, reply }) {
            drop_reply(&mut self.classes[session.kind.class()].kept, before.reply);
        }
        self.finish(place, client, number, outcome);
    }

    /// The arguments of this call, as far as they are compared.
    pub(crate) fn asked(&self, client: ClientId, number: u64) -> Asked {
        let Some(session) = self.sessions.get(&client) else { return Asked::Unsaid };
        match (session.kind, session.calls.get(&number).and_then(|call| call.asked)) {
            (_, None) => Asked::Unsaid,
            (Kind::Client, Some(digest)) => Asked::Client(digest),
            (Kind::Key, Some(digest)) => Asked::Key(digest),
            (Kind::Group, Some(hash)) => Asked::Group(hash),
        }
    }

    /// The state of a call: unknown, running, or its reply.
    pub(crate) fn known(&self, client: ClientId, number: u64) -> Option<Option<ServiceOutcome>> {
        match &self.sessions.get(&client)?.calls.get(&number)?.reply {
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
        let Some(Ordered { reply, .. }) = session.calls.get_mut(&number) else { return };
        if *reply != Reply::Running(place) {
            return;
        }
        let class = session.kind.class();
        self.classes[class].kept.add(place, (client, number), size(&outcome));
        *reply = Reply::Done(place, outcome);
        self.shed(class, MAX_KEPT_BYTES / 2);
    }

    /// Replaces the kept outcome of an executed call.
    pub(crate) fn amend(&mut self, client: ClientId, number: u64, outcome: ServiceOutcome) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let reply = session.calls.get_mut(&number).map(|call| &mut call.reply);
        let Some(Reply::Done(place, old)) = reply else { return };
        self.classes[session.kind.class()].kept.amend(*place, size(old), size(&outcome));
        *old = outcome;
    }

    /// Keeps no more than `limit` bytes of replies: the oldest go. Their requests stay known as
    /// executed, so a retry gets an error instead of a second execution.
    fn shed(&mut self, class: usize, limit: usize) {
        let kept = &mut self.classes[class].kept;
        while let Some((place, (client, number))) = kept.beyond(limit) {
            let session = self.sessions.get_mut(&client).expect("a kept reply has a session");
            let call = session.calls.get_mut(&number).expect("a kept reply is in its session");
            let shed = ServiceOutcome::Refused(Refusal::Stale, REPLY_SHED.into());
            let Reply::Done(_, outcome) =
                core::mem::replace(&mut call.reply, Reply::Done(place, shed))
            else {
                unreachable!("a kept reply is done")
            };
            kept.remove(place, size(&outcome));
        }
    }

    /// A new session may replace the one of its kind that was unused for longest, but none whose
    /// call may still be under way. False if there is no room.
    fn make_room(&mut self, kind: Kind, now: Time) -> bool {
        let by_use = &self.classes[kind.class()].by_use;
        if by_use.len() < kind.most() {
            return true;
        }
        let (used, oldest) = *by_use.first().expect("a full table has an oldest");
        let is_idle = now.since(used) > 2 * MAX_DEADLINE;
        if !is_idle || kind == Kind::Key && !self.forgotten.has_room(now) {
            return false;
        }
        self.forget(oldest);
        true
    }

    fn expire(&mut self, now: Time) {
        for (class, most) in [SESSION_EXPIRY, KEY_EXPIRY].into_iter().enumerate() {
            while let Some(client) = self.idle_for(class, now, most) {
                self.forget(client);
            }
        }
    }

    /// A session of this class that was unused for longer than this.
    fn idle_for(&self, class: usize, now: Time, most: Duration) -> Option<ClientId> {
        let (used, client) = *self.classes[class].by_use.first()?;
        (now.since(used) > most).then_some(client)
    }

    fn forget(&mut self, client: ClientId) {
        let Some(session) = self.sessions.remove(&client) else { return };
        let class = &mut self.classes[session.kind.class()];
        class.by_use.remove(&(session.last_used, client));
        if session.kind == Kind::Key {
            self.forgotten.add(client, session.last(), session.last_used);
        }
        for call in session.calls.into_values() {
            drop_reply(&mut class.kept, call.reply);
        }
    }

    /// Planted: nothing of forgotten sessions is known.
    pub(crate) fn forget_the_forgotten(&mut self) {
        self.forgotten = Forgotten::default();
    }
}

impl Kind {
    fn of(asked: Asked) -> Kind {
        match asked {
            Asked::Unsaid | Asked::Client(_) => Kind::Client,
            Asked::Key(_) => Kind::Key,
            Asked::Group(_) => Kind::Group,
        }
    }
}

/// The session's last use is now. It may be new: then it goes on behind the last call of one that
/// was forgotten.
fn touch<'a>(
    sessions: &'a mut BTreeMap<ClientId, Session>,
    (classes, forgotten): (&mut [Class; 2], &mut Forgotten),
    (client, now, asked): (ClientId, Time, Asked),
) -> &'a mut Session {
    let session = sessions.entry(client).or_insert_with(|| {
        let unanswered = forgotten.last(client).map_or(0, |last| last + 1);
        forgotten.remove(client);
        Session { unanswered, kind: Kind::of(asked), ..Session::default() }
    });
    let kind = if asked == Asked::Unsaid { session.kind } else { Kind::of(asked) };
    classes[session.kind.class()].by_use.remove(&(session.last_used, client));
    if kind.class() > session.kind.class() {
        // An older gateway did not say so.
        let [others, keyed] = classes;
        for (number, Ordered { reply, .. }) in &session.calls {
            if let Reply::Done(place, outcome) = reply
                && others.kept.remove(*place, size(outcome))
            {
                keyed.kept.add(*place, (client, *number), size(outcome));
            }
        }
    }
    if session.kind != Kind::Key {
        session.kind = kind;
    }
    session.last_used = now;
    classes[session.kind.class()].by_use.insert((now, client));
    session
}

/// Removes a kept reply.
fn drop_reply(kept: &mut Kept, reply: Reply) {
    if let Reply::Done(place, outcome) = reply {
        kept.remove(place, size(&outcome));
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_keys;
