//! The nodes that count: they come and go at places in the total order (`docs/protocol/growth.md`).
//!
//! A change is proposed, and kept on each member's disk. It is in force at the place of the
//! confirmation that makes these a majority of the nodes before it and of those after it; a node
//! that comes has to be among them. Until then the quorum is a majority of both.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::limits::{MAX_MEMBERS, MAX_RETIRED, MAX_TOLD};
use wire::ordered::{Announce, Place};
use wire::roster::{Motion, Moving, Roster, RosterStep, Seat};
use wire::{Member, NodeId};

use crate::api::{GrowthError, RosterNews};
use crate::bug::{Bug, Planted};

/// The room.
#[derive(Clone, Debug)]
pub(crate) struct Roll {
    me: NodeId,
    roster: Roster,
    /// The nodes that count, in order of id.
    nodes: Vec<NodeId>,
    /// A later roster that has come from another node.
    later: Option<Roster>,
    /// Other nodes that have the latest roster, as they have said.
    known_by: BTreeSet<NodeId>,
    /// The last roster that this node's disk has, and the last that it has confirmed in this
    /// component.
    stored: Place,
    said: Option<Place>,
    planted: Planted,
}

impl Roll {
    /// The roster of the disk; without one, or if nothing was ever changed, that of the
    /// configuration.
    pub(crate) fn new(
        me: NodeId,
        configured: &[NodeId],
        kept: Option<&Roster>,
        planted: Planted,
    ) -> Roll {
        let seat = |node: &NodeId| Seat { node: *node, ring: Vec::new() };
        let seats = configured.iter().map(seat).collect();
        let kept = kept.filter(|_| !planted.is(Bug::ForgetRoster)).cloned();
        let roster = kept.unwrap_or_else(|| Roster { seats, ..Roster::default() });
        let (nodes, stored) = (roster.nodes().collect(), roster.stamp);
        Roll {
            me,
            roster,
            nodes,
            later: None,
            known_by: BTreeSet::new(),
            stored,
            said: None,
            planted,
        }
    }

    /// The nodes that count, in order of id.
    pub(crate) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The latest roster that this node has heard of.
    pub(crate) fn latest(&self) -> &Roster {
        self.later.as_ref().filter(|later| later.stamp > self.roster.stamp).unwrap_or(&self.roster)
    }

    /// Another node has this roster. True if this node has gone, and most of the others know that from
    /// now on.
    pub(crate) fn came(&mut self, from: NodeId, roster: Roster) -> bool {
        let known = self.latest().stamp;
        if roster.stamp < known {
            return false;
        }
        if roster.stamp > known {
            self.known_by.clear();
            self.later = Some(roster);
        }
        let (news, latest) = (self.known_by.insert(from), self.latest());
        let knowing = latest.nodes().filter(|node| self.known_by.contains(node)).count();
        news && latest.is_retired(self.me) && knowing == latest.seats.len() / 2 + 1
    }

    /// It is this node's from now on. True if it is later than the one before.
    pub(crate) fn take_later(&mut self) -> bool {
        match self.later.take().filter(|later| later.stamp > self.roster.stamp) {
            Some(later) => {
                self.take(later);
                true
            }
            None => false,
        }
    }

    /// The roster for this node's announcement: none, if nothing was ever changed.
    pub(crate) fn announced(&self) -> Roster {
        let changed = self.roster.stamp != Place::default();
        if changed { self.roster.clone() } else { Roster::default() }
    }

    /// The latest roster that a member announces. One of a history that was given up may be among
    /// them: then it is a proposal at most, and there is no harm in that it is one again.
    pub(crate) fn newest(&self, announces: &BTreeMap<Member, Announce>) -> Roster {
        let rosters = announces.values().map(|announce| &announce.roster);
        rosters.max_by_key(|roster| roster.stamp).cloned().unwrap_or_default()
    }

