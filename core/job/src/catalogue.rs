//! One rank's images.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use image::{MAX_CHAIN, Parent, Place, Root};
use serde::{Deserialize, Serialize};
use wire::rank::Counts;
use wire::{Member, NodeId};

use crate::bug::{Bug, Planted};
use crate::{KEPT, MAX_IMAGES, Rollback, Spec, Void};

/// An image that was committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// It.
    pub place: Place,
    /// The root of its manifest.
    pub root: Root,
    /// The bytes of its parts.
    pub bytes: u64,
    /// How far the rank was.
    pub step: u64,
    /// The image on which it builds.
    pub parent: Option<Parent>,
    /// Its rank has sent messages, or got some.
    pub talks: bool,
    /// Its channels, of a job of at most [`MAX_GROUP`](crate::MAX_GROUP) ranks.
    pub counts: Vec<Counts>,
    /// The nodes that have it, each in the life in which it said so.
    pub holders: BTreeSet<Member>,
    /// Nodes that had it when they went, and may come back with it.
    pub away: BTreeSet<NodeId>,
}

/// The images of a rank, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    generations: BTreeMap<u64, Generation>,
    /// The number of the last image, whether it is kept or not.
    last: u64,
    /// The image from which the last start goes on, until it has one of its own.
    from: Option<u64>,
    /// A user has said that it may begin anew.
    anew: bool,
    /// States before this one are not gone back to: others have let go what these would need of them.
    floor: u64,
    /// States from this one on are kept: with it, those of all ranks fit together. `None`: nobody
    /// needs that.
    together: Option<u64>,
    /// The nodes at which each image is to be.
    copies: u8,
    /// A state that another node gets before the rank goes there: the next one, or that of this image.
    awaited: Awaited,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Awaited {
    #[default]
    Nothing,
    Next,
    Image(u64),
}

impl Catalogue {
    /// No images yet.
    pub(crate) fn new(spec: &Spec) -> Catalogue {
        let together = (spec.recovery == Rollback::Group).then_some(0);
        Catalogue { copies: spec.copies, together, ..Catalogue::default() }
    }

    /// All images, the oldest first.
    pub fn generations(&self) -> impl DoubleEndedIterator<Item = &Generation> {
        self.generations.values()
    }

    /// The number of the next image.
    pub fn next(&self) -> u64 {
        self.last + 1
    }

    /// The image from which the present start goes on, until it has one of its own.
    pub fn from(&self) -> Option<&Generation> {
        self.from.and_then(|number| self.generations.get(&number))
    }

    /// The images of which the state is made from which the present start goes on.
    pub(crate) fn length(&self) -> usize {
        self.from().and_then(|newest| self.chain(newest)).map_or(0, |chain| chain.len())
    }

    /// The next state is needed until this is said again, or not any more.
    pub(crate) fn await_next(&mut self, wanted: bool) {
        self.awaited = if wanted { Awaited::Next } else { Awaited::Nothing };
    }

    /// A start goes on from the newest state that can be restored, or anew. Later images, which
    /// nobody has now, are of a past that does not happen: they count no more.
    pub(crate) fn begin(&mut self, planted: Planted) {
        let newest = self.restorable_as(planted).next().map(|chain| chain[0].place.generation);
        if !planted.is(Bug::MixPasts) {
            self.generations.retain(|number, _| Some(*number) <= newest);
        }
        (self.from, self.awaited) = (newest, Awaited::Nothing);
        if newest.is_none() {
            self.floor = 0;
        }
    }

    /// Only this state and older ones count any more; `None`: none does, and the rank begins anew.
    pub(crate) fn cut(&mut self, generation: Option<u64>) {
        self.generations.retain(|number, _| Some(*number) <= generation);
        (self.from, self.awaited) = (None, Awaited::Nothing);
        (self.floor, self.anew) = (self.floor.min(generation.unwrap_or(0)), generation.is_none());
        self.together = self.together.map(|_| generation.unwrap_or(0));
    }

    /// States from this one on are kept, and not more.
    pub(crate) fn keep_from(&mut self, generation: u64) {
        if self.together < Some(generation) {
            self.together = Some(generation);
            self.raise_floor();
        }
    }

    /// Its rank has sent messages, or got some, by the images that are left.
    pub(crate) fn has_talked(&self) -> bool {
        self.floor > 0 || self.generations.values().any(|it| it.talks)
    }

