//! What clients ask of this node.

use alloc::format;
use alloc::string::String;

use wire::client::{Farewell, Frame, Hello, Outcome, Refusal, Reply, Request, Welcome};
use wire::limits::{MAX_BODY, MAX_DEADLINE, MAX_LOG, MAX_LOG_BYTES, MAX_SESSION_WINDOW};
use wire::ordered::{self, Ordered, Style};
use wire::{Caller, Duration, GroupId, Member, PROTOCOL_VERSION, Time};

use super::{Hosted, Stack};
use crate::api::{Event, Output, ServiceOutcome};
use crate::bug::Bug;
use crate::callers::{Call, OWN, Stage, Waiting};
use crate::directory::{Group, State};
use crate::ordering::{Level, Ordering};
use crate::pace;
use crate::style::{Conduct, Entry};

/// There is no room now.
fn busy(retry_after: Duration, reason: String) -> Outcome {
    let retry_after_us = u32::try_from(retry_after.as_micros()).unwrap_or(u32::MAX);
    Outcome::Busy { retry_after_us, reason }
}

/// What a client is told that has more calls under way than a session has places.
fn window_exceeded(ahead: u64) -> String {
    format!(
        "the call's number is {ahead} above the lowest that is unanswered, and a session has {MAX_SESSION_WINDOW} places: \
         have fewer calls of one client under way"
    )
}

impl<O: Ordering> Stack<O> {
    /// A frame came from a client. `wall` is the node's wall clock, in nanoseconds since the Unix
    /// epoch: it becomes the request's ordered time.
    pub fn handle_frame(&mut self, now: Time, wall: Time, caller: Caller, frame: Frame) {
        if self.hide(caller, &frame) {
            return;
        }
        match (frame, self.clients.callers.client(caller)) {
            (Frame::Hello(hello), None) => self.hello(caller, hello),
            (Frame::Bind(bind), Some(_)) => self.bind(caller, bind),
            (Frame::Watch(watch), Some(_)) => self.watch(caller, watch),
            (Frame::Request(request), Some(client)) if request.client == client => {
                self.request(now, wall, caller, request);
            }
            (Frame::Request(_), Some(_)) => {
                self.dismiss(caller, "a connection serves one session: connect once per client");
            }
            (_, None) => self.dismiss(caller, "the first frame must be Hello"),
            (_, Some(_)) => self.dismiss(caller, "a client sends Bind, Watch and Request only"),
        }
        self.outputs.crowd(now);
    }

    /// A client's connection is gone.
    pub fn handle_disconnect(&mut self, now: Time, caller: Caller) {
        self.clients.callers.disconnect(caller);
        self.clients.watches.forget(caller);
        self.settle(now);
    }

    pub(super) fn dismiss(&mut self, caller: Caller, reason: &str) {
        let farewell = Farewell { version: PROTOCOL_VERSION, reason: reason.into() };
        self.outputs.push(Output::Frame { caller, frame: Frame::Farewell(farewell) });
        self.outputs.push(Output::Close { caller });
    }

    fn hello(&mut self, caller: Caller, hello: Hello) {
        if hello.version != PROTOCOL_VERSION {
            let reason = format!(
                "the client speaks protocol version {}, this node {PROTOCOL_VERSION}: upgrade the \
                 older side",
                hello.version
            );
            return self.dismiss(caller, &reason);
        }
        self.clients.callers.welcome(caller, hello.client);
        let welcome = Welcome {
            version: PROTOCOL_VERSION,
            node: self.me.node,
            cluster: self.clients.cluster().into(),
        };
        self.outputs.push(Output::Frame { caller, frame: Frame::Welcome(welcome) });
    }