    /// The lists of nodes of each of which a quorum has a majority: the nodes that count, and those
    /// that will if the change under way comes to its end. If nothing was ever changed, this node's
    /// configuration has them.
    pub(crate) fn lists(&self, announces: &BTreeMap<Member, Announce>) -> Vec<Vec<NodeId>> {
        let newest = self.newest(announces);
        if newest.stamp == Place::default() {
            return alloc::vec![self.nodes.clone()];
        }
        let old_only = self.planted.is(Bug::QuorumOfOldListOnly);
        let next = newest.next().filter(|_| !old_only);
        core::iter::once(newest.nodes().collect()).chain(next).collect()
    }

    /// A component is installed: its roster is everybody's.
    pub(crate) fn install(&mut self, roster: &Roster) -> bool {
        self.said = None;
        if roster.stamp == Place::default() {
            return false;
        }
        let news = self.roster != *roster;
        self.take(roster.clone());
        news
    }

    fn take(&mut self, roster: Roster) {
        if roster.stamp > self.latest().stamp {
            self.known_by.clear();
        }
        self.nodes = roster.nodes().collect();
        self.roster = roster;
    }

    /// A step is delivered at this place. Returns what it has changed, for people; a change of the
    /// roster is for the disk and the ring, too. A node that is `needed` does not go.
    pub(crate) fn act(
        &mut self,
        sender: Member,
        step: RosterStep,
        place: Place,
        needed: impl FnOnce(NodeId) -> bool,
    ) -> Option<RosterNews> {
        match step {
            RosterStep::Propose { motion, base } => self.propose_at(motion, base, place),
            RosterStep::Kept(stamp) => {
                let is_this = stamp == self.roster.stamp;
                let moving = self.roster.moving.as_mut().filter(|_| is_this)?;
                if let Err(at) = moving.kept.binary_search(&sender.node) {
                    moving.kept.insert(at, sender.node);
                }
                let node = moving.motion.node();
                let goes = matches!(moving.motion, Motion::Retire(_));
                if !self.is_kept() {
                    return None;
                }
                if goes && needed(node) { self.withdraw(place) } else { self.complete(place) }
            }
            RosterStep::Withdraw(stamp) if stamp == self.roster.stamp => self.withdraw(place),
            RosterStep::Withdraw(_) => None,
        }
    }

    fn propose_at(&mut self, motion: Motion, base: Vec<Seat>, place: Place) -> Option<RosterNews> {
        if self.roster.stamp == Place::default() && !base.is_empty() {
            // Configurations may differ, and from here on all have the same.
            self.take(Roster { seats: base, ..Roster::default() });
        }
        let twice = self.planted.is(Bug::AdmitTwice) && self.roster.moving.is_some();
        if twice {
            self.complete(place);
        }
        self.check(&motion).ok()?;
        let node = motion.node();
        let comes = matches!(motion, Motion::Admit(_));
        self.roster.stamp = place;
        self.roster.moving = Some(Moving { motion, kept: Vec::new() });
        Some(if comes { RosterNews::Coming(node) } else { RosterNews::Going(node) })
    }

    /// The change is given up.
    fn withdraw(&mut self, place: Place) -> Option<RosterNews> {
        let moving = self.roster.moving.take()?;
        self.roster.stamp = place;
        Some(RosterNews::Withdrawn(moving.motion.node()))
    }

    /// Whether enough disks have the change.
    fn is_kept(&self) -> bool {
        let Some(Moving { motion, kept }) = &self.roster.moving else { return false };
        let most = |nodes: &[NodeId]| {
            nodes.iter().filter(|node| kept.contains(node)).count() * 2 > nodes.len()
        };
        let next = self.roster.next().expect("a change is under way");
        let old_only = self.planted.is(Bug::QuorumOfOldListOnly);
        let came = !matches!(motion, Motion::Admit(seat) if !kept.contains(&seat.node));
        most(&self.nodes) && (old_only || came && most(&next))
    }

