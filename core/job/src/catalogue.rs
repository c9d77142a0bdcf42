//! One rank's images.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use image::{MAX_CHAIN, Parent, Place, Root};
use serde::{Deserialize, Serialize};
use wire::NodeId;

use crate::bug::{Bug, Planted};
use crate::{KEPT, MAX_IMAGES, Void};

/// An image that was committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// It.
    pub place: Place,
    /// The root of its manifest.
    pub root: Root,
    /// The bytes of its parts.
    pub bytes: u64,
    /// The image on which it builds.
    pub parent: Option<Parent>,
    /// The nodes that have it.
    pub holders: BTreeSet<NodeId>,
}

/// The images of a rank, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    generations: BTreeMap<u64, Generation>,
    /// The number of the last image, whether it is kept or not.
    last: u64,
}

impl Catalogue {
    /// All images, the oldest first.
    pub fn generations(&self) -> impl DoubleEndedIterator<Item = &Generation> {
        self.generations.values()
    }

    /// The number of the next image.
    pub fn next(&self) -> u64 {
        self.last + 1
    }

    /// Another image is whole at its first holder.
    pub(crate) fn commit(&mut self, generation: Generation) -> Result<(), Void> {
        let Generation { place, parent, .. } = &generation;
        if place.generation != self.next() {
            return Err(Void::Order);
        }
        if self.generations.len() >= MAX_IMAGES {
            return Err(Void::Full);
        }
        if let Some(parent) = parent {
            let below = self.generations.get(&parent.place.generation).ok_or(Void::Order)?;
            let known = (below.place, below.root) == (parent.place, parent.root);
            if !known || self.chain(below).is_none_or(|chain| chain.len() >= MAX_CHAIN) {
                return Err(Void::Order);
            }
        }
        self.last = place.generation;
        self.generations.insert(self.last, generation);
        Ok(())
    }

    pub(crate) fn hold(&mut self, place: Place, holder: NodeId) -> Result<(), Void> {
        self.get_mut(place)?.holders.insert(holder);
        Ok(())
    }

    pub(crate) fn lose(&mut self, place: Place, holder: NodeId) -> Result<(), Void> {
        match self.get_mut(place)?.holders.remove(&holder) {
            true => Ok(()),
            false => Err(Void::Unknown),
        }
    }

    /// A node is gone, with all that it held. True if it held anything.
    pub(crate) fn gone(&mut self, node: NodeId) -> bool {
        let lose = |it: &mut Generation| it.holders.remove(&node);
        self.generations.values_mut().map(lose).fold(false, |any, lost| any | lost)
    }

    /// Removes an image that no state needs which may have to be restored.
    pub(crate) fn retire(&mut self, place: Place, planted: Planted) -> Result<(), Void> {
        self.get_mut(place)?;
        if self.needed().contains(&place.generation) && !planted.is(Bug::CollectTooEarly) {
            return Err(Void::Needed);
        }
        self.generations.remove(&place.generation);
        Ok(())
    }

    /// Images that are needed no more, the newest first, so that none goes before one that builds
    /// on it.
    pub fn spare(&self) -> impl Iterator<Item = Place> + '_ {
        let needed = self.needed();
        let spare = move |it: &&Generation| !needed.contains(&it.place.generation);
        self.generations.values().rev().filter(spare).map(|it| it.place)
    }

    /// The newest states that can be restored, each as the images that make it whole, the newest
    /// first.
    pub fn restorable(&self, planted: Planted) -> impl Iterator<Item = Vec<&Generation>> + '_ {
        let whole = move |chain: &Vec<&Generation>| {
            let held = |it: &&Generation| !it.holders.is_empty();
            let below = if planted.is(Bug::RestoreWithoutParent) { 1 } else { chain.len() };
            chain.iter().take(below).all(held)
        };
        self.generations.values().rev().filter_map(|it| self.chain(it)).filter(whole)
    }

    /// The images of the states that are kept. While there are fewer than that, an image that is
    /// held nowhere is kept as well: its holder may come back.
    fn needed(&self) -> BTreeSet<u64> {
        let states = self.restorable(Planted::default()).take(KEPT);
        let mut needed: BTreeSet<u64> = states.flatten().map(|it| it.place.generation).collect();
        let whole = self.restorable(Planted::default()).take(KEPT).count();
        if whole < KEPT {
            needed.extend(self.generations.keys());
        }
        needed
    }

    /// The images that make this one a state; `None`: one below it is gone.
    fn chain<'a>(&'a self, newest: &'a Generation) -> Option<Vec<&'a Generation>> {
        let mut chain = Vec::from([newest]);
        while let Some(parent) = &chain.last().expect("it has one").parent {
            chain.push(self.generations.get(&parent.place.generation)?);
        }
        Some(chain)
    }

    fn get_mut(&mut self, place: Place) -> Result<&mut Generation, Void> {
        let generation = self.generations.get_mut(&place.generation);
        generation.filter(|it| it.place == place).ok_or(Void::Unknown)
    }
}
