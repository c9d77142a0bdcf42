//! Changes of the cluster's nodes, in the ring's order.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::ordered::{Ordered, Place};
use wire::roster::{Motion, Roster, RosterStep, Seat};
use wire::versions::GROWTH;
use wire::{Member, NodeId, Time};

use crate::api::{Event, GrowthError, GrowthStatus, Output, RosterNews};
use crate::base::Base;
use crate::ordering::Ordering;

impl<O: Ordering> Base<O> {
    /// Orders a change of the nodes.
    pub(super) fn move_node(
        &mut self,
        now: Time,
        motion: Motion,
        at: impl Fn(NodeId) -> Vec<SocketAddr>,
    ) -> Result<(), GrowthError> {
        self.may_grow()?;
        let roll = self.membership.roll();
        roll.check(&motion)?;
        let known = |seat: &Seat| match seat.ring.is_empty() {
            true => Seat { ring: at(seat.node), ..seat.clone() },
            false => seat.clone(),
        };
        let base = roll.roster().seats.iter().map(known).collect();
        self.order(now, Ordered::Roster(Box::new(RosterStep::Propose { motion, base })));
        Ok(())
    }

    /// Orders that the change under way is given up.
    pub(super) fn withdraw_move(&mut self, now: Time) -> Result<(), GrowthError> {
        self.may_grow()?;
        let roster = self.membership.roll().roster();
        let stamp = roster.moving.as_ref().map(|_| roster.stamp).ok_or(GrowthError::Nothing)?;
        self.order(now, Ordered::Roster(Box::new(RosterStep::Withdraw(stamp))));
        Ok(())
    }

    fn may_grow(&self) -> Result<(), GrowthError> {
        if !self.membership.is_effective() {
            return Err(GrowthError::NoQuorum);
        }
        match self.membership.levels().level() {
            level if level < GROWTH => Err(GrowthError::Rules(level)),
            _ => Ok(()),
        }
    }

    /// A step is delivered at this place of the component.
    pub(super) fn act_on_roster(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        step: RosterStep,
    ) -> Option<RosterNews> {
        // Also where a minority goes on with it alone: that disks have a change is true everywhere.
        if self.membership.levels().level() < GROWTH {
            return None;
        }
        let (epoch, ring) = (self.membership.epoch(), self.membership.ring());
        let place = Place { epoch, ring, sequence };
        let needed = |node| self.directory.needs(node);
        let news = self.membership.act_on_roster(now, sender, step, place, needed)?;
        self.keep_roster(now);
        self.event(Event::Roster { news, stamp: place });
        Some(news)
    }

    /// A node starts with the roster of its disk.
    pub(super) fn begin_with_roster(&mut self, now: Time, kept: Option<&Roster>) {
        if kept.is_none() {
            return;
        }
        self.outbox.ordering.set_nodes(now, self.membership.roll().roster());
    }

    /// A component is installed with this roster.
    pub(super) fn install_roster(&mut self, now: Time, roster: &Roster) {
        if self.membership.roll_mut().install(roster) {
            self.keep_roster(now);
        }
        self.confirm_roster(now);
    }

    /// The driver has the roster of this stamp on its disk: the others wait to know.
    pub(super) fn roster_kept(&mut self, now: Time, stamp: Place) {
        self.membership.roll_mut().kept(stamp);
        self.confirm_roster(now);
    }

    fn confirm_roster(&mut self, now: Time) {
        if self.membership.is_active()
            && let Some(step) = self.membership.roll_mut().confirmation()
        {
            self.order(now, Ordered::Roster(Box::new(step)));
        }
    }

    /// Another node has this roster. If it is later, it counts to the ring from now on, to the quorum
    /// from the next configuration on. A node that has gone ends when most of the others know that:
    /// until then they may need its word for it.
    pub(super) fn roster_came(&mut self, now: Time, from: NodeId, roster: Roster) {
        let stamp = roster.stamp;
        if stamp > self.membership.roll().latest().stamp {
            self.outbox.ordering.set_nodes(now, &roster);
            self.outputs.push(Output::Known(roster.clone()));
            if self.membership.is_minority() {
                // By this roster it may have the quorum.
                self.outbox.ordering.form_anew(now);
            }
        }
        if self.membership.roll_mut().came(from, roster) {
            self.event(Event::Roster { news: RosterNews::Dismissed, stamp });
        }
    }

    /// A configuration begins: what has come from others since the last one counts.
    pub(super) fn take_later_roster(&mut self, now: Time) {
        if self.membership.take_later_roster(now) {
            self.keep_roster(now);
        }
    }

    /// The disk and the ring get the roster as it is.
    fn keep_roster(&mut self, now: Time) {
        let roster = self.membership.roll().roster().clone();
        self.outbox.ordering.set_nodes(now, &roster);
        self.outputs.push(Output::Keep(roster));
    }

    /// The nodes, for people.
    pub(super) fn growth(&self) -> GrowthStatus {
        let Roster { stamp, seats, retired, moving } = self.membership.roll().roster().clone();
        let moving =
            moving.map(|it| (it.motion.node(), matches!(it.motion, Motion::Admit(_)), it.kept));
        let retired = retired.into_iter().map(|seat| seat.node).collect();
        GrowthStatus { stamp, seats, retired, moving }
    }
}