    /// Another image is whole at its first holder. One that is here already is as good.
    pub(crate) fn commit(&mut self, generation: Generation) -> Result<(), Void> {
        let Generation { place, root, parent, .. } = &generation;
        if let Some(known) = self.generations.get(&place.generation)
            && (known.place, known.root, known.parent) == (*place, *root, *parent)
        {
            return Ok(());
        }
        if place.generation != self.next() {
            return Err(Void::Order);
        }
        if let Some(parent) = parent {
            let below = self.generations.get(&parent.place.generation).ok_or(Void::Order)?;
            let known = (below.place, below.root) == (parent.place, parent.root);
            // On what nobody has no state can be built: the rank saves a full image.
            let fits = |chain: Vec<&Generation>| chain.len() < MAX_CHAIN && is_held(&chain);
            if !known || !self.chain(below).is_some_and(fits) {
                return Err(Void::Order);
            }
        }
        if self.generations.len() >= MAX_IMAGES {
            self.make_room(parent.map(|parent| parent.place.generation))?;
        }
        (self.last, self.from, self.anew) = (place.generation, None, false);
        if self.awaited == Awaited::Next {
            self.awaited = Awaited::Image(self.last);
        }
        self.generations.insert(self.last, generation);
        self.raise_floor();
        Ok(())
    }

    /// Older states are needed no more: who sends messages to this rank may hear of it.
    fn raise_floor(&mut self) {
        let talks = self.generations.last_key_value().is_some_and(|(_, it)| it.talks);
        let heads = self.kept().map(|state| state[0].place.generation);
        if talks && self.restorable().nth(KEPT - 1).is_some() {
            self.floor = heads.min().unwrap_or(0).max(self.floor);
        }
    }

    /// Gives up the oldest image that no state needs which can be restored now. Its holders may have
    /// come back; but a rank whose holders die again and again has to go on.
    fn make_room(&mut self, parent: Option<u64>) -> Result<(), Void> {
        let used = [parent, self.from].into_iter().flatten();
        let used = used.filter_map(|number| self.chain(self.generations.get(&number)?));
        let states = self.restorable().take(KEPT).chain(used);
        let needed: BTreeSet<u64> = states.flatten().map(|it| it.place.generation).collect();
        let spare = self.generations.keys().find(|number| !needed.contains(number));
        let spare = *spare.ok_or(Void::Full)?;
        self.remove_with_children(spare);
        Ok(())
    }

    pub(crate) fn hold(&mut self, place: Place, root: Root, holder: Member) -> Result<(), Void> {
        let generation = self.get_mut(place)?;
        if generation.root != root {
            return Err(Void::Order);
        }
        generation.holders.retain(|other| other.node != holder.node);
        generation.away.remove(&holder.node);
        generation.holders.insert(holder);
        self.raise_floor();
        Ok(())
    }

    /// A node has it no more. One that nobody has, and nobody may come back with, is gone for good,
    /// and so is what builds on it.
    pub(crate) fn lose(&mut self, place: Place, holder: Member) -> Result<(), Void> {
        let generation = self.get_mut(place)?;
        let newer = generation.holders.iter().any(|it| it.node == holder.node && *it > holder);
        let held = generation.holders.remove(&holder);
        if newer || !held && !generation.away.remove(&holder.node) {
            return Err(Void::Unknown);
        }
        if generation.holders.is_empty() && generation.away.is_empty() {
            self.remove_with_children(place.generation);
        }
        Ok(())
    }

    fn remove_with_children(&mut self, number: u64) {
        self.generations.remove(&number);
        let builds =
            |it: &&Generation| it.parent.is_some_and(|parent| parent.place.generation == number);
        let children = self.generations.values().filter(builds);
        let children: Vec<u64> = children.map(|it| it.place.generation).collect();
        children.into_iter().for_each(|child| self.remove_with_children(child));
    }

    /// A life of a node is over, with what it said.
    pub(crate) fn gone(&mut self, node: Member) {
        for generation in self.generations.values_mut() {
            let had = generation.holders.len();
            generation.holders.retain(|it| it.node != node.node || *it > node);
            if generation.holders.len() < had {
                generation.away.insert(node.node);
            }
        }
    }

    /// It had images, and all to which it could go back are gone for good.
    pub fn is_lost(&self) -> bool {
        self.last > 0 && !self.may_go_back() && !self.anew
    }

    /// No state can be restored now, and the holders of one may come back.
    pub(crate) fn is_away(&self, planted: Planted) -> bool {
        self.may_go_back() && self.restorable_as(planted).next().is_none()
    }

    fn may_go_back(&self) -> bool {
        self.generations.range(self.floor..).next().is_some()
    }

