//! Messages of the bare rings: each says whose it is, which of its sender's, and what it must hold.

use bytes::Bytes;
use ring::Output;
use wire::{Incarnation, Member, NodeId};

use crate::check::Violation;
use crate::check::evs::MessageId;

/// Bytes of a message before its filling: node, incarnation, count.
const STAMP: usize = 20;

/// A message that names its sender and its number, filled up so that lost parts are noticed.
pub(super) fn stamp((member, count): MessageId, filling: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(STAMP + filling);
    bytes.extend_from_slice(&member.node.0.to_le_bytes());
    bytes.extend_from_slice(&member.incarnation.0.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.resize(STAMP + filling, count as u8);
    bytes.into()
}

/// Returns the id of this message. Objects if its bytes are not those that were sent.
pub(super) fn stamped(bytes: &[u8]) -> Result<MessageId, Violation> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 8)?;
        Some(u64::from_le_bytes(word.try_into().expect("eight bytes")))
    };
    let read = || {
        let node = u32::from_le_bytes(bytes.get(..4)?.try_into().expect("four bytes"));
        let member = Member { node: NodeId(node), incarnation: Incarnation(word(4)?) };
        let count = word(12)?;
        let whole = bytes[STAMP..].iter().all(|&byte| byte == count as u8);
        whole.then_some((member, count))
    };
    let text = || format!("a message was delivered that nobody sent: {} bytes", bytes.len());
    read().ok_or_else(|| Violation { property: "basic delivery", text: text() })
}

/// An output in words, without the message's bytes.
pub(super) struct Brief<'a>(pub(super) &'a Output);

impl std::fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Output::Deliver(delivery) => {
                let ring::Delivery { ring, sequence, contiguous, sender, level, payload } =
                    delivery;
                let count = stamped(payload).map_or(0, |message| message.1);
                write!(
                    f,
                    "Deliver {ring} #{sequence} of {sender} ({count}) {level:?} contiguous {contiguous}"
                )
            }
            output => write!(f, "{output:?}"),
        }
    }
}
