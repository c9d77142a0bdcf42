//! This node's replicas: what they execute, vote, lead, call and keep.

pub(crate) mod cold;
mod comparing;
mod effects;
pub(crate) mod hosted;
pub(crate) mod hung;
pub(crate) mod journal;
pub(crate) mod leading;
mod merging;
pub(crate) mod nested;
mod notes;
mod parting;
pub(crate) mod passive;
mod reads;
pub(crate) mod restoring;
pub(crate) mod saving;
mod serving;
pub(crate) mod storage;
mod targets;
mod views;
mod votes;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::GroupId;
use wire::ordered::{Move, Place};

use crate::base::Base;
use crate::bug::Bug;
use crate::directory::{Group, State};
use crate::ordering::Ordering;
use crate::parts::{Comparisons, Hangs, Merges, Retries, StateNotes, Votes};
use crate::replicas::hosted::{Hosted, is_on_disk};
use crate::replicas::leading::Leading;
use crate::replicas::nested::Nested;
use crate::replicas::saving::Backups;
use crate::replies::{Replies, ReplyHandler};

/// This node's replicas.
#[derive(Clone, Debug)]
pub(crate) struct Replicas {
    pub(crate) hosted: BTreeMap<GroupId, Hosted>,
    /// Calls of groups, by their handlers.
    pub(crate) nested: Nested,
    /// The votes in voting groups.
    pub(crate) votes: Votes,
    /// Services that hang.
    pub(crate) hangs: Hangs,
    /// Groups whose leader executes first, and the progress to report.
    pub(crate) leading: Leading,
    /// States to be saved and restored.
    pub(crate) backups: Backups,
    /// Things that services cannot do with states.
    pub(crate) notes: StateNotes,
    /// Comparisons of states.
    pub(crate) comparisons: Comparisons,
    /// Replicas that wait in vain for states.
    pub(crate) retries: Retries,
    /// States of histories that were given up.
    pub(crate) merges: Merges,
}

impl Replicas {
    /// This node's replica serves until another has the state, even if it is to go.
    pub(crate) fn is_needed<O: Ordering>(&self, base: &Base<O>, id: GroupId) -> bool {
        let spares = self.hosted.get(&id).is_some_and(|hosted| hosted.departure.spares);
        let needed = |group: &Group| group.needs(base.me) || spares && group.is_alone(base.me);
        base.directory.get(id).is_some_and(needed)
    }

    /// The groups whose state is here, each with the place of the last request that was taken.
    pub(crate) fn replicas_with_state<O: Ordering>(&self, base: &Base<O>) -> Vec<(GroupId, Place)> {
        let with_state = self.hosted.iter().filter_map(|(id, hosted)| {
            let in_table = |group: &Group| {
                let sleeps = !group.asleep.is_empty() && is_on_disk(hosted);
                let waits = sleeps || group.asleep.contains(&base.me);
                group.options.style.has_state() && (waits || group.replica(base.me).is_some())
            };
            let brings = hosted.on_disk.recalled
                || hosted.on_disk.kept
                || base.directory.get(*id).is_some_and(in_table);
            // A state that a transfer brought is not there before the disk has it.
            let is_kept = hosted.on_disk.logged.syncing.is_none();
            let place = match hosted.replica.has_state() {
                true => Some(hosted.taken),
                false if base.planted.is(Bug::TrustFormer) => hosted.former().map(|_| hosted.taken),
                false => hosted.former(),
            };
            Some((*id, place.filter(|_| brings && is_kept)?))
        });
        with_state.collect()
    }

    /// This group, if it sleeps and this node has a state of it from its disk.
    pub(crate) fn brings<O: Ordering>(
        &self,
        base: &Base<O>,
        id: GroupId,
        group: &Group,
    ) -> Option<GroupId> {
        let waits = base.records.has(id);
        let hosted = self.hosted.get(&id).filter(|hosted| is_on_disk(hosted));
        let has_any = waits || hosted.is_some_and(|hosted| hosted.replica.has_state());
        (has_any && !group.asleep.is_empty()).then_some(id)
    }

    /// This node's replica can be primary, and nothing has changed since that was proposed.
    pub(crate) fn can_take_over<O: Ordering>(&self, base: &Base<O>, proposal: &Move) -> bool {
        let Some(group) = base.directory.get(proposal.group) else { return false };
        let hosted = self.hosted.get(&proposal.group).filter(|hosted| !hosted.departure.begun);
        let current = group.view == proposal.view || base.planted.is(Bug::ObeyOldMove);
        let fit = hosted.is_some_and(|hosted| hosted.replica.has_state())
            || base.planted.is(Bug::MoveToUnsynced);
        current && fit && group.primary() != Some(base.me)
    }

    /// Every replica that goes on in this component is in its group's style.
    pub(crate) fn check_styles<O: Ordering>(&self, base: &Base<O>) {
        if !base.membership.is_active() {
            return;
        }
        for (id, hosted) in &self.hosted {
            let group = base.directory.get(*id);
            let goes_on = |group: &&Group| {
                let state = group.replica(base.me).map(|replica| replica.state);
                state == Some(State::Synced)
                    && !hosted.lost
                    && !hosted.departure.abandoned
                    && !hosted.program.fallen
            };
            if let Some(group) = group.filter(goes_on) {
                let (style, own) = (group.options.style, hosted.replica.style());
                assert_eq!(style, own, "a replica is in its group's style");
            }
        }
    }
}

/// Lets replicas act, and does what they ask for.
pub(crate) struct ReplicaHandler<'a, O> {
    pub(crate) base: &'a mut Base<O>,
    pub(crate) replies: &'a mut Replies,
    pub(crate) replicas: &'a mut Replicas,
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    pub(crate) fn replies(&mut self) -> ReplyHandler<'_, O> {
        ReplyHandler { base: self.base, replies: self.replies }
    }
}
