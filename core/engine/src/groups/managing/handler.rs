//! Load reports of hosts, and orders of backups.

use wire::ordered::{Rank, Usage};
use wire::{Member, Time};

use super::Told;
use crate::api::Event;
use crate::directory::Change;
use crate::groups::GroupHandler;
use crate::ordering::Ordering;

impl<O: Ordering> GroupHandler<'_, O> {
    /// Forgets reports of nodes that are not members any more.
    pub(crate) fn forget_usages(&mut self, members: &[Member]) {
        self.groups.load.changed();
        self.groups.load.usages.retain(|member, _| members.contains(member));
        self.forget_sheds(members);
    }

    /// Stores a host's load report until its next one. Reports are part of no history.
    pub(crate) fn usage_told(&mut self, now: Time, sender: Member, usage: Usage) {
        let Usage { used, capacity, above, .. } = usage;
        self.groups.load.changes += 1;
        let before = self.groups.load.usages.insert(sender, Told { usage, at: now });
        let was_above = before.is_some_and(|before| before.usage.above);
        match (was_above, above) {
            (false, true) => self.base.event(Event::Overloaded { member: sender, used, capacity }),
            (true, false) => self.base.event(Event::Relieved { member: sender, used, capacity }),
            _ => {}
        }
    }

    /// Applies an order of backups at its place.
    pub(crate) fn act_on_rank(&mut self, now: Time, rank: &Rank) {
        let Rank { group: id, view: asked, order } = rank;
        let change = self.base.directory.rank(*id, *asked, order, self.base.planted);
        if change != Change::View {
            return;
        }
        let group = self.base.directory.get(*id).expect("its backups have just been ranked");
        let (name, view) = (group.name.clone(), group.view);
        let order = group.synced().skip(1).collect();
        let (ring, sequence) = (self.base.membership.ring(), self.base.progress.delivered());
        let group = *id;
        self.base.event(Event::Ranked { group, name, ring, sequence, order, asked: *asked, view });
        self.changed(now, group, change);
    }
}
