//! How a session knows a call again, and what a group remembers for that.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::{MAX_FORGOTTEN, MAX_KEYED_SESSIONS, MAX_SESSION_REPLIES, MAX_SESSIONS};
use crate::versions::WHOLE;
use crate::{ClientId, Malformed, MethodId, Time};

/// How a session knows a call again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// By its number alone: all that the rules before level [`WHOLE`] know.
    #[default]
    Number,
    /// By its number and by what it asks.
    Call,
    /// The same. Its client counts calls by keys, and may repeat it long after its deadline.
    Key,
}

impl Identity {
    /// By the rules of this level.
    pub fn at_level(level: u8, has_key: bool) -> Identity {
        match has_key {
            _ if level < WHOLE => Identity::Number,
            true => Identity::Key,
            false => Identity::Call,
        }
    }
}

/// A hash of what a client's call asks. It distinguishes two calls with one number: whoever makes
/// both is the same client, and cheats nobody but itself. Never 0.
pub fn call_digest(method: MethodId, json: bool, body: &[u8]) -> u64 {
    /// Odd, so that a step loses nothing: two texts that differ in one word have two digests.
    const STEPS: [u64; 4] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xd6e8_feb8_6659_fd93,
    ];
    let step = |state: u64, word: u64, by: u64| {
        let mixed = (state ^ word).wrapping_mul(by);
        mixed ^ (mixed >> 29)
    };
    // Mixed before the arguments are: no word of theirs makes up for another method or length.
    let head = [u64::from(method.0), u64::from(json), body.len() as u64];
    let seed = head.into_iter().fold(STEPS[3], |state, word| step(state, word, STEPS[0]));
    let mut lanes = STEPS.map(|by| step(seed, by, by));
    // Four lanes, which a processor steps at once.
    let mut add = |block: &[u8]| {
        let words = block.chunks_exact(8).zip(STEPS);
        for (lane, (word, by)) in lanes.iter_mut().zip(words) {
            *lane = step(*lane, u64::from_le_bytes(word.try_into().expect("eight bytes")), by);
        }
    };
    let mut blocks = body.chunks_exact(32);
    blocks.by_ref().for_each(&mut add);
    let rest = blocks.remainder();
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    add(&last);
    lanes.into_iter().fold(seed, |state, lane| step(state, lane, STEPS[0])).max(1)
}

/// How a client's call of an [`Update`](super::Update) is known again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryKey {
    /// By what.
    pub identity: Identity,
    /// Its digest: see [`call_digest`]. 0: it is known by its number alone, or a group calls.
    pub asked: u64,
}

/// A group's memory of its clients' calls beside their replies.
///
/// ```text
/// | sessions: count, each | forgotten: count, each | dropped |
/// session    | client | has keys | asked: count, each (number, digest) |
/// forgotten  | client | last call | last used |
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysState {
    /// Digests of calls with a reply, in order of client.
    pub sessions: Vec<SessionKeys>,
    /// Sessions with keys whose replies are gone, in order of client.
    pub forgotten: Vec<ForgottenSession>,
    /// No session that is not even among these made a call of a larger number.
    pub dropped: u64,
}

/// The digests of one session's calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionKeys {
    /// The client.
    pub client: ClientId,
    /// It counts its calls by keys.
    pub has_keys: bool,
    /// Digests by number, in order.
    pub asked: Vec<(u64, u64)>,
}

/// A session with keys whose replies are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenSession {
    /// The client.
    pub client: ClientId,
    /// No later call of it was executed.
    pub last: u64,
    /// Ordered time of its last request.
    pub last_used: Time,
}

impl KeysState {
    /// Refuses lists that are longer than their limits.
    pub(super) fn checked(self) -> Result<KeysState, Malformed> {
        at_most(self.sessions.len(), MAX_SESSIONS + MAX_KEYED_SESSIONS, "sessions")?;
        at_most(self.forgotten.len(), MAX_FORGOTTEN, "forgotten")?;
        for session in &self.sessions {
            at_most(session.asked.len(), MAX_SESSION_REPLIES, "asked")?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn calls_that_differ_in_anything_have_different_digests() {
        let method = |number| MethodId(number);
        let mut all = BTreeSet::new();
        let mut count = 0;
        for number in 1..4 {
            for json in [false, true] {
                for length in 0..100 {
                    let mut body = alloc::vec![0; length];
                    all.insert(call_digest(method(number), json, &body));
                    count += 1;
                    for at in 0..length {
                        body[at] = 1;
                        all.insert(call_digest(method(number), json, &body));
                        body[at] = 0;
                        count += 1;
                    }
                }
            }
        }
        assert_eq!(all.len(), count);
    }
}
