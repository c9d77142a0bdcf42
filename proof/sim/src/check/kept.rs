//! Images that may have to be restored are kept, and what is restored is whole and of one past.
//!
//! Source: docs/protocol/jobs.md, "The director": a state is a full image and all increments on it,
//! each held by a node. The two newest states are kept. A start goes on from the newest one; later
//! images count no more. An image is lost when nobody has it, and nobody may come back with it.

use std::collections::{BTreeMap, BTreeSet};

use image::Place;
use wire::{Member, NodeId};

use super::starts::RankId;
use super::{Verdict, demand};

const PROPERTY: &str = "images are kept";

/// States that are kept.
const STATES: usize = 2;

/// The reason for which images went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// They are needed no more.
    Needless,
    /// A node has one no more.
    Lost,
    /// The rank goes on from an earlier one.
    Start,
    /// All ranks go back together: their newest ones go.
    Back,
    /// There is none.
    Nothing,
}

/// Images that count, by their numbers, and who has them.
pub type Left = BTreeMap<u64, BTreeSet<Member>>;

#[derive(Clone, Debug)]
struct Image {
    parent: Option<u64>,
    holders: BTreeSet<Member>,
    away: BTreeSet<NodeId>,
}

/// The images that count, as the order of words has it.
#[derive(Clone, Default)]
pub struct Kept {
    ranks: BTreeMap<RankId, BTreeMap<u64, Image>>,
    /// The image that has how far each rank was at last.
    last: BTreeMap<RankId, u64>,
    /// Where ranks are to go on, and the last image that each had when that was said.
    moves: BTreeMap<RankId, (NodeId, u64)>,
    /// The states to which each rank may go back begin here.
    floors: BTreeMap<RankId, u64>,
}

/// The newest images of which all below are held.
fn states(images: &BTreeMap<u64, Image>) -> impl Iterator<Item = u64> {
    let whole = |mut number: u64| loop {
        let Some(image) = images.get(&number).filter(|image| !image.holders.is_empty()) else {
            return false;
        };
        match image.parent {
            Some(parent) => number = parent,
            None => return true,
        }
    };
    images.keys().rev().copied().filter(move |number| whole(*number))
}

impl Kept {
    /// The state from which a rank would go on.
    fn newest(&self, rank: RankId) -> Option<u64> {
        let floor = self.floors.get(&rank).copied().unwrap_or(0);
        let mut states = self.ranks.get(&rank).into_iter().flat_map(states);
        states.find(|state| *state >= floor)
    }

    fn images(&mut self, place: Place) -> &mut BTreeMap<u64, Image> {
        self.ranks.entry((place.job, place.rank)).or_default()
    }

    /// An image counts from now on.
    pub fn committed(&mut self, place: Place, parent: Option<u64>, holder: Member) {
        self.last.insert((place.job, place.rank), place.generation);
        let image = Image { parent, holders: [holder].into(), away: BTreeSet::new() };
        // The same one once more changes nothing.
        self.images(place).entry(place.generation).or_insert(image);
    }

    /// A node has a copy.
    pub fn held(&mut self, place: Place, holder: Member) {
        if let Some(image) = self.images(place).get_mut(&place.generation) {
            image.holders.retain(|other| other.node != holder.node);
            image.holders.insert(holder);
            image.away.remove(&holder.node);
        }
    }

    /// A node has its copy no more.
    pub fn lost(&mut self, place: Place, holder: Member) {
        if let Some(image) = self.images(place).get_mut(&place.generation) {
            image.holders.remove(&holder);
            image.away.remove(&holder.node);
        }
    }

    /// A life of a node is over.
    pub fn gone(&mut self, node: Member) {
        for image in self.ranks.values_mut().flat_map(BTreeMap::values_mut) {
            let had = image.holders.len();
            image.holders.retain(|holder| holder.node != node.node || *holder > node);
            if image.holders.len() < had {
                image.away.insert(node.node);
            }
        }
    }

    /// A rank is to go on at this node, or stays.
    pub fn moves(&mut self, rank: RankId, to: Option<NodeId>) {
        let last = self.last.get(&rank).copied().unwrap_or(0);
        match to {
            Some(to) if self.moves.get(&rank).is_some_and(|(known, _)| *known == to) => {}
            Some(to) => _ = self.moves.insert(rank, (to, last)),
            None => _ = self.moves.remove(&rank),
        }
    }

