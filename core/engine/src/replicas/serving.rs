//! Calls that a replica here may order or answer.

use alloc::format;

use wire::client::Outcome;
use wire::limits::{MAX_LOG, MAX_LOG_BYTES};
use wire::ordered::{self, Identity, Ordered, Style};
use wire::{GroupId, Time};

use crate::api::{Event, ServiceOutcome};
use crate::base::Base;
use crate::bug::Bug;
use crate::callers::{Call, Stage};
use crate::directory::State;
use crate::ordering::{Level, Ordering};
use crate::replicas::hosted::Hosted;
use crate::replicas::{ReplicaHandler, Replicas};
use crate::replies::calls::busy;
use crate::style::{Entry, StyleRules};

impl Replicas {
    /// Calls to this group are not ordered, and this node executes them: as long as it has a
    /// replica by the last view that it knows, whatever has become of the component.
    pub(crate) fn serves<O: Ordering>(&self, base: &Base<O>, group: GroupId) -> bool {
        let Some(known) = base.directory.get(group) else { return false };
        let style = known.options.style;
        let at_once = style == Style::Active && base.planted.is(Bug::ActiveAtOnce);
        let by_quorum = base.planted.is(Bug::QuorumForAll) && base.membership.is_minority();
        let stranger = base.planted.is(Bug::ServeAsStranger);
        (!style.orders() || at_once)
            && !by_quorum
            && (style.entry(known.standing(base.me)) == Entry::Open || stranger)
            && self.hosted.get(&group).is_some_and(|hosted| hosted.replica.has_state())
    }

    /// This node's replica has the state of the group that goes on.
    pub(crate) fn executes<O: Ordering>(&self, base: &Base<O>, group: GroupId) -> bool {
        let here = base.directory.get(group).and_then(|group| group.replica(base.me));
        here.is_some_and(|replica| replica.state == State::Synced)
            && self.hosted.get(&group).is_some_and(|hosted| hosted.replica.has_state())
    }
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    pub(crate) fn serve(&mut self, now: Time, call: Call) {
        if let Some(request) = self.stamped(now, call) {
            self.replies.clients.callers.set_stage(&call, Stage::Serving);
            self.with_replica(now, call.0, |replica, fx| replica.serve(now, request, fx));
        }
    }

    /// The request of a call, as replicas are given it: with this node's time and a seed.
    pub(crate) fn stamped(&mut self, now: Time, call: Call) -> Option<ordered::Request> {
        let seed = self.base.random.next_u64();
        let hosted = self.replicas.hosted.get(&call.0);
        let proven = hosted.and_then(|hosted| hosted.replica.executed()).unwrap_or(0);
        let level = self.base.membership.levels().level();
        let waiting = self.replies.clients.callers.get(&call)?;
        let timeout = waiting.deadline.since(now).as_micros();
        let request = &waiting.request;
        Some(ordered::Request {
            group: request.group,
            method: request.method,
            json: request.json,
            read: request.access.reads(),
            client: request.client,
            number: request.number,
            unanswered: request.unanswered,
            time: waiting.wall,
            seed,
            proven,
            timeout_us: u32::try_from(timeout).unwrap_or(u32::MAX),
            priority: request.priority,
            identity: Identity::at_level(level, request.has_key),
            origin: None,
            body: request.body.clone(),
        })
    }

    /// A replica here was given the call already: it is answered when that is held.
    pub(crate) fn serve_known(&mut self, now: Time, call: Call, outcome: Option<ServiceOutcome>) {
        let (group, client, number) = call;
        self.base.event(Event::Copy { group, client, number });
        let known_at = self.base.known_at(group);
        self.replies.clients.callers.delivered(&call, None, known_at);
        match outcome {
            Some(outcome) => self.replies().answer(call, None, outcome),
            // The leader is silent, or the client would not ask here.
            None => self.take_over(now, group),
        }
    }

