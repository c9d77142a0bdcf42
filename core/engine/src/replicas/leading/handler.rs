//! The leader reports its progress; followers execute up to it.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::{Died, Ordered, Poisoned, Progress, Trial};
use wire::versions::WHOLE;
use wire::{ClientId, Duration, GroupId, Member, Time};

use super::{Awaited, PROGRESS_AFTER, SILENT_ROUNDS};
use crate::api::Begun;
use crate::base::Base;
use crate::bug::Bug;
use crate::ordering::Ordering;
use crate::replica::{Blame, CERTAIN, ENOUGH};
use crate::replicas::{ReplicaHandler, Replicas};

impl Replicas {
    /// Each backup of a voting group takes over from a silent leader after its own time: the next
    /// in rank first.
    pub(crate) fn leader_timeout<O: Ordering>(&self, base: &Base<O>, group: GroupId) -> Duration {
        let synced = base.directory.get(group).into_iter().flat_map(|known| known.synced());
        let rank = synced.take_while(|member| *member != base.me).count();
        self.votes.timeout() * u32::try_from(rank.max(1)).unwrap_or(1)
    }

    /// When something is next to be told, or taken over.
    pub(crate) fn next_leading<O: Ordering>(&self, base: &Base<O>) -> Option<Time> {
        let awaited = self.leading.awaited.values().map(|awaited| awaited.until);
        let next = awaited.chain(self.leading.tell_at).min();
        next.filter(|_| base.membership.is_active())
    }

    /// A leader here waits until its word is held.
    pub(crate) fn any_leader_waits(&self) -> bool {
        let mut unheld = self.leading.unheld.iter().filter_map(|id| self.hosted.get(id));
        unheld.any(|hosted| hosted.replica.waits_for_hold().is_some())
    }

    /// How far the service of this node's replica is.
    pub(crate) fn reach(&self, id: GroupId, begun: Begun) -> Died {
        self.hosted.get(&id).map(|hosted| hosted.replica.reach(begun)).unwrap_or_default()
    }
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// A replica here may have executed what its followers do not know of.
    pub(crate) fn note_lead(&mut self, now: Time, group: GroupId) {
        let Some(hosted) = self.replicas.hosted.get(&group) else { return };
        match hosted.replica.awaited() {
            Some(number) => {
                let before = self.replicas.leading.awaited.get(&group);
                if before.is_none_or(|awaited| awaited.number != number) {
                    let until = now + self.replicas.leader_timeout(self.base, group);
                    let awaited = Awaited { number, until, rounds: 0 };
                    self.replicas.leading.awaited.insert(group, awaited);
                }
            }
            None if self.replicas.leading.awaited.is_empty() => {}
            None => drop(self.replicas.leading.awaited.remove(&group)),
        }
        let Some(executed) = hosted.replica.untold() else { return };
        if self.base.directory.get(group).is_some_and(|group| group.replicas.len() > 1) {
            self.replicas.leading.untold.entry(group).or_insert(executed);
            self.replicas.leading.tell_at.get_or_insert(now + PROGRESS_AFTER);
        }
    }

    /// Takes over from leaders that have been silent for too long.
    pub(crate) fn relieve_leaders(&mut self, now: Time) {
        let late = self.replicas.leading.awaited.iter().filter(|(_, awaited)| awaited.until <= now);
        let late: Vec<(GroupId, Awaited)> = late.map(|(group, it)| (*group, *it)).collect();
        for (group, awaited) in late {
            let (until, rounds) =
                (now + self.replicas.leader_timeout(self.base, group), awaited.rounds + 1);
            self.replicas.leading.awaited.insert(group, Awaited { until, rounds, ..awaited });
            let beside = rounds >= SILENT_ROUNDS;
            self.with_listed(now, group, |replica, fx| replica.take_over(beside, fx));
        }
    }

    /// The time has come to tell followers what no request has told them.
    pub(crate) fn tell_progress(&mut self, now: Time) {
        if self.replicas.leading.tell_at.is_none_or(|at| at > now) {
            return;
        }
        self.replicas.leading.tell_at = None;
        for (group, before) in core::mem::take(&mut self.replicas.leading.untold) {
            let Some(hosted) = self.replicas.hosted.get(&group) else { continue };
            let late = hosted.replica.told() < before;
            if let Some(executed) = hosted.replica.untold().filter(|_| late) {
                self.base.order(now, Ordered::Progress(Progress { group, executed, trial: None }));
            }
            self.note_lead(now, group);
        }
    }

