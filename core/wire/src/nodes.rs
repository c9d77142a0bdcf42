//! The list of a cluster's nodes as one of them knows it, and sets of them that are small enough to
//! be copied.

use alloc::vec::Vec;

use crate::NodeId;
use crate::limits::MAX_MEMBERS;

/// The nodes that a node knows, each at a place of its own. No other node ever gets that place, so
/// that each [`NodeSet`] stays right while nodes come and go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeList {
    /// By place.
    nodes: Vec<NodeId>,
    /// The places, in order of node.
    order: Vec<u8>,
    /// Those that have gone.
    gone: NodeSet,
}

impl NodeList {
    /// These nodes, in this order.
    ///
    /// # Panics
    /// If there are more than [`MAX_MEMBERS`], or one twice.
    pub fn new(nodes: &[NodeId]) -> NodeList {
        let mut list = NodeList { nodes: Vec::new(), order: Vec::new(), gone: NodeSet::EMPTY };
        for node in nodes {
            assert!(list.place(*node).is_none(), "{node} is in the list twice");
            assert!(list.add(*node).is_some(), "a cluster has at most {MAX_MEMBERS} nodes");
        }
        list
    }

    /// The place of a node; `None`: it is not in the list, or not any more.
    pub fn place(&self, node: NodeId) -> Option<usize> {
        self.seat(node).filter(|place| !self.gone.contains(*place))
    }

    /// The place that a node has or had.
    pub fn seat(&self, node: NodeId) -> Option<usize> {
        self.find(node).ok().map(|at| self.order[at].into())
    }

    /// The node at a place, also one that has gone.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn node(&self, place: usize) -> NodeId {
        self.nodes[place]
    }

    /// The nodes in order of id, with their places.
    pub fn iter(&self) -> impl Iterator<Item = (usize, NodeId)> + '_ {
        let places = self.order.iter().copied().map(usize::from);
        let here = places.filter(|place| !self.gone.contains(*place));
        here.map(|place| (place, self.nodes[place]))
    }

    /// The nodes that have a place, also those that have gone: by place, and whether it is here.
    pub fn seats(&self) -> impl Iterator<Item = (NodeId, bool)> + '_ {
        let here = |(place, node): (usize, &NodeId)| (*node, !self.gone.contains(place));
        self.nodes.iter().enumerate().map(here)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.gone.len()
    }

    /// There is no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a node, and returns its place. One that has gone gets the place that it had. `None`:
    /// all places are given away.
    pub fn add(&mut self, node: NodeId) -> Option<usize> {
        match self.find(node) {
            Ok(at) => {
                let place = self.order[at].into();
                self.gone.remove(place);
                Some(place)
            }
            Err(_) if self.nodes.len() == MAX_MEMBERS => None,
            Err(at) => {
                let place = self.nodes.len();
                self.nodes.push(node);
                self.order.insert(at, place as u8);
                Some(place)
            }
        }
    }

    /// Takes a node out, and returns the place that it had.
    pub fn remove(&mut self, node: NodeId) -> Option<usize> {
        let place = self.place(node)?;
        self.gone.insert(place);
        Some(place)
    }

    fn find(&self, node: NodeId) -> Result<usize, usize> {
        self.order.binary_search_by_key(&node, |place| self.nodes[usize::from(*place)])
    }
}

/// Some of the nodes that a node knows: bit i stands for the one at place i of its [`NodeList`].
/// Never sent: nodes' lists may differ.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NodeSet(u64);

const _: () = assert!(MAX_MEMBERS <= u64::BITS as usize, "every node has a bit");

impl NodeSet {
    /// Nobody.
    pub const EMPTY: NodeSet = NodeSet(0);

    /// The node at one place of the list.
    ///
    /// # Panics
    /// If no list is that long.
    pub fn one(place: usize) -> NodeSet {
        assert!(place < MAX_MEMBERS, "a cluster has at most {MAX_MEMBERS} nodes");
        NodeSet(1 << place)
    }

    /// Adds the node at this place.
    pub fn insert(&mut self, place: usize) {
        self.0 |= NodeSet::one(place).0;
    }

    /// Takes the node at this place out.
    pub fn remove(&mut self, place: usize) {
        self.0 &= !NodeSet::one(place).0;
    }

    /// Those that are in both sets.
    pub fn and(self, other: NodeSet) -> NodeSet {
        NodeSet(self.0 & other.0)
    }

    /// Whether the node at this place is in the set.
    pub fn contains(self, place: usize) -> bool {
        place < MAX_MEMBERS && self.0 >> place & 1 == 1
    }

    /// Nobody is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many are in it.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The places, smallest first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let place = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_never_given_to_another_node() {
        let [two, three, five, nine] = [2, 3, 5, 9].map(NodeId);
        let mut list = NodeList::new(&[two, five, nine]);
        assert_eq!(list.remove(five), Some(1));
        assert_eq!((list.place(five), list.remove(five), list.len()), (None, None, 2));
        assert_eq!(list.add(three), Some(3));
        assert!(list.iter().eq([(0, two), (3, three), (2, nine)]));
        assert_eq!((list.node(1), list.add(five), list.place(five)), (five, Some(1), Some(1)));
        for node in 10..70 {
            list.add(NodeId(node));
        }
        assert_eq!((list.len(), list.add(NodeId(99))), (MAX_MEMBERS, None));
    }

    #[test]
    fn a_set_gives_back_what_was_put_in() {
        let places = [0, 3, 4, MAX_MEMBERS - 1];
        let mut set = NodeSet::EMPTY;
        for place in places {
            assert!(!set.contains(place));
            set.insert(place);
        }
        assert!(set.iter().eq(places));
        assert_eq!(set.len(), places.len());
        assert!(!set.contains(MAX_MEMBERS) && !set.contains(1));
        set.remove(3);
        assert!(set.iter().eq([0, 4, MAX_MEMBERS - 1]));
        assert!(set.and(NodeSet::one(4)).iter().eq([4]));
        assert!(NodeSet::EMPTY.is_empty() && NodeSet::EMPTY.iter().next().is_none());
    }
}
