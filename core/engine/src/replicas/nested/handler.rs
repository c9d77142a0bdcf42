//! Calls between groups are ordered, and ended.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::client::Refusal;
use wire::limits::MAX_NESTED_OWED;
use wire::ordered::{End, KeptReply, NestedEnd, Ordered, Request, Style, nested_parts};
use wire::{Duration, GroupId, Member, Time};

use super::{CROWDED, Open, Owed};
use crate::api::{AwayWait, Event, Output};
use crate::base::Base;
use crate::bug::Bug;
use crate::callers::Call;
use crate::directory::Group;
use crate::ordering::Ordering;
use crate::replica::{Ask, CallQuorum, Child};
use crate::replicas::{ReplicaHandler, Replicas};
use crate::style::{Standing, StyleRules};

impl Replicas {
    /// After how long this node speaks for its replica of a group: at once, after those before it
    /// in rank, or never.
    pub(crate) fn speaks_after<O: Ordering>(
        &self,
        base: &Base<O>,
        group: GroupId,
    ) -> Option<Duration> {
        if !base.membership.is_active() {
            return None;
        }
        let known = base.directory.get(group);
        let Some(known) = known.filter(|group| group.primary().is_some()) else {
            // The last replica is on its way out, and finishes what it was given.
            return (known.is_none() && self.hosted.contains_key(&group)).then_some(Duration::ZERO);
        };
        let rank = known.synced().position(|member| member == base.me)?;
        match (rank, known.options.style.all_speak()) {
            (0, _) => Some(Duration::ZERO),
            // Its calls are its own affair.
            _ if !known.options.style.orders() => Some(Duration::ZERO),
            // The replica that executes first may have lost the primary's role. The new primary asks
            // nothing until that execution ends.
            (_, false) => {
                let hosted = self.hosted.get(&group);
                hosted.filter(|hosted| hosted.replica.runs_ahead()).map(|_| Duration::ZERO)
            }
            // The token visits all in turn: the first holder orders it, and the others withdraw
            // theirs.
            (_, true) if !base.outbox.ordering.is_parking() => Some(Duration::ZERO),
            (rank, true) => Some(self.nested.rank_pause() * rank as u32),
        }
    }

    /// Whether no other replica has to hear that a call is given up: none has executed what its
    /// handler does.
    pub(crate) fn gives_up_alone<O: Ordering>(&self, base: &Base<O>, group: GroupId) -> bool {
        let style = self.hosted.get(&group).map(|hosted| hosted.options.style);
        style.is_some_and(|style| !style.orders()) || base.planted.is(Bug::NestedGivenUpAlone)
    }

    /// Groups whose replicas here wait for a call.
    pub(crate) fn nested_callers(&self) -> Vec<GroupId> {
        self.nested.open.keys().copied().collect()
    }
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// A replica here asks for a call.
    pub(crate) fn ask(&mut self, now: Time, group: GroupId, ask: Ask) {
        if self.replicas.hosted.get(&group).is_none_or(|hosted| !hosted.replica.runs_handlers()) {
            return; // it deviates, and has given its state up
        }
        let ordered = ask.ordered;
        let open = Open {
            ask,
            wall: self.replicas.nested.asked_wall,
            order_at: None,
            speaks: false,
            delivered: ordered,
            given_up: false,
            handed: None,
        };
        self.replicas.nested.open.insert(group, open);
        self.consider_open(now, group);
    }

    /// It is settled whether the call that a replica here asks for may be ordered.
    pub(crate) fn call_quorum_told(
        &mut self,
        now: Time,
        group: GroupId,
        child: Child,
        call_quorum: CallQuorum,
    ) {
        if let Some(open) =
            self.replicas.nested.open.get_mut(&group).filter(|open| open.ask.child == child)
        {
            open.ask.call_quorum = call_quorum;
            self.consider_open(now, group);
        }
    }

    /// The handler goes on: nothing is asked any more.
    pub(crate) fn resumed(&mut self, group: GroupId) {
        if let Some((handed, _)) =
            self.replicas.nested.open.remove(&group).and_then(|open| open.handed)
        {
            self.base.outbox.withdraw(&handed);
        }
    }

    /// Decides when this node orders the call that its replica waits for.
    pub(crate) fn consider_open(&mut self, now: Time, group: GroupId) {
        let after = self.replicas.speaks_after(self.base, group);
        let alone = self.replicas.gives_up_alone(self.base, group);
        let Some(open) = self.replicas.nested.open.get_mut(&group) else { return };
        let after = after.filter(|_| open.ask.call_quorum != CallQuorum::Awaited);
        open.speaks = after.is_some() || alone;
        open.order_at = match after {
            Some(after) if !open.delivered && open.handed.is_none() => Some(now + after),
            _ => None,
        };
        self.order_open(now, group);
    }

