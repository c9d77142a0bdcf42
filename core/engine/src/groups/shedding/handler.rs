//! Orders to shed, and the calls that are turned away.

use alloc::format;
use alloc::vec::Vec;

use wire::client::{Outcome, Request};
use wire::ordered::{Classes, Shedding};
use wire::system::is_own;
use wire::{Caller, Member, NodeId, Time};

use super::{HEARD, Order, may_answer};
use crate::api::Event;
use crate::bug::Bug;
use crate::callers::OWN;
use crate::groups::{GroupHandler, Groups};
use crate::ordering::Ordering;
use crate::style::{Entry, Standing, StyleRules};

impl Groups {
    /// Returns when the next order to a host expires.
    pub(crate) fn next_shedding_timeout(&self) -> Option<Time> {
        self.load.sheds.orders.values().map(|order| order.until).min()
    }

    /// Gives a client's call its group's priority if the client has set none.
    pub(crate) fn grade(&self, request: &mut Request) {
        if request.priority == 0 {
            let unsaid = self.load.sheds.unsaid.get(&request.group);
            request.priority = unsaid.copied().unwrap_or_default();
        }
    }
}

impl<O: Ordering> GroupHandler<'_, O> {
    /// Stores an order to a host: it is to refuse more calls, fewer, or none. The order lasts for
    /// its term and is part of no history.
    pub(crate) fn shedding_told(&mut self, now: Time, shedding: Shedding) {
        let until = now + shedding.term();
        let Shedding { node, level, room, .. } = shedding;
        if !self.base.membership.members().any(|member| member.node == node) {
            return;
        }
        self.groups.load.changed();
        let before = match level {
            0 => self.groups.load.sheds.orders.remove(&node),
            _ => self.groups.load.sheds.orders.insert(node, Order { level, until, room }),
        };
        if before.map_or(0, |order| order.level) != level {
            self.tell_level(node, level);
        }
    }

    pub(crate) fn tell_level(&mut self, node: NodeId, level: u8) {
        let told = self.groups.load.usage_of(node).map_or(0, |usage| usage.refused);
        let refused = if node == self.base.me.node { self.groups.load.sheds.refused } else { told };
        self.base.event(Event::Shedding { node, level, refused });
    }

    /// Ends orders that were not repeated in time.
    pub(crate) fn end_shedding(&mut self, now: Time) {
        self.end_orders(|_, order| order.until <= now);
    }

    /// Ends orders to nodes that are not members any more.
    pub(crate) fn forget_sheds(&mut self, members: &[Member]) {
        self.end_orders(|node, _| !members.iter().any(|member| member.node == node));
    }

    fn end_orders(&mut self, ends: impl Fn(NodeId, &Order) -> bool) {
        let over = self.groups.load.sheds.orders.iter().filter(|(node, order)| ends(**node, order));
        let over: Vec<NodeId> = over.map(|(node, _)| *node).collect();
        for node in over {
            self.groups.load.changed();
            self.groups.load.sheds.orders.remove(&node);
            self.tell_level(node, 0);
        }
    }

    /// Returns the priorities of recent calls here, and how many calls were refused since the
    /// start.
    pub(crate) fn callers_told(&mut self, now: Time) -> (Classes, u64) {
        self.groups.load.sheds.heard.retain(|_, at| now < *at + HEARD);
        (self.groups.load.sheds.heard.keys().copied().collect(), self.groups.load.sheds.refused)
    }

    /// Returns the answer to a client's call if this host has too much to do for it. This node has
    /// not executed that call and never will. Calls that are known here, or that another node
    /// takes, are not turned away.
    pub(crate) fn turn_away(
        &mut self,
        now: Time,
        caller: Caller,
        request: &Request,
    ) -> Option<Outcome> {
        if caller == OWN || is_own(request.group) {
            return None;
        }
        self.groups.load.sheds.heard.insert(request.priority, now);
        let order = self
            .groups
            .load
            .sheds
            .orders
            .get(&self.base.me.node)
            .filter(|order| now < order.until)?;
        let all = self.base.planted.is(Bug::ShedWhoever);
        if request.priority >= order.level && !all {
            return None;
        }
        let group = self.base.directory.get(request.group)?;
        let call = (request.group, request.client, request.number);
        let is_known = self.replicas.hosted.get(&request.group).is_none_or(|hosted| {
            !hosted.replica.has_state() || hosted.replica.known(request).is_some()
        });
        let is_ours = match request.access.reads() {
            true => group.standing(self.base.me) != Standing::Stranger,
            false => group.options.style.entry(group.standing(self.base.me)) == Entry::Open,
        };
        if !is_ours || is_known || self.replies.clients.callers.get(&call).is_some() {
            return None;
        }
        let instead = order.room.iter().copied().find(|node| may_answer(group, request, *node));
        let reason = format!(
            "the host of {} has more to do than it can do in time, and takes only calls of priority {} and more; this one has {}: \
             ask again later, or give it more if it may not wait",
            self.base.me.node, order.level, request.priority
        );
        self.groups.load.sheds.refused += 1;
        Some(Outcome::Shed { instead, reason })
    }
}
