//! Messages between the nodes of a ring: one message, one datagram.
//!
//! Every datagram starts with the same header (little-endian, as everything here):
//!
//! ```text
//!  0       2         3      4         8        12          16            24
//! +-------+---------+------+---------+--------+-----------+-------------+----
//! | "SF"  | version | kind | cluster | sender | reserved  | incarnation | body
//! |       |         |      |         |  node  |     0     |  of sender  |
//! +-------+---------+------+---------+--------+-----------+-------------+----
//! ```
//!
//! The version is that of the ring. Kinds 5, 7, 8 and 14 have a form that is frozen, and version 0: every
//! program reads them, and skips the [`Extension`](crate::Extension) at their end.
//!
//! | kind | body | who sends it to whom |
//! | --- | --- | --- |
//! | 1 | [`Data`] | the token's holder to every member: ordered messages |
//! | 2 | [`Token`] | the token's holder to the next one |
//! | 3 | [`Ack`] | a member to the holder that asked for it |
//! | 4 | [`Want`] | a member with something to order to every member |
//! | 5 | [`Join`] | a node that gathers a membership to every configured node |
//! | 6 | [`Commit`] | a new ring's representative to its members, and back |
//! | 7 | [`Beacon`] | a node to one that is not in its ring: "here is a ring" |
//! | 9 | [`Stable`] | a member to every member: "all have everything up to here" |
//! | 10 | [`Pulse`] | the holder of a resting token to the next member, and so on round the ring |
//! | 11 | [`Stored`] | a member to every member: "this is on my disk"; or a question, and back |
//! | 12 | [`Confirm`] | a member to every other: "are you still in this ring?" |
//! | 13 | [`Confirmed`] | the answer |
//! | 14 | [`RosterPart`] | a node to one with an older roster |
//!
//! Kind 8 is a [`Report`](crate::report::Report), which the ring does not see.

mod data;
mod header;
mod membership;
mod rounds;

use bytes::{BufMut, Bytes, BytesMut};
use zerocopy::IntoBytes;

use crate::arena::Arena;
use crate::codec::{append, read};
use crate::roster::RosterPart;
use crate::{ClusterId, Malformed, Member, VersionRange};

use data::decode_data;
pub use data::{
    CHUNK_OVERHEAD, Chunk, DATA_OVERHEAD, Data, Level, ORIGIN_OVERHEAD, Origin, push_chunk,
    push_pieces,
};
pub use header::FROZEN;
pub(crate) use header::{Header, KIND_AT};
pub use membership::{
    Beacon, Charge, Commit, CommitMember, CommitStep, Join, MAX_CHARGES, MAX_ENTRIES,
};
use membership::{checked_beacon, checked_commit, checked_join};
pub use rounds::{Ack, Confirm, Confirmed, Pulse, Stable, Stored, Token, Want};
use rounds::{checked_ack, checked_token};

/// Room that is made for what has lists; a longer one makes its buffer grow.
const LONGEST: usize = 1_024;

/// The message of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Ordered messages.
    Data(Data),
    /// The right to send.
    Token(Token),
    /// The messages that have arrived.
    Ack(Ack),
    /// The token is wanted.
    Want(Want),
    /// A proposal of a membership.
    Join(Join),
    /// The commit token.
    Commit(Commit),
    /// A ring shows itself.
    Beacon(Beacon),
    /// The stable point: every member has the messages up to it.
    Stable(Stable),
    /// A resting token's sign of life.
    Pulse(Pulse),
    /// The messages on the sender's disk.
    Stored(Stored),
    /// A question: is the receiver still in the ring?
    Confirm(Confirm),
    /// The sender is.
    Confirmed(Confirmed),
    /// A part of a later roster.
    RosterPart(RosterPart),
}

/// A message with its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The cluster of the sender.
    pub cluster: ClusterId,
    /// The version of the ring. Of kinds whose form is frozen it is [`FROZEN`].
    pub version: u8,
    /// The sender.
    pub sender: Member,
    /// The message.
    pub message: Message,
}

