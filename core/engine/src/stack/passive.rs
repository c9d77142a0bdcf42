//! Groups whose primary executes calls when they come, and orders what that has changed (`docs/protocol/group.md`, "Warm
//! passive").

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::{Move, Ordered, PrimaryChunk, Request, Restyle, Told};
use wire::{GroupId, Member, Time};

use super::Stack;
use crate::bug::Bug;
use crate::callers::{Call, Stage};
use crate::ordering::Ordering;
use crate::style::{Conduct, Standing};

/// For what a passive group's primary takes nothing more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Yield {
    /// Another is to be primary.
    Move(Move),
    /// The group is to have another style.
    Restyle(Restyle),
}

impl<O: Ordering> Stack<O> {
    /// A call comes to its group's primary, here.
    pub(super) fn execute_call(&mut self, now: Time, call: Call) {
        let Some(request) = self.stamped(now, call) else { return };
        self.clients.callers.set_stage(&call, Stage::Ordered);
        self.with_replica(now, call.0, |replica, fx| replica.arrive(now, request, fx));
    }

    /// A backup had a call ordered whose client cannot reach the primary. Its place means nothing: that of the update does.
    pub(super) fn forwarded(&mut self, now: Time, request: Request) {
        let id = request.group;
        let Some(group) = self.directory.get(id) else { return };
        let Some(hosted) = self.hosted.get(&id) else { return };
        let takes = hosted.yields.is_none() && (!hosted.departure.begun || self.is_needed(id));
        // If it takes none, whoever forwarded the call does so again when another is primary.
        if takes && group.standing(self.me) == Standing::Primary {
            self.with_replica(now, id, |replica, fx| replica.arrive(now, request, fx));
        }
    }

    /// A piece of an update is delivered. With the last one the update has its place, whoever has a replica.
    pub(super) fn act_on_update(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        chunk: &PrimaryChunk,
        payload: &Bytes,
    ) {
        let id = chunk.group;
        let reigns = self.directory.reigns(id, sender, chunk.since);
        if !reigns && !self.planted.is(Bug::TakeDeposed) {
            return; // what it has executed was answered to nobody
        }
        if chunk.what == Told::Checkpoint {
            return self.act_on_checkpoint(now, sender, chunk, payload);
        }
        let here = self.directory.get(id).is_some_and(|group| group.replica(self.me).is_some());
        if chunk.last {
            let place = self.place(sequence);
            if !self.directory.requested(id, place) {
                return;
            }
            // A replica that is back from its disk and not in the table takes nothing (simulator seed 3746 of the disks).
            if let Some(hosted) = self.hosted.get_mut(&id).filter(|it| here && !it.spared) {
                hosted.taken = place;
            }
        }
        let own = sender == self.me;
        if here {
            if self.hosted.get(&id).is_some_and(|hosted| !hosted.spared) {
                self.keep_taken(id, payload);
            }
            self.with_replica(now, id, |replica, effects| {
                replica.update_chunk(chunk, own, effects);
            });
            self.cut_journal(now, id);
        }
    }

    fn act_on_checkpoint(
        &mut self,
        now: Time,
        sender: Member,
        chunk: &PrimaryChunk,
        payload: &Bytes,
    ) {
        let own = sender == self.me;
        let group = self.directory.get(chunk.group);
        // It may have been on its way when its group was given another style.
        let group = group.filter(|group| group.options.style.logs());
        if group.is_some_and(|group| group.replica(self.me).is_some()) {
            self.log_beside(chunk.group, payload);
            self.with_replica(now, chunk.group, |replica, effects| {
                replica.checkpoint_chunk(chunk, own, effects);
            });
        }
    }

