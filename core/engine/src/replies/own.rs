//! Calls that this node makes in its own name, of a group that it hosts: its part in the manager's
//! group (`docs/protocol/deployment.md`).
//!
//! The node is a client like any other, but without a connection: its calls have a session, are
//! ordered, held and answered as others are. A replica here that has the state orders them at once,
//! primary or not.

use alloc::collections::BTreeMap;

use wire::{ClientId, Duration, Member, Time, fnv1a};

/// The calls under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    last: u64,
    /// Each until when it is waited for.
    open: BTreeMap<u64, Time>,
}

/// The session of this life of a node.
fn client(me: Member) -> ClientId {
    let mut name = [0; 12];
    name[..4].copy_from_slice(&me.node.0.to_le_bytes());
    name[4..].copy_from_slice(&me.incarnation.0.to_le_bytes());
    ClientId(fnv1a(&name))
}

impl Own {
    /// The session's first call is not made yet: it is to be welcomed before.
    pub(crate) fn session(&self, me: Member) -> (ClientId, bool) {
        (client(me), self.last == 0)
    }

    /// A call begins: its number, and the lowest that is unanswered.
    pub(crate) fn begin(&mut self, now: Time, timeout: Duration) -> (u64, u64) {
        self.last += 1;
        self.open.retain(|_, until| *until > now);
        self.open.insert(self.last, now + timeout);
        (self.last, self.open.keys().next().copied().unwrap_or(self.last))
    }

    /// A call has ended.
    pub(crate) fn end(&mut self, number: u64) {
        self.open.remove(&number);
    }
}
