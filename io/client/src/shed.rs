//! A host that has too much to do refuses calls that are less critical than others
//! (`docs/protocol/client.md`, "Refused by priority").

use std::net::SocketAddr;
use std::time::Duration;

use wire::client::Targets;
use wire::{NodeId, Time};

use crate::CallError;
use crate::call::Phase;
use crate::output::{CallId, Cause, Event};
use crate::policy::{News, any_answers};
use crate::session::Session;

/// So long calls go first to the target that was named: to be sent there by each refusal would cost
/// the busy host more than the refusal.
const SENT_ON: Duration = Duration::from_secs(1);

impl Session {
    /// A node has too much to do for this call, and may name one that has room. The call goes there
    /// if it may be answered there and a retry is left, once; else it ends, for who asks again adds
    /// to what is too much: unless it may have been executed, then others are asked.
    pub(crate) fn handle_shed(
        &mut self,
        now: Time,
        id: CallId,
        (instead, refused): (Option<NodeId>, CallError),
        targets: Option<Targets>,
    ) {
        self.effects.stats.shed += 1;
        let call = self.calls.get_mut(&id).expect("an active call is kept");
        call.obstacle = Some(refused.clone());
        let group = call.group;
        if let Some(targets) = targets {
            self.learn(now, group, targets, News::Declined);
        }
        // The news may have moved it.
        let Some(call) = self.calls.get(&id) else { return };
        if call.phase != Phase::Attempting || !call.trail.is_lost() {
            return;
        }
        let is_unsure = call.may_be_executed();
        let named = match instead {
            Some(node) => self.named(now, id, node),
            None => None,
        };
        match named {
            Some(address) => self.send_on(now, id, address),
            None if is_unsure => self.go_on(now, id, group, None),
            None => self.done(id, Err(refused)),
        }
    }

    /// The address of a node that was named, if this call may be answered there and can be paid
    /// for.
    fn named(&mut self, now: Time, id: CallId, node: NodeId) -> Option<SocketAddr> {
        let call = &self.calls[&id];
        let group = &self.groups[&call.group];
        let target = group.targets.nodes.iter().find(|target| target.node == node)?.address;
        let alike = any_answers(group.targets.style, call.access.reads());
        let is_new = !call.sent_on && call.trail.last() != Some(target);
        if !alike || !is_new || self.links.avoided_until(target, now).is_some() {
            return None;
        }
        self.credit.spend(now).is_ok().then_some(target)
    }

    fn send_on(&mut self, now: Time, id: CallId, address: SocketAddr) {
        let Some(link) = self.links.open(now, address, &mut self.effects) else {
            return self.go_on(now, id, self.calls[&id].group, None);
        };
        let call = self.calls.get_mut(&id).expect("it has just been refused");
        let group = self.groups.get_mut(&call.group).expect("a call's group is kept");
        group.instead = Some((address, now + SENT_ON));
        (call.sent_on, call.full, call.asks) = (true, None, false);
        let (from, number) = (call.trail.go(now, link, address), call.number);
        self.effects.stats.sent_on += 1;
        if let Some(from) = from {
            let (group, to, cause) = (call.group, address, Cause::Shed);
            self.effects.stats.fail_overs += 1;
            self.effects.event(Event::FailedOver { group, number, from, to, cause });
        }
        self.time_attempt(now, id);
        if self.links.is_ready(link) {
            self.send(now, id, link);
        }
    }

    /// The target that was named of late to calls like this one, if it can be reached.
    pub(crate) fn instead(&self, now: Time, id: CallId) -> Option<SocketAddr> {
        let call = &self.calls[&id];
        let group = &self.groups[&call.group];
        let (address, until) = group.instead?;
        let fits = now < until
            && any_answers(group.targets.style, call.access.reads())
            && !call.trail.tried().contains(&address)
            && group.targets.nodes.iter().any(|target| target.address == address);
        (fits && self.links.ready_at(address).is_some()).then_some(address)
    }
}
