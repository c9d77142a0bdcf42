//! The head of every datagram.

use bytes::BufMut;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{ClusterId, Incarnation, Malformed, Member, NodeId, PROTOCOL_VERSION};

const MAGIC: [u8; 2] = *b"SF";

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    magic: [u8; 2],
    version: u8,
    pub kind: u8,
    cluster: U32,
    sender: U32,
    reserved: U32,
    incarnation: U64,
}

/// Where in a datagram its kind stands.
pub(crate) const KIND_AT: usize = core::mem::offset_of!(Header, kind);

impl Header {
    pub fn new(cluster: ClusterId, sender: Member, kind: u8) -> Header {
        Header {
            magic: MAGIC,
            version: PROTOCOL_VERSION,
            kind,
            cluster: cluster.0.into(),
            sender: sender.node.0.into(),
            reserved: 0.into(),
            incarnation: sender.incarnation.0.into(),
        }
    }

    pub fn append(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(self.as_bytes());
    }

    /// The header of a datagram of `cluster`, and what follows it.
    pub fn read(cluster: ClusterId, bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (header, body) = Header::read_from_prefix(bytes).map_err(|_| Malformed::Length)?;
        if header.magic != MAGIC {
            return Err(Malformed::Magic);
        }
        if header.version != PROTOCOL_VERSION {
            return Err(Malformed::Version { theirs: header.version });
        }
        if header.cluster.get() != cluster.0 {
            return Err(Malformed::Cluster);
        }
        if header.reserved.get() != 0 {
            return Err(Malformed::Field("reserved"));
        }
        Ok((header, body))
    }

    pub fn member(&self) -> Member {
        Member { node: NodeId(self.sender.get()), incarnation: Incarnation(self.incarnation.get()) }
    }
}