    /// Orders the call that this node's replica waits for, if it is time; or gives it up.
    pub(crate) fn order_open(&mut self, now: Time, group: GroupId) {
        let speaks = self.replicas.speaks_after(self.base, group).is_some();
        let alone = self.replicas.gives_up_alone(self.base, group);
        let Some(open) = self.replicas.nested.open.get(&group) else { return };
        let (callee, late) = (open.ask.request.group, open.ask.due <= now);
        if late && alone {
            let end = open.ask.end(End::Deadline);
            return self.with_replica(now, group, |replica, fx| replica.nested_end(end, 0, fx));
        }
        let call_quorum = open.ask.call_quorum;
        if !speaks || open.given_up || call_quorum == CallQuorum::Awaited {
            return;
        }
        let known = self.base.directory.get(callee);
        // Another cell's group may always be there.
        let is_away = open.ask.away.is_some();
        let awake = is_away || known.is_some_and(|callee| callee.primary().is_some());
        let crowded =
            self.replicas.hosted.get(&group).is_some_and(|hosted| hosted.replica.refuses_calls());
        let end = match known {
            _ if call_quorum == CallQuorum::Refused => {
                open.order_at.is_some_and(|at| at <= now).then_some(End::Split)
            }
            _ if late && awake => Some(End::Deadline),
            None if !is_away && !self.replicas.may_come(self.base, callee) => {
                Some(End::NoSuchGroup)
            }
            _ if late => Some(End::NoReplica),
            _ if crowded && !open.delivered => {
                Some(End::Reply(KeptReply::Refused(Refusal::Busy, CROWDED.into())))
            }
            _ => None,
        };
        let open = self.replicas.nested.open.get_mut(&group).expect("it was looked at");
        if let Some(end) = end {
            open.given_up = true;
            open.order_at = None;
            let end = Ordered::NestedEnd(open.ask.end(end));
            return self.base.order(now, end);
        }
        if open.order_at.is_none_or(|at| at > now) {
            return;
        }
        open.order_at = None;
        if !awake {
            return; // a view of the callee will come
        }
        if let Some(call) = open.ask.away(now) {
            open.delivered = true;
            return self.base.outputs.push(Output::Away(Box::new(call)));
        }
        let timeout = open.ask.due.since(now).as_micros();
        let request = Request {
            time: open.wall,
            seed: self.base.random.next_u64(),
            timeout_us: u32::try_from(timeout).unwrap_or(u32::MAX),
            ..open.ask.request.clone()
        };
        open.handed = Some((self.base.order_copy(now, Ordered::Request(request)), now));
    }

    /// A call to another cell has ended: all replicas are told, if the handler here waits for it and
    /// this node speaks for it. The first such end in the order counts.
    pub(crate) fn away_ended(&mut self, now: Time, wait: AwayWait, end: End) {
        let AwayWait { caller, child, asked } = wait;
        let speaks = self.replicas.speaks_after(self.base, caller).is_some();
        let is_it = |open: &&mut Open| {
            let Ask { away, child: its, asked: hash, .. } = &open.ask;
            away.is_some() && (*its, *hash) == (child, asked) && open.delivered && !open.given_up
        };
        let open = self.replicas.nested.open.get_mut(&caller).filter(is_it);
        if let Some(open) = open.filter(|_| speaks) {
            open.given_up = true;
            let end = Ordered::NestedEnd(open.ask.end(end));
            self.base.order(now, end);
        }
    }

    /// A group's call is delivered: the calling replicas need not order it any more.
    pub(crate) fn nested_delivered(&mut self, now: Time, sender: Member, request: &Request) {
        let Some(origin) = &request.origin else { return };
        self.base.acknowledge_to_speakers(request.group);
        let (number, call) = nested_parts(request.number);
        let child = (origin.client, number, call);
        let caller = origin.caller();
        let Some(open) =
            self.replicas.nested.open.get_mut(&caller).filter(|open| open.ask.child == child)
        else {
            if let Some(hosted) = self.replicas.hosted.get_mut(&caller) {
                hosted.replica.call_ordered(child);
            }
            return;
        };
        open.delivered = true;
        open.order_at = None;
        match open.handed.take() {
            // Here it is delivered when it is sent.
            Some((_, at)) if sender == self.base.me => {
                self.replicas.nested.call_delays.get_or_insert_default().record(now.since(at));
            }
            Some((handed, _)) => self.base.outbox.withdraw(&handed),
            None => {}
        }
    }

