//! What every layer above stands on: the order, the component, the table of groups, and the disk.

mod held;
mod storage;
mod targets;

use alloc::vec::Vec;

use wire::ordered::{AckLevel, Ordered, Told};
use wire::{GroupId, Member, NodeId, Payload, Random, Time};

use crate::api::Event;
use crate::bug::Planted;
use crate::component::Membership;
use crate::directory::{Directory, Group};
use crate::ordering::{Level, Ordering};
use crate::parts::{Outbox, Outputs, Progress, Records};
use crate::style::StyleRules;

/// What orders this node's messages, and what is known at this place of the order.
pub(crate) struct Base<O> {
    pub(crate) me: Member,
    pub(crate) planted: Planted,
    pub(crate) random: Random,
    /// The component, and whether its groups may act.
    pub(crate) membership: Membership,
    /// The table of groups.
    pub(crate) directory: Directory,
    /// How far this node is in the order, and in its own life.
    pub(crate) progress: Progress,
    /// What orders messages, and what is on its way there.
    pub(crate) outbox: Outbox<O>,
    /// What is kept on disk.
    pub(crate) records: Records,
    pub(crate) outputs: Outputs,
}

impl<O: Ordering> Base<O> {
    pub(crate) fn event(&mut self, event: Event) {
        self.outputs.event(event);
    }

    /// Orders a message, now or as soon as the ring takes it.
    pub(crate) fn order(&mut self, now: Time, ordered: Ordered) {
        self.order_copy(now, ordered);
    }

    /// The same, of a message that others order too: gives what can be withdrawn when they have.
    pub(crate) fn order_copy(&mut self, now: Time, ordered: Ordered) -> Payload {
        let level = self.level_of(&ordered);
        self.outbox.order(now, ordered, level)
    }

    /// Orders what waits for room in the ring. True if anything did.
    pub(crate) fn order_waiting(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some(ordered) = self.outbox.first() {
            let level = self.level_of(ordered);
            if !self.outbox.order_first(now, level) {
                break;
            }
            any = true;
        }
        any
    }

    /// Somebody waits for whatever a node orders by itself, unless it is the update of a group
    /// whose replies wait for nobody. For an installation all members do: no reply leaves before
    /// they know that all have it, and of a safe message all are told.
    pub(crate) fn level_of(&self, ordered: &Ordered) -> Level {
        match ordered {
            Ordered::Install(_) => Level::Safe,
            Ordered::PrimaryChunk(chunk)
                if !chunk.last
                    || chunk.what == Told::Checkpoint
                    || self.holds_alone(chunk.group) =>
            {
                Level::Agreed
            }
            // What is answered waits for the call to be held, and votes are told anew in a new
            // component.
            Ordered::Ballot(_) => Level::Agreed,
            _ => Level::Held,
        }
    }

    /// Whether the group's replies wait for no other node.
    pub(crate) fn holds_alone(&self, group: GroupId) -> bool {
        self.directory.get(group).is_some_and(|group| group.options.ack == AckLevel::One)
    }

    /// The component's nodes.
    pub(crate) fn present(&self) -> Vec<NodeId> {
        self.membership.members().map(|member| member.node).collect()
    }

    /// Those who answer for this group wait to know who holds what is being delivered.
    pub(crate) fn acknowledge_to_speakers(&mut self, group: GroupId) {
        let Some(group) = self.directory.get(group) else { return };
        let count = if group.options.style.all_speak() { usize::MAX } else { 1 };
        for member in group.synced().take(count) {
            self.outbox.ordering.acknowledge(member);
        }
    }

    /// The component begins: so does the time of all primaries.
    pub(crate) fn enthrone_all(&mut self) {
        let ids: Vec<GroupId> = self.directory.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.directory.enthrone(id, self.place(self.progress.delivered()));
        }
    }

    /// Only the primary knows what was answered.
    pub(crate) fn is_the_primarys(&self, group: &Group) -> bool {
        group.options.ack == AckLevel::One && group.primary() != Some(self.me)
    }

    pub(crate) fn name_of(&self, id: GroupId) -> alloc::string::String {
        self.directory.get(id).map(|group| group.name.clone()).unwrap_or_default()
    }
}
