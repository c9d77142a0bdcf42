//! Calls that change nothing: answered without ordering (`docs/protocol/group.md`, "Reads").

use wire::GroupId;
use wire::Time;
use wire::client::{Access, Outcome};
use wire::ordered::Hold;

use super::Stack;
use crate::api::Output;
use crate::bug::Bug;
use crate::callers::{Call, Stage};
use crate::directory::Group;
use crate::ordering::Ordering;
use crate::style::Conduct;

impl<O: Ordering> Stack<O> {
    /// Whether this call is a read that need not be ordered. Where an answer waits for nobody's copy, nobody but its entry may
    /// know of it: then the order alone says what a read has to see; or the primary, if it is the only entry.
    pub(super) fn reads_without_order(&self, group: &Group, call: Call) -> bool {
        let style = group.options.style;
        style.orders()
            && !style.orders_reads()
            && (group.options.hold != Hold::One || style.executes_on_arrival())
            && self.clients.callers.get(&call).is_some_and(|waiting| waiting.request.access.reads())
    }

    /// Only the primary knows what was answered.
    fn is_the_primarys(&self, group: &Group) -> bool {
        group.options.hold == Hold::One && group.primary() != Some(self.me)
    }

    /// A read comes, in a component. Any replica with the state takes it.
    pub(super) fn read(&mut self, now: Time, call: Call) {
        let Some(group) = self.directory.get(call.0) else { return };
        if self.is_the_primarys(group) {
            return self.decline(call, Outcome::NotPrimary);
        }
        if self.executes(call.0) {
            return self.ask_for_read(now, call);
        }
        let (view, primary) = (group.view, group.primary());
        let chosen_by = self.clients.callers.get(&call).map(|waiting| waiting.request.view);
        if chosen_by.is_some_and(|chosen_by| chosen_by < view) {
            self.decline(call, Outcome::NotPrimary);
        } else if let Some(primary) = primary.filter(|primary| *primary != self.me) {
            // The client has a reason to come here: if those who could serve are dead, a view says so soon.
            self.outputs.push(Output::Probe(primary.node));
        }
    }

    /// Makes sure that this node is in the component, and learns how far it has to be. Without a ring that orders
    /// messages, the next installation decides.
    fn ask_for_read(&mut self, now: Time, call: Call) {
        if self.planted.is(Bug::ReadAlone) {
            return self.execute_read(now, call);
        }
        if let Some(round) = self.outbox.ordering.confirm(now) {
            self.clients.callers.set_stage(&call, Stage::Asking { round, at: now });
        }
    }

    /// A majority was in the ring after all that asked for this round had come.
    pub(super) fn confirmed(&mut self, round: u64, upto: u64) {
        let upto = if self.planted.is(Bug::ReadTooEarly) { 0 } else { upto };
        while let Some(call) = self.clients.callers.asked_by(round) {
            let stage = self.clients.callers.get(&call).map(|waiting| waiting.stage.clone());
            let Some(Stage::Asking { at, .. }) = stage else { unreachable!("it is found by that") };
            self.clients.callers.set_stage(&call, Stage::Placed { upto, at });
        }
    }

    /// Executes the reads for which all has been delivered. True if there was one.
    pub(super) fn pump_reads(&mut self, now: Time) -> bool {
        let mut any = false;
        while self.membership.is_active()
            && let Some(call) = self.clients.callers.placed_by(self.progress.delivered())
        {
            any = true;
            let stage = self.clients.callers.get(&call).map(|waiting| waiting.stage.clone());
            let Some(Stage::Placed { at, .. }) = stage else { unreachable!("it is found by that") };
            // Before that another component may have gone on without this one.
            if self.membership.is_effective() {
                self.clients.reads.confirm(at);
            }
            if self.executes(call.0) {
                self.execute_read(now, call);
            } else {
                // The state went while it waited.
                self.clients.callers.park(&call);
                self.read(now, call);
            }
        }
        any
    }

    /// Whether this call may be answered from what this node has: it has all that was answered so long ago as
    /// the client allows.
    pub(super) fn is_recent_enough(&self, now: Time, call: Call) -> bool {
        let Some(waiting) = self.clients.callers.get(&call) else { return false };
        let Access::Stale { max_age_ms } = waiting.request.access else { return false };
        let most = wire::Duration::from_millis(max_age_ms.into());
        let recent = self.clients.reads.is_recent(now, most) || self.planted.is(Bug::ForgetAge);
        // Between components nobody will say any more that what was taken last is held.
        let settled = self.membership.is_active()
            || self.hosted.get(&call.0).is_some_and(|hosted| hosted.settled);
        let group = self.directory.get(call.0);
        recent
            && settled
            && group.is_some_and(|group| {
                self.reads_without_order(group, call) && !self.is_the_primarys(group)
            })
            && self.executes(call.0)
    }

    /// Gives a read to this node's replica. What it sees must be held before it is told, or it might be told of what is
    /// lost.
    pub(super) fn execute_read(&mut self, now: Time, call: Call) {
        let Some(request) = self.stamped(now, call) else { return };
        // A passive group's primary has executed what has no place yet.
        let ahead = self.directory.get(call.0).is_some_and(|group| {
            group.options.style.executes_on_arrival() && group.primary() == Some(self.me)
        });
        let active = self.membership.is_active();
        let execution = self.clients.reads.next();
        let stage = match (active, ahead) {
            (true, false) => Stage::Delivered { sequence: self.seen(call.0) },
            (true, true) => Stage::Reading { execution },
            (false, _) => Stage::Serving,
        };
        self.clients.callers.set_stage(&call, stage);
        self.with_replica(now, call.0, |replica, effects| {
            replica.read(request, (active && ahead).then_some(execution), effects);
        });
    }

    /// What a read saw at a passive group's primary has its place. Of an earlier execution of the same read, before the
    /// component began, that says nothing.
    pub(super) fn read_placed(&mut self, call: Call, execution: u64) {
        let stage = self.clients.callers.get(&call).map(|waiting| &waiting.stage);
        if stage == Some(&Stage::Reading { execution }) {
            self.clients
                .callers
                .set_stage(&call, Stage::Delivered { sequence: self.progress.delivered() });
            self.reply_if_ready(call); // its outcome may have been there before
        }
    }

    /// The place in the present order of the last request that this node's replica has taken; what it took before this component
    /// is part of the installation.
    fn seen(&self, group: GroupId) -> u64 {
        let taken = self.hosted.get(&group).map(|hosted| hosted.taken).unwrap_or_default();
        let here = (self.membership.epoch(), self.membership.ring()) == (taken.epoch, taken.ring);
        if here { taken.sequence } else { self.membership.installed() }
    }

    /// The configuration is over: notes of which replicas all is held, and lets reads wait for the next.
    pub(super) fn settle_reads(&mut self) {
        let active = self.membership.is_active();
        let settled = |id: GroupId| {
            let hosted = &self.hosted[&id];
            let held = if active { self.is_held(id, self.seen(id)) } else { hosted.settled };
            held && !hosted.replica.is_ahead()
        };
        let all: alloc::vec::Vec<(GroupId, bool)> =
            self.hosted.keys().map(|id| (*id, settled(*id))).collect();
        for (id, settled) in all {
            self.hosted.entry(id).and_modify(|hosted| hosted.settled = settled);
        }
        self.clients.callers.park_reads();
    }
}
