//! First contact: how a receiver learns that a sender's life is going on now.
//!
//! Every sealed datagram can be recorded and sent again. So a receiver cannot tell traffic from a
//! recording if it has never met this life of the sender (one of them has just started). It sends a
//! challenge that nobody could foresee, and believes that life once it has the answer:
//!
//! ```text
//! inside the envelope, 40 bytes
//!  0      2       3   4              8            24         40
//! +------+-------+---+--------------+------------+----------+
//! | "SC" | flags | 0 | 0   0  0   0 | challenge  |  answer  |
//! +------+-------+---+--------------+------------+----------+
//! flags  bit 0: please answer this challenge     bit 1: this answers yours
//! what is not there is zero
//! ```

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 2] = *b"SC";
const CHALLENGE: u8 = 1;
const ANSWER: u8 = 2;

/// A number that is used once.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Nonce(pub [u8; 16]);

/// A message of a first contact. The ring never sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The receiver is to send this back.
    pub challenge: Option<Nonce>,
    /// The answer to the receiver's challenge.
    pub answer: Option<Nonce>,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Layout {
    magic: [u8; 2],
    flags: u8,
    reserved: [u8; 5],
    challenge: Nonce,
    answer: Nonce,
}

impl Contact {
    /// Bytes of a contact message, before it is sealed.
    pub const LENGTH: usize = size_of::<Layout>();

    /// The bytes to seal.
    pub fn encode(&self) -> [u8; Contact::LENGTH] {
        let flag = |set: bool, bit| if set { bit } else { 0 };
        let none = Nonce([0; 16]);
        zerocopy::transmute!(Layout {
            magic: MAGIC,
            flags: flag(self.challenge.is_some(), CHALLENGE) | flag(self.answer.is_some(), ANSWER),
            reserved: [0; 5],
            challenge: self.challenge.unwrap_or(none),
            answer: self.answer.unwrap_or(none),
        })
    }

    /// Reads what was in an envelope. `None` if that is not a contact message.
    pub fn decode(bytes: &[u8]) -> Option<Contact> {
        let layout = Layout::read_from_bytes(bytes).ok()?;
        if layout.magic != MAGIC || layout.flags & !(CHALLENGE | ANSWER) != 0 {
            return None;
        }
        let challenge = (layout.flags & CHALLENGE != 0).then_some(layout.challenge);
        let answer = (layout.flags & ANSWER != 0).then_some(layout.answer);
        let contact = Contact { challenge, answer };
        // Absent fields are zero: anything else is no contact of this version.
        (contact.encode() == bytes).then_some(contact)
    }
}
