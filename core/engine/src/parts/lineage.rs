//! Where two histories that meet have parted, and how many calls one of them has since
//! (`docs/protocol/group.md`, "Histories that meet").

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wire::limits::MAX_LINEAGE;
use wire::ordered::{Lineage, Place};
use wire::{Member, RingId};

/// The components of this node's history, and of the other members'.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineages {
    /// The first component of this history, if it is known.
    root: RingId,
    /// The last places of its components, oldest first.
    ends: Vec<Place>,
    /// The same of the present configuration's members.
    told: BTreeMap<Member, Lineage>,
}

impl Lineages {
    /// The first component of this history.
    pub(crate) fn root(&self) -> RingId {
        self.root
    }

    /// Where the last component of this history ended.
    pub(crate) fn last(&self) -> Place {
        self.ends.last().copied().unwrap_or_default()
    }

    /// A component ends here; another configuration begins.
    pub(crate) fn ended(&mut self, end: Option<Place>) {
        self.told.clear();
        let Some(end) = end else { return };
        if self.ends.last().is_some_and(|last| is_same(last, &end)) {
            return;
        }
        if self.ends.len() == MAX_LINEAGE {
            self.ends.remove(0);
        }
        self.ends.push(end);
    }

    /// This node's, which the others are to know, for this configuration.
    pub(crate) fn own(&self, ring: RingId) -> Lineage {
        Lineage { ring, ends: self.ends.clone() }
    }

    /// A member's history.
    pub(crate) fn heard(&mut self, member: Member, lineage: Lineage) {
        self.told.insert(member, lineage);
    }

    /// The last place that this node's history and that of this member have in common. None of
    /// none: they have nothing in common, or it is forgotten. None: nothing is known of that.
    pub(crate) fn common(&self, other: Member) -> Option<Option<Place>> {
        let other = self.told.get(&other)?;
        Some(self.ends.iter().rev().find_map(|end| {
            let same = other.ends.iter().rev().find(|it| is_same(it, end))?;
            Some(Place { sequence: end.sequence.min(same.sequence), ..*end })
        }))
    }

    /// The installer's history goes on in this component.
    pub(crate) fn adopt(
        &mut self,
        installer: Member,
        root: Option<RingId>,
        (epoch, ring): (u64, RingId),
    ) {
        if let Some(lineage) = self.told.get(&installer) {
            self.ends.clone_from(&lineage.ends);
        }
        let first = (epoch == 1).then_some(ring);
        self.root = root.or(first).unwrap_or_default();
    }
}

fn is_same(one: &Place, other: &Place) -> bool {
    (one.epoch, one.ring) == (other.epoch, other.ring)
}

/// How many calls a replica's history had at the ends of components.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// When the replica got its state, as far as is known.
    origin: Option<u64>,
    /// Before those that follow.
    before: u64,
    /// Messages of the present component that some member may lack: the place of each, and how many
    /// calls the history has with it.
    recent: VecDeque<(u64, u64)>,
    marks: Vec<Mark>,
    /// Calls of histories that were given up here.
    discarded: u64,
    /// The replica had all of the last component's history: it was one of its synced members.
    follows: bool,
}

/// The end of a component.
#[derive(Clone, Debug)]
struct Mark {
    end: Place,
    before: u64,
    recent: VecDeque<(u64, u64)>,
}

impl Mark {
    /// The number of calls with this place of the component.
    fn calls(&self, sequence: u64) -> u64 {
        let last = self.recent.iter().rev().find(|(at, _)| *at <= sequence);
        last.map_or(self.before, |(_, calls)| *calls)
    }
}

impl Counts {
    /// The replica takes the message of this place: its history has so many calls with it. All
    /// members have everything up to `held`.
    pub(crate) fn took(&mut self, sequence: u64, calls: u64, held: u64) {
        while let Some((_, before)) = self.recent.front().filter(|(at, _)| *at <= held) {
            self.before = *before;
            self.recent.pop_front();
        }
        self.origin.get_or_insert(calls.saturating_sub(1));
        if self.recent.is_empty() {
            self.before = self.before.max(calls.saturating_sub(1));
        }
        self.recent.push_back((sequence, calls));
    }

