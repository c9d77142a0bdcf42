//! The names of things. All are small `Copy` values that order and hash deterministically.

use core::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $format:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id! {
    /// A node of the cluster: its number in the configuration, the same after a restart.
    NodeId(u32), "n{}"
}
id! {
    /// One life of a node. Larger after every start, so that what belongs to an earlier life is
    /// told apart from what belongs to this one.
    Incarnation(u64), "i{}"
}
id! {
    /// A cluster: a hash of its name. Datagrams of another cluster are refused.
    ClusterId(u32), "cluster-{:08x}"
}
id! {
    /// A group of replicas: a hash of its name, so that no node has to hand numbers out.
    GroupId(u64), "g{:016x}"
}
id! {
    /// The number of a group's view. Grows by one with every change of the view.
    ViewNumber(u64), "v{}"
}
id! {
    /// A client's exactly-once session, drawn at random by the client.
    ClientId(u64), "c{:016x}"
}
id! {
    /// A method of a service: a hash of its name, so that the order of methods in a trait is free.
    MethodId(u32), "m{:08x}"
}
id! {
    /// A client's connection to a node, numbered by the node. Never sent.
    Caller(u64), "caller-{}"
}

/// One life of one node: what memberships are made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Which node.
    pub node: NodeId,
    /// Which of its lives.
    pub incarnation: Incarnation,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.incarnation)
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A ring: a sequence number that only grows, and the node that formed it (its representative).
///
/// A node's sequence starts at its incarnation, so that a node that forgot its rings in a crash
/// cannot name a new one as it named an old one (the paper keeps the number on disk instead).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct RingId {
    /// Larger than that of any ring that a member knew before.
    pub sequence: u64,
    /// The member with the smallest id.
    pub representative: NodeId,
}

impl fmt::Display for RingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}@{}", self.sequence, self.representative)
    }
}

impl fmt::Debug for RingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// FNV-1a, 64 bits: names become ids by it, the same on every node and in every version.
pub const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

const fn folded(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

impl GroupId {
    /// The id of the group of this name.
    pub const fn of(name: &str) -> Self {
        GroupId(fnv1a(name.as_bytes()))
    }
}

impl ClusterId {
    /// The id of the cluster of this name.
    pub const fn of(name: &str) -> Self {
        ClusterId(folded(fnv1a(name.as_bytes())))
    }
}

impl MethodId {
    /// The id of the method of this name.
    pub const fn of(name: &str) -> Self {
        MethodId(folded(fnv1a(name.as_bytes())))
    }
}

impl From<&str> for MethodId {
    fn from(name: &str) -> Self {
        MethodId::of(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_as_they_did_in_version_one() {
        // Published test vectors of FNV-1a: a change of the hash would split a cluster.
        assert_eq!(GroupId::of(""), GroupId(0xcbf2_9ce4_8422_2325));
        assert_eq!(GroupId::of("foobar"), GroupId(0x8594_4171_f739_67e8));
        assert_ne!(MethodId::of("add"), MethodId::of("sub"));
    }
}