    pub(super) fn request(&mut self, now: Time, wall: Time, caller: Caller, mut request: Request) {
        self.grade(&mut request);
        let call = (request.group, request.client, request.number);
        if request.body.len() > MAX_BODY {
            let reason = format!(
                "the arguments have {} bytes, the limit is {MAX_BODY}: send less at a time",
                request.body.len()
            );
            return self.refuse(caller, &request, Refusal::TooLarge, reason);
        }
        self.clients.observe(now);
        let under_way = request.number.saturating_sub(request.unanswered);
        if under_way >= MAX_SESSION_WINDOW {
            let reason = window_exceeded(under_way);
            return self.refuse(caller, &request, Refusal::Window, reason);
        }
        self.clients.callers.forget_ended(request.group, request.client, request.unanswered);
        if self.clients.is_full() && self.clients.callers.get(&call).is_none() {
            let reason = format!(
                "{} calls wait at this node, the limit: ask again when there is room",
                self.clients.callers.len()
            );
            let outcome = busy(self.clients.retry_after(self.clients.callers.len()), reason);
            return self.send_reply(caller, &request, outcome);
        }
        if let Some(outcome) = self.turn_away(now, caller, &request) {
            return self.send_reply(caller, &request, outcome);
        }
        let patience = Duration::from_micros(request.patience_us.into()).min(MAX_DEADLINE);
        let deadline = now + patience;
        let (stage, given, outcome) = (Stage::Parked, false, None);
        let order_at = None;
        let beside = request.beside;
        let hosted = self.hosted.get(&call.0);
        let known = hosted.and_then(|hosted| hosted.replica.known(call.1, call.2));
        let waiting = Waiting {
            caller,
            deadline,
            request,
            wall,
            stage,
            given,
            returned: caller == OWN || known.is_some() && !beside,
            order_at,
            outcome,
        };
        self.clients.callers.insert(call, waiting);
        self.route_parked(now, call);
        self.reply_if_ready(call);
    }

    pub(super) fn route_parked(&mut self, now: Time, call: Call) {
        if self.clients.callers.get(&call).is_some_and(|waiting| waiting.stage == Stage::Parked) {
            self.route(now, call);
        }
    }

    /// Decides what is done with a parked call: executed, ordered, sent elsewhere, refused, or kept waiting.
    fn route(&mut self, now: Time, call: Call) {
        if self.serves(call.0) {
            return self.serve(now, call);
        }
        if self.is_recent_enough(now, call) {
            return self.execute_read(now, call);
        }
        if self.membership.is_minority() {
            return self.decline(call, Outcome::NoReplica);
        }
        if !self.membership.is_active() || self.may_come(call.0) {
            return; // the next installation, verdict or view decides
        }
        let Some(group) = self.directory.get(call.0) else {
            return self.decline(call, Outcome::NoSuchGroup);
        };
        let Some(primary) = group.primary() else {
            return self.decline(call, Outcome::NoReplica);
        };
        if self.reads_without_order(group, call) {
            return self.read(now, call);
        }
        let stays = self.is_needed(call.0) || self.is_handing_over(call.0);
        let hosted = self.hosted.get(&call.0).filter(|hosted| !hosted.departure.begun || stays);
        let Some(waiting) = self.clients.callers.get(&call) else { return };
        let (chosen_by, reads) = (waiting.request.view, waiting.request.access.reads());
        let own = waiting.caller == OWN;
        let behind = chosen_by < group.view && !waiting.given;
        let hosted = hosted.filter(|hosted| hosted.replica.has_state());
        let led = |hosted: &Hosted| {
            let views = hosted.led.map(|(first, last)| first..=last);
            views.is_some_and(|views| views.contains(&chosen_by))
        };
        let known = |hosted: &Hosted| hosted.replica.known(call.1, call.2);
        let style = group.options.style;
        match style.entry(group.standing(self.me)) {
            Entry::Open => {
                // A view without it, or with another primary, is on its way.
                let takes =
                    |hosted: &&Hosted| hosted.yields.is_none() || !style.executes_on_arrival();
                let Some(hosted) = hosted.filter(takes) else { return };
                match style.looks_first().then(|| known(hosted)).flatten() {
                    Some(outcome) => self.serve_known(now, call, outcome),
                    None if style.executes_on_arrival() => self.execute_call(now, call),
                    None => self.order_call(now, call),
                }
            }
            // A read that is ordered after all: its client may have chosen among all replicas, and loses nothing by it.
            Entry::Spare if reads && hosted.is_some() => self.order_call(now, call),
            // The node's own calls go nowhere else.
            Entry::Spare if own && hosted.is_some() => self.order_call(now, call),
            // It comes to who was primary when it was sent. To take it here costs the client less than to be sent
            // on, and the reply tells it the new targets.
            Entry::Spare if behind && hosted.is_some_and(led) => self.order_call(now, call),
            Entry::Spare | Entry::Closed if behind => self.decline(call, Outcome::NotPrimary),
            // The client knows as much as this node and comes here all the same: it could not
            // reach the primary. If that is dead a new view comes soon. If it lives, it may have
            // ordered the call; if not, any replica may.
            Entry::Spare => {
                self.outputs.push(Output::Probe(primary.node));
                if let Some(hosted) = hosted {
                    let known = known(hosted);
                    self.serve_as_backup(now, call, known);
                }
            }
            Entry::Closed => self.outputs.push(Output::Probe(primary.node)),
        }
    }

