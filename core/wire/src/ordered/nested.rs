//! Nested calls (`docs/protocol/nested.md`).
//!
//! A nested call is a [`Request`](super::Request) with an [`Origin`]. Its client and number derive
//! from its parent's. So every execution of the parent, at any replica, makes the same call.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::KeptReply;
use crate::codec::at_most;
use crate::limits::{MAX_BODY, MAX_NESTED_CALLS, MAX_NESTED_DEPTH, MAX_REASON};
use crate::{ClientId, GroupId, Malformed, MethodId, Random};

/// The low bits of a call's number, which count the calls of one handler.
const BITS: u32 = 8;

/// Where a nested call comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The client of the parent call.
    pub client: ClientId,
    /// The calling groups: the first was called by a client, the last is the caller.
    pub path: Vec<GroupId>,
}

impl Origin {
    /// The calling group.
    pub fn caller(&self) -> GroupId {
        *self.path.last().expect("a nested call has a caller")
    }
}

/// The client id of the nested calls that `caller` makes for calls of the client `parent`.
pub fn nested_client(caller: GroupId, parent: ClientId) -> ClientId {
    // A pseudorandom number like a client's own id, so collisions are as improbable.
    let seed = caller.0 ^ parent.0.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ClientId(Random::new(seed).next_u64())
}

/// The number of the `call`th call, from 1, that the handler of the call `parent` makes. `None`:
/// the numbers are exhausted, after some 10^12 calls of one client.
pub fn nested_number(parent: u64, call: u8) -> Option<u64> {
    let shifted = parent.checked_mul(1 << BITS)?;
    Some(shifted | u64::from(call))
}

/// The parent's number, and the index among its handler's calls.
pub fn nested_parts(number: u64) -> (u64, u8) {
    (number >> BITS, (number & u64::from(MAX_NESTED_CALLS)) as u8)
}

/// The window of a session of nested calls at this depth. It is larger than a client's: for each of
/// a client's open calls, a handler may make [`MAX_NESTED_CALLS`].
pub fn nested_window(window: u64, depth: usize) -> u64 {
    window << (BITS * depth.min(MAX_NESTED_DEPTH) as u32)
}

/// A hash of a call's group, method and arguments. It distinguishes different calls with one id.
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
    // 0 is reserved for the calls of clients, which are not compared.
    hash.max(1)
}

/// The end of a nested call, for all replicas of the caller. Only the first ordered end of a call
/// counts.
///
/// | callee | caller | client | number | call | asked | end |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedEnd {
    /// The called group.
    pub callee: GroupId,
    /// The calling group.
    pub caller: GroupId,
    /// The client of the parent call.
    pub client: ClientId,
    /// The parent call's number.
    pub number: u64,
    /// The index among the calls of the parent's handler, from 1.
    pub call: u8,
    /// The hash of the call: see [`asked`].
    pub asked: u64,
    /// The outcome.
    pub end: End,
}

/// The outcome of a nested call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The callee executed the call, or refused it for a reason.
    Reply(KeptReply),
    /// The callee has executed another call with this id.
    Diverged,
    /// The deadline has passed, so the caller no longer waits. The callee may have executed the
    /// call, or may still do so.
    Deadline,
    /// The deadline has passed, and the callee had no replica that could execute the call.
    NoReplica,
    /// The cluster has no such group.
    NoSuchGroup,
    /// The caller's replicas vote, and no majority made the same call. No call was made.
    Split,
}

impl End {
    /// Bytes of the reply.
    pub fn size(&self) -> usize {
        match self {
            End::Reply(KeptReply::Ok(bytes) | KeptReply::Service(bytes)) => bytes.len(),
            End::Reply(KeptReply::Refused(_, reason)) => String::len(reason),
            End::Diverged | End::Deadline | End::NoReplica | End::NoSuchGroup | End::Split => 0,
        }
    }
}

impl NestedEnd {
    /// Refuses replies longer than their limit, and numbers that no handler's call has.
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