    /// The change is in force.
    fn complete(&mut self, place: Place) -> Option<RosterNews> {
        let Moving { motion, .. } = self.roster.moving.take()?;
        let mut roster = core::mem::take(&mut self.roster);
        roster.stamp = place;
        let news = match motion {
            Motion::Admit(seat) => {
                let node = seat.node;
                let at = roster.seats.binary_search_by_key(&node, |seat| seat.node);
                roster.seats.insert(at.unwrap_or_else(|at| at), seat);
                RosterNews::Admitted(node)
            }
            Motion::Retire(node) => {
                let gone = roster.seats.iter().find(|seat| seat.node == node).cloned();
                let counts = self.planted.is(Bug::CountRetired);
                roster.seats.retain(|seat| seat.node != node || counts);
                roster.retired.extend(gone);
                if roster.retired.len() > MAX_RETIRED {
                    roster.retired.remove(0);
                }
                let older = roster.retired.iter_mut().rev().skip(MAX_TOLD);
                older.for_each(|seat| seat.ring.clear());
                RosterNews::Retired(node)
            }
        };
        self.take(roster);
        Some(news)
    }

    /// This node's disk has the roster of this stamp.
    pub(crate) fn kept(&mut self, stamp: Place) {
        self.stored = self.stored.max(stamp);
    }

    /// The confirmation that the last change is on the disk, if it is due.
    pub(crate) fn confirmation(&mut self) -> Option<RosterStep> {
        let stamp = self.roster.stamp;
        let moving = self.roster.moving.as_ref().filter(|_| self.stored == stamp)?;
        if moving.kept.contains(&self.me) || self.said == Some(stamp) {
            return None;
        }
        self.said = Some(stamp);
        Some(RosterStep::Kept(stamp))
    }

