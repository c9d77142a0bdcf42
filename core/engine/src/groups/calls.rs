//! Calls of clients, on their way to a group.

use alloc::format;
use alloc::string::String;

use wire::client::{Outcome, Refusal, Request};
use wire::limits::{MAX_BODY, MAX_DEADLINE, MAX_SESSION_WINDOW};
use wire::ordered::{MERGE, call_digest};
use wire::versions::WHOLE;
use wire::{Caller, Duration, GroupId, Time};

use crate::api::Output;
use crate::callers::{Call, OWN, Stage, Waiting};
use crate::groups::GroupHandler;
use crate::ordering::Ordering;
use crate::replicas::hosted::Hosted;
use crate::replies::calls::busy;
use crate::style::{Entry, StyleRules};

/// The error for a client that has more calls under way than a session has places.
fn window_exceeded(ahead: u64) -> String {
    format!(
        "the call's number is {ahead} above the lowest that is unanswered, and a session has {MAX_SESSION_WINDOW} places: \
         have fewer calls of one client under way"
    )
}

impl<O: Ordering> GroupHandler<'_, O> {
    pub(crate) fn request(&mut self, now: Time, wall: Time, caller: Caller, mut request: Request) {
        self.groups.grade(&mut request);
        let call = (request.group, request.client, request.number);
        if request.body.len() > MAX_BODY {
            let reason = format!(
                "the arguments have {} bytes, the limit is {MAX_BODY}: send less at a time",
                request.body.len()
            );
            return self.replies().refuse(caller, &request, Refusal::TooLarge, reason);
        }
        if request.method == MERGE {
            let reason =
                "steadfast.merge is a call of the cluster's own: a partition's end makes it";
            return self.replies().refuse(caller, &request, Refusal::NoSuchMethod, reason.into());
        }
        self.replies.clients.observe(now);
        let under_way = request.number.saturating_sub(request.unanswered);
        if under_way >= MAX_SESSION_WINDOW {
            let reason = window_exceeded(under_way);
            return self.replies().refuse(caller, &request, Refusal::Window, reason);
        }
        self.replies.clients.callers.forget_ended(
            request.group,
            request.client,
            request.unanswered,
        );
        let asked = call_digest(request.method, request.json, &request.body);
        let before = self.replies.clients.callers.get(&call);
        let differs = |before: &Waiting| {
            before.asked != asked || before.request.access.reads() != request.access.reads()
        };
        if before.is_some_and(differs) && self.base.membership.levels().level() >= WHOLE {
            return self.replies().another_waits(caller, &request);
        }
        if self.replies.clients.is_full() && before.is_none() {
            let reason = format!(
                "{} calls wait at this node, the limit: ask again when there is room",
                self.replies.clients.callers.len()
            );
            let outcome =
                busy(self.replies.clients.retry_after(self.replies.clients.callers.len()), reason);
            return self.replies().send_reply(caller, &request, outcome);
        }
        if let Some(outcome) = self.turn_away(now, caller, &request) {
            return self.replies().send_reply(caller, &request, outcome);
        }
        let timeout = Duration::from_micros(request.timeout_us.into()).min(MAX_DEADLINE);
        let deadline = now + timeout;
        let (stage, given, outcome) = (Stage::Parked, false, None);
        let order_at = None;
        let beside = request.beside;
        let hosted = self.replicas.hosted.get(&call.0);
        let known = hosted.and_then(|hosted| hosted.replica.known(&request));
        let waiting = Waiting {
            caller,
            deadline,
            request,
            asked,
            wall,
            stage,
            given,
            returned: caller == OWN || known.is_some() && !beside,
            order_at,
            outcome,
        };
        self.replies.clients.callers.insert(call, waiting);
        self.route_parked(now, call);
        self.replies().reply_if_ready(call);
    }

    pub(crate) fn route_parked(&mut self, now: Time, call: Call) {
        if self
            .replies
            .clients
            .callers
            .get(&call)
            .is_some_and(|waiting| waiting.stage == Stage::Parked)
        {
            self.route(now, call);
        }
    }

    /// Decides whether a parked call is executed, ordered, sent elsewhere, refused, or kept
    /// waiting.
    pub(crate) fn route(&mut self, now: Time, call: Call) {
        if self.replicas.serves(self.base, call.0) {
            return self.replicas().serve(now, call);
        }
        if self.replicas().is_recent_enough(now, call) {
            return self.replicas().execute_read(now, call);
        }
        if self.base.membership.is_minority() {
            return self.replies().decline(call, Outcome::NoReplica);
        }
        if !self.base.membership.is_active() || self.replicas.may_come(self.base, call.0) {
            return; // the next installation, verdict or view decides
        }
        let Some(group) = self.base.directory.get(call.0) else {
            return self.replies().decline(call, Outcome::NoSuchGroup);
        };
        let Some(primary) = group.primary() else {
            return self.replies().decline(call, Outcome::NoReplica);
        };
        if self.replies.reads_without_order(group, call) {
            return self.replicas().read(now, call);
        }
        let stays =
            self.replicas.is_needed(self.base, call.0) || self.groups.is_handing_over(call.0);
        let hosted =
            self.replicas.hosted.get(&call.0).filter(|hosted| !hosted.departure.begun || stays);
        let Some(waiting) = self.replies.clients.callers.get(&call) else { return };
        let (chosen_by, reads) = (waiting.request.view, waiting.request.access.reads());
        let own = waiting.caller == OWN;
        let behind = chosen_by < group.view && !waiting.given;
        let hosted = hosted.filter(|hosted| hosted.replica.has_state());
        let led = |hosted: &Hosted| {
            let views = hosted.led.map(|(first, last)| first..=last);
            views.is_some_and(|views| views.contains(&chosen_by))
        };
        let request = &waiting.request;
        let known = |hosted: &Hosted| hosted.replica.known(request);
        let style = group.options.style;
        match style.entry(group.standing(self.base.me)) {
            Entry::Open => {
                // A view without it, or with another primary, is on its way.
                let takes =
                    |hosted: &&Hosted| hosted.yields.is_none() || !style.executes_on_arrival();
                let Some(hosted) = hosted.filter(takes) else { return };
                match style.looks_first().then(|| known(hosted)).flatten() {
                    Some(outcome) => self.replicas().serve_known(now, call, outcome),
                    None if style.executes_on_arrival() => self.replicas().execute_call(now, call),
                    None => self.replicas().order_call(now, call),
                }
            }
            // The client may have chosen this node among all replicas for its read. The read is
            // ordered all the same, which costs the client nothing.
            Entry::Spare if reads && hosted.is_some() => self.replicas().order_call(now, call),
            // The node's own calls go nowhere else.
            Entry::Spare if own && hosted.is_some() => self.replicas().order_call(now, call),
            // This node was the primary when the client sent the call. To take it here costs the
            // client less than a redirect, and the reply carries the new targets.
            Entry::Spare if behind && hosted.is_some_and(led) => {
                self.replicas().order_call(now, call)
            }
            Entry::Spare | Entry::Closed if behind => {
                self.replies().decline(call, Outcome::NotPrimary)
            }
            // The client's view is current and it comes here all the same: it could not reach the
            // primary. A dead primary is replaced soon. A live one may have ordered the call; if
            // not, any replica may.
            Entry::Spare => {
                self.base.outputs.push(Output::Probe(primary.node));
                if let Some(hosted) = hosted {
                    let known = known(hosted);
                    self.replicas().serve_as_backup(now, call, known);
                }
            }
            Entry::Closed => self.base.outputs.push(Output::Probe(primary.node)),
        }
    }

    /// Routes parked calls again after a change of view.
    pub(crate) fn reconcile_calls(&mut self, now: Time, group: GroupId) {
        for call in self.replies.clients.callers.of_group(group) {
            self.route_parked(now, call);
        }
        self.replicas().answer_binds();
    }

    /// Routes waiting calls when a component is installed at this place. Calls that this node's
    /// replicas have executed belong to its history and are held with the installation. All others
    /// begin anew.
    pub(crate) fn calls_in_new_component(&mut self, now: Time, installed: u64) {
        for call in self.replies.clients.callers.all() {
            let stage =
                self.replies.clients.callers.get(&call).map(|waiting| waiting.stage.clone());
            match stage.filter(|_| self.replicas.executes(self.base, call.0)) {
                Some(Stage::Delivered { .. }) if self.replicas().is_answered_here(&call) => {
                    self.replies
                        .clients
                        .callers
                        .set_stage(&call, Stage::Delivered { sequence: installed });
                }
                Some(Stage::Serving) => {} // its replica goes on with it
                _ => {
                    self.replies.clients.callers.park(&call);
                    self.route(now, call);
                }
            }
        }
        self.replicas().answer_binds();
    }
}
