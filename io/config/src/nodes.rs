//! The list of nodes: where each is, by each link.

use std::fmt;
use std::net::SocketAddr;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::NodeId;
use wire::limits::MAX_RING_LINKS;

use crate::error::Problem;

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAddress {
    /// The node.
    pub id: NodeId,
    /// Its UDP address for the ring on each link, whose number it also uses on TCP. All nodes have
    /// the same number of links, and list them in the same order.
    #[serde(with = "addresses")]
    pub ring: Vec<SocketAddr>,
}

impl NodeAddress {
    /// A node with a single link.
    pub fn new(id: NodeId, ring: SocketAddr) -> NodeAddress {
        NodeAddress { id, ring: vec![ring] }
    }
}

/// Checks the list, as this node sees it.
pub(crate) fn check(me: NodeId, nodes: &[NodeAddress]) -> Result<(), Problem> {
    let Some(mine) = nodes.iter().find(|node| node.id == me) else {
        return Err(Problem::MeMissing(me));
    };
    for (index, node) in nodes.iter().enumerate() {
        if nodes[..index].iter().any(|other| other.id == node.id) {
            return Err(Problem::NodeTwice { index, id: node.id });
        }
        let links = node.ring.len();
        if !(1..=MAX_RING_LINKS).contains(&links) {
            return Err(Problem::RingLinks { index, links });
        }
        if links != mine.ring.len() {
            return Err(Problem::RingLinksDiffer { index, links, mine: mine.ring.len() });
        }
        for (link, &address) in node.ring.iter().enumerate() {
            let earlier = &node.ring[..link];
            let before = nodes[..index].iter().flat_map(|other| &other.ring).chain(earlier);
            if before.clone().any(|other| *other == address) {
                return Err(Problem::RingAddressTwice { index, address });
            }
            if earlier.iter().any(|other| other.ip() == address.ip()) {
                return Err(Problem::RingHostTwice { index, address });
            }
            check_address(index, address, mine.ring[link], nodes.len())?;
        }
    }
    Ok(())
}

fn check_address(
    index: usize,
    address: SocketAddr,
    mine: SocketAddr,
    nodes: usize,
) -> Result<(), Problem> {
    if address.ip().is_unspecified() || address.ip().is_multicast() {
        return Err(Problem::RingAddressUnusable { index, address });
    }
    if address.port() == 0 && nodes > 1 {
        return Err(Problem::RingPortZero { index });
    }
    if address.is_ipv4() != mine.is_ipv4() || address.ip().is_loopback() != mine.ip().is_loopback()
    {
        return Err(Problem::Mixed { index, address, mine });
    }
    Ok(())
}

/// In the file: a string for one link, an array of strings for several.
mod addresses {
    use super::{Addresses, Deserializer, Serialize, Serializer, SocketAddr};

    pub fn serialize<S: Serializer>(ring: &[SocketAddr], to: S) -> Result<S::Ok, S::Error> {
        match ring {
            [only] => only.serialize(to),
            several => several.serialize(to),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SocketAddr>, D::Error> {
        from.deserialize_any(Addresses)
    }
}

struct Addresses;

impl<'de> Visitor<'de> for Addresses {
    type Value = Vec<SocketAddr>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a socket address, or an array of them, one for each link")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let address = text.parse().map_err(|_| E::custom("invalid socket address syntax"))?;
        Ok(vec![address])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }
}
