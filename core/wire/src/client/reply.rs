//! The answer to a call: how it ended, or why it did not.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Targets;
use crate::codec::{append, at_most, read};
use crate::limits::MAX_REASON;
use crate::payload::pieces;
use crate::{GroupId, Malformed, NodeId, ViewNumber};

/// Why a node did not do what a client asked. The numbers never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Refusal {
    /// A limit is reached; try again later. A node says it as [`Outcome::Busy`], with when.
    Busy = 1,
    /// The request is larger than a limit.
    TooLarge = 2,
    /// The service has no such method.
    NoSuchMethod = 3,
    /// The arguments are not what the method takes.
    BadArguments = 4,
    /// The service failed in this request (it panicked) and says nothing more.
    Failed = 5,
    /// The group keeps nothing of the call any more: its client gave it up, or the session is
    /// forgotten.
    Stale = 6,
    /// The service's reply is larger than a limit.
    ReplyTooLarge = 7,
    /// The client has more calls under way than a session has places.
    Window = 8,
    /// The call was executed, and no majority of a voting group's replicas has the same outcome.
    /// Told to a handler: they do not ask the same of another group, and nothing was asked.
    Split = 9,
    /// The method may change the state, and was called as a read: not executed.
    NotReadOnly = 10,
    /// The host has more to do than it can do in time, and the call is less critical than others. A
    /// node says it as [`Outcome::Shed`], with where it may be answered.
    Shed = 11,
    /// Each service that executed the request died of it, or hung, and it is executed no more: it
    /// has changed nothing. The words name the nodes.
    Poisoned = 12,
    /// The client has no right to make the call. The words name the rule.
    Denied = 13,
    /// The client has made another call of this number, and that is the one that counts: not
    /// executed. Told from version [`KEYS`](crate::versions::KEYS) on.
    KeyReused = 14,
}

impl Refusal {
    /// Whether a client's call was executed that is refused so; `None` if nobody knows.
    pub fn was_executed(self) -> Option<bool> {
        match self {
            Refusal::Failed | Refusal::ReplyTooLarge | Refusal::Split => Some(true),
            // Its reply, if there was one, is no longer kept.
            Refusal::Stale => None,
            _ => Some(false),
        }
    }

    /// The refusal of this number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        use Refusal::*;
        const ALL: [Refusal; 14] = [
            Busy,
            TooLarge,
            NoSuchMethod,
            BadArguments,
            Failed,
            Stale,
            ReplyTooLarge,
            Window,
            Split,
            NotReadOnly,
            Shed,
            Poisoned,
            Denied,
            KeyReused,
        ];
        ALL.into_iter().find(|refusal| *refusal as u8 == number)
    }
}

/// How a call ended, or why it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Executed: the method's result.
    Ok(Bytes),
    /// Executed: the service's own error.
    Service(Bytes),
    /// Not executed, or its result is not to be had: why, in words with the remedy. Never
    /// [`Refusal::Busy`] or [`Refusal::Shed`].
    Refused(Refusal, String),
    /// Not executed: a limit is reached. Asked again after this time, it may be.
    Busy {
        /// In microseconds: what this node expects to need until there is room.
        retry_after_us: u32,
        /// The limit, in words.
        reason: String,
    },
    /// Not executed: the host has too much to do for a call of this priority.
    Shed {
        /// A node with room that may answer it.
        instead: Option<NodeId>,
        /// In words, with the remedy.
        reason: String,
    },
    /// Not executed here: this node is not the primary. The reply's targets say who is.
    NotPrimary,
    /// Not executed: the cluster has no such group.
    NoSuchGroup,
    /// Not executed: no replica with the group's state can be reached, or the quorum is lost.
    NoReplica,
    /// Whether it was executed is not known: the replica that was given it here is gone, with all
    /// that it knew. Another may be asked at once.
    Gone,
}

impl Outcome {
    /// The call was executed, here or elsewhere, or never can be: nobody will say anything else.
    pub fn is_result(&self) -> bool {
        match self {
            Outcome::Ok(_) | Outcome::Service(_) | Outcome::Refused(..) => true,
            Outcome::Busy { .. } | Outcome::Shed { .. } | Outcome::NotPrimary => false,
            Outcome::NoSuchGroup | Outcome::NoReplica | Outcome::Gone => false,
        }
    }

    /// The number in a reply's header, that of the refusal, and the bytes that follow.
    fn parts(&self) -> (u8, u8, &[u8]) {
        match self {
            Outcome::Ok(bytes) => (1, 0, bytes),
            Outcome::Service(bytes) => (2, 0, bytes),
            Outcome::Refused(refusal, reason) => (3, *refusal as u8, reason.as_bytes()),
            Outcome::NotPrimary => (4, 0, &[]),
            Outcome::NoSuchGroup => (5, 0, &[]),
            Outcome::NoReplica => (6, 0, &[]),
            Outcome::Busy { reason, .. } => (7, Refusal::Busy as u8, reason.as_bytes()),
            Outcome::Shed { reason, .. } => (8, Refusal::Shed as u8, reason.as_bytes()),
            Outcome::Gone => (9, 0, &[]),
        }
    }

    /// The number that stands before these bytes.
    fn before(&self) -> Option<U32> {
        match self {
            Outcome::Busy { retry_after_us, .. } => Some((*retry_after_us).into()),
            Outcome::Shed { instead, .. } => Some(instead.map_or(0, |node| node.0).into()),
            _ => None,
        }
    }