    /// The last image is there, or may come back: that of the present start, or the one from which
    /// it goes on. It has what a rank that has finished leaves.
    pub(crate) fn has_last(&self) -> bool {
        let last = self.from.or(Some(self.last).filter(|last| *last > 0));
        self.anew || last.is_none_or(|last| self.generations.contains_key(&last))
    }

    /// Without images it begins anew, although it had some.
    pub(crate) fn allow_anew(&mut self) {
        self.anew = true;
    }

    /// Removes an image that no state needs which may have to be restored, and what builds on it.
    pub(crate) fn retire(&mut self, place: Place, planted: Planted) -> Result<(), Void> {
        self.get_mut(place)?;
        if self.needed().contains(&place.generation) && !planted.is(Bug::CollectTooEarly) {
            return Err(Void::Needed);
        }
        self.remove_with_children(place.generation);
        Ok(())
    }

    /// Images that are needed no more, the newest first, so that none goes before one that builds
    /// on it.
    pub fn spare(&self) -> impl Iterator<Item = Place> + '_ {
        let needed = self.needed();
        let spare = move |it: &&Generation| !needed.contains(&it.place.generation);
        self.generations.values().rev().filter(spare).map(|it| it.place)
    }

    /// States before this one are not gone back to: what only they need of other ranks is let go. 0:
    /// the rank may have to begin anew.
    pub fn oldest(&self) -> u64 {
        self.floor
    }

    /// The newest states that can be restored, each as the images that make it whole, the newest
    /// first.
    pub fn restorable(&self) -> impl Iterator<Item = Vec<&Generation>> + '_ {
        self.restorable_as(Planted::default())
    }

    pub(crate) fn restorable_as(
        &self,
        planted: Planted,
    ) -> impl Iterator<Item = Vec<&Generation>> + '_ {
        let whole = move |chain: &Vec<&Generation>| {
            let below = if planted.is(Bug::RestoreWithoutParent) { 1 } else { chain.len() };
            is_held(&chain[..below])
        };
        self.whole().filter(whole)
    }

    /// The newest states to which the rank may go back, wherever they are, the newest first.
    pub(crate) fn whole(&self) -> impl Iterator<Item = Vec<&Generation>> + '_ {
        let states = self.generations.range(self.floor..).rev();
        states.filter_map(|(_, it)| self.chain(it))
    }

    /// The states of which each image is at as many nodes as it is to be, the newest first.
    pub(crate) fn safe(&self) -> impl Iterator<Item = Vec<&Generation>> + '_ {
        let safe = |image: &&Generation| image.holders.len() >= self.copies.into();
        self.restorable().filter(move |state| state.iter().all(safe))
    }

    /// The newest of these.
    fn safest(&self) -> Option<Vec<&Generation>> {
        self.safe().next()
    }

    /// The oldest state that has yet to get all its copies. Who copies it must have the time.
    fn next_safe(&self) -> Option<Vec<&Generation>> {
        let safe = self.safest().map_or(0, |state| state[0].place.generation);
        let newer = self.restorable().take_while(|state| state[0].place.generation > safe);
        newer.last()
    }

    /// The states that may have to be restored, among them one with all copies, if there is. One that
    /// is held nowhere is kept as well, while it is newer: its holder may come back, and it may have
    /// the results.
    fn kept(&self) -> impl Iterator<Item = Vec<&Generation>> {
        let state = |number| self.generations.get(&number).and_then(|it| self.chain(it));
        // It is being read.
        let from = self.from.and_then(state);
        let awaited = match self.awaited {
            Awaited::Image(number) => state(number),
            Awaited::Nothing | Awaited::Next => None,
        };
        let newest = self.restorable().next().map_or(0, |state| state[0].place.generation);
        let newest = self.together.map_or(newest, |together| newest.min(together.max(1) - 1));
        let newer = self.generations.range(newest + 1..).filter_map(|(_, it)| self.chain(it));
        let others = [from, self.safest(), self.next_safe(), awaited];
        self.restorable().take(KEPT).chain(others.into_iter().flatten()).chain(newer)
    }

    /// The images of the states that are kept; all, while there are few.
    fn needed(&self) -> BTreeSet<u64> {
        match self.restorable().nth(KEPT - 1) {
            Some(_) => self.kept().flatten().map(|it| it.place.generation).collect(),
            None => self.generations.keys().copied().collect(),
        }
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

/// Each of these images has a holder.
fn is_held(chain: &[&Generation]) -> bool {
    chain.iter().all(|it| !it.holders.is_empty())
}