    /// The component begins: so does the time of all primaries.
    pub(super) fn enthrone_all(&mut self) {
        let ids: Vec<GroupId> = self.directory.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.directory.enthrone(id, self.place(self.progress.delivered()));
        }
    }

    /// Tells this node's replica whether it is its group's primary.
    pub(super) fn reconcile_reign(&mut self, now: Time, id: GroupId) {
        let group = self.directory.get(id);
        let passive = group.filter(|group| group.options.style.keeps_its_primary());
        let since = passive.and_then(|group| group.reign_of(self.me));
        let Some(hosted) = self.hosted.get(&id) else { return };
        let before = (hosted.replica.runs(), hosted.replica.is_finishing());
        self.with_replica(now, id, |replica, effects| replica.reign(since, effects));
        self.note_running(id, before);
    }

    /// The component is over: nothing more is executed until the next is installed.
    pub(super) fn suspend_primaries(&mut self, now: Time) {
        let ids: Vec<GroupId> = self.hosted.keys().copied().collect();
        for id in ids {
            self.with_replica(now, id, |replica, effects| replica.suspend(effects));
        }
    }

    /// The groups whose primary is here and has executed what is in no update that was delivered.
    pub(super) fn replicas_ahead(&self) -> Vec<GroupId> {
        let ahead = self.hosted.iter().filter(|(_, hosted)| hosted.replica.is_ahead());
        ahead.map(|(id, _)| *id).collect()
    }

    /// This node's replica is a passive group's primary, and is to say this in the present view: it takes nothing more. False if it is
    /// not, or cannot.
    pub(super) fn yield_to(&mut self, wish: Yield) -> bool {
        let (id, view) = match wish {
            Yield::Move(Move { group, view, .. }) | Yield::Restyle(Restyle { group, view, .. }) => {
                (group, view)
            }
        };
        let Some(group) = self.directory.get(id) else { return false };
        let style = group.options.style;
        let can = match wish {
            Yield::Move(Move { to, .. }) => group.synced().any(|member| member == to),
            Yield::Restyle(Restyle { style: to, .. }) => {
                style != to && group.options.may_become(to)
            }
        };
        let mine = style.keeps_its_primary() && group.primary() == Some(self.me);
        let yields = mine && can && group.view == view;
        if let Some(hosted) = self.hosted.get_mut(&id).filter(|_| yields) {
            hosted.yields = Some((wish, false));
            // So that the next has little to replay.
            hosted.cold.last_one = style.logs();
        }
        yields
    }

    /// Who yields and has ordered what it took says what it yields for. True if anybody did.
    pub(super) fn pump_yields(&mut self, now: Time) -> bool {
        if !self.membership.is_active() {
            return false;
        }
        let mut ready = Vec::new();
        for hosted in self.hosted.values_mut() {
            if let Some((wish, false)) = hosted.yields
                && hosted.may_hand_over()
            {
                hosted.yields = Some((wish, true));
                ready.push(wish);
            }
        }
        let any = !ready.is_empty();
        for wish in ready {
            let said = match wish {
                Yield::Move(wish) => Ordered::Move(wish),
                Yield::Restyle(wish) => Ordered::Restyle(wish),
            };
            self.order(now, said);
        }
        any
    }

    /// A passive group may have another primary, who was given nothing of what the one before had taken and did not order.
    pub(super) fn park_forwarded(&mut self, id: GroupId) {
        let group = self.directory.get(id);
        if group.is_some_and(|group| group.options.style.logs()) {
            return self.park_relayed(id);
        }
        if group.is_some_and(|group| group.options.style.executes_on_arrival()) {
            self.park_ordered(id);
        }
    }

    /// Calls that were ordered and have no place begin anew.
    pub(super) fn park_ordered(&mut self, id: GroupId) {
        for call in self.clients.callers.of_group(id) {
            if self
                .clients
                .callers
                .get(&call)
                .is_some_and(|waiting| waiting.stage == Stage::Ordered)
            {
                self.clients.callers.park(&call);
            }
        }
    }

    /// The primary's service cannot say what it has changed. If another replica has the state it is to be primary.
    pub(super) fn resign(&mut self, now: Time, id: GroupId) {
        let others = self
            .directory
            .get(id)
            .map_or(0, |group| group.synced().filter(|member| *member != self.me).count());
        if others > 0 {
            self.with_replica(now, id, |replica, effects| replica.idle(effects));
            self.rejoin(now, id);
        }
    }
}