    fn decode(number: u8, refusal: u8, bytes: Bytes) -> Result<Outcome, Malformed> {
        let bare = |outcome| {
            if bytes.is_empty() { Ok(outcome) } else { Err(Malformed::Length) }
        };
        let (busy, shed) = (Refusal::Busy as u8, Refusal::Shed as u8);
        let alone = (number, refusal) == (7, busy) || (number, refusal) == (8, shed);
        if !matches!((number, refusal), (3, _) | (_, 0)) && !alone {
            return Err(Malformed::Field("refusal"));
        }
        match number {
            1 => Ok(Outcome::Ok(bytes)),
            2 => Ok(Outcome::Service(bytes)),
            3 => {
                let refusal = Refusal::from_number(refusal)
                    .filter(|refusal| !matches!(refusal, Refusal::Busy | Refusal::Shed))
                    .ok_or(Malformed::Field("refusal"))?;
                Ok(Outcome::Refused(refusal, text(&bytes)?))
            }
            4 => bare(Outcome::NotPrimary),
            5 => bare(Outcome::NoSuchGroup),
            6 => bare(Outcome::NoReplica),
            7 if refusal == busy => {
                let (after, rest) = U32::read_from_prefix(&bytes).map_err(|_| Malformed::Length)?;
                Ok(Outcome::Busy { retry_after_us: after.get(), reason: text(rest)? })
            }
            8 if refusal == shed => {
                let (node, rest) = U32::read_from_prefix(&bytes).map_err(|_| Malformed::Length)?;
                let instead = Some(NodeId(node.get())).filter(|node| node.0 != 0);
                Ok(Outcome::Shed { instead, reason: text(rest)? })
            }
            9 => bare(Outcome::Gone),
            _ => Err(Malformed::Field("outcome")),
        }
    }
}

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    at_most(bytes.len(), MAX_REASON, "reason")?;
    let text = core::str::from_utf8(bytes).map_err(|_| Malformed::Field("reason"))?;
    Ok(text.into())
}

/// The answer to a request.
///
/// ```text
///  0        8       16     24        25        26  28
/// +--------+-------+------+---------+---------+---+---------+--------------
/// | number | group | view | outcome | refusal | 0 | targets | bytes or text
/// |        |       |      |         |         |   | length 4| then targets
/// +--------+-------+------+---------+---------+---+---------+--------------
/// outcome  1 ok  2 service  3 refused  4 not primary  5 no such group  6 no replica  7 busy  8 shed  9 gone
/// busy     refusal is 1, and before the text stand 4 bytes: microseconds until it may be asked again
/// shed     refusal is 11, and before the text stand 4 bytes: the node that may answer it; 0: none is known
/// targets  postcard (view, style, nodes) at the end, of that many bytes; 0: the client's are right
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request's number.
    pub number: u64,
    /// The group that was called.
    pub group: GroupId,
    /// The group's view at the node that answers.
    pub view: ViewNumber,
    /// Sent when the request's view is older than the node's.
    pub targets: Option<Targets>,
    /// How the call ended.
    pub outcome: Outcome,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ReplyHeader {
    number: U64,
    group: U64,
    view: U64,
    outcome: u8,
    refusal: u8,
    reserved: [u8; 2],
    targets: U32,
}

impl Reply {
    /// Its body, behind what `start` gives with room for so many bytes; and the result, unless it
    /// is there already.
    pub(super) fn append(&self, start: impl FnOnce(usize) -> Vec<u8>) -> (Vec<u8>, Bytes) {
        let targets =
            self.targets.as_ref().map_or_else(Vec::new, |targets| append(Vec::new(), targets));
        let (outcome, refusal, bytes) = self.outcome.parts();
        let header = ReplyHeader {
            number: self.number.into(),
            group: self.group.0.into(),
            view: self.view.0.into(),
            outcome,
            refusal,
            reserved: [0; 2],
            targets: u32::try_from(targets.len()).expect("targets are limited").into(),
        };
        let before = self.outcome.before();
        let room = before.map_or(0, |_| size_of::<U32>());
        let (bytes, shared) = match &self.outcome {
            Outcome::Ok(result) | Outcome::Service(result) if targets.is_empty() => pieces(result),
            _ => (bytes, Bytes::new()),
        };
        let mut buffer = start(size_of::<ReplyHeader>() + room + bytes.len() + targets.len());
        buffer.extend_from_slice(header.as_bytes());
        if let Some(before) = before {
            buffer.extend_from_slice(before.as_bytes());
        }
        buffer.extend_from_slice(bytes);
        buffer.extend_from_slice(&targets);
        (buffer, shared)
    }

    /// Reads a body, which the result shares.
    pub(super) fn decode(body: &Bytes) -> Result<Reply, Malformed> {
        let (header, rest) = ReplyHeader::read_from_prefix(body).map_err(|_| Malformed::Length)?;
        if header.reserved != [0; 2] {
            return Err(Malformed::Field("reserved"));
        }
        let targets_length = header.targets.get() as usize;
        let bytes_length = rest.len().checked_sub(targets_length).ok_or(Malformed::Length)?;
        let start = size_of::<ReplyHeader>();
        let bytes = body.slice(start..start + bytes_length);
        let targets = match targets_length {
            0 => None,
            _ => Some(read::<Targets>(&body[start + bytes_length..])?.checked()?),
        };
        let outcome = Outcome::decode(header.outcome, header.refusal, bytes)?;
        Ok(Reply {
            number: header.number.get(),
            group: GroupId(header.group.get()),
            view: ViewNumber(header.view.get()),
            targets,
            outcome,
        })
    }
}
