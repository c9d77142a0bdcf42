//! The foundation of all layers: the order, the component, the table of groups, and the disk.

pub(crate) mod held;
mod levels;
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
use crate::parts::{Lineages, Outbox, Outputs, Progress, Records};
use crate::style::StyleRules;

/// The engine that orders messages, and the node's knowledge at this place of the order.
#[derive(Clone, Debug)]
pub(crate) struct Base<O> {
    pub(crate) me: Member,
    pub(crate) planted: Planted,
    /// Bytes from which on a state is fetched by a stream.
    pub(crate) streamed: usize,
    pub(crate) random: Random,
    /// The component, and whether its groups may act.
    pub(crate) membership: Membership,
    /// The components of this history, and where others parted from it.
    pub(crate) lineages: Lineages,
    /// The table of groups.
    pub(crate) directory: Directory,
    /// This node's position in the order, and in its own life.
    pub(crate) progress: Progress,
    /// The engine that orders messages, and the messages on their way there.
    pub(crate) outbox: Outbox<O>,
    /// Records and states for the disk.
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

    /// Orders a message that other nodes order too. Returns its payload, so that it can be
    /// withdrawn when another's is ordered.
    pub(crate) fn order_copy(&mut self, now: Time, ordered: Ordered) -> Payload {
        let level = self.level_of(&ordered);
        self.outbox.order(now, ordered, level)
    }

    /// Orders messages that wait for room in the ring. True if there were any.
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

    /// Returns the level for a node's own message. Somebody waits for each, except for updates of a
    /// group whose replies wait for no other node. All members wait for an installation: no reply
    /// leaves before they know that all have it, and a safe message is reported to all. Newer rules
    /// stay for ever: no member has them in force alone.
    pub(crate) fn level_of(&self, ordered: &Ordered) -> Level {
        match ordered {
            Ordered::Install(_) | Ordered::Activate(_) | Ordered::Roster(_) => Level::Safe,
            Ordered::PrimaryChunk(chunk)
                if !chunk.last
                    || chunk.what == Told::Checkpoint
                    || self.holds_alone(chunk.group) =>
            {
                Level::Agreed
            }
            // Answers wait until the call is held, not the ballot. Replicas vote anew in a new
            // component.
            Ordered::Ballot(_) => Level::Agreed,
            // Nobody waits for comparisons.
            Ordered::Compare(_) | Ordered::Compared(_) => Level::Agreed,
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

    /// Acknowledges this delivery to the members that answer for the group: they wait to know who
    /// has it.
    pub(crate) fn acknowledge_to_speakers(&mut self, group: GroupId) {
        let Some(group) = self.directory.get(group) else { return };
        let count = if group.options.style.all_speak() { usize::MAX } else { 1 };
        for member in group.synced().take(count) {
            self.outbox.ordering.acknowledge(member);
        }
    }

    /// Begins the reign of all primaries with the component.
    pub(crate) fn enthrone_all(&mut self) {
        let ids: Vec<GroupId> = self.directory.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.directory.enthrone(id, self.place(self.progress.delivered()));
        }
    }

    /// Whether only another node, the primary, knows which calls were answered.
    pub(crate) fn is_the_primarys(&self, group: &Group) -> bool {
        group.options.ack == AckLevel::One && group.primary() != Some(self.me)
    }

    /// Tells of groups that go on from states that may lack answered calls.
    pub(crate) fn tell_went_back(&mut self) {
        for (group, member) in self.directory.take_went_back() {
            self.event(Event::WentBack { group, name: self.name_of(group), member });
        }
    }

    pub(crate) fn name_of(&self, id: GroupId) -> alloc::string::String {
        self.directory.get(id).map(|group| group.name.clone()).unwrap_or_default()
    }
}