    /// A rank has left its node: the other one has a state that was saved since.
    pub fn moved(&mut self, rank: RankId) -> Verdict {
        let moves = self.moves.remove(&rank);
        let images = self.ranks.entry(rank).or_default();
        let there = |to: NodeId| {
            let at = |image: &Image| image.holders.iter().any(|holder| holder.node == to);
            let own = images.iter().filter(|(_, image)| at(image));
            let own: BTreeMap<u64, Image> = own.map(|it| (*it.0, it.1.clone())).collect();
            states(&own).next()
        };
        let fits = moves.is_some_and(|(to, last)| there(to) > Some(last));
        demand(fits, PROPERTY, || format!("{rank:?} leaves its node for {moves:?} too early"))
    }

    /// A rank goes on from this image, or anew: it is the newest state.
    pub fn started(&mut self, rank: RankId, from: Option<Place>) -> Verdict {
        self.moves.remove(&rank);
        let newest = self.newest(rank);
        let images = self.ranks.entry(rank).or_default();
        let from = from.map(|place| place.generation);
        demand(from == newest, PROPERTY, || {
            format!("{rank:?} goes on from image {from:?}, and its newest state is {newest:?}")
        })?;
        self.last.extend(from.map(|from| (rank, from)));
        let later = images.keys().find(|number| Some(**number) > newest).copied();
        demand(later.is_none(), PROPERTY, || {
            format!("{rank:?} goes on from {newest:?}, and image {later:?} still counts")
        })
    }

    /// These images of a rank are left, each at these nodes, for this reason.
    pub fn left(&mut self, rank: RankId, cause: Cause, left: &Left) -> Verdict {
        let newest = self.newest(rank);
        let images = self.ranks.entry(rank).or_default();
        let kept = states(images).take(STATES).count();
        let before: BTreeSet<u64> = images.keys().copied().collect();
        let went: BTreeSet<u64> =
            before.iter().copied().filter(|number| !left.contains_key(number)).collect();
        let untrue = left.iter().find(|(number, holders)| {
            images.get(number).is_none_or(|image| image.holders != **holders)
        });
        demand(untrue.is_none(), PROPERTY, || {
            format!("image {untrue:?} of {rank:?} is not where it is said to be")
        })?;
        let is_lost = |image: &Image| image.holders.is_empty() && image.away.is_empty();
        let fits = |number: &u64| match cause {
            Cause::Nothing => false,
            Cause::Needless => true,
            Cause::Back => left.keys().all(|still| still < number),
            Cause::Start => Some(*number) > newest,
            Cause::Lost => {
                let parent = images[number].parent;
                is_lost(&images[number]) || parent.is_some_and(|parent| went.contains(&parent))
            }
        };
        let wrong = went.iter().find(|number| !fits(number)).copied();
        demand(wrong.is_none(), PROPERTY, || {
            format!("image {wrong:?} of {rank:?} goes, for {cause:?}")
        })?;
        images.retain(|number, _| !went.contains(number));
        let images = &self.ranks[&rank];
        let still = states(images).take(STATES).count();
        demand(still >= kept || cause != Cause::Needless, PROPERTY, || {
            format!("image {went:?} of {rank:?} goes, and only {still} of {kept} states stay")
        })
    }

    /// A rank's last image is there, or may come back.
    pub fn has_last(&self, rank: RankId) -> bool {
        let counts = |last: &u64| self.ranks.get(&rank).is_some_and(|it| it.contains_key(last));
        self.last.get(&rank).is_some_and(counts)
    }

    /// All ranks of a job are said to have finished.
    pub fn finished(&self, rank: RankId) -> Verdict {
        let there = self.has_last(rank);
        demand(there, PROPERTY, || format!("{rank:?} has finished, and its last image is lost"))
    }

    /// States before this one are not gone back to any more: there are as many as are kept from it
    /// on. A rank that begins anew has none.
    pub fn floor(&mut self, rank: RankId, floor: u64) -> Verdict {
        let before = self.floors.insert(rank, floor).unwrap_or(0);
        let images = self.ranks.get(&rank).into_iter();
        let kept = images.flat_map(states).filter(|state| *state >= floor).count();
        demand(kept >= STATES || floor <= before, PROPERTY, || {
            format!(
                "{rank:?} is not to go back behind {floor}, and has {kept} states from there on"
            )
        })
    }

