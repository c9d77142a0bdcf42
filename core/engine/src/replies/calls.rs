//! Calls that wait for an answer, and the answers.

use alloc::format;
use alloc::string::String;

use wire::client::{Frame, Hello, Outcome, Refusal, Reply, Request, Welcome};
use wire::ordered;
use wire::versions::{CLIENT, KEYS};
use wire::{Caller, Duration, Extension, GroupId, Member};

use crate::api::{Event, Output, ServiceOutcome};
use crate::bug::Bug;
use crate::callers::{Call, OWN, Stage};
use crate::directory::Group;
use crate::ordering::Ordering;
use crate::pace;
use crate::replies::ReplyHandler;
use crate::session::{ANOTHER_RUNS, Asked, REUSED};
use crate::style::StyleRules;

/// There is no room now.
pub(crate) fn busy(retry_after: Duration, reason: String) -> Outcome {
    let retry_after_us = u32::try_from(retry_after.as_micros()).unwrap_or(u32::MAX);
    Outcome::Busy { retry_after_us, reason }
}

impl<O: Ordering> ReplyHandler<'_, O> {
    pub(crate) fn hello(&mut self, caller: Caller, hello: Hello) {
        let Some(common) = CLIENT.common(hello.speaks) else {
            let reason = format!(
                "the client speaks protocol version {}, this node {CLIENT}: upgrade the older side",
                hello.speaks
            );
            return self.dismiss(caller, &reason);
        };
        self.replies.clients.callers.welcome(caller, hello.client, common.greatest);
        let welcome = Welcome {
            version: common.greatest,
            node: self.base.me.node,
            cluster: self.replies.clients.cluster().into(),
            extension: Extension::default(),
        };
        self.base.outputs.push(Output::Frame { caller, frame: Frame::Welcome(welcome) });
    }

    /// A call that a client awaits here has its place, by this node's doing or another's. Where
    /// nobody tells this node what becomes of another's, who waits for it here would wait in vain:
    /// its client is sent back to whom it has asked as well, or asks here once more.
    pub(crate) fn placed(&mut self, sender: Member, call: Call, sequence: u64) {
        let group = self.base.directory.get(call.0);
        let learns = |group: &Group| group.options.style.learns_all(group.standing(self.base.me));
        if sender == self.base.me || group.is_some_and(learns) {
            self.replies.clients.callers.delivered(&call, None, sequence);
        } else if self
            .replies
            .clients
            .callers
            .get(&call)
            .is_some_and(|waiting| waiting.stage == Stage::Parked)
        {
            self.decline(call, Outcome::NotPrimary);
        }
    }

    /// A replica here has the outcome of the call that asked this.
    pub(crate) fn answer(&mut self, call: Call, asked: Option<u64>, outcome: ServiceOutcome) {
        let asked = self.compared(asked);
        if self.replies.clients.callers.outcome(&call, asked, outcome) {
            self.reply_if_ready(call);
        }
    }

    /// The call that asked this has the place of the present message in the order.
    pub(crate) fn delivered(&mut self, call: Call, asked: Option<u64>) {
        let (asked, delivered) = (self.compared(asked), self.base.progress.delivered());
        self.replies.clients.callers.delivered(&call, asked, delivered);
    }

    /// A client waits here for this call, and not for another of the same number.
    pub(crate) fn awaits(&self, request: &ordered::Request) -> bool {
        let call = (request.group, request.client, request.number);
        let waiting = self.replies.clients.callers.get(&call);
        waiting.is_some_and(|waiting| waiting.asks(Asked::of(request).digest()))
    }

    /// A call's digest, as far as answers are compared with who waits for them.
    fn compared(&self, asked: Option<u64>) -> Option<u64> {
        asked.filter(|_| !self.base.planted.is(Bug::AnswerWhoeverWaits))
    }

    /// A call comes whose number has another one that waits here. What becomes of that one decides.
    pub(crate) fn another_waits(&mut self, caller: Caller, request: &Request) {
        let call = (request.group, request.client, request.number);
        let is_certain = self.replies.clients.callers.get(&call).is_some_and(|waiting| {
            let held = |sequence| self.base.is_held(call.0, sequence);
            let orders = !waiting.request.access.reads() && !request.access.reads();
            orders && matches!(waiting.stage, Stage::Delivered { sequence } if held(sequence))
        });
        let outcome = match is_certain {
            true => Outcome::Refused(Refusal::KeyReused, REUSED.into()),
            false => busy(self.replies.clients.retry_after(1), ANOTHER_RUNS.into()),
        };
        self.send_reply(caller, request, outcome);
    }

    pub(crate) fn reply_if_ready(&mut self, call: Call) {
        let Some(waiting) = self.replies.clients.callers.get(&call) else { return };
        let may_leave = match waiting.stage {
            Stage::Parked | Stage::Ordered | Stage::Reading { .. } => false,
            Stage::Asking { .. } | Stage::Placed { .. } => false,
            Stage::Serving => true,
            Stage::Delivered { sequence } => self.base.is_held(call.0, sequence),
        };
        if may_leave && waiting.outcome.is_some() {
            self.reply(call);
        }
    }

    /// Answers a call that has its outcome.
    pub(crate) fn reply(&mut self, call: Call) {
        let Some(outcome) =
            self.replies.clients.callers.get(&call).and_then(|waiting| waiting.outcome.clone())
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
        self.replies.clients.answer();
        self.replies.faults.replied(group);
        self.base.event(Event::Replied { group, client, number });
        self.conclude(call, outcome);
    }

    /// Answers that a call was not executed. If the call was given to the ring, others may have
    /// executed it, and that answer could be false. So the call goes on waiting, and its client
    /// gets no answer and asks elsewhere.
    pub(crate) fn decline(&mut self, call: Call, outcome: Outcome) {
        let lies = self.base.planted.is(Bug::DeclineGiven);
        if self.replies.clients.callers.get(&call).is_some_and(|waiting| !waiting.given || lies) {
            self.conclude(call, outcome);
        }
    }

    /// Ends a call here.
    pub(crate) fn conclude(&mut self, call: Call, outcome: Outcome) {
        if let Some(waiting) = self.replies.clients.callers.remove(&call) {
            self.send_reply(waiting.caller, &waiting.request, outcome);
        }
    }

    /// This node's replica has lost its state. Calls with a place wait for the view in which it has
    /// the state again; meanwhile their clients may get answers elsewhere. Calls without a place
    /// exist only here: their clients receive an error instead of waiting in vain.
    pub(crate) fn lose_calls(&mut self, group: GroupId) {
        self.replies
            .clients
            .callers
            .of_group(group)
            .into_iter()
            .for_each(|call| self.lose_call(call));
    }

    /// This node's replica goes on with another program. Calls that the last program was given
    /// without a place are in no journal: their clients receive an error.
    pub(crate) fn lose_unplaced(&mut self, group: GroupId) {
        for call in self.replies.clients.callers.of_group(group) {
            let lost = self.replies.clients.callers.get(&call).is_some_and(|waiting| {
                let is_open = waiting.outcome.is_none();
                match waiting.stage {
                    // Its place is that of a call before it, which is lost, too (seed 5007604).
                    Stage::Reading { .. } => true,
                    Stage::Delivered { .. } => is_open && waiting.request.access.reads(),
                    Stage::Serving => is_open,
                    _ => false,
                }
            });
            if lost {
                self.conclude(call, Outcome::Gone);
            }
        }
    }

    pub(crate) fn lose_call(&mut self, call: Call) {
        match self.replies.clients.callers.get(&call).map(|waiting| &waiting.stage) {
            Some(Stage::Delivered { .. }) => self.replies.clients.callers.park(&call),
            Some(Stage::Serving) => self.conclude(call, Outcome::Gone),
            _ => {}
        }
    }

    /// The service of this node's replica executes nothing more. If another replica has the group's
    /// state, clients with unanswered calls are sent there at once.
    pub(crate) fn send_on(&mut self, group: GroupId) {
        let others =
            self.base.directory.get(group).map(|known| known.synced().any(|it| it != self.base.me));
        for call in self
            .replies
            .clients
            .callers
            .of_group(group)
            .into_iter()
            .filter(|_| others == Some(true))
        {
            let given = self.replies.clients.callers.get(&call).is_some_and(|waiting| {
                let stage = matches!(waiting.stage, Stage::Ordered | Stage::Delivered { .. });
                // A passive group's primary had it, and another is primary since: no one else tells
                // its client.
                let again = waiting.stage == Stage::Parked && waiting.given;
                (stage || again) && waiting.outcome.is_none()
            });
            if given {
                self.conclude(call, Outcome::Gone);
            }
        }
        // Executed calls are answered once they are held.
        for call in self.replies.clients.callers.of_group(group) {
            let answered =
                self.replies.clients.callers.get(&call).is_some_and(|it| it.outcome.is_some());
            if !answered {
                self.lose_call(call);
            }
        }
    }

    pub(crate) fn refuse(
        &mut self,
        caller: Caller,
        request: &Request,
        refusal: Refusal,
        reason: String,
    ) {
        self.send_reply(caller, request, Outcome::Refused(refusal, reason));
    }

    pub(crate) fn send_reply(&mut self, caller: Caller, request: &Request, outcome: Outcome) {
        let outcome = match outcome {
            // An older client knows no word for that.
            Outcome::Refused(Refusal::KeyReused, reason)
                if self.replies.clients.callers.version(caller) < KEYS =>
            {
                Outcome::Refused(Refusal::Stale, reason)
            }
            outcome => outcome,
        };
        let known = self.base.directory.get(request.group);
        let news = known.filter(|group| group.view > request.view);
        let reply = Reply {
            number: request.number,
            group: request.group,
            view: known.map_or(request.view, |group| group.view),
            targets: news.map(|group| self.base.targets(group)),
            outcome,
        };
        if caller == OWN {
            return self.own_ended(reply);
        }
        self.base.outputs.push(Output::Frame { caller, frame: Frame::Reply(reply) });
    }
}
