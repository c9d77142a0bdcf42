//! A set of nodes, small enough to be copied.

use crate::limits::MAX_MEMBERS;

/// Some of the configured nodes: bit i stands for the i-th of the configuration's list, which is
/// in order of id. Never sent: configurations may differ while one is rolled out.
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
