//! The groups' targets for clients.

use alloc::vec::Vec;

use wire::client::{Bound, Frame, Target, Targets};
use wire::limits::MAX_REPLICAS;
use wire::{Caller, GroupId, Member, ViewNumber};

use crate::api::Output;
use crate::base::Base;
use crate::bug::Bug;
use crate::directory::Group;
use crate::ordering::Ordering;
use crate::style::StyleRules;

impl<O: Ordering> Base<O> {
    pub(crate) fn answer_bind(&mut self, caller: Caller, group: GroupId) {
        let targets = match self.directory.get(group) {
            Some(known) => Some(self.targets(known)),
            None if self.membership.is_active() => None,
            // A minority cannot tell whether the group exists.
            None => Some(Targets::default()),
        };
        let frame = Frame::Bound(Bound { group, targets });
        self.outputs.push(Output::Frame { caller, frame });
    }

    pub(crate) fn targets(&self, group: &Group) -> Targets {
        let style = group.options.style;
        let mut members: Vec<Member> = group.targets().collect();
        if style.nearest_first() {
            members.sort_by_key(|member| *member != self.me);
        }
        let nodes = members.into_iter().filter_map(|member| {
            let address = self.membership.address(member.node)?;
            Some(Target { node: member.node, address })
        });
        // A client needs no more of a group that has a replica on every node.
        Targets { view: group.view, style, nodes: nodes.take(MAX_REPLICAS).collect() }
    }

    pub(crate) fn tell_watcher(&mut self, caller: Caller, group: GroupId, view: ViewNumber) {
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