    /// Whether this change is possible now.
    pub(crate) fn check(&self, motion: &Motion) -> Result<(), GrowthError> {
        let node = motion.node();
        if let Some(moving) = &self.roster.moving {
            return Err(GrowthError::UnderWay(moving.motion.node()));
        }
        match motion {
            Motion::Admit(_) if self.roster.is_retired(node) => Err(GrowthError::Retired(node)),
            Motion::Admit(_) if self.roster.has(node) => Err(GrowthError::Member(node)),
            Motion::Admit(_) if self.nodes.len() >= MAX_MEMBERS => Err(GrowthError::Full),
            Motion::Retire(_) if !self.roster.has(node) => Err(GrowthError::Unknown(node)),
            Motion::Retire(_) if self.nodes.len() == 1 => Err(GrowthError::Last),
            Motion::Admit(_) | Motion::Retire(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use wire::{Incarnation, RingId};

    use super::*;

    fn place(sequence: u64) -> Place {
        Place { epoch: 1, ring: RingId::default(), sequence }
    }

    fn roll(nodes: u32) -> Roll {
        let nodes: Vec<NodeId> = (1..=nodes).map(NodeId).collect();
        Roll::new(NodeId(1), &nodes, None, Planted::default())
    }

    fn seat(node: u32) -> Seat {
        Seat { node: NodeId(node), ring: Vec::new() }
    }

    fn propose(roll: &Roll, motion: Motion) -> RosterStep {
        RosterStep::Propose { motion, base: roll.roster().seats.clone() }
    }

    fn keep(roll: &mut Roll, node: u32, stamp: u64, at: u64) -> Option<RosterNews> {
        let sender = Member { node: NodeId(node), incarnation: Incarnation(1) };
        roll.act(sender, RosterStep::Kept(place(stamp)), place(at), |node| node == NodeId(9))
    }

    fn any() -> Member {
        Member { node: NodeId(1), incarnation: Incarnation(1) }
    }

    #[test]
    fn a_node_counts_once_most_nodes_before_and_after_and_it_have_kept_that() {
        let mut roll = roll(3);
        let step = propose(&roll, Motion::Admit(seat(4)));
        assert_eq!(roll.act(any(), step, place(5), |_| false), Some(RosterNews::Coming(NodeId(4))));
        assert_eq!((roll.nodes().len(), roll.roster().heard().len()), (3, 4));
        roll.kept(place(4));
        assert_eq!(roll.confirmation(), None, "that is not the last change");
        roll.kept(place(5));
        assert_eq!(roll.confirmation(), Some(RosterStep::Kept(place(5))));
        assert_eq!(roll.confirmation(), None, "it is said once");
        for (node, at) in [(1, 6), (2, 7), (3, 8)] {
            assert_eq!(keep(&mut roll, node, 5, at), None, "node 4 has not come");
        }
        assert_eq!(keep(&mut roll, 4, 5, 9), Some(RosterNews::Admitted(NodeId(4))));
        assert_eq!((roll.nodes().len(), roll.roster().stamp), (4, place(9)));
    }

    #[test]
    fn a_lone_node_takes_in_the_second_when_both_have_kept_that() {
        let mut roll = roll(1);
        let step = propose(&roll, Motion::Admit(seat(2)));
        roll.act(any(), step, place(5), |_| false).unwrap();
        assert_eq!(keep(&mut roll, 1, 5, 6), None);
        assert_eq!(keep(&mut roll, 2, 5, 7), Some(RosterNews::Admitted(NodeId(2))));
    }

    #[test]
    fn one_change_at_a_time_and_a_number_is_never_used_again() {
        let mut roll = roll(3);
        let step = propose(&roll, Motion::Retire(NodeId(3)));
        assert_eq!(roll.act(any(), step, place(5), |_| false), Some(RosterNews::Going(NodeId(3))));
        let other = propose(&roll, Motion::Admit(seat(4)));
        assert_eq!(roll.check(&Motion::Admit(seat(4))), Err(GrowthError::UnderWay(NodeId(3))));
        assert_eq!(roll.act(any(), other, place(6), |_| false), None);
        assert_eq!(keep(&mut roll, 1, 5, 7), None);
        assert_eq!(keep(&mut roll, 2, 5, 8), Some(RosterNews::Retired(NodeId(3))));
        assert_eq!(roll.nodes(), [NodeId(1), NodeId(2)]);
        assert_eq!(roll.check(&Motion::Admit(seat(3))), Err(GrowthError::Retired(NodeId(3))));
        assert_eq!(roll.check(&Motion::Admit(seat(2))), Err(GrowthError::Member(NodeId(2))));
        assert_eq!(roll.check(&Motion::Retire(NodeId(9))), Err(GrowthError::Unknown(NodeId(9))));
    }

    #[test]
    fn a_node_that_is_needed_does_not_go() {
        let nodes = [NodeId(1), NodeId(9)];
        let mut roll = Roll::new(NodeId(1), &nodes, None, Planted::default());
        let step = propose(&roll, Motion::Retire(NodeId(9)));
        roll.act(any(), step, place(5), |_| false).unwrap();
        assert_eq!(keep(&mut roll, 1, 5, 6), None);
        assert_eq!(keep(&mut roll, 9, 5, 7), Some(RosterNews::Withdrawn(NodeId(9))));
        assert_eq!(roll.nodes(), nodes);
    }

    #[test]
    fn a_change_is_given_up_and_the_last_node_stays() {
        let mut roll = roll(1);
        assert_eq!(roll.check(&Motion::Retire(NodeId(1))), Err(GrowthError::Last));
        let step = propose(&roll, Motion::Admit(seat(2)));
        roll.act(any(), step, place(5), |_| false).unwrap();
        let stale = RosterStep::Withdraw(place(4));
        assert_eq!(roll.act(any(), stale, place(6), |_| false), None);
        let news = roll.act(any(), RosterStep::Withdraw(place(5)), place(7), |_| false);
        assert_eq!(news, Some(RosterNews::Withdrawn(NodeId(2))));
        assert_eq!((roll.roster().moving.clone(), roll.roster().stamp), (None, place(7)));
        assert_eq!(roll.nodes(), vec![NodeId(1)]);
    }
}
