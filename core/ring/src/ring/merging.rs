//! How rings meet: what is heard from outside, what this node shows, and when it proposes a merge.

use alloc::vec::Vec;

use wire::ring::{Beacon, Join, Message};
use wire::{Member, NodeId, RingId, Time};

use super::{Ring, State};
use crate::gather::{Gather, Sets};
use crate::{Event, Route};

impl Ring {
    /// A message of a ring that this node is not in.
    pub(crate) fn on_stranger(&mut self, now: Time, sender: Member, ring: RingId) {
        // A ring that this node was in itself: the message is late, or its sender will gather
        // as this node did.
        if ring == self.order.id || self.past.contains(&ring) {
            return;
        }
        if matches!(self.state, State::Operational(_)) {
            let member = self.order.index_of(sender).is_some();
            if member && ring.sequence < self.order.id.sequence {
                return; // Late, from before it came to this ring.
            }
            if member || self.is_new_life(sender) {
                let mut sets = Sets::of(&self.order.members);
                sets.propose(sender);
                return self.gather(now, Gather::new(self.config.me, sets), None);
            }
        }
        self.hear_outside(now, sender);
    }

    /// A member of the ring has started anew: the life that is in the ring is over.
    fn is_new_life(&self, sender: Member) -> bool {
        self.order.members.iter().any(|m| m.node == sender.node && *m < sender)
    }

    /// Something came from a node that is not in the ring. It is told that it was heard.
    fn hear_outside(&mut self, now: Time, sender: Member) {
        if self.neighbours.heard(now, &self.config.timing, sender) {
            self.neighbours.show_soon(now, &self.config.timing);
        }
    }

    /// A ring shows itself. Where all of its members and all of ours hear each other, both ways,
    /// they are proposed for one ring.
    pub(crate) fn on_beacon(&mut self, now: Time, sender: Member, beacon: &Beacon) {
        let inside = self.order.index_of(sender).is_some() || self.is_new_life(sender);
        let operational = matches!(self.state, State::Operational(_));
        if operational && inside || self.past.contains(&beacon.ring) {
            return self.on_stranger(now, sender, beacon.ring);
        }
        let timing = &self.config.timing;
        if self.neighbours.is_late(now, timing, sender, beacon.ring.sequence) {
            return;
        }
        if self.neighbours.said(now, timing, sender, beacon) {
            self.neighbours.show_soon(now, timing);
        }
        // One from the last ring has come to a newer one without this node.
        if beacon.ring.sequence > self.order.id.sequence
            && self.order.index_of(sender).is_some()
            && !beacon.members.contains(&self.config.me.node)
            && let State::Gather(gather) = &mut self.state
        {
            gather.excluded_by(sender);
            return self.go_alone(now);
        }
        if operational {
            let ours = self.neighbours.places(self.order.members.iter().map(|member| member.node));
            if let Some(lives) = self.neighbours.mergeable(now, timing, ours, sender) {
                let mut sets = Sets::of(&self.order.members);
                for life in lives {
                    sets.propose(life);
                }
                self.gather(now, Gather::new(self.config.me, sets), None);
            }
        }
    }

    /// Whether a join of a stranger may make this ring gather: it names only nodes that are
    /// welcome, and accuses none of ours (that would tear a ring apart that works); and it is not
    /// one from before the ring that the stranger has now.
    pub(crate) fn admits(&mut self, now: Time, sender: Member, join: &Join) -> bool {
        let ours = |member: Member| self.order.index_of(member).is_some();
        if join.those(join.failed).any(|member| ours(member) || member == sender) {
            return false;
        }
        if self.is_new_life(sender) {
            return true;
        }
        if self.neighbours.is_late(now, &self.config.timing, sender, join.ring_sequence) {
            return false;
        }
        self.hear_outside(now, sender);
        let ours = |member: &Member| self.order.index_of(*member).is_some();
        let strangers = join.those(!join.failed).filter(|member| !ours(member));
        let timing = &self.config.timing;
        self.neighbours.welcomes(now, timing, sender)
            && strangers.into_iter().all(|member| self.neighbours.welcomes(now, timing, member))
    }

    /// Whether there is anybody outside to show oneself to, and when that is due.
    pub(crate) fn show_at(&self) -> Option<Time> {
        let due = match &self.state {
            State::Operational(_) => self.order.members.len() < self.out.nodes.len(),
            State::Gather(_) => self.installed || self.neighbours.show_at < Time::FAR,
            State::Commit(_) | State::Recovery(_) | State::Left => false,
        };
        due.then_some(self.neighbours.show_at).filter(|at| *at < Time::FAR)
    }

    /// Shows the ring to those outside: its representative to all, the others to those who are
    /// heard. A node that gathers shows itself to the rings that showed themselves.
    pub(crate) fn show(&mut self, now: Time) {
        let timing = &self.config.timing;
        let nodes = |members: &mut dyn Iterator<Item = Member>| -> Vec<NodeId> {
            members.map(|member| member.node).collect()
        };
        let (members, operational) = match &self.state {
            State::Operational(_) => (nodes(&mut self.order.members.iter().copied()), true),
            State::Gather(gather) => (nodes(&mut gather.sets.live()), false),
            State::Commit(_) | State::Recovery(_) | State::Left => return,
        };
        let inside = self.neighbours.places(members.iter().copied());
        let audience = self.neighbours.audience(now, timing, inside, operational);
        let next = match operational {
            true => now + timing.beacon_interval,
            false if audience.is_empty() => Time::FAR,
            false => now + timing.join_interval,
        };
        let said = (self.config.speaks, self.extension());
        let beacon = self.neighbours.beacon(now, timing, said, (self.order.id, members));
        self.neighbours.shown(now, next);
        let datagram = self.out.encode(Message::Beacon(beacon));
        if operational && self.order.mine == 0 {
            self.out.send_to_configured(datagram, &self.order.members);
        } else {
            self.out.send_to(audience, datagram, Route::Every);
        }
    }

    /// A ring is installed: those who were lost on the way to it are held off, the longer the more
    /// often it happened.
    pub(crate) fn strike_the_lost(&mut self, now: Time, before: &[Member], slow: &[Member]) {
        let timing = &self.config.timing;
        for member in before.iter().filter(|member| self.order.index_of(**member).is_none()) {
            let replaced = self.order.members.iter().any(|m| m.node == member.node);
            let span = if replaced {
                Default::default()
            } else {
                self.neighbours.strike(now, timing, *member, slow.contains(member))
            };
            if !span.is_zero() {
                self.out.event(Event::HeldOff { member: *member, span });
            }
        }
        self.neighbours.show_soon(now, timing);
    }
}
