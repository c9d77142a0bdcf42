//! The outer header.

use wire::{Incarnation, Member, NodeId};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 2] = *b"SS";
const VERSION: u8 = 1;

/// Bytes before the ciphertext.
pub const HEADER: usize = size_of::<Header>();
/// Bytes after it.
pub const TAG: usize = 16;
/// Bytes of the largest sealed datagram.
pub const MAX_SEALED: usize = wire::limits::MAX_DATAGRAM + OVERHEAD;
/// By how much a datagram grows when it is sealed.
pub const OVERHEAD: usize = HEADER + TAG;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 2],
    version: u8,
    key: u8,
    sender: U32,
    to: U32,
    incarnation: U64,
    salt: U64,
    counter: U64,
}

/// The sender, receiver and key of a datagram: its outer header, as drawn at the head of the crate.
/// Anybody can write one: only opening the datagram shows that it is genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Number of the cluster key.
    pub key: u8,
    /// The life of the node that sealed it.
    pub sender: Member,
    /// Distinguishes two lives with one incarnation.
    pub salt: u64,
    /// The receiver, or [`Envelope::ALL`].
    pub to: NodeId,
    /// Which of that life's datagrams, from 1.
    pub counter: u64,
}

impl Envelope {
    /// No node has this number: every node may open the datagram.
    pub const ALL: NodeId = NodeId(0);

    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        zerocopy::transmute!(Header {
            magic: MAGIC,
            version: VERSION,
            key: self.key,
            sender: self.sender.node.0.into(),
            to: self.to.0.into(),
            incarnation: self.sender.incarnation.0.into(),
            salt: self.salt.into(),
            counter: self.counter.into(),
        })
    }

    /// Reads the header of a sealed datagram. `None` if it is none, or too short to be one.
    pub fn decode(datagram: &[u8]) -> Option<Envelope> {
        if datagram.len() < OVERHEAD {
            return None;
        }
        let (header, _) = Header::read_from_prefix(datagram).ok()?;
        if header.magic != MAGIC || header.version != VERSION || header.counter.get() == 0 {
            return None;
        }
        Some(Envelope {
            key: header.key,
            sender: Member {
                node: NodeId(header.sender.get()),
                incarnation: Incarnation(header.incarnation.get()),
            },
            salt: header.salt.get(),
            to: NodeId(header.to.get()),
            counter: header.counter.get(),
        })
    }

    /// The AEAD's nonce: unique, because a life never uses a counter twice and no two lives have
    /// one key.
    pub(crate) fn nonce(&self) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.counter.to_le_bytes());
        nonce
    }
}

/// Whether these bytes claim to be a sealed datagram.
pub fn is_sealed(datagram: &[u8]) -> bool {
    datagram.starts_with(&MAGIC)
}
