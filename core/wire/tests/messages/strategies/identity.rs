//! Memories of calls.

use wire::ordered::{
    EntryKey, ForgottenSession, Identity, KeysState, SessionKeys, SessionState, UpdateEntry,
};

/// A memory of calls that a group with these sessions may have.
pub fn of(sessions: &[SessionState]) -> KeysState {
    let session = |session: &SessionState| SessionKeys {
        client: session.client,
        has_keys: session.unanswered.is_multiple_of(2),
        asked: session.asked.clone(),
    };
    let forgotten = |session: &SessionState| ForgottenSession {
        client: session.client,
        last: session.unanswered,
        last_used: session.last_used,
    };
    KeysState {
        sessions: sessions.iter().map(session).collect(),
        forgotten: sessions.iter().map(forgotten).collect(),
        dropped: sessions.len() as u64,
    }
}

/// One of all, by a number.
pub fn any(number: u64) -> Identity {
    [Identity::Number, Identity::Call, Identity::Key][(number % 3) as usize]
}

/// A key of this call of an update.
pub fn key(entry: &UpdateEntry) -> EntryKey {
    EntryKey { identity: Identity::Key, asked: entry.number }
}
