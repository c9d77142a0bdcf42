//! The messages that go round or back: the token, and the small messages about it.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::{MAX_MEMBERS, MAX_RETRANSMIT_REQUESTS};
use crate::{Malformed, RingId};

/// The right to send, and what the ring knows of itself. Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep | hop | seq | arus: count, each | done | received | wants | home | missing: count, each | following |
/// ```
///
/// Beyond the paper's token: it carries every member's own all-received-up-to instead of their
/// minimum, so that it may skip members (see docs/protocol/ring.md, "parking").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The ring whose token this is.
    pub ring: RingId,
    /// How often the token has been passed. One that is not larger than the last seen is a copy.
    pub hop: u64,
    /// The last sequence number given out.
    pub sequence: u64,
    /// For each member, in ring order: it has everything up to here.
    pub arus: Vec<u64>,
    /// Recovery: bit i is set when member i has sent again all that it holds of its old ring.
    pub done: u64,
    /// Recovery: bit i is set when member i has found all bits of `done` set and has everything
    /// that was sent. With all bits set, a member that sees this may install the ring.
    pub received: u64,
    /// Bit i is set when member i waits for the token.
    pub wants: u64,
    /// Index of the member that sent last: where an idle token rests.
    pub home: u8,
    /// Sequence numbers that some member misses. A member that has them is to send them again.
    pub missing: Vec<u64>,
    /// So many of the last numbers given out leave after the token (the accelerated ring): who
    /// lacks one of them at the token's arrival does not miss it yet.
    pub following: u16,
}

/// "I have everything up to `aru`, and miss these." Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep | hop | aru | missing: count, each |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The ring that is spoken of.
    pub ring: RingId,
    /// The largest hop that the sender has seen: also the receipt for a token.
    pub hop: u64,
    /// Everything up to here has arrived.
    pub aru: u64,
    /// The missing numbers beyond, as far as known.
    pub missing: Vec<u64>,
}

/// "I have something to order." Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// The ring whose token is wanted.
    pub ring: RingId,
}

/// "Every member has everything up to here": what safe messages wait for, when no data follows that
/// would say it. From a member that knows less than its receiver it is a question, which is
/// answered by the same. Postcard, in this order.
///
/// ```text
/// | ring.seq | rep | hop | stable |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stable {
    /// The ring that is spoken of.
    pub ring: RingId,
    /// The largest hop that the sender has seen.
    pub hop: u64,
    /// Every member has everything up to here, as far as the sender knows.
    pub stable: u64,
}

/// "The token rests here and I live": from its holder to the next member in ring order, who hands
/// it on to the next, until it is home again. Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep | hop | number | home | stable | sequence | next |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulse {
    /// The ring that is spoken of.
    pub ring: RingId,
    /// How often the token had been passed when it came to rest.
    pub hop: u64,
    /// Pulses of this rest, from 1. One that is not larger than the last seen is a copy.
    pub number: u64,
    /// Index of the member with whom the token rests.
    pub home: u8,
    /// Every member has everything up to here, as far as home knows.
    pub stable: u64,
    /// The last number that had been given out. A member that has all up to here hands the pulse
    /// on.
    pub sequence: u64,
    /// Microseconds after this pulse left home within which the next sign of life leaves it.
    pub next: u64,
}

/// "I have on my disk all that I have to keep up to here", told when a sync ends, to every member;
/// or, as a question, by who waits for that, and answered to it alone. Only nodes with storage
/// answer. Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep | stored | question: 0 or 1 |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The ring that is spoken of.
    pub ring: RingId,
    /// All that the sender has to keep of what was ordered up to here is on its disk.
    pub stored: u64,
    /// The receiver is to say the same of itself.
    pub question: bool,
}

/// "Are you still in this ring, and how far?": for those who would read without ordering. Postcard,
/// fields in this order.
///
/// ```text
/// | ring.seq | rep | round |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirm {
    /// The ring that is spoken of.
    pub ring: RingId,
    /// Which of the sender's questions in this ring, from 1.
    pub round: u64,
}

/// "I am." Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep | round | aru |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The ring that is spoken of.
    pub ring: RingId,
    /// The question that is answered.
    pub round: u64,
    /// The sender has everything up to here.
    pub aru: u64,
}

pub(super) fn checked_token(token: Token) -> Result<Token, Malformed> {
    at_most(token.arus.len(), MAX_MEMBERS, "arus")?;
    at_most(token.missing.len(), MAX_RETRANSMIT_REQUESTS, "missing")?;
    if token.arus.is_empty() || usize::from(token.home) >= token.arus.len() {
        return Err(Malformed::Field("home"));
    }
    Ok(token)
}

pub(super) fn checked_ack(ack: Ack) -> Result<Ack, Malformed> {
    at_most(ack.missing.len(), MAX_RETRANSMIT_REQUESTS, "missing")?;
    Ok(ack)
}