    /// A replica here takes a group's call, at this place of the order.
    pub(crate) fn owe_end(&mut self, now: Time, request: &Request, sequence: u64) {
        let Some(origin) = &request.origin else { return };
        let call = (request.group, request.client, request.number);
        let asked =
            wire::ordered::asked(request.group, request.method, request.json, &request.body);
        let full = self.replicas.nested.owed.len() >= MAX_NESTED_OWED;
        match self.replicas.nested.owed.get_mut(&call) {
            // It comes once more; the caller may have begun anew, and ask for something else.
            Some(owed) if owed.asked != asked => {
                owed.asked = asked;
                owed.end = None;
                owed.sequence = sequence;
            }
            None if !full => {
                let (number, place) = nested_parts(request.number);
                let owed = Owed {
                    caller: origin.caller(),
                    child: (origin.client, number, place),
                    asked,
                    sequence,
                    since: now,
                    end: None,
                    order_at: None,
                    handed: None,
                };
                self.replicas.nested.owed.insert(call, owed);
            }
            Some(_) | None => {}
        }
    }

    /// A group calls one whose calls are not ordered: its first replica executes the call.
    pub(crate) fn serve_nested(&mut self, now: Time, sequence: u64, request: Request) {
        let group = request.group;
        let first = self.base.directory.get(group).and_then(Group::primary);
        if first == Some(self.base.me) && self.replicas.hosted.contains_key(&group) {
            self.owe_end(now, &request, sequence);
            self.with_replica(now, group, |replica, fx| replica.serve(now, request, fx));
        }
    }

    /// This is how a group's call ended here.
    pub(crate) fn owe(&mut self, now: Time, call: Call, asked: u64, end: End) {
        let after = self.replicas.speaks_after(self.base, call.0);
        let style = self.base.directory.get(call.0).map(|group| group.options.style);
        let Some(owed) =
            self.replicas.nested.owed.get_mut(&call).filter(|owed| owed.asked == asked)
        else {
            return;
        };
        if style.is_some_and(StyleRules::executes_on_arrival) {
            // The place is that of the update, which is being delivered, and not of the call.
            owed.sequence = owed.sequence.max(self.base.progress.delivered());
        }
        if owed.end.is_none() {
            owed.end = Some((end, now));
        }
        if let Some(after) = after.filter(|after| *after > Duration::ZERO)
            && owed.order_at.is_none()
        {
            owed.order_at = Some(now + after);
            self.replicas.nested.due.insert((now + after, call));
        }
        self.pay(now, call);
    }

    /// The answer to a call depends on what was ordered up to there.
    pub(crate) fn settled(&mut self, call: Call, sequence: u64) {
        if self.base.planted.is(Bug::ReplyBeforeEndsStored) {
            return;
        }
        self.replies.clients.callers.settled(&call, sequence);
        if let Some(owed) = self.replicas.nested.owed.get_mut(&call) {
            owed.sequence = owed.sequence.max(sequence);
        }
    }

    /// Orders how a group's call ended, if it is this node's business, and it may be known.
    pub(crate) fn pay(&mut self, now: Time, call: Call) {
        let Some(owed) = self.replicas.nested.owed.get(&call) else { return };
        let (sequence, waits) = (owed.sequence, owed.order_at.is_some_and(|at| at > now));
        if waits || owed.end.is_none() || owed.handed.is_some() {
            return;
        }
        let style = self.base.directory.get(call.0).map(|group| group.options.style);
        let kept = style.is_some_and(StyleRules::orders);
        if self.replicas.speaks_after(self.base, call.0).is_none()
            || (kept && !self.base.is_held(call.0, sequence))
        {
            return;
        }
        let owed = self.replicas.nested.owed.get_mut(&call).expect("it was looked at");
        let Some((end, _)) = owed.end.clone() else { return };
        let ((client, number, place), asked) = (owed.child, owed.asked);
        let (callee, caller) = (call.0, owed.caller);
        let end = NestedEnd { callee, caller, client, number, call: place, asked, end };
        owed.handed = Some((self.base.order_copy(now, Ordered::NestedEnd(end)), now));
        let service = now.since(owed.since);
        self.replicas.nested.services.get_or_insert_default().record(service);
    }

    /// More is held, or other replicas speak: what is owed may be paid.
    pub(crate) fn pay_all(&mut self, now: Time) {
        if !self.replicas.nested.owed.is_empty() {
            let ready = |(_, owed): &(&Call, &Owed)| owed.end.is_some() && owed.handed.is_none();
            let ready = self.replicas.nested.owed.iter().filter(ready);
            let calls: Vec<Call> = ready.map(|(call, _)| *call).collect();
            calls.into_iter().for_each(|call| self.pay(now, call));
        }
    }

