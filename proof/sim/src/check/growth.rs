//! Nodes that come and go: one at a time, each number once, and the quorum is a majority of the
//! nodes before and after (`docs/protocol/growth.md`).

use std::collections::{BTreeMap, BTreeSet};

use engine::{GrowthStatus, RosterNews};
use wire::ordered::Place;
use wire::roster::Roster;
use wire::{Member, NodeId, RingId};

use super::{Verdict, demand};

const PROPERTY: &str = "growth";

/// The rosters that were told of.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// The place of the proposal that each member knows to be under way.
    moving: BTreeMap<Member, (NodeId, Place)>,
    /// The proposal of the newest roster in force: from then on all quorate ones know of it.
    proposed: Place,
    retired: BTreeSet<NodeId>,
    /// The roster on each node's disk.
    disks: BTreeMap<NodeId, Roster>,
    /// The roster with which each member was in a component last: what it tells of earlier ones is
    /// in there.
    seen: BTreeMap<Member, Place>,
    /// Members of which it is not known with which nodes their component began.
    missed: BTreeSet<Member>,
}

impl Growth {
    /// A component begins at a member, which knows these nodes.
    pub fn installed(
        &mut self,
        me: Member,
        (epoch, ring): (u64, RingId),
        members: &[Member],
        known: &GrowthStatus,
    ) -> Verdict {
        let nodes: Vec<NodeId> = known.seats.iter().map(|seat| seat.node).collect();
        self.missed.remove(&me);
        self.seen.insert(me, known.stamp);
        self.moving.remove(&me);
        if let Some((node, comes, _)) = &known.moving {
            self.moving.insert(me, (*node, known.stamp));
            let mut next: Vec<NodeId> = nodes.iter().copied().filter(|it| it != node).collect();
            next.extend(comes.then_some(*node));
            if known.stamp.epoch < epoch {
                self.has_most(ring, members, &next)?;
            }
        }
        // A change in this component counts from the next one on.
        if known.stamp.epoch < epoch {
            self.has_most(ring, members, &nodes)?;
        }
        let again = nodes.iter().find(|node| self.retired.contains(node));
        demand(again.is_none(), PROPERTY, || {
            format!("{me} counts {again:?} in {ring}, which was retired")
        })?;
        demand(known.stamp >= self.proposed, PROPERTY, || {
            let (stamp, known) = (self.proposed, known.stamp);
            format!("{ring} is quorate and knows the nodes of {known:?}; later: {stamp:?}")
        })
    }

    fn has_most(&self, ring: RingId, members: &[Member], nodes: &[NodeId]) -> Verdict {
        let here = nodes.iter().filter(|node| members.iter().any(|member| member.node == **node));
        let (here, all) = (here.count(), nodes.len());
        demand(here * 2 > all, PROPERTY, || {
            format!("{ring} of {members:?} is quorate, with {here} of {all} nodes: {nodes:?}")
        })
    }

    /// A component begins at a member, and with which nodes is not known.
    pub fn missed(&mut self, me: Member) {
        self.moving.remove(&me);
        self.missed.insert(me);
    }

    /// A node's disk has a roster. Returns the nodes whose retirement is final with that: most of
    /// those that count have it.
    pub fn kept(&mut self, node: NodeId, roster: &Roster) -> Vec<NodeId> {
        self.disks.insert(node, roster.clone());
        let has = |other: &NodeId| self.disks.get(other).is_some_and(|it| it.stamp >= roster.stamp);
        let most = roster.nodes().filter(has).count() * 2 > roster.seats.len();
        let gone = roster.retired.iter().map(|seat| seat.node).filter(|_| most);
        let news: Vec<NodeId> = gone.filter(|node| !self.retired.contains(node)).collect();
        self.retired.extend(&news);
        news
    }

    /// A member tells of a change.
    pub fn moved(&mut self, me: Member, news: RosterNews, stamp: Place) -> Verdict {
        if self.seen.get(&me).is_some_and(|seen| stamp <= *seen) {
            return Ok(());
        }
        match news {
            RosterNews::Coming(node) | RosterNews::Going(node) => {
                let before = self.moving.insert(me, (node, stamp));
                demand(before.is_none(), PROPERTY, || {
                    format!("{me} has {node} move while another change is under way: {before:?}")
                })?;
                let comes = matches!(news, RosterNews::Coming(_));
                demand(!(comes && self.retired.contains(&node)), PROPERTY, || {
                    format!("{me} has {node} come, which was retired")
                })
            }
            RosterNews::Withdrawn(_) => {
                self.moving.remove(&me);
                Ok(())
            }
            RosterNews::Dismissed => Ok(()),
            RosterNews::Admitted(node) | RosterNews::Retired(node) => {
                let Some((mover, proposed)) = self.moving.remove(&me) else {
                    let missed = self.missed.contains(&me);
                    return demand(missed, PROPERTY, || format!("{me}: {news:?} out of nothing"));
                };
                demand(mover == node, PROPERTY, || format!("{me}: {news:?} instead of {mover}"))?;
                self.proposed = self.proposed.max(proposed);
                Ok(())
            }
        }
    }
}