    /// A rank is said to have lost all images from its floor on: each went because nobody had it.
    pub fn is_lost(&self, rank: RankId, floor: u64) -> Verdict {
        let images = self.ranks.get(&rank);
        let counts = images.is_some_and(|images| images.range(floor..).next().is_some());
        demand(!counts, PROPERTY, || format!("{rank:?} is lost, and has images"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Incarnation;

    const RANK: RankId = (1, 0);

    fn node(number: u32, life: u64) -> Member {
        Member { node: NodeId(number), incarnation: Incarnation(life) }
    }

    fn place(generation: u64) -> Place {
        Place { job: 1, rank: 0, start: 1, generation }
    }

    /// These are left, at the first node.
    fn at_one<const MANY: usize>(images: [u64; MANY]) -> Left {
        images.map(|number| (number, BTreeSet::from([node(1, 1)]))).into()
    }

    /// Three full images and an increment, each at one node.
    fn kept() -> Kept {
        let mut kept = Kept::default();
        for (generation, parent) in [(1, None), (2, None), (3, Some(2))] {
            kept.committed(place(generation), parent, node(1, 1));
        }
        kept
    }

    #[test]
    fn a_needed_image_that_goes_is_seen() {
        kept().left(RANK, Cause::Needless, &at_one([2, 3])).unwrap();
        assert!(kept().left(RANK, Cause::Needless, &at_one([1])).is_err(), "one state stays");
        assert!(kept().left(RANK, Cause::Nothing, &at_one([2, 3])).is_err());
        assert!(kept().left(RANK, Cause::Lost, &at_one([1, 2])).is_err(), "it is held");
        assert!(kept().left(RANK, Cause::Start, &at_one([1, 2])).is_err(), "it is the newest");
        assert!(kept().left(RANK, Cause::Needless, &at_one([1, 2, 3, 4])).is_err());
    }

    #[test]
    fn a_start_from_half_a_state_is_seen() {
        let mut kept = kept();
        kept.started(RANK, Some(place(3))).unwrap();
        kept.finished(RANK).unwrap();
        assert!(kept.started(RANK, Some(place(2))).is_err());
        kept.lost(place(2), node(1, 1));
        assert!(kept.started(RANK, Some(place(3))).is_err(), "what is below is lost");
        assert!(kept.started(RANK, Some(place(1))).is_err(), "later images count");
        kept.left(RANK, Cause::Lost, &at_one([1])).unwrap();
        kept.started(RANK, Some(place(1))).unwrap();
    }

    #[test]
    fn a_rank_that_is_called_lost_too_early_is_seen() {
        let mut kept = kept();
        assert!(kept.is_lost(RANK, 0).is_err(), "its images count");
        assert!(kept.floor(RANK, 2).is_ok() && kept.floor(RANK, 3).is_err());
        for generation in 1..=3 {
            kept.lost(place(generation), node(1, 1));
        }
        kept.left(RANK, Cause::Lost, &Left::new()).unwrap();
        kept.is_lost(RANK, 0).unwrap();
        assert!(kept.finished(RANK).is_err(), "its results are gone");
    }

    #[test]
    fn a_rank_that_leaves_without_its_state_is_seen() {
        let mut kept = kept();
        kept.moves(RANK, Some(NodeId(2)));
        kept.committed(place(4), Some(3), node(1, 1));
        kept.held(place(4), node(2, 1));
        assert!(kept.moved(RANK).is_err(), "what is below is not there");
        kept.moves(RANK, Some(NodeId(2)));
        kept.committed(place(5), None, node(1, 1));
        kept.held(place(5), node(2, 1));
        kept.moved(RANK).unwrap();
        assert!(kept.moved(RANK).is_err(), "nobody has said that it is to");
    }

    #[test]
    fn who_is_gone_may_come_back_with_its_copy() {
        let mut kept = kept();
        kept.gone(node(1, 1));
        assert!(kept.left(RANK, Cause::Lost, &[(1, BTreeSet::new())].into()).is_err());
        kept.held(place(1), node(1, 2));
        assert!(kept.left(RANK, Cause::Start, &at_one([1])).is_err(), "that life is over");
        kept.left(RANK, Cause::Start, &[(1, [node(1, 2)].into())].into()).unwrap();
        kept.started(RANK, Some(place(1))).unwrap();
    }
}
