//! Sessions in a state transfer, and their invariants.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::limits::{MAX_KEPT_BYTES, MAX_KEYED_SESSIONS, MAX_SESSION_REPLIES, MAX_SESSIONS};
use wire::ordered::{KeysState, SessionKeys, SessionState};

use super::forgotten::Forgotten;
use super::{Kind, Reply, Session, Sessions, kept, size, to_keep};

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
        let asked = |session: &Session| {
            session.asked.iter().map(|(number, asked)| (*number, *asked)).collect()
        };
        let sessions = self.sessions.iter().map(|(client, session)| SessionState {
            client: *client,
            unanswered: session.unanswered,
            last_used: session.last_used,
            replies: session.replies.iter().map(|(n, reply)| (*n, kept(reply))).collect(),
            asked: if session.kind == Kind::Group { asked(session) } else { Vec::new() },
        });
        let of_clients = self.sessions.iter().filter(|(_, session)| match session.kind {
            Kind::Group => false,
            Kind::Client => !session.asked.is_empty(),
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
                replies: BTreeMap::new(),
                asked: asked.into_iter().collect(),
            };
            for (number, reply) in state.replies {
                let outcome = kept(reply);
                sessions.begun += 1;
                let (place, call) = (sessions.begun, (state.client, number));
                sessions.classes[kind.class()].kept.add(place, call, size(&outcome));
                session.replies.insert(number, Reply::Done(place, outcome));
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
                match self.sessions.get(client).and_then(|it| it.replies.get(number)) {
                    Some(Reply::Done(_, outcome)) => bytes += size(outcome),
                    other => panic!("{other:?} is no kept reply"),
                }
            }
            assert_eq!(class.kept.bytes(), bytes, "what is kept is counted");
        }
        for session in self.sessions.values() {
            assert!(session.replies.len() <= MAX_SESSION_REPLIES, "a window is bounded");
            assert!(session.asked.len() <= session.replies.len(), "what was asked is of replies");
        }
        self.forgotten.check_invariants();
    }
}