    /// Calls to this group are not ordered, and this node executes them: as long as it has a replica by
    /// the last view that it knows, whatever has become of the component.
    fn serves(&self, group: GroupId) -> bool {
        let Some(known) = self.directory.get(group) else { return false };
        let style = known.options.style;
        let at_once = style == Style::Active && self.planted.is(Bug::ActiveAtOnce);
        let by_quorum = self.planted.is(Bug::QuorumForAll) && self.membership.is_minority();
        let stranger = self.planted.is(Bug::ServeAsStranger);
        (!style.orders() || at_once)
            && !by_quorum
            && (style.entry(known.standing(self.me)) == Entry::Open || stranger)
            && self.hosted.get(&group).is_some_and(|hosted| hosted.replica.has_state())
    }

    fn serve(&mut self, now: Time, call: Call) {
        if let Some(request) = self.stamped(now, call) {
            self.clients.callers.set_stage(&call, Stage::Serving);
            self.with_replica(now, call.0, |replica, fx| replica.serve(now, request, fx));
        }
    }

    /// The request of a call, as replicas are given it: with this node's time and a seed.
    pub(super) fn stamped(&mut self, now: Time, call: Call) -> Option<ordered::Request> {
        let seed = self.random.next_u64();
        let hosted = self.hosted.get(&call.0);
        let proven = hosted.and_then(|hosted| hosted.replica.executed()).unwrap_or(0);
        let waiting = self.clients.callers.get(&call)?;
        let patience = waiting.deadline.since(now).as_micros();
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
            patience_us: u32::try_from(patience).unwrap_or(u32::MAX),
            criticality: request.criticality,
            origin: None,
            body: request.body.clone(),
        })
    }

    /// A replica here was given the call already: it is answered when that is held.
    fn serve_known(&mut self, now: Time, call: Call, outcome: Option<ServiceOutcome>) {
        let (group, client, number) = call;
        self.event(Event::Copy { group, client, number });
        let known_at = self.known_at(group);
        self.clients.callers.delivered(&call, known_at);
        match outcome {
            Some(outcome) => self.answer(call, outcome),
            // Who leads is silent, or the client would not ask here.
            None => self.take_over(now, group),
        }
    }

    /// A call has its place, by this node's doing or another's. Where nobody tells this node what becomes of another's, who waits for
    /// it here would wait in vain: its client is sent back to whom it has asked as well, or asks here once more.
    pub(super) fn placed(&mut self, sender: Member, call: Call, sequence: u64) {
        let group = self.directory.get(call.0);
        let learns = |group: &Group| group.options.style.learns_all(group.standing(self.me));
        if sender == self.me || group.is_some_and(learns) {
            self.clients.callers.delivered(&call, sequence);
        } else if self
            .clients
            .callers
            .get(&call)
            .is_some_and(|waiting| waiting.stage == Stage::Parked)
        {
            self.decline(call, Outcome::NotPrimary);
        }
    }

    /// A call comes to a backup. What was taken already is answered when it is held; what is not
    /// known here is ordered after a quarter of the client's patience: at once would multiply the
    /// load of a ring that is slow because it has too much to do.
    fn serve_as_backup(&mut self, now: Time, call: Call, known: Option<Option<ServiceOutcome>>) {
        let Some(waiting) = self.clients.callers.get(&call) else { return };
        let (given, deadline) = (waiting.given, waiting.deadline);
        match known {
            Some(outcome) => self.serve_known(now, call, outcome),
            None if given => self.order_call(now, call),
            None => self.clients.callers.order_later(&call, now + deadline.since(now) / 4),
        }
    }

    /// Calls that nobody else has ordered in time are ordered here.
    pub(super) fn order_due(&mut self, now: Time) {
        while let Some(call) = self.clients.callers.take_due(now) {
            let stays = self.is_needed(call.0);
            let has_state =
                |hosted: &Hosted| hosted.replica.has_state() && (!hosted.departure.begun || stays);
            let awake = self.directory.get(call.0).is_some_and(|group| group.primary().is_some());
            if self.membership.is_active()
                && awake
                && self.hosted.get(&call.0).is_some_and(has_state)
            {
                self.order_call(now, call);
            }
        }
    }

    fn order_call(&mut self, now: Time, call: Call) {
        if self.hosted.get(&call.0).is_some_and(|hosted| hosted.replica.is_log_full()) {
            return self.wait_for_log(now, call);
        }
        let Some(request) = self.stamped(now, call) else { return };
        // A reply that waits for nobody's copy does not have the others woken to acknowledge: they may do that when they are asked
        // for more.
        let level = if self.holds_alone(call.0) { Level::Agreed } else { Level::Held };
        let ordered = Ordered::Request(request);
        if self.multicast(now, ordered.encode(), level) {
            self.clients.callers.set_stage(&call, Stage::Ordered);
        } else {
            let queued = self.outbox.ordering.queued();
            let reason = format!(
                "{queued} messages of this node wait for the ring, the limit: ask again when there is room"
            );
            let outcome = busy(self.clients.retry_after(queued), reason);
            self.decline(call, outcome);
        }
    }

    /// The group's log is full: its primary is slow, or cannot take a checkpoint. Or it is being executed, and enough wait for that.
    fn wait_for_log(&mut self, now: Time, call: Call) {
        let Some(hosted) = self.hosted.get(&call.0) else { return };
        let Some(log) = hosted.replica.log_size() else { return };
        let requests = usize::try_from(log.requests).unwrap_or(usize::MAX);
        let retry_after = self.clients.retry_after(requests);
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
        self.decline(call, busy(retry_after, reason));
        self.clients.callers.order_later(&call, now + retry_after);
    }

    /// A replica here has the outcome of a call.
    pub(super) fn answer(&mut self, call: Call, outcome: ServiceOutcome) {
        if self.clients.callers.outcome(&call, outcome) {
            self.reply_if_ready(call);
        }
    }

    pub(super) fn reply_if_ready(&mut self, call: Call) {
        let Some(waiting) = self.clients.callers.get(&call) else { return };
        let may_leave = match waiting.stage {
            Stage::Parked | Stage::Ordered | Stage::Reading { .. } => false,
            Stage::Asking { .. } | Stage::Placed { .. } => false,
            Stage::Serving => true,
            Stage::Delivered { sequence } => self.is_held(call.0, sequence),
        };
        if may_leave && waiting.outcome.is_some() {
            self.reply(call);
        }
    }

    /// Answers a call that has its outcome.
    pub(super) fn reply(&mut self, call: Call) {
        let Some(outcome) =
            self.clients.callers.get(&call).and_then(|waiting| waiting.outcome.clone())
        else {
            return;
        };
        let outcome = match outcome {
            ServiceOutcome::Ok(bytes) => Outcome::Ok(bytes),
            ServiceOutcome::Error(bytes) => Outcome::Service(bytes),
            // Room comes with ordered time, of which nobody knows when it passes.
            ServiceOutcome::Refused(Refusal::Busy, reason) => busy(pace::MOST, reason),
            ServiceOutcome::Refused(refusal, reason) => Outcome::Refused(refusal, reason),
        };
        let (group, client, number) = call;
        self.clients.answer();
        self.observed.faults.replied(group);
        self.event(Event::Replied { group, client, number });
        self.conclude(call, outcome);
    }

    /// Tells that nothing was done with a call. Of one that was given to the ring nobody here knows
    /// what others made of it: to say that it was not executed could be a lie, so it goes on waiting,
    /// and its client hears nothing and asks elsewhere.
    pub(super) fn decline(&mut self, call: Call, outcome: Outcome) {
        let lies = self.planted.is(Bug::DeclineGiven);
        if self.clients.callers.get(&call).is_some_and(|waiting| !waiting.given || lies) {
            self.conclude(call, outcome);
        }
    }

    /// Ends a call here.
    fn conclude(&mut self, call: Call, outcome: Outcome) {
        if let Some(waiting) = self.clients.callers.remove(&call) {
            self.send_reply(waiting.caller, &waiting.request, outcome);
        }
    }

    /// This node's replica has lost what it knew. Calls that have their place wait for the view in which it has the state again, or are answered by others
    /// whom their clients ask meanwhile (simulator seed 579868). What was given to it without a place nobody else has: their clients are told, who would
    /// otherwise wait here for what never comes (seed 376321).
    pub(super) fn lose_calls(&mut self, group: GroupId) {
        self.clients.callers.of_group(group).into_iter().for_each(|call| self.lose_call(call));
    }

    /// This node's replica goes on with another program. What the last one was given without a place is in no journal: its clients are told.
    pub(super) fn lose_unplaced(&mut self, group: GroupId) {
        for call in self.clients.callers.of_group(group) {
            let lost = self.clients.callers.get(&call).is_some_and(|waiting| {
                let given =
                    matches!(waiting.stage, Stage::Reading { .. } | Stage::Delivered { .. });
                let reads = given && waiting.request.access.reads();
                (reads || waiting.stage == Stage::Serving) && waiting.outcome.is_none()
            });
            if lost {
                self.conclude(call, Outcome::Gone);
            }
        }
    }

    fn lose_call(&mut self, call: Call) {
        match self.clients.callers.get(&call).map(|waiting| &waiting.stage) {
            Some(Stage::Delivered { .. }) => self.clients.callers.park(&call),
            Some(Stage::Serving) => self.conclude(call, Outcome::Gone),
            _ => {}
        }
    }

    /// The service of this node's replica executes nothing more. If another replica has the group's state, who waits here for what was not
    /// answered is to ask there, and is told so at once.
    pub(super) fn send_on(&mut self, group: GroupId) {
        let others = self.directory.get(group).map(|known| known.synced().any(|it| it != self.me));
        for call in
            self.clients.callers.of_group(group).into_iter().filter(|_| others == Some(true))
        {
            let given = self.clients.callers.get(&call).is_some_and(|waiting| {
                let stage = matches!(waiting.stage, Stage::Ordered | Stage::Delivered { .. });
                // A passive group's primary had it, and another is primary since: nobody tells its client otherwise.
                let again = waiting.stage == Stage::Parked && waiting.given;
                (stage || again) && waiting.outcome.is_none()
            });
            if given {
                self.conclude(call, Outcome::Gone);
            }
        }
        // What was executed is answered when it is held.
        for call in self.clients.callers.of_group(group) {
            let answered = self.clients.callers.get(&call).is_some_and(|it| it.outcome.is_some());
            if !answered {
                self.lose_call(call);
            }
        }
    }

    fn refuse(&mut self, caller: Caller, request: &Request, refusal: Refusal, reason: String) {
        self.send_reply(caller, request, Outcome::Refused(refusal, reason));
    }

    fn send_reply(&mut self, caller: Caller, request: &Request, outcome: Outcome) {
        let known = self.directory.get(request.group);
        let news = known.filter(|group| group.view > request.view);
        let reply = Reply {
            number: request.number,
            group: request.group,
            view: known.map_or(request.view, |group| group.view),
            targets: news.map(|group| self.targets(group)),
            outcome,
        };
        if caller == OWN {
            return self.own_ended(reply);
        }
        self.outputs.push(Output::Frame { caller, frame: Frame::Reply(reply) });
    }

    /// The verdict went against this configuration: whoever waits here is to try elsewhere.
    pub(super) fn refuse_without_quorum(&mut self) {
        for call in self.clients.callers.all() {
            self.decline(call, Outcome::NoReplica);
        }
        self.answer_binds();
    }

    /// A view has changed: parked calls may have somewhere to go.
    pub(super) fn reconcile_calls(&mut self, now: Time, group: GroupId) {
        for call in self.clients.callers.of_group(group) {
            self.route_parked(now, call);
        }
        self.answer_binds();
    }

    /// This node's replica has the state of the group that goes on.
    pub(super) fn executes(&self, group: GroupId) -> bool {
        let here = self.directory.get(group).and_then(|group| group.replica(self.me));
        here.is_some_and(|replica| replica.state == State::Synced)
            && self.hosted.get(&group).is_some_and(|hosted| hosted.replica.has_state())
    }

    /// A component is installed at this place. What this node's replicas had executed is part of
    /// its history, held with the installation; anything else begins anew.
    pub(super) fn calls_in_new_component(&mut self, now: Time, installed: u64) {
        for call in self.clients.callers.all() {
            let stage = self.clients.callers.get(&call).map(|waiting| waiting.stage.clone());
            match stage.filter(|_| self.executes(call.0)) {
                Some(Stage::Delivered { .. }) if self.is_answered_here(&call) => {
                    self.clients.callers.set_stage(&call, Stage::Delivered { sequence: installed });
                }
                Some(Stage::Serving) => {} // its replica goes on with it
                _ => {
                    self.clients.callers.park(&call);
                    self.route(now, call);
                }
            }
        }
        self.answer_binds();
    }
}