    /// Whether the history of the component that ends is the replica's.
    pub(crate) fn follows(&mut self, follows: bool) {
        self.follows = follows;
    }

    /// The replica's history is that of the last component.
    pub(crate) fn is_of_component(&self) -> bool {
        self.follows
    }

    /// The component ends here.
    pub(crate) fn mark(&mut self, end: Place, calls: u64) {
        self.origin.get_or_insert(calls);
        let recent = core::mem::take(&mut self.recent);
        let before = if recent.is_empty() { calls } else { self.before };
        if self.marks.len() == MAX_LINEAGE {
            self.marks.remove(0);
        }
        self.marks.push(Mark { end, before, recent });
        self.before = calls;
    }

    /// The calls since this place; `None`: since the replica has a state.
    pub(crate) fn since(&self, at: Option<Place>) -> u64 {
        let total = self.marks.last().map_or(0, |last| last.calls(u64::MAX));
        let known = at.and_then(|at| {
            let mark = self.marks.iter().rev().find(|mark| is_same(&mark.end, &at))?;
            Some(mark.calls(at.sequence))
        });
        // It came, or the group began, after the histories had parted.
        let origin = self.origin.filter(|_| at.is_some()).unwrap_or(0);
        total.saturating_sub(known.unwrap_or(origin))
    }

    /// So many calls are gone for good. Returns how many that are, with those of earlier times.
    pub(crate) fn discard(&mut self, calls: u64) -> u64 {
        self.discarded += calls;
        self.discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn end(epoch: u64, sequence: u64) -> Place {
        let ring = RingId { sequence: epoch * 10, representative: NodeId(1) };
        Place { epoch, ring, sequence }
    }

    /// The other side's component of this number.
    fn other(epoch: u64, sequence: u64) -> Place {
        let ring = RingId { sequence: epoch * 10, representative: NodeId(3) };
        Place { epoch, ring, sequence }
    }

    fn lineages(own: &[Place], others: &[Place]) -> Lineages {
        let mut lineages = Lineages::default();
        own.iter().for_each(|end| lineages.ended(Some(*end)));
        let lineage = Lineage { ring: RingId::default(), ends: others.to_vec() };
        lineages.heard(member(3), lineage);
        lineages
    }

    #[test]
    fn two_histories_parted_where_the_shorter_of_both_ended() {
        let parted = lineages(&[end(1, 9), end(2, 50), end(3, 8)], &[end(2, 48), other(3, 7)]);
        assert_eq!(parted.common(member(3)), Some(Some(end(2, 48))));
        assert_eq!(parted.common(member(4)), None, "it said nothing");
        let strange = lineages(&[end(1, 9)], &[other(1, 9)]);
        assert_eq!(strange.common(member(3)), Some(None));
    }

    #[test]
    fn the_history_that_stays_is_everybodys() {
        let mut lineages = lineages(&[end(1, 9), end(2, 50)], &[end(1, 9), other(2, 7)]);
        let root = end(1, 9).ring;
        lineages.adopt(member(3), Some(root), (3, other(3, 0).ring));
        assert_eq!(lineages.own(root).ends, [end(1, 9), other(2, 7)]);
        assert_eq!(lineages.root(), root);
        lineages.adopt(member(1), None, (1, root));
        assert_eq!(lineages.root(), root, "it begins");
    }

    #[test]
    fn calls_are_counted_from_the_common_place_on() {
        let mut counts = Counts::default();
        for call in 1..=5 {
            counts.took(call * 10, call, 20);
        }
        counts.mark(end(1, 50), 5);
        counts.took(7, 6, 0);
        counts.took(9, 8, 0);
        counts.mark(end(2, 9), 8);
        assert_eq!(counts.since(Some(end(1, 50))), 3);
        assert_eq!(counts.since(Some(end(1, 30))), 5, "two more that the others lacked");
        assert_eq!([counts.discard(3), counts.discard(5)], [3, 8]);
        assert_eq!(counts.since(None), 8);
        counts.mark(end(4, 3), 8);
        assert_eq!(counts.since(Some(end(2, 9))), 0);
    }
}
