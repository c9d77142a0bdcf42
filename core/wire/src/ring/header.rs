//! The head of every datagram.

use bytes::BufMut;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{ClusterId, Incarnation, Malformed, Member, NodeId, VersionRange};

const MAGIC: [u8; 2] = *b"SF";

/// The version of the kinds whose form is frozen: every program reads them.
pub const FROZEN: u8 = 0;

const JOIN: u8 = 5;
const BEACON: u8 = 7;
const REPORT: u8 = 8;
const ROSTER: u8 = 14;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    magic: [u8; 2],
    pub version: u8,
    pub kind: u8,
    cluster: U32,
    sender: U32,
    reserved: U32,
    incarnation: U64,
}

/// Where in a datagram its kind stands.
pub(crate) const KIND_AT: usize = core::mem::offset_of!(Header, kind);

impl Header {
    /// The head of a datagram of this kind in a ring of this version.
    pub fn new(cluster: ClusterId, version: u8, sender: Member, kind: u8) -> Header {
        let version = if Header::is_frozen(kind) { FROZEN } else { version };
        Header {
            magic: MAGIC,
            version,
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

    /// Nodes that do not understand each other still have to find that out.
    fn is_frozen(kind: u8) -> bool {
        matches!(kind, JOIN | BEACON | REPORT | ROSTER)
    }

    /// The header of a datagram of `cluster` that a program of these versions understands, and what
    /// follows it.
    pub fn read(
        cluster: ClusterId,
        ours: VersionRange,
        bytes: &[u8],
    ) -> Result<(Header, &[u8]), Malformed> {
        let (header, body) = Header::read_from_prefix(bytes).map_err(|_| Malformed::Length)?;
        if header.magic != MAGIC {
            return Err(Malformed::Magic);
        }
        let frozen = Header::is_frozen(header.kind);
        let understood =
            if frozen { header.version == FROZEN } else { ours.contains(header.version) };
        if !understood {
            let theirs = VersionRange { least: header.version, greatest: header.version };
            return Err(Malformed::Version { theirs, ours });
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
