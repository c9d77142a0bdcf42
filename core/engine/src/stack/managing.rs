//! What the manager sees, and what it asks for (`docs/protocol/manager.md`): hosts tell in the order what they have to do, each node
//! keeps what each told last, and backups get the order in which clients are to try them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use manager::{Picture, Shape};
use wire::ordered::{Ordered, Rank, Usage};
use wire::{GroupId, Member, NodeId, Time, ViewNumber};

use super::Stack;
use super::shedding::Sheds;
use super::storage::is_on_disk;
use crate::api::Event;
use crate::directory::{Change, Group};
use crate::ordering::{Level, Ordering};

/// What hosts have to do, and what they refuse for it.
#[derive(Default)]
pub(super) struct Load {
    /// What members have told of their hosts.
    usages: BTreeMap<Member, Told>,
    /// How often something has changed that a manager looks at.
    changes: u64,
    /// What hosts refuse, and who calls here.
    pub(super) sheds: Sheds,
}

impl Load {
    /// Something has changed that a manager looks at.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
    }

    /// What this node's host has told last.
    pub(super) fn usage_of(&self, node: NodeId) -> Option<&Usage> {
        let told = self.usages.iter().find(|(member, _)| member.node == node);
        told.map(|(_, told)| &told.usage)
    }
}

/// What a member told last.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub usage: Usage,
    pub at: Time,
}

impl<O: Ordering> Stack<O> {
    /// Tells all nodes what this one's host has to do, and who calls here. False if the ring takes nothing now: then it is to be told anew, as it is then.
    pub fn tell_usage(&mut self, now: Time, usage: Usage) -> bool {
        let (classes, refused) = self.callers_told(now);
        let usage = Usage { classes, refused, ..usage };
        // What others wait for goes first.
        if !self.membership.is_active() || !self.outbox.is_clear() {
            return false;
        }
        let told = self.multicast(now, Ordered::Usage(usage).encode(), Level::Agreed);
        self.settle(now);
        told
    }

    /// Asks for this order of a group's backups, of which the group's view is `view`. What comes of it is told by [`Event::Ranked`]; if the
    /// view changes before, nothing does. False if that is known already, or nothing would change.
    pub fn rank(
        &mut self,
        now: Time,
        group: GroupId,
        view: ViewNumber,
        order: Vec<NodeId>,
    ) -> bool {
        let active = self.membership.is_active();
        if !active || self.directory.ranked(group, view, &order, self.planted).is_none() {
            return false;
        }
        self.order(now, Ordered::Rank(Rank { group, view, order }));
        self.settle(now);
        true
    }

    /// What there is for a manager to see.
    pub fn picture(&self) -> Picture {
        let active = self.membership.is_active();
        let nodes = self.present();
        let leads = active && nodes.iter().min() == Some(&self.me.node);
        let nodes = self.membership.members().map(|member| {
            let told = self.load.usages.get(&member).map(|told| told.usage.clone());
            (member.node, told)
        });
        let shapes = self.directory.iter().filter_map(|(id, group)| {
            let mut synced = group.synced().map(|member| member.node);
            let primary = synced.next()?;
            Some(Shape { id, view: group.view, primary, backups: synced.collect() })
        });
        Picture {
            ring: self.membership.ring(),
            leads,
            nodes: nodes.collect(),
            groups: shapes.collect(),
            sheds: self.sheds().map(|(node, level, until)| (node, (level, until))).collect(),
            brings: self
                .directory
                .iter()
                .filter_map(|(id, group)| self.brings(id, group))
                .collect(),
        }
    }

    /// This group, if it sleeps and this node has a state of it from its disk.
    fn brings(&self, id: GroupId, group: &Group) -> Option<GroupId> {
        let waits = self.records.has(id);
        let hosted = self.hosted.get(&id).filter(|hosted| is_on_disk(hosted));
        let has_any = waits || hosted.is_some_and(|hosted| hosted.replica.has_state());
        (has_any && !group.asleep.is_empty()).then_some(id)
    }

    /// Grows whenever a [picture](Stack::picture) may be another than before.
    pub fn changes(&self) -> u64 {
        self.load.changes
    }

    /// What each member has told last of its host, and when it came.
    pub fn usages(&self) -> impl Iterator<Item = (Member, &Usage, Time)> + '_ {
        self.load.usages.iter().map(|(member, told)| (*member, &told.usage, told.at))
    }

    /// Who is not a member any more has nothing to say.
    pub(super) fn forget_usages(&mut self, members: &[Member]) {
        self.load.changed();
        self.load.usages.retain(|member, _| members.contains(member));
        self.forget_sheds(members);
    }

    /// A host has told what it has to do. No part of any history: it is kept until the next time it does.
    pub(super) fn usage_told(&mut self, now: Time, sender: Member, usage: Usage) {
        let Usage { used, capacity, above, .. } = usage;
        self.load.changed();
        let before = self.load.usages.insert(sender, Told { usage, at: now });
        let was_above = before.is_some_and(|before| before.usage.above);
        match (was_above, above) {
            (false, true) => self.event(Event::Overloaded { member: sender, used, capacity }),
            (true, false) => self.event(Event::Relieved { member: sender, used, capacity }),
            _ => {}
        }
    }

    /// An order of backups at its place.
    pub(super) fn act_on_rank(&mut self, now: Time, rank: &Rank) {
        let Rank { group: id, view: asked, order } = rank;
        let change = self.directory.rank(*id, *asked, order, self.planted);
        if change != Change::View {
            return;
        }
        let group = self.directory.get(*id).expect("its backups have just been ranked");
        let (name, view) = (group.name.clone(), group.view);
        let order = group.synced().skip(1).collect();
        let (ring, sequence) = (self.membership.ring(), self.progress.delivered());
        let group = *id;
        self.event(Event::Ranked { group, name, ring, sequence, order, asked: *asked, view });
        self.changed(now, group, change);
    }
}