    /// A replica here leads, and others may have died of the next call. The call is tried, unless
    /// two have died of it and none can have answered it.
    pub(crate) fn try_or_condemn(
        &mut self,
        now: Time,
        group: GroupId,
        (number, call): (u64, Option<(ClientId, u64)>),
        blame: Blame,
    ) {
        let Blame { deaths, answered, beside, .. } = blame;
        // A client that retries has no answer. One that came here before, or waits elsewhere as
        // well, may have another node's. Without deaths `answered` stays as it is: the leader that
        // has gone since may have answered.
        let asks = call.is_some_and(|(client, number)| {
            let waiting = self.replies.clients.callers.get(&(group, client, number));
            waiting.is_some_and(|waiting| waiting.returned)
        }) && !deaths.is_empty();
        let answered = answered && !asks;
        let may_condemn = deaths.len() >= ENOUGH && !answered || deaths.len() >= CERTAIN;
        let enough = may_condemn && !self.base.planted.is(Bug::RetryPoison);
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            hosted.replica.gives_up(number, enough);
        }
        self.base.order(
            now,
            if enough {
                Ordered::Poisoned(Poisoned { group, number, nodes: deaths })
            } else {
                let trial = Some(Trial { node: self.base.me.node, deaths, answered, beside });
                Ordered::Progress(Progress { group, executed: number - 1, trial })
            },
        );
    }

    /// A replica says how far it is.
    pub(crate) fn act_on_progress(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        progress: Progress,
        payload: &Bytes,
    ) {
        let id = progress.group;
        let group = self.base.directory.get(id);
        if !group.is_some_and(|group| group.synced().any(|member| member == sender)) {
            return; // its history may be another
        }
        // The calls that it tells of have changed the state, and are part of the history themselves.
        if !self.take_part((id, false), sequence, payload) {
            return;
        }
        let own = sender == self.base.me;
        self.with_listed(now, id, |replica, fx| replica.progress(progress, sender, sequence, fx));
        if own {
            self.replicas.leading.unheld.insert(id);
            self.go_on_trying(now);
        }
    }

    /// A replica says that nobody is to execute a call.
    pub(crate) fn act_on_poisoned(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        poisoned: Poisoned,
        payload: &Bytes,
    ) {
        let id = poisoned.group;
        let group = self.base.directory.get(id);
        let counts = group.is_some_and(|group| group.synced().any(|member| member == sender));
        if !counts && self.base.membership.levels().level() >= WHOLE {
            return; // its number may be another call's
        }
        if self.take_part((id, true), sequence, payload) {
            let own = sender == self.base.me;
            self.with_listed(now, id, |replica, fx| replica.condemn(poisoned, own, sequence, fx));
        }
    }

    /// Counts a message as part of the group's history, as its requests are, and as one that
    /// `changes` the state. False if the group sleeps.
    pub(crate) fn take_part(
        &mut self,
        (id, changes): (GroupId, bool),
        sequence: u64,
        payload: &Bytes,
    ) -> bool {
        let place = self.base.place(sequence);
        if !self.base.directory.requested(id, place) {
            return false;
        }
        let there =
            self.base.directory.get(id).is_some_and(|group| group.replica(self.base.me).is_some());
        if let Some(hosted) =
            self.replicas.hosted.get_mut(&id).filter(|hosted| there && !hosted.spared)
        {
            hosted.take(place, changes);
            self.keep_taken(id, payload);
        }
        true
    }

    /// More is held: leaders that wait for that go on.
    pub(crate) fn go_on_trying(&mut self, now: Time) {
        if self.replicas.leading.unheld.is_empty() {
            return;
        }
        for id in self.replicas.leading.unheld.clone() {
            let waits =
                self.replicas.hosted.get(&id).and_then(|hosted| hosted.replica.waits_for_hold());
            if waits.is_some_and(|sequence| !self.base.is_held(id, sequence)) {
                continue;
            }
            self.replicas.leading.unheld.remove(&id);
            if waits.is_some() {
                self.with_replica(now, id, |replica, fx| replica.held(fx));
            }
        }
    }

    /// A component begins: replicas that waited for a message of their own go on.
    pub(crate) fn reconcile_leads(&mut self, now: Time) {
        let ids: Vec<GroupId> = self.replicas.hosted.keys().copied().collect();
        ids.into_iter().for_each(|id| self.reconcile_lead(now, id));
    }

    /// Reports the leader, by the table, to this node's replica.
    pub(crate) fn reconcile_lead(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.base.directory.get(id) else { return };
        let synced: Vec<Member> = group.synced().collect();
        let me = self.base.me;
        self.with_replica(now, id, |replica, fx| replica.led_by(me, &synced, fx));
    }

    /// The service of this member's replica has died, or is hung.
    pub(crate) fn service_died(&mut self, now: Time, id: GroupId, member: Member, died: Died) {
        if self.base.planted.is(Bug::ForgiveDeaths) {
            return;
        }
        let group = self.base.directory.get(id);
        if group.is_some_and(|group| group.synced().any(|synced| synced == member)) {
            self.with_listed(now, id, |replica, fx| replica.member_died(member, died, fx));
        }
    }

    /// A client asks a backup for a call that is not executed yet.
    pub(crate) fn take_over(&mut self, now: Time, id: GroupId) {
        self.with_listed(now, id, |replica, fx| replica.take_over(false, fx));
    }
}
