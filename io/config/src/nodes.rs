//! The list of nodes: where each is, by each link.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use wire::NodeId;
use wire::limits::MAX_RING_LINKS;

use crate::error::Problem;
use crate::ring_addresses::RingAddresses;

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAddress {
    /// The node.
    pub id: NodeId,
    /// Its UDP address for the ring on each link, whose number it also uses on TCP. All nodes have
    /// the same number of links, and list them in the same order.
    pub ring: RingAddresses,
}

impl NodeAddress {
    /// A node with a single link.
    pub fn new(id: NodeId, ring: SocketAddr) -> NodeAddress {
        NodeAddress::linked(id, vec![ring])
    }

    /// A node with these addresses, one for each link.
    pub fn linked(id: NodeId, ring: Vec<SocketAddr>) -> NodeAddress {
        NodeAddress { id, ring: ring.into() }
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
        let links = node.ring.links();
        if !(1..=MAX_RING_LINKS).contains(&links) {
            return Err(Problem::RingLinks { index, links });
        }
        if links != mine.ring.links() {
            return Err(Problem::RingLinksDiffer { index, links, mine: mine.ring.links() });
        }
        for (link, &address) in node.ring.iter().enumerate() {
            let earlier = &node.ring[..link];
            let before = nodes[..index].iter().flat_map(|other| other.ring.iter()).chain(earlier);
            if before.clone().any(|other| *other == address) {
                return Err(Problem::RingAddressTwice { index, address });
            }
            if earlier.iter().any(|other| other.ip() == address.ip()) {
                return Err(Problem::RingHostTwice { index, address });
            }
            // This node's own name may not be looked up yet.
            let mine = mine.ring.get(link).copied().unwrap_or(address);
            check_address(index, address, mine, nodes.len())?;
        }
    }
    Ok(())
}

/// Checks a node that is to come, by the links of one that is there.
///
/// # Errors
/// Why a node cannot be there, and the remedy.
pub fn check_comer(comer: &NodeAddress, mine: &[SocketAddr]) -> Result<(), Problem> {
    let links = comer.ring.len();
    if links != mine.len() {
        return Err(Problem::RingLinksDiffer { index: 0, links, mine: mine.len() });
    }
    let mut pairs = comer.ring.iter().zip(mine);
    pairs.try_for_each(|(address, mine)| check_address(0, *address, *mine, 2))
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

/// Looks the names of hosts up, this node's own first. The others' that are not known now are named
/// by their places: they may be known later.
///
/// # Errors
/// This node's own name is not known.
pub(crate) fn look_up(me: NodeId, nodes: &mut [NodeAddress]) -> Result<Vec<usize>, Problem> {
    let Some(own) = nodes.iter().position(|node| node.id == me) else { return Ok(Vec::new()) };
    let problem =
        |index, name, why: std::io::Error| Problem::RingName { index, name, why: why.to_string() };
    let name = nodes[own].ring.to_string();
    // All nodes are to take addresses of one kind: that of any that is written out, else the older.
    let written = nodes.iter().find_map(|node| node.ring.first().copied());
    let like = written.or(Some((Ipv4Addr::UNSPECIFIED, 0).into()));
    nodes[own].ring.look_up(like).map_err(|why| problem(own, name, why))?;
    let like = nodes[own].ring.first().copied();
    let others = nodes.iter_mut().enumerate().filter(|(place, _)| *place != own);
    Ok(others
        .filter_map(|(place, node)| node.ring.look_up(like).is_err().then_some(place))
        .collect())
}
