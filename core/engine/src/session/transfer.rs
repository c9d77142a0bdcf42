//! Sessions in a state transfer, and their invariants.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::limits::{MAX_KEPT_BYTES, MAX_KEYED_SESSIONS, MAX_SESSION_REPLIES, MAX_SESSIONS};
use wire::ordered::{KeysState, SessionKeys, SessionState};

use super::forgotten::Forgotten;
use super::{Kind, Ordered, Reply, Session, Sessions, kept, size, to_keep};

impl Sessions {
    /// The sessions for a state transfer, and what is remembered beside their replies: nothing
    /// before calls are compared.
    ///
    /// # Panics
    /// If a request is running: a snapshot is taken between requests.
    pub(crate) fn export(&self) -> (Vec<SessionState>, Option<KeysState>) {
        let kept = |reply: &Reply| match reply {
            Reply::Running(_) => panic!("a snapshot is taken between requests"),
            Reply::Done(_, outcome) => to_keep(outcome),
        };
        let asked = |session: &Session| -> Vec<(u64, u64)> {
            session.calls.iter().filter_map(|(n, call)| Some((*n, call.asked?))).collect()
        };
        let sessions = self.sessions.iter().map(|(client, session)| SessionState {
            client: *client,
            unanswered: session.unanswered,
            last_used: session.last_used,
            replies: session.calls.iter().map(|(n, call)| (*n, kept(&call.reply))).collect(),
            asked: if session.kind == Kind::Group { asked(session) } else { Vec::new() },
        });
        let of_clients = self.sessions.iter().filter(|(_, session)| match session.kind {
            Kind::Group => false,
            Kind::Client => session.calls.values().any(|call| call.asked.is_some()),
            Kind::Key => true,
        });
        let keys = of_clients.map(|(client, session)| SessionKeys {
            client: *client,
            has_keys: session.kind == Kind::Key,
            asked: asked(session),
        });
        let keys: Vec<SessionKeys> = keys.collect();
        let (forgotten, dropped) = self.forgotten.export();
        let is_new = !keys.is_empty() || !self.forgotten.is_empty();
        let keys = is_new.then_some(KeysState { sessions: keys, forgotten, dropped });
        (sessions.collect(), keys)
    }

    /// The sessions of a state transfer.
    pub(crate) fn import(states: Vec<SessionState>, keys: Option<KeysState>) -> Sessions {
        let KeysState { sessions: keys, forgotten, dropped } = keys.unwrap_or_default();
        let mut keys: BTreeMap<_, _> =
            keys.into_iter().map(|it| (it.client, (it.has_keys, it.asked))).collect();
        let mut sessions =
            Sessions { forgotten: Forgotten::import(forgotten, dropped), ..Sessions::default() };
        for state in states {
            let (kind, asked) = match keys.remove(&state.client) {
                Some((true, asked)) => (Kind::Key, asked),
                Some((false, asked)) => (Kind::Client, asked),
                None if state.asked.is_empty() => (Kind::Client, Vec::new()),
                None => (Kind::Group, state.asked),
            };
            let mut session = Session {
                unanswered: state.unanswered,
                last_used: state.last_used,
                kind,
                calls: BTreeMap::new(),
            };
            let asked: BTreeMap<u64, u64> = asked.into_iter().collect();
            for (number, reply) in state.replies {
                let outcome = kept(reply);
                sessions.begun += 1;
                let (place, call) = (sessions.begun, (state.client, number));
                sessions.classes[kind.class()].kept.add(place, call, size(&outcome));
                let (asked, reply) = (asked.get(&number).copied(), Reply::Done(place, outcome));
                session.calls.insert(number, Ordered { asked, reply });
            }
            sessions.classes[kind.class()].by_use.insert((session.last_used, state.client));
            sessions.sessions.insert(state.client, session);
        }
        sessions
    }

    /// Invariants.
    pub(crate) fn check_invariants(&self) {
        let [others, keyed] = &self.classes;
        assert!(others.by_use.len() <= MAX_SESSIONS, "sessions are bounded");
        assert!(keyed.by_use.len() <= MAX_KEYED_SESSIONS, "sessions with keys are bounded");
        let used = others.by_use.len() + keyed.by_use.len();
        assert_eq!(self.sessions.len(), used, "each session is in the order of use");
        for class in &self.classes {
            assert!(class.kept.bytes() <= MAX_KEPT_BYTES / 2, "kept replies are bounded");
            let mut bytes = 0;
            for (client, number) in class.kept.calls() {
                let call = self.sessions.get(client).and_then(|it| it.calls.get(number));
                match call.map(|call| &call.reply) {
                    Some(Reply::Done(_, outcome)) => bytes += size(outcome),
                    other => panic!("{other:?} is no kept reply"),
                }
            }
            assert_eq!(class.kept.bytes(), bytes, "what is kept is counted");
        }
        for session in self.sessions.values() {
            assert!(session.calls.len() <= MAX_SESSION_REPLIES, "a window is bounded");
        }
        self.forgotten.check_invariants();
    }
}
