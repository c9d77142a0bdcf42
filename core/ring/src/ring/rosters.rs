//! The nodes that this one knows: they change while it runs (`docs/protocol/growth.md`).
//!
//! To the ring a roster is bytes and a stamp. Each Join and Beacon has its sender's stamp; a node
//! that hears an older one sends the later roster. So a node that was away, or is to come, or has
//! gone, learns what the others have decided before it is in a ring with them.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::Place;
use wire::ring::Message;
use wire::roster::RosterPart;
use wire::{Extension, Member, NodeId, Time};

use super::{Ring, State};
use crate::gather::{Gather, Sets};
use crate::roll::Roll;
use crate::{Output, Route};

impl Ring {
    /// The nodes that this one knows from now on, as the roster of this stamp says, and its bytes for
    /// those who have an older one; `gone` are told so if they come back. A roster that is not later
    /// than the last changes nothing. This node stays in its own list: that it has gone is not for
    /// the ring to judge.
    pub fn set_nodes(
        &mut self,
        now: Time,
        stamp: Place,
        (nodes, gone): (&[NodeId], &[NodeId]),
        roster: Bytes,
    ) {
        if stamp <= self.roll.stamp {
            return;
        }
        self.roll = Roll { stamp, bytes: roster, coming: None };
        let me = self.config.me.node;
        let come = nodes.iter().copied().filter(|node| self.out.nodes.place(*node).is_none());
        let come: Vec<NodeId> = come.collect();
        let mut changed: Vec<usize> =
            come.iter().filter_map(|node| self.out.nodes.add(*node)).collect();
        // Those that are to be told have what is left of the places.
        let told = gone.iter().filter(|node| **node != me);
        let seated: Vec<NodeId> =
            told.copied().filter(|it| self.out.nodes.seat(*it).is_none()).collect();
        seated.iter().for_each(|node| _ = self.out.nodes.add(*node));
        let gone: Vec<NodeId> = self.out.nodes.iter().map(|(_, node)| node).collect();
        let gone = gone.into_iter().filter(|node| *node != me && !nodes.contains(node));
        let gone: Vec<NodeId> = gone.collect();
        changed.extend(gone.iter().filter_map(|node| self.out.nodes.remove(*node)));
        for place in &changed {
            self.neighbours.changed(&self.out.nodes, *place);
        }
        if !changed.is_empty() {
            self.out.push(Output::Nodes(self.out.nodes.clone()));
        }
        self.go_on_without(now, &gone, !nodes.contains(&me));
    }

    /// Forms the ring once more, of its members and whoever is there: for those who judge the next
    /// configuration by something that they did not know at the last.
    pub fn form_anew(&mut self, now: Time) {
        if let State::Operational(_) = self.state {
            let sets = Sets::of(&self.order.members);
            self.gather(now, Gather::new(self.config.me, sets), None);
        }
    }

    /// The stamp of this node's roster.
    pub fn roster(&self) -> Place {
        self.roll.stamp
    }

    /// Nodes that have gone are in no ring with this one, and in no proposal. If this one has gone
    /// itself, it asks the others at once: they answer that it has.
    fn go_on_without(&mut self, now: Time, gone: &[NodeId], this_too: bool) {
        let sets = match &self.state {
            State::Gather(gather) => gather.sets.clone(),
            State::Commit(forming) => forming.sets.clone(),
            State::Recovery(recovery) => recovery.sets.clone(),
            State::Operational(_) => Sets::of(&self.order.members),
            State::Left => return,
        };
        let mut rest = sets.clone();
        gone.iter().for_each(|node| rest.forget(*node));
        let gathers = match &self.state {
            State::Gather(gather) => Some(gather.alone_at),
            _ => None,
        };
        if rest != sets || gathers.is_some() || this_too {
            // The others learn at once that it has the roster that they have.
            let mut gather = Gather::new(self.config.me, rest);
            gather.alone_at = gathers.unwrap_or_default();
            self.gather(now, gather, None);
        }
    }

    /// The end of Joins and Beacons.
    pub(super) fn extension(&self) -> Extension {
        Extension::of(self.roll.stamp)
    }

    /// Sends this node's roster to one that has an older one; to one that has gone, always: it waits to
    /// hear that it may end.
    pub(super) fn compare_rosters(&mut self, sender: Member, theirs: &Extension) {
        let nodes = &self.out.nodes;
        let gone = nodes.seat(sender.node).is_some() && nodes.place(sender.node).is_none();
        let (theirs, ours) = (theirs.stamp(), self.roll.stamp);
        if theirs > ours || theirs == ours && !gone {
            return;
        }
        for part in RosterPart::of(ours, &self.roll.bytes) {
            let datagram = self.out.encode(Message::RosterPart(part));
            self.out.send_seat(sender.node, datagram, Route::Every);
        }
    }

    /// A part of a roster has come: of a later one, or of this node's own, which the sender has, too.
    pub(super) fn on_roster(&mut self, sender: Member, part: RosterPart) {
        let from = sender.node;
        if part.stamp == self.roll.stamp && part.part == 0 {
            self.out.push(Output::Roster { from, roster: self.roll.bytes.clone() });
        }
        if part.stamp > self.roll.stamp
            && let Some(roster) = self.roll.take(part)
        {
            self.out.push(Output::Roster { from, roster });
        }
    }
}