    /// A call comes to a backup. If the replica has taken it already, it is answered when it is
    /// held. An unknown call is ordered after a quarter of the client's timeout. At once would
    /// multiply the load of an overloaded ring.
    pub(crate) fn serve_as_backup(
        &mut self,
        now: Time,
        call: Call,
        known: Option<Option<ServiceOutcome>>,
    ) {
        let Some(waiting) = self.replies.clients.callers.get(&call) else { return };
        let (given, deadline) = (waiting.given, waiting.deadline);
        match known {
            Some(outcome) => self.serve_known(now, call, outcome),
            None if given => self.order_call(now, call),
            None => self.replies.clients.callers.order_later(&call, now + deadline.since(now) / 4),
        }
    }

    /// Calls that nobody else has ordered in time are ordered here.
    pub(crate) fn order_due(&mut self, now: Time) {
        while let Some(call) = self.replies.clients.callers.take_due(now) {
            let stays = self.replicas.is_needed(self.base, call.0);
            let has_state =
                |hosted: &Hosted| hosted.replica.has_state() && (!hosted.departure.begun || stays);
            let awake =
                self.base.directory.get(call.0).is_some_and(|group| group.primary().is_some());
            if self.base.membership.is_active()
                && awake
                && self.replicas.hosted.get(&call.0).is_some_and(has_state)
            {
                self.order_call(now, call);
            }
        }
    }

    pub(crate) fn order_call(&mut self, now: Time, call: Call) {
        if self.replicas.hosted.get(&call.0).is_some_and(|hosted| hosted.replica.is_log_full()) {
            return self.wait_for_log(now, call);
        }
        let Some(request) = self.stamped(now, call) else { return };
        // A reply that waits for nobody's copy does not have the others woken to acknowledge: they
        // may do that when they are asked for more.
        let level = if self.base.holds_alone(call.0) { Level::Agreed } else { Level::Held };
        if self.base.outbox.hand_in(now, Ordered::Request(request), level) {
            self.replies.clients.callers.set_stage(&call, Stage::Ordered);
        } else {
            let queued = self.base.outbox.ordering.queued();
            let reason = format!(
                "{queued} messages of this node wait for the ring, the limit: ask again when there is room"
            );
            let outcome = busy(self.replies.clients.retry_after(queued), reason);
            self.replies().decline(call, outcome);
        }
    }

    /// The group's log is full: its primary is slow, or cannot take a checkpoint. Or it is being
    /// executed, and enough wait for that.
    pub(crate) fn wait_for_log(&mut self, now: Time, call: Call) {
        let Some(hosted) = self.replicas.hosted.get(&call.0) else { return };
        let Some(log) = hosted.replica.log_size() else { return };
        let requests = usize::try_from(log.requests).unwrap_or(usize::MAX);
        let retry_after = self.replies.clients.retry_after(requests);
        let reason = match hosted.replica.launching() {
            Some(waiting) => format!(
                "the group executes its log to go on in another style, and {waiting} calls wait for that: ask again in a while"
            ),
            None => format!(
                "the group has logged {requests} calls, of {} bytes, since its last checkpoint, and may have {MAX_LOG} of \
                 {MAX_LOG_BYTES}: ask again when its primary has taken one",
                log.bytes
            ),
        };
        // One that was given to the ring before goes on waiting.
        self.replies().decline(call, busy(retry_after, reason));
        self.replies.clients.callers.order_later(&call, now + retry_after);
    }

    /// The verdict went against this configuration: clients that wait here have to try elsewhere.
    pub(crate) fn refuse_without_quorum(&mut self, now: Time) {
        for call in self.replies.clients.callers.all() {
            let stage = self.replies.clients.callers.get(&call).map(|waiting| &waiting.stage);
            if stage == Some(&Stage::Serving) {
                // It is being executed, and waits for nobody.
            } else if self.is_recent_enough(now, call) {
                self.execute_read(now, call);
            } else {
                self.replies().decline(call, Outcome::NoReplica);
            }
        }
        self.answer_binds();
    }
}
