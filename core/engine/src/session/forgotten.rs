//! Sessions with keys whose replies are gone: of each, the last call that may have been executed.
//!
//! A call of such a session is either later than that, and new, or it is refused. So forgetting
//! replies never makes a call be executed again.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::limits::{KEY_EXPIRY, MAX_FORGOTTEN};
use wire::ordered::ForgottenSession;
use wire::{ClientId, Time};

/// The forgotten sessions of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Forgotten {
    sessions: BTreeMap<ClientId, (u64, Time)>,
    /// The same by the ordered time of their last use.
    by_use: BTreeSet<(Time, ClientId)>,
    /// The greatest number of a call whose session is not even here any more.
    dropped: u64,
}

impl Forgotten {
    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.dropped == 0
    }

    /// The last call of a session that is here.
    pub(super) fn last(&self, client: ClientId) -> Option<u64> {
        self.sessions.get(&client).map(|(last, _)| *last)
    }

    /// A session of which nothing is known may have made this call: its client says that earlier
    /// ones have ended, and sessions that are not even here any more made as many.
    pub(super) fn may_have_dropped(&self, number: u64, unanswered: u64) -> bool {
        unanswered > 1 && number <= self.dropped
    }

    /// There is room for another session, or will be.
    pub(super) fn has_room(&self, now: Time) -> bool {
        self.sessions.len() < MAX_FORGOTTEN
            || self.by_use.first().is_some_and(|(used, _)| now.since(*used) > KEY_EXPIRY)
    }

    /// A session's replies are gone. At the limit the session that was used longest ago goes.
    pub(super) fn add(&mut self, client: ClientId, last: u64, used: Time) {
        self.remove(client);
        self.sessions.insert(client, (last, used));
        self.by_use.insert((used, client));
        if self.sessions.len() > MAX_FORGOTTEN
            && let Some((_, oldest)) = self.by_use.pop_first()
            && let Some((last, _)) = self.sessions.remove(&oldest)
        {
            self.dropped = self.dropped.max(last);
        }
    }

    /// A session goes on.
    pub(super) fn remove(&mut self, client: ClientId) {
        if let Some((_, used)) = self.sessions.remove(&client) {
            self.by_use.remove(&(used, client));
        }
    }

    /// For a state transfer: the sessions, in order of client, and the greatest number of those
    /// dropped.
    pub(super) fn export(&self) -> (Vec<ForgottenSession>, u64) {
        let session = |(client, (last, used)): (&ClientId, &(u64, Time))| ForgottenSession {
            client: *client,
            last: *last,
            last_used: *used,
        };
        (self.sessions.iter().map(session).collect(), self.dropped)
    }

    /// The sessions of a state transfer.
    pub(super) fn import(sessions: Vec<ForgottenSession>, dropped: u64) -> Forgotten {
        let mut forgotten = Forgotten { dropped, ..Forgotten::default() };
        for ForgottenSession { client, last, last_used } in sessions {
            forgotten.add(client, last, last_used);
        }
        forgotten
    }

    /// Invariants.
    pub(super) fn check_invariants(&self) {
        assert!(self.sessions.len() <= MAX_FORGOTTEN, "forgotten sessions are bounded");
        assert_eq!(self.sessions.len(), self.by_use.len(), "each is in the order of use");
    }
}
