//! The attachment by the way up: asked for, renewed, and ended, and what is told by it either way.

use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::Time;

use super::{AGAIN, Heard, REPEAT, UpHandler};
use crate::bug::Bug;
use crate::command::{Attached, Attachment, Command, Epoch, Place};
use crate::limits::RENEW;
use crate::message::Message;
use crate::output::{Event, LinkId};

impl UpHandler<'_, '_> {
    /// Attaches the cell, and renews that.
    pub(super) fn attach(&mut self, now: Time) {
        let Some(link) = self.up.link() else { return };
        if !self.up.is_attached(self.links.path_of(link), self.sight) {
            if self.up.asked.is_none_or(|at| at + REPEAT <= now) {
                self.up.asked = Some(now);
                self.ask(link);
            }
            return;
        }
        if self.up.renewed.is_none() || !self.is_told() {
            // A new link, a new seat, or other nodes: the cell above learns where they are.
            self.up.renewed = Some(now);
            self.ask(link);
        } else if self.up.renewed.is_some_and(|at| at + RENEW <= now)
            && self.links.is_pinged(now, link)
        {
            self.up.renewed = Some(now);
            self.out.control(link, Message::Renew(self.sight.cell.epoch()));
        }
    }

    /// The cell above knows the cell's nodes as they are now.
    fn is_told(&self) -> bool {
        let told = |(at, nodes): &(Vec<SocketAddr>, u16)| {
            *nodes == self.sight.nodes && self.sight.links_are(at)
        };
        self.up.told.as_ref().is_some_and(told)
    }

    /// Asks for an attachment, or tells of the cell's nodes.
    fn ask(&mut self, link: LinkId) {
        self.up.told = Some((self.sight.links_at(), self.sight.nodes));
        self.out.control(link, Message::Attach(self.attachment(link)));
    }

    fn attachment(&self, link: LinkId) -> Attachment {
        let cell = self.sight.cell;
        // Another cell's attachments have numbers of their own.
        let is_its_own = cell.above().first().map(|place| &place.path) == self.links.path_of(link);
        Attachment {
            place: Place { path: cell.path().clone(), at: self.sight.links_at() },
            epoch: if is_its_own { cell.epoch() } else { Epoch(0) },
            founded: cell.founded(),
            nodes: self.sight.nodes,
        }
    }

    /// The cell above has attached this one.
    pub(in crate::router) fn attached(&mut self, now: Time, link: LinkId, attached: Attached) {
        if self.up.link() != Some(link) || !self.sight.is_seat() {
            return;
        }
        self.up.is_shunned = false;
        self.up.renewed = Some(now);
        let Attached { epoch, seen, above, .. } = attached;
        if let Some(to) = above.first().filter(|_| epoch != self.sight.cell.epoch()) {
            self.out.event(Event::Attached { to: to.path.clone(), epoch });
        }
        self.up.heard = Some(Heard { link, above: above.clone(), ordered: now });
        self.order(Command::Rise { epoch, seen, above });
    }

    /// The cell above has ended the attachment.
    pub(in crate::router) fn shunned(&mut self, now: Time, link: LinkId) {
        if self.up.link() != Some(link) || self.up.planted.is(Bug::IgnoreShunning) {
            return;
        }
        if let Some(by) = self.links.path_of(link) {
            self.out.event(Event::Shunned { by: by.clone() });
        }
        (self.up.is_shunned, self.up.asked) = (true, None);
        self.look(now);
    }

    /// The cell above refuses to attach this one: the next one above may do it.
    pub(in crate::router) fn refused(
        &mut self,
        now: Time,
        link: LinkId,
        reason: alloc::string::String,
    ) {
        let Some(way) = self.up.way.take_if(|way| way.link == link) else { return };
        self.out.event(Event::Refused { by: way.to, reason });
        self.close(link);
        self.up.level = (self.up.level + 1) % self.places().len().max(1);
        self.up.dial_at = now + AGAIN * 4;
    }

    /// The cells above are these now.
    pub(in crate::router) fn above(&mut self, now: Time, link: LinkId, above: Vec<Place>) {
        if self.up.link() != Some(link) || !self.sight.is_seat() {
            return;
        }
        self.up.heard = Some(Heard { link, above, ordered: Time::ZERO });
        self.learn(now);
    }

    /// Has the book learn the cells above.
    pub(super) fn learn(&mut self, now: Time) {
        let due = self.up.unlearned(self.sight).filter(|it| it.ordered + REPEAT <= now);
        let Some(above) = due.map(|heard| heard.above.clone()) else { return };
        if let Some(heard) = &mut self.up.heard {
            heard.ordered = now;
        }
        self.order(Command::Rise { epoch: self.sight.cell.epoch(), seen: 0, above });
    }

    pub(super) fn report(&mut self, now: Time) {
        let cell = self.sight.cell;
        let Some((link, report)) = self.up.link().zip(cell.report()) else {
            self.up.reported = None;
            return;
        };
        // Another cell's attachments have numbers of their own, and may be equal: it would take what
        // has changed since the former one for all.
        if !self.up.is_attached(self.links.path_of(link), self.sight) {
            self.up.reported = None;
            return;
        }
        let is_told = |(upto, at): (u64, Time)| upto == report.upto && at + REPEAT > now;
        if !self.up.reported.is_some_and(is_told) {
            self.up.reported = Some((report.upto, now));
            let (epoch, upto, counts) = (cell.epoch(), report.upto, report.counts);
            self.out.control(link, Message::Report { epoch, upto, counts });
        }
    }

    pub(in crate::router) fn reported(&mut self, link: LinkId, epoch: Epoch, upto: u64) {
        let cell = self.sight.cell;
        let is_attached = self.up.is_attached(self.links.path_of(link), self.sight);
        let is_its_own = self.up.link() == Some(link) && is_attached && cell.epoch() == epoch;
        if is_its_own && self.sight.is_seat() {
            self.up.reported = None;
            self.order(Command::Rise { epoch, seen: upto, above: cell.above().to_vec() });
        }
    }
}
