//! Primaries execute, tell what has changed, and yield.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::{Move, Ordered, PrimaryChunk, Request, Restyle, Told};
use wire::{GroupId, Member, Time};

use super::Yield;
use crate::bug::Bug;
use crate::callers::{Call, Stage};
use crate::ordering::Ordering;
use crate::replicas::{ReplicaHandler, Replicas};
use crate::style::{Standing, StyleRules};

impl Replicas {
    /// The groups whose primary is here and has executed what is in no update that was delivered.
    pub(crate) fn replicas_ahead(&self) -> Vec<GroupId> {
        let ahead = self.hosted.iter().filter(|(_, hosted)| hosted.replica.is_ahead());
        ahead.map(|(id, _)| *id).collect()
    }
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    pub(crate) fn act_on_request(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        request: Request,
        payload: &Bytes,
    ) {
        let group = request.group;
        // Calls that other nodes have answered are forgotten here: no client waits for them.
        self.replies.clients.callers.forget_ended(group, request.client, request.unanswered);
        let style = self.base.directory.get(group).map(|group| group.options.style);
        if style.is_some_and(StyleRules::executes_on_arrival) {
            if self.replicas.hosted.contains_key(&group) {
                self.owe_end(now, &request, sequence);
            }
            return self.forwarded(now, sender, request);
        }
        let call = (group, request.client, request.number);
        if request.origin.is_some() && style.is_some_and(|style| !style.orders()) {
            return self.serve_nested(now, sequence, request);
        }
        let is_awaited = self.replies().awaits(&request);
        let place = self.base.place(sequence);
        if !self.base.directory.requested(group, place) {
            return; // nobody takes it: it is in no history of the group
        }
        // A replica that has left answers what was ordered before, and takes nothing more.
        let known = self.base.directory.get(group);
        if known.is_some_and(|group| group.options.style.executes(group.standing(self.base.me))) {
            if let Some(hosted) =
                self.replicas.hosted.get_mut(&group).filter(|hosted| !hosted.spared)
            {
                hosted.take(place, !request.read);
                // Only a replica with the state can answer; others leave the call to who has it.
                if is_awaited && hosted.replica.has_state() {
                    self.replies().placed(sender, call, sequence);
                }
                self.keep_taken(group, payload);
            }
            if self.replicas.hosted.contains_key(&group) {
                self.owe_end(now, &request, sequence);
            }
            let elsewhere = sender != self.base.me;
            self.with_replica(now, group, |replica, effects| {
                replica.prove(request.proven, sequence, effects);
                replica.deliver(now, request, elsewhere, effects);
            });
            self.count_calls(group, sequence);
            self.cut_journal(now, group);
        } else if self.replicas.hosted.contains_key(&group) {
            // It has left, and answers what was ordered before.
            self.with_replica(now, group, |replica, effects| {
                replica.prove(request.proven, sequence, effects);
            });
        }
        if sender == self.base.me && is_awaited {
            self.replies.clients.callers.not_taken(&call);
        }
    }

    /// A call comes to its group's primary, here.
    pub(crate) fn execute_call(&mut self, now: Time, call: Call) {
        let Some(request) = self.stamped(now, call) else { return };
        self.replies.clients.callers.set_stage(&call, Stage::Ordered);
        self.with_replica(now, call.0, |replica, fx| replica.arrive(now, request, fx));
    }

    /// A backup had a call ordered whose client cannot reach the primary. Its place means nothing:
    /// that of the update does.
    pub(crate) fn forwarded(&mut self, now: Time, sender: Member, request: Request) {
        let id = request.group;
        let Some(group) = self.base.directory.get(id) else { return };
        let Some(hosted) = self.replicas.hosted.get(&id) else { return };
        let takes = hosted.yields.is_none()
            && (!hosted.departure.begun || self.replicas.is_needed(self.base, id));
        // If it takes none, the entry forwards the call again when another is primary.
        if group.standing(self.base.me) != Standing::Primary {
            // A retry of what the primary answered before: it sees no client that waits here.
            if sender == self.base.me {
                self.with_listed(now, id, |replica, fx| replica.answer_known(&request, fx));
            }
        } else if takes {
            self.with_replica(now, id, |replica, fx| replica.arrive(now, request, fx));
        }
    }

    /// A piece of an update is delivered. With the last one the update has its place, also at nodes
    /// without a replica.
    pub(crate) fn act_on_update(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        chunk: &PrimaryChunk,
        payload: &Bytes,
    ) {
        let id = chunk.group;
        let reigns = self.base.directory.reigns(id, sender, chunk.since);
        if !reigns && !self.base.planted.is(Bug::TakeDeposed) {
            return; // what it has executed was answered to nobody
        }
        if chunk.what == Told::Checkpoint {
            return self.act_on_checkpoint(now, sender, chunk, payload);
        }
        let here =
            self.base.directory.get(id).is_some_and(|group| group.replica(self.base.me).is_some());
        if chunk.last {
            let place = self.base.place(sequence);
            if !self.base.directory.requested(id, place) {
                return;
            }
            // A replica that is back from its disk and not in the table takes nothing.
            if let Some(hosted) = self.replicas.hosted.get_mut(&id).filter(|it| here && !it.spared)
            {
                hosted.take(place, true);
            }
        }
        let own = sender == self.base.me;
        if here {
            if self.replicas.hosted.get(&id).is_some_and(|hosted| !hosted.spared) {
                self.keep_taken(id, payload);
            }
            self.with_replica(now, id, |replica, effects| {
                replica.update_chunk(chunk, own, effects);
            });
            if chunk.last {
                self.count_calls(id, sequence);
            }
            self.cut_journal(now, id);
        }
    }