impl Datagram {
    /// A message in a ring of this version.
    pub fn new(cluster: ClusterId, version: u8, sender: Member, message: Message) -> Datagram {
        let frozen =
            matches!(message, Message::Join(_) | Message::Beacon(_) | Message::RosterPart(_));
        Datagram { cluster, version: if frozen { FROZEN } else { version }, sender, message }
    }

    /// The bytes to send.
    pub fn encode(&self) -> Bytes {
        self.encode_in(&mut Arena::new(0))
    }

    /// The bytes to send, written into `arena`.
    pub fn encode_in(&self, arena: &mut Arena) -> Bytes {
        let header = |arena: &mut Arena, kind, room| {
            let buffer = arena.room(size_of::<Header>() + room);
            Header::new(self.cluster, self.version, self.sender, kind).append(buffer);
        };
        match &self.message {
            Message::Data(data) => {
                header(arena, 1, DATA_OVERHEAD + ORIGIN_OVERHEAD + data.body.len());
                let buffer = arena.written();
                buffer.put_slice(data.header().as_bytes());
                if let Some(origin) = data.origin {
                    buffer.put_slice(origin.header().as_bytes());
                }
                buffer.put_slice(&data.body);
                return arena.take();
            }
            Message::Token(_) => header(arena, 2, LONGEST),
            Message::Ack(_) => header(arena, 3, LONGEST),
            Message::Want(_) => header(arena, 4, 32),
            Message::Join(_) => header(arena, 5, LONGEST),
            Message::Commit(_) => header(arena, 6, LONGEST),
            Message::Beacon(_) => header(arena, 7, 32),
            Message::Stable(_) => header(arena, 9, 64),
            Message::Pulse(_) => header(arena, 10, 64),
            Message::Stored(_) => header(arena, 11, 32),
            Message::Confirm(_) => header(arena, 12, 32),
            Message::Confirmed(_) => header(arena, 13, 64),
            Message::RosterPart(_) => header(arena, 14, LONGEST),
        }
        let tail = Tail(arena.written());
        match &self.message {
            Message::Data(_) => unreachable!("done above"),
            Message::Token(token) => append(tail, token),
            Message::Ack(ack) => append(tail, ack),
            Message::Want(want) => append(tail, want),
            Message::Join(join) => append(tail, join),
            Message::Commit(commit) => append(tail, commit),
            Message::Beacon(beacon) => append(tail, beacon),
            Message::Stable(stable) => append(tail, stable),
            Message::Pulse(pulse) => append(tail, pulse),
            Message::Stored(stored) => append(tail, stored),
            Message::Confirm(confirm) => append(tail, confirm),
            Message::Confirmed(confirmed) => append(tail, confirmed),
            Message::RosterPart(part) => append(tail, part),
        };
        arena.take()
    }

    /// Reads a datagram that belongs to `cluster`, in one of these versions of the ring. The body of
    /// a [`Data`] shares `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong; the datagram is to be counted and dropped.
    pub fn decode(
        cluster: ClusterId,
        ours: VersionRange,
        bytes: &Bytes,
    ) -> Result<Datagram, Malformed> {
        let (header, body) = Header::read(cluster, ours, bytes)?;
        let message = match header.kind {
            1 => Message::Data(decode_data(bytes.slice(size_of::<Header>()..))?),
            2 => Message::Token(checked_token(read(body)?)?),
            3 => Message::Ack(checked_ack(read(body)?)?),
            4 => Message::Want(read(body)?),
            5 => Message::Join(checked_join(read(body)?)?),
            6 => Message::Commit(checked_commit(read(body)?)?),
            7 => Message::Beacon(checked_beacon(read(body)?)?),
            9 => Message::Stable(read(body)?),
            10 => Message::Pulse(read(body)?),
            11 => Message::Stored(read(body)?),
            12 => Message::Confirm(read(body)?),
            13 => Message::Confirmed(read(body)?),
            14 => Message::RosterPart(read::<RosterPart>(body)?.checked()?),
            kind => return Err(Malformed::Kind(kind)),
        };
        Ok(Datagram { cluster, version: header.version, sender: header.member(), message })
    }
}

/// The end of a buffer, for postcard.
struct Tail<'a>(&'a mut BytesMut);

impl Extend<u8> for Tail<'_> {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        bytes.into_iter().for_each(|byte| self.0.put_u8(byte));
    }
}