    /// A call between groups has ended, at its place in the order.
    pub(crate) fn act_on_nested_end(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        end: NestedEnd,
        payload: &Bytes,
    ) {
        self.end_is_paid(now, sender, &end);
        self.base.acknowledge_to_speakers(end.caller);
        let caller = end.caller;
        let group = self.base.directory.get(caller);
        let there = group.is_some_and(|group| group.replica(self.base.me).is_some());
        // As the calls themselves, it is part of what leads to the group's state; of a warm passive
        // group because there may be handlers that all its replicas execute, of calls from before
        // it was one.
        let alike = if self.base.planted.is(Bug::EndsToPrimaryOnly) {
            |style: Style| style.executes(Standing::Backup)
        } else {
            StyleRules::orders
        };
        let together = group.is_some_and(|group| alike(group.options.style));
        let place = self.base.place(sequence);
        if together && !self.base.directory.requested(caller, place) && there {
            return; // the group sleeps
        }
        if let Some(hosted) = self.replicas.hosted.get_mut(&caller) {
            if together && there && !hosted.spared {
                hosted.take(place, true);
                if !self.base.planted.is(Bug::EndNotLogged) {
                    self.keep_taken(caller, payload);
                }
            }
            self.with_replica(now, caller, |replica, fx| {
                // A stateless replica's calls are its own affair.
                if together || replica.runs_handlers() {
                    replica.nested_end(end, sequence, fx);
                }
            });
        }
    }

    pub(crate) fn end_is_paid(&mut self, now: Time, sender: Member, end: &NestedEnd) {
        let client = wire::ordered::nested_client(end.caller, end.client);
        let Some(number) = wire::ordered::nested_number(end.number, end.call) else { return };
        let call = (end.callee, client, number);
        let replied = matches!(end.end, End::Reply(_) | End::Diverged);
        let group = end.callee;
        let style = self.base.directory.get(group).map(|group| group.options.style);
        match self.replicas.nested.wait_no_more(&call) {
            Some(owed) => {
                if let Some((_, since)) = owed.end {
                    self.replicas.nested.learn(now.since(since));
                }
                match owed.handed {
                    Some((_, at)) if sender == self.base.me => {
                        self.replicas
                            .nested
                            .end_delays
                            .get_or_insert_default()
                            .record(now.since(at));
                    }
                    Some((handed, _)) => self.base.outbox.withdraw(&handed),
                    None => {}
                }
                self.base.event(Event::NestedEnded { group, by: sender });
            }
            None if replied
                && style.is_some_and(StyleRules::orders)
                && self.replicas.hosted.contains_key(&group) =>
            {
                self.base.event(Event::NestedCopy { group });
            }
            None => {}
        }
    }

    /// A group has another view: calls of it, or by it, may be this node's business now, or have to
    /// be repeated.
    pub(crate) fn reconcile_nested(&mut self, now: Time, id: GroupId) {
        let repeats = !self.base.planted.is(Bug::NestedNotRepeated);
        let of = self.replicas.nested.open.iter_mut();
        let of = of.filter(|(caller, open)| **caller == id || open.ask.request.group == id);
        let mut callers: Vec<GroupId> = Vec::new();
        for (caller, open) in of {
            if open.ask.request.group == id && repeats {
                // The callee's new primary may not know that it owes an answer.
                open.delivered = false;
                open.handed = None;
            }
            callers.push(*caller);
        }
        for caller in callers {
            if repeats {
                self.consider_open(now, caller);
            }
        }
        self.pay_all(now);
    }

    /// A component is installed: what was ordered before may be lost, and is asked for once more.
    pub(crate) fn nested_in_new_component(&mut self, now: Time) {
        self.replicas.nested.owed.clear();
        self.replicas.nested.due.clear();
        for hosted in self.replicas.hosted.values_mut() {
            hosted.replica.in_new_component();
        }
        let repeats = !self.base.planted.is(Bug::NestedNotRepeated);
        for open in self.replicas.nested.open.values_mut() {
            open.delivered &= !repeats;
            open.given_up = false;
            open.handed = open.handed.take().filter(|_| !repeats);
        }
        let callers: Vec<GroupId> = self.replicas.nested.open.keys().copied().collect();
        callers.into_iter().for_each(|caller| self.consider_open(now, caller));
    }

    /// The times that [`Nested::next_timeout`] named have come.
    pub(crate) fn nested_timeout(&mut self, now: Time) {
        let late = |open: &Open| open.due() <= now;
        let open = self.replicas.nested.open.iter();
        let open = open.filter(|(_, open)| open.speaks && !open.given_up && late(open));
        let callers: Vec<GroupId> = open.map(|(caller, _)| *caller).collect();
        callers.into_iter().for_each(|caller| self.order_open(now, caller));
        while let Some(&(_, call)) = self.replicas.nested.due.first().filter(|(at, _)| *at <= now) {
            self.replicas.nested.due.pop_first();
            if let Some(owed) = self.replicas.nested.owed.get_mut(&call) {
                owed.order_at = None;
            }
            self.pay(now, call);
        }
    }
}
