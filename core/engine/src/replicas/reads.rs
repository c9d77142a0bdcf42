//! Calls that change nothing: answered without ordering (`docs/protocol/group.md`, "Reads").

use alloc::vec::Vec;

use wire::client::{Access, Outcome};
use wire::ordered::{AckLevel, Place};
use wire::{GroupId, Time};

use crate::api::Output;
use crate::base::Base;
use crate::base::held::Knowledge;
use crate::bug::Bug;
use crate::callers::{Call, Stage};
use crate::ordering::Ordering;
use crate::replicas::hosted::Hosted;
use crate::replicas::{ReplicaHandler, Replicas};
use crate::style::StyleRules;

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// A read comes, in a component. Any replica with the state takes it.
    pub(crate) fn read(&mut self, now: Time, call: Call) {
        let Some(group) = self.base.directory.get(call.0) else { return };
        if self.base.is_the_primarys(group) {
            return self.replies().decline(call, Outcome::NotPrimary);
        }
        if self.replicas.executes(self.base, call.0) {
            return self.ask_for_read(now, call);
        }
        let (view, primary) = (group.view, group.primary());
        let chosen_by = self.replies.clients.callers.get(&call).map(|waiting| waiting.request.view);
        if chosen_by.is_some_and(|chosen_by| chosen_by < view) {
            self.replies().decline(call, Outcome::NotPrimary);
        } else if let Some(primary) = primary.filter(|primary| *primary != self.base.me) {
            // The client has a reason to come here: if those who could serve are dead, a view says
            // so soon.
            self.base.outputs.push(Output::Probe(primary.node));
        }
    }

    /// Makes sure that this node is in the component, and learns how far it has to be. Without a
    /// ring that orders messages, the next installation decides.
    pub(crate) fn ask_for_read(&mut self, now: Time, call: Call) {
        if self.base.planted.is(Bug::ReadAlone) {
            return self.execute_read(now, call);
        }
        if let Some(round) = self.base.outbox.ordering.confirm(now) {
            self.replies.clients.callers.set_stage(&call, Stage::Asking { round, at: now });
        }
    }

    /// Executes the reads for which all has been delivered. True if there was one.
    pub(crate) fn pump_reads(&mut self, now: Time) -> bool {
        let mut any = false;
        while self.base.membership.is_active()
            && let Some(call) =
                self.replies.clients.callers.placed_by(self.base.progress.delivered())
        {
            any = true;
            let stage =
                self.replies.clients.callers.get(&call).map(|waiting| waiting.stage.clone());
            let Some(Stage::Placed { at, .. }) = stage else { unreachable!("it is found by that") };
            // Before that another component may have gone on without this one.
            if self.base.membership.is_effective() {
                self.replies.clients.reads.confirm(at);
            }
            if self.replicas.executes(self.base, call.0) {
                self.execute_read(now, call);
            } else {
                // The state went while it waited.
                self.replies.clients.callers.park(&call);
                self.read(now, call);
            }
        }
        any
    }

    /// Whether this call may be answered from what this node has: it has all that was answered so
    /// long ago as the client allows.
    pub(crate) fn is_recent_enough(&self, now: Time, call: Call) -> bool {
        let Some(waiting) = self.replies.clients.callers.get(&call) else { return false };
        let Access::Stale { max_age_ms } = waiting.request.access else { return false };
        let most = wire::Duration::from_millis(max_age_ms.into());
        let recent =
            self.replies.clients.reads.is_recent(now, most) || self.base.planted.is(Bug::ForgetAge);
        let (Some(group), Some(hosted)) =
            (self.base.directory.get(call.0), self.replicas.hosted.get(&call.0))
        else {
            return false;
        };
        // Between components nobody will say any more that what was taken last is held, and nothing
        // is ordered: one replica answers alone if all that it shows is agreed.
        let shows_all = match self.base.membership.is_active() {
            true => self.replies.reads_without_order(group, call),
            false => {
                let waits = group.options.ack != AckLevel::One;
                let ordered = waits && group.options.style.orders_reads();
                let reads = self.replies.reads_without_order(group, call) || ordered;
                reads && hosted.settled && hosted.replica.shows_all()
            }
        };
        let refused = self.base.planted.is(Bug::RefuseAlone) && !self.base.membership.is_active();
        recent
            && shows_all
            && !refused
            && !self.base.is_the_primarys(group)
            && self.replicas.executes(self.base, call.0)
    }

    /// Learns how recent its replicas' states are, so that they can answer stale reads when this
    /// node is cut off. True if it has asked for that.
    pub(crate) fn pump_confirmation(&mut self, now: Time) -> bool {
        if !self.base.membership.is_effective() {
            return false;
        }
        self.replies.clients.reads.delivered(self.base.progress.delivered());
        if !self.replies.clients.reads.is_due(now) {
            return false;
        }
        let has_any = self.replicas.hosted.keys().any(|id| self.replicas.executes(self.base, *id));
        let round = has_any.then(|| self.base.outbox.ordering.confirm(now)).flatten();
        self.replies.clients.reads.looked(now, round);
        round.is_some()
    }

    /// Gives a read to this node's replica. The state that it sees must be held before its reply
    /// leaves: otherwise the reply might show state that is lost.
    pub(crate) fn execute_read(&mut self, now: Time, call: Call) {
        let Some(request) = self.stamped(now, call) else { return };
        // A passive group's primary has executed requests that have no place yet.
        let ahead = self.base.directory.get(call.0).is_some_and(|group| {
            group.options.style.executes_on_arrival() && group.primary() == Some(self.base.me)
        });
        let active = self.base.membership.is_active();
        let execution = self.replies.clients.reads.next();
        let stage = match (active, ahead) {
            (true, false) => Stage::Delivered { sequence: self.replicas.seen(self.base, call.0) },
            (true, true) => Stage::Reading { execution },
            (false, _) => Stage::Serving,
        };
        self.replies.clients.callers.set_stage(&call, stage);
        self.with_replica(now, call.0, |replica, effects| match active {
            true => replica.read(request, ahead.then_some(execution), effects),
            false => replica.read_alone(request, effects),
        });
    }

    /// The ring is over: notes of which replicas all is held, by what was known of the members when
    /// it ended. Between components that stays as it is.
    pub(crate) fn note_settled(&mut self) {
        if !self.base.membership.is_active() {
            return;
        }
        let settled = |(id, hosted): (&GroupId, &Hosted)| {
            let seen = self.replicas.place_here(self.base, hosted.changed);
            let held = self.base.is_held_by(Knowledge::AtTheEnd, *id, seen);
            (*id, held && !hosted.replica.is_ahead())
        };
        let all: Vec<(GroupId, bool)> = self.replicas.hosted.iter().map(settled).collect();
        for (id, settled) in all {
            self.replicas.hosted.entry(id).and_modify(|hosted| hosted.settled = settled);
        }
    }

    /// The configuration is over: reads wait for the next.
    pub(crate) fn settle_reads(&mut self) {
        self.note_settled();
        self.replies.clients.reads.interrupted();
        self.replies.clients.callers.park_reads();
    }
}

impl Replicas {
    /// The place in the present order of the last request that this node's replica has taken; what
    /// it took before this component is part of the installation.
    pub(crate) fn seen<O: Ordering>(&self, base: &Base<O>, group: GroupId) -> u64 {
        let taken = self.hosted.get(&group).map(|hosted| hosted.taken).unwrap_or_default();
        self.place_here(base, taken)
    }

    /// This place in the present order.
    fn place_here<O: Ordering>(&self, base: &Base<O>, taken: Place) -> u64 {
        let here = (base.membership.epoch(), base.membership.ring()) == (taken.epoch, taken.ring);
        if here { taken.sequence } else { base.membership.installed() }
    }
}
