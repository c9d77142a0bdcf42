//! The state of a cold passive group's replicas, and the relay of its primary's replies.

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

use super::nested::NestedEnd;
use super::{KeptReply, Place, Request, check_number};
use crate::codec::{append, at_most, read_with};
use crate::limits::{MAX_BODY, MAX_CONDEMNED, MAX_DEATHS, MAX_LOG_KEPT, MAX_REASON};
use crate::{ClientId, GroupId, Malformed, NodeId, Payload};

/// The primary's reply to a call that another node had ordered. It is valid only if, at its place
/// in the order, its sender is the primary, and became so at `since`.
///
/// ```text
/// | group | since | client | number | reply | asked: only where calls are compared |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// Which group.
    pub group: GroupId,
    /// Where its sender became the group's primary. If it was primary when the component was
    /// installed: that place.
    pub since: Place,
    /// The client that called.
    pub client: ClientId,
    /// The number of the client's call.
    pub number: u64,
    /// The outcome.
    pub reply: KeptReply,
    /// The digest of the call: see [`call_digest`](super::call_digest). 0: nobody compares it.
    #[serde(skip)]
    pub asked: u64,
}

impl Relay {
    pub(super) fn append(&self, buffer: Vec<u8>) -> Vec<u8> {
        let buffer = append(buffer, self);
        if self.asked == 0 { buffer } else { append(buffer, &self.asked) }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Relay, Malformed> {
        let (relay, asked) = read_with::<Relay, u64>(bytes)?;
        if asked == Some(0) {
            return Err(Malformed::Field("asked"));
        }
        Relay { asked: asked.unwrap_or_default(), ..relay }.checked()
    }

    fn checked(self) -> Result<Relay, Malformed> {
        match &self.reply {
            KeptReply::Ok(bytes) | KeptReply::Service(bytes) => {
                at_most(bytes.len(), MAX_BODY, "reply")?;
            }
            KeptReply::Refused(_, reason) => at_most(reason.len(), MAX_REASON, "reason")?,
        }
        Ok(self)
    }
}

/// The state of a cold passive group's replica, as a transfer carries it.
///
/// ```text
/// | length of the head 4 | head | requests, as on the ring | checkpoint, as ReplicaState |
/// head   | logged | cut | proven | poisoned: count, each (number, nodes: count, each) | bytes of the checkpoint |
///          bytes of each request: count, each | ends: count, each (after, end) |
///          blamed: count, each (number, deaths: count, each; answered; tried at); absent if none |
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedState {
    /// Requests in the group's history.
    pub logged: u64,
    /// The last request in the last ordered checkpoint, which this replica may not have yet.
    pub cut: u64,
    /// Calls of the group's history that a replica is known to have executed.
    pub proven: u64,
    /// Poisonous calls of the log: their numbers in the history, and the nodes where services died.
    pub poisoned: Vec<(u64, Vec<NodeId>)>,
    /// The state after all requests before the log, as a [`ReplicaState`](super::ReplicaState).
    /// Empty: the service's initial state.
    pub checkpoint: Bytes,
    /// The requests after the checkpoint, in order.
    pub log: Vec<Request>,
    /// The ends of nested calls, each with the number of the last request before it in the log.
    pub ends: Vec<(u64, NestedEnd)>,
    /// The calls that may have killed services, from level [`WHOLE`](crate::versions::WHOLE) on.
    pub blamed: Vec<Blamed>,
}

/// A call that may have killed the services that executed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blamed {
    /// Its number in the group's history.
    pub number: u64,
    /// The nodes where services died that had it, in order.
    pub deaths: Vec<NodeId>,
    /// A service that is gone with its node may have executed and answered it.
    pub answered: bool,
    /// The node that tries it now.
    pub tried_at: Option<NodeId>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    logged: u64,
    cut: u64,
    proven: u64,
    poisoned: Vec<(u64, Vec<NodeId>)>,
    checkpoint: u64,
    requests: Vec<u32>,
    ends: Vec<(u64, NestedEnd)>,
}

impl LoggedState {
    /// The bytes that a transfer carries. The checkpoint's are shared.
    pub fn encode(&self) -> Payload {
        let requests: Vec<Payload> = self.log.iter().map(Request::payload).collect();
        let length = |bytes: usize| u32::try_from(bytes).expect("requests are limited");
        let head = Head {
            logged: self.logged,
            cut: self.cut,
            proven: self.proven,
            poisoned: self.poisoned.clone(),
            checkpoint: self.checkpoint.len() as u64,
            requests: requests.iter().map(|request| length(request.len())).collect(),
            ends: self.ends.clone(),
        };
        let mut buffer = append(alloc::vec![0; 4], &head);
        if !self.blamed.is_empty() {
            buffer = append(buffer, &self.blamed);
        }
        let head = length(buffer.len() - 4);
        buffer[..4].copy_from_slice(&head.to_le_bytes());
        for Payload { head, body } in requests {
            buffer.extend_from_slice(&head);
            buffer.extend_from_slice(&body);
        }
        Payload { head: buffer.into(), body: self.checkpoint.clone() }
    }

    /// Reads what [`LoggedState::encode`] wrote. Checkpoint and requests share `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &Bytes) -> Result<LoggedState, Malformed> {
        let (length, rest) = U32::read_from_prefix(bytes).map_err(|_| Malformed::Length)?;
        let length = length.get() as usize;
        let head = rest.get(..length).ok_or(Malformed::Length)?;
        let (mut head, blamed) = read_with::<Head, Vec<Blamed>>(head)?;
        let blamed = blamed.unwrap_or_default();
        at_most(blamed.len(), MAX_CONDEMNED, "blamed")?;
        for Blamed { number, deaths, .. } in &blamed {
            check_number(*number)?;
            at_most(deaths.len(), MAX_DEATHS, "deaths")?;
        }
        at_most(head.requests.len(), MAX_LOG_KEPT, "logged requests")?;
        let whole = head.requests.len() as u64;
        if head.logged < whole || head.cut > head.logged || head.cut < head.logged - whole {
            return Err(Malformed::Field("place of the log"));
        }
        check_number(head.proven)?;
        at_most(head.poisoned.len(), MAX_CONDEMNED, "poisoned")?;
        for (number, nodes) in &head.poisoned {
            check_number(*number)?;
            at_most(nodes.len(), MAX_DEATHS, "nodes")?;
        }
        let before = head.logged - whole;
        let mut ends = Vec::with_capacity(head.ends.len());
        for (after, end) in core::mem::take(&mut head.ends) {
            if after <= before || after > head.logged {
                return Err(Malformed::Field("place of an end"));
            }
            ends.push((after, end.checked()?));
        }
        let mut rest = bytes.slice(4 + length..);
        let mut take = |length: u64| {
            let fits = usize::try_from(length).ok().filter(|length| *length <= rest.len());
            fits.map(|length| rest.split_to(length)).ok_or(Malformed::Length)
        };
        let mut log = Vec::with_capacity(head.requests.len());
        for length in core::mem::take(&mut head.requests) {
            let request = take(length.into())?;
            if request.first() != Some(&1) {
                return Err(Malformed::Field("logged request"));
            }
            log.push(Request::decode(&request)?);
        }
        let checkpoint = take(head.checkpoint)?;
        if !rest.is_empty() {
            return Err(Malformed::Length);
        }
        let Head { logged, cut, proven, poisoned, .. } = head;
        Ok(LoggedState { logged, cut, proven, poisoned, checkpoint, log, ends, blamed })
    }
}