    pub(crate) fn act_on_checkpoint(
        &mut self,
        now: Time,
        sender: Member,
        chunk: &PrimaryChunk,
        payload: &Bytes,
    ) {
        let own = sender == self.base.me;
        let group = self.base.directory.get(chunk.group);
        // It may have been on its way when its group was given another style.
        let group = group.filter(|group| group.options.style.logs());
        if group.is_some_and(|group| group.replica(self.base.me).is_some()) {
            self.log_beside(chunk.group, payload);
            self.with_replica(now, chunk.group, |replica, effects| {
                replica.checkpoint_chunk(chunk, own, effects);
            });
        }
    }

    /// Tells this node's replica whether it is its group's primary.
    pub(crate) fn reconcile_reign(&mut self, now: Time, id: GroupId) {
        let group = self.base.directory.get(id);
        let passive = group.filter(|group| group.options.style.keeps_its_primary());
        let since = passive.and_then(|group| group.reign_of(self.base.me));
        let Some(hosted) = self.replicas.hosted.get(&id) else { return };
        let before = (hosted.replica.runs(), hosted.replica.is_finishing());
        self.with_replica(now, id, |replica, effects| replica.reign(since, effects));
        self.note_running(id, before);
    }

    /// The component is over: nothing more is executed until the next is installed.
    pub(crate) fn suspend_primaries(&mut self, now: Time) {
        let ids: Vec<GroupId> = self.replicas.hosted.keys().copied().collect();
        for id in ids {
            self.with_replica(now, id, |replica, effects| replica.suspend(effects));
        }
    }

    /// This node's replica is a passive group's primary, and is to say this in the present view: it
    /// takes nothing more. False if it is not, or cannot.
    pub(crate) fn yield_to(&mut self, proposal: Yield) -> bool {
        let (id, view) = match proposal {
            Yield::Move(Move { group, view, .. }) | Yield::Restyle(Restyle { group, view, .. }) => {
                (group, view)
            }
        };
        let Some(group) = self.base.directory.get(id) else { return false };
        let style = group.options.style;
        let can = match proposal {
            Yield::Move(Move { to, .. }) => group.synced().any(|member| member == to),
            Yield::Restyle(Restyle { style: to, .. }) => {
                style != to && group.options.may_become(to)
            }
        };
        let mine = style.keeps_its_primary() && group.primary() == Some(self.base.me);
        let yields = mine && can && group.view == view;
        if let Some(hosted) = self.replicas.hosted.get_mut(&id).filter(|_| yields) {
            hosted.yields = Some((proposal, false));
            // Leaves the next primary little to replay.
            hosted.cold.last_one = style.logs();
        }
        yields
    }

    /// Orders the move or change of style for which a primary here yields, once the primary has
    /// ordered the requests that it took. Returns true if it ordered any.
    pub(crate) fn pump_yields(&mut self, now: Time) -> bool {
        if !self.base.membership.is_active() {
            return false;
        }
        let mut ready = Vec::new();
        for hosted in self.replicas.hosted.values_mut() {
            if let Some((proposal, false)) = hosted.yields
                && hosted.may_hand_over()
            {
                hosted.yields = Some((proposal, true));
                ready.push(proposal);
            }
        }
        let any = !ready.is_empty();
        for proposal in ready {
            let said = match proposal {
                Yield::Move(proposal) => Ordered::Move(proposal),
                Yield::Restyle(proposal) => Ordered::Restyle(proposal),
            };
            self.base.order(now, said);
        }
        any
    }

    /// A passive group may have another primary, who was given nothing of what the one before had
    /// taken and did not order.
    pub(crate) fn park_forwarded(&mut self, id: GroupId) {
        let group = self.base.directory.get(id);
        if group.is_some_and(|group| group.options.style.logs()) {
            return self.park_relayed(id);
        }
        if group.is_some_and(|group| group.options.style.executes_on_arrival()) {
            self.replies().park_ordered(id);
        }
    }

    /// The primary's service cannot say what it has changed. If another replica has the state it is
    /// to be primary.
    pub(crate) fn resign(&mut self, now: Time, id: GroupId) {
        let others = self
            .base
            .directory
            .get(id)
            .map_or(0, |group| group.synced().filter(|member| *member != self.base.me).count());
        if others > 0 {
            self.with_replica(now, id, |replica, effects| replica.idle(effects));
            self.rejoin(now, id);
        }
    }
}
