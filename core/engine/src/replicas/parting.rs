//! Histories that meet: what is given up is told (`docs/protocol/group.md`, "Histories that meet").

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use wire::ordered::{About, Place};
use wire::{GroupId, Member, RingId, Time};

use crate::api::Event;
use crate::bug::Bug;
use crate::ordering::Ordering;
use crate::replicas::ReplicaHandler;
use crate::replicas::hosted::Hosted;

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// A message of this place may have given the history calls.
    pub(crate) fn count_calls(&mut self, id: GroupId, sequence: u64) {
        if !self.base.membership.forks() {
            return;
        }
        let held = self.base.progress.held().all;
        if let Some(hosted) = self.replicas.hosted.get_mut(&id).filter(|it| it.replica.has_state())
        {
            hosted.counts.took(sequence, hosted.replica.calls(), held);
        }
    }

    /// The component ends here.
    pub(crate) fn end_of_component(&mut self) {
        let end = self.base.membership.end_of_component();
        self.base.lineages.ended(end);
        let me = self.base.me;
        if let Some(end) = end.filter(|_| self.base.membership.forks()) {
            for (id, hosted) in &mut self.replicas.hosted {
                let group = self.base.directory.get(*id);
                let listed = group.is_some_and(|group| group.synced().any(|it| it == me));
                hosted.counts.follows(listed && !hosted.spared);
                if hosted.replica.has_state() {
                    hosted.counts.mark(end, hosted.replica.calls());
                }
            }
        }
    }

    /// The table of this member, and with it its history, is everybody's from here on. Tells how
    /// many calls the replicas here give up for that.
    pub(crate) fn give_up_histories(
        &mut self,
        now: Time,
        installer: Member,
        component: (u64, RingId),
    ) {
        let announce = self.base.membership.announces().get(&installer);
        let root = announce.and_then(|announce| announce.extension.root());
        let own = self.base.lineages.root();
        // Two clusters that were founded alike have nothing in common.
        let strange = own != RingId::default()
            && root.is_some_and(|root| root != own)
            && self.base.membership.was_effective();
        let ids: Vec<GroupId> = self.replicas.hosted.keys().copied().collect();
        for id in ids {
            self.give_up_history(now, id, installer, strange);
        }
        self.base.lineages.adopt(installer, root, component);
    }

    fn give_up_history(&mut self, now: Time, id: GroupId, installer: Member, strange: bool) {
        let me = self.base.me;
        let group = self.base.directory.get(id);
        // A group that sleeps gives up nothing yet.
        let stays = group.is_some_and(|group| {
            group.primary().is_none() || group.synced().any(|synced| synced == me)
        });
        let heir = group.and_then(|group| group.primary()).unwrap_or(installer);
        let parted = strange || self.base.membership.forks() && self.went_on_without(heir);
        let Some(hosted) = self.replicas.hosted.get_mut(&id).filter(|hosted| has_history(hosted))
        else {
            return;
        };
        if stays || self.base.planted.is(Bug::DiscardQuietly) {
            return;
        }
        let at: Option<Place> = match self.base.lineages.common(heir) {
            Some(common) => common,
            None if parted => {
                hosted.counts.mark(Place::default(), hosted.replica.calls());
                None
            }
            None => return,
        };
        let calls = hosted.counts.since(at);
        if calls > 0 {
            let name = hosted.name.clone();
            if let Err(reason) = self.set_apart(now, id, calls) {
                self.discarded(id, (name, calls), reason);
            }
        }
    }

    /// Acknowledged calls are gone for good: their history was given up, and its state is not merged,
    /// for this reason, if the service merges.
    pub(crate) fn discarded(
        &mut self,
        id: GroupId,
        (name, calls): (String, u64),
        reason: Option<String>,
    ) {
        self.base.event(Event::Discarded { group: id, name, calls });
        let Some(hosted) = self.replicas.hosted.get_mut(&id) else { return };
        let all = hosted.counts.discard(calls);
        let reason = reason.map(|reason| format!(", not merged: {reason}")).unwrap_or_default();
        let text = format!("{all} acknowledged calls{reason}");
        self.note_state(id, About::Discarded, Some(text));
    }

    /// Before level 3 nobody tells its history: this node was in a component without that member.
    fn went_on_without(&self, other: Member) -> bool {
        let own = self.base.membership.announces().get(&self.base.me);
        let newest = own.map(|own| own.attempts.last().unwrap_or(&own.last));
        newest.is_some_and(|newest| newest.epoch > 0 && !newest.members.contains(&other))
    }
}

/// It has executed calls, which may be answered.
fn has_history(hosted: &Hosted) -> bool {
    hosted.replica.has_state() && hosted.options.style.has_state()
}
