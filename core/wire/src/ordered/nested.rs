//! Calls between groups (`docs/protocol/nested.md`).
//!
//! A nested call is a [`Request`](super::Request) with an [`Origin`]. Its client and number follow from its parent's, so
//! whoever executes the parent, at whatever place of whatever history, asks for the same call.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::KeptReply;
use crate::codec::at_most;
use crate::limits::{MAX_BODY, MAX_NESTED_CALLS, MAX_NESTED_DEPTH, MAX_REASON};
use crate::{ClientId, GroupId, Malformed, MethodId, Random};

/// Bits of a call's number that count the calls of one handler.
const BITS: u32 = 8;

/// Where a nested call comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whose the parent call is.
    pub client: ClientId,
    /// The groups above, the first of them called by a client, the last of them the caller.
    pub path: Vec<GroupId>,
}

impl Origin {
    /// The group that calls.
    pub fn caller(&self) -> GroupId {
        *self.path.last().expect("a nested call has a caller")
    }
}

/// The session in which a group's calls for this client's calls are made.
pub fn nested_client(caller: GroupId, parent: ClientId) -> ClientId {
    // Drawn like a client's own, so that no two are the same but by chance.
    let seed = caller.0 ^ parent.0.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ClientId(Random::new(seed).next_u64())
}

/// The number of the `call`th call, from 1, that the handler of the call `parent` makes. `None`: there is no room
/// for it, after some 10^12 calls of one client.
pub fn nested_number(parent: u64, call: u8) -> Option<u64> {
    let shifted = parent.checked_mul(1 << BITS)?;
    Some(shifted | u64::from(call))
}

/// The parent's number, and the place among its handler's calls.
pub fn nested_parts(number: u64) -> (u64, u8) {
    (number >> BITS, (number & u64::from(MAX_NESTED_CALLS)) as u8)
}

/// As many times larger is the window of a session whose calls are made at this depth: for each call that a client
/// has under way a handler may make [`MAX_NESTED_CALLS`].
pub fn nested_window(window: u64, depth: usize) -> u64 {
    window << (BITS * depth.min(MAX_NESTED_DEPTH) as u32)
}

/// What tells two calls with one id apart: their group, method and arguments.
pub fn asked(group: GroupId, method: MethodId, json: bool, body: &[u8]) -> u64 {
    let mut hash = group.0 ^ u64::from(method.0) << 1 ^ u64::from(json) ^ body.len() as u64;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    };
    let mut words = body.chunks_exact(8);
    words.by_ref().for_each(|w| add(u64::from_le_bytes(w.try_into().expect("eight bytes"))));
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    add(u64::from_le_bytes(last));
    // 0 stands for calls that are not told apart.
    hash.max(1)
}

/// How a nested call ended, for all replicas of the caller. The first that is ordered for a call counts.
///
/// | callee | caller | client | number | call | asked | end |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedEnd {
    /// The group that was called.
    pub callee: GroupId,
    /// The group that calls.
    pub caller: GroupId,
    /// Whose the parent call is.
    pub client: ClientId,
    /// The parent call's number.
    pub number: u64,
    /// Which of the calls of its handler, from 1.
    pub call: u8,
    /// What was asked: see [`asked`].
    pub asked: u64,
    /// How it ended.
    pub end: End,
}

/// How a nested call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The callee executed it, or says why not.
    Reply(KeptReply),
    /// The callee has executed another call with this id.
    Diverged,
    /// The caller waits no longer: the deadline has come. The callee may have executed it, or may do so yet.
    Deadline,
    /// The same; the callee had nobody who could execute it.
    NoReplica,
    /// The cluster has no such group.
    NoSuchGroup,
    /// The caller's replicas vote, and no majority of them asks the same: nothing was asked.
    Split,
}

impl End {
    /// Bytes that it brings.
    pub fn size(&self) -> usize {
        match self {
            End::Reply(KeptReply::Ok(bytes) | KeptReply::Service(bytes)) => bytes.len(),
            End::Reply(KeptReply::Refused(_, reason)) => String::len(reason),
            End::Diverged | End::Deadline | End::NoReplica | End::NoSuchGroup | End::Split => 0,
        }
    }
}

impl NestedEnd {
    /// Refuses what is longer than its limit, and a call that no handler makes.
    pub(super) fn checked(self) -> Result<NestedEnd, Malformed> {
        if self.call == 0 || self.number == 0 {
            return Err(Malformed::Field("nested call"));
        }
        if let End::Reply(KeptReply::Refused(_, reason)) = &self.end {
            at_most(reason.len(), MAX_REASON, "reason")?;
        }
        at_most(self.end.size(), MAX_BODY, "body")?;
        Ok(self)
    }
}
