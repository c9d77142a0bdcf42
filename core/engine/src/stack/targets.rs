//! What clients learn of a group's replicas: before they call, and when its view changes (`docs/protocol/client.md`, "News").

use alloc::vec::Vec;

use wire::client::{Bind, Bound, Frame, Target, Targets, Watch};
use wire::{Caller, GroupId, Member, Time, ViewNumber};

use super::Stack;
use crate::api::Output;
use crate::bug::Bug;
use crate::directory::Group;
use crate::ordering::Ordering;
use crate::style::Conduct;

impl<O: Ordering> Stack<O> {
    pub(super) fn bind(&mut self, caller: Caller, bind: Bind) {
        let id = GroupId::of(&bind.name);
        if !self.may_come(id) {
            self.answer_bind(caller, id);
        } else if !self.clients.callers.keep_bind(caller, bind.name) {
            self.dismiss(caller, "too many clients wait for the cluster to form: try another node");
        }
    }

    /// The group is not in the table, but may soon be: nothing is known of groups yet, a component
    /// has just begun, or this node's own replica is on its way to be the first.
    pub(super) fn may_come(&self, id: GroupId) -> bool {
        let hosted = self.hosted.get(&id);
        let forming = !self.membership.is_active() && !self.membership.is_minority();
        let hosting =
            hosted.is_some_and(|hosted| !hosted.departure.begun && !hosted.admission.refused);
        let joining = self.membership.is_active() && (hosting || self.progress.awaits_joins());
        self.directory.get(id).is_none() && (forming || joining)
    }

    /// Groups that were on their way have come, or never will.
    pub(super) fn reconcile_unknown_groups(&mut self, now: Time) {
        for call in self.clients.callers.all() {
            if self.directory.get(call.0).is_none() {
                self.route_parked(now, call);
            }
        }
        let callers = self.nested_callers();
        callers.into_iter().for_each(|caller| self.reconcile_nested(now, caller));
        self.answer_binds();
    }

    fn answer_bind(&mut self, caller: Caller, group: GroupId) {
        let targets = match self.directory.get(group) {
            Some(known) => Some(self.targets(known)),
            None if self.membership.is_active() => None,
            // A minority cannot tell whether the group exists.
            None => Some(Targets::default()),
        };
        let frame = Frame::Bound(Bound { group, targets });
        self.outputs.push(Output::Frame { caller, frame });
    }

    pub(super) fn targets(&self, group: &Group) -> Targets {
        let style = group.options.style;
        let mut members: Vec<Member> = group.targets().collect();
        if style.nearest_first() {
            members.sort_by_key(|member| *member != self.me);
        }
        let nodes = members.into_iter().filter_map(|member| {
            let address = self.membership.address(member.node)?;
            Some(Target { node: member.node, address })
        });
        Targets { view: group.view, style, nodes: nodes.collect() }
    }

    pub(super) fn answer_binds(&mut self) {
        for (caller, name) in self.clients.callers.take_binds() {
            let id = GroupId::of(&name);
            // One that still has to wait had its place among them before.
            if !self.may_come(id) || !self.clients.callers.keep_bind(caller, name) {
                self.answer_bind(caller, id);
            }
        }
    }

    /// A client wants to hear of a group's newer views, and of one that it has missed now. At the limit it is not told: it hears of them with its
    /// replies, as it does without asking.
    pub(super) fn watch(&mut self, caller: Caller, watch: Watch) {
        if self.clients.watches.add(watch.group, caller) {
            self.tell_watcher(caller, watch.group, watch.view);
        }
    }

    /// Tells those who watch groups that have newer views. After everything else that a view asks for: who takes over has no time to lose.
    pub(super) fn tell_watchers(&mut self) {
        for group in self.clients.watches.take_changed() {
            for caller in self.clients.watches.of(group) {
                self.tell_watcher(caller, group, ViewNumber(0));
            }
        }
    }

    fn tell_watcher(&mut self, caller: Caller, group: GroupId, view: ViewNumber) {
        if self.planted.is(Bug::TellNobody) {
            return;
        }
        let Some(known) = self.directory.get(group).filter(|known| known.view > view) else {
            return;
        };
        let frame = Frame::News(Bound { group, targets: Some(self.targets(known)) });
        self.outputs.push(Output::Frame { caller, frame });
    }
}
