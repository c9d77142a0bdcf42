//! Answers that come from another node than the one that was asked (`docs/protocol/group.md`, "Deputies").
//!
//! Where two replicas are a majority, a backup knows of a request that is delivered to it that a majority holds it: the sender and
//! itself. It has the answer a message earlier than the primary may give its own, which has to hear from a backup first.

use bytes::Bytes;
use wire::client::{Access, Request};
use wire::ordered::{self, Durability, Hold};
use wire::{Duration, Member, Time};

use super::Stack;
use crate::bug::Bug;
use crate::callers::{Answerer, Call, Stage, Waiting};
use crate::directory::{Group, majority};
use crate::ordering::Ordering;
use crate::style::Conduct;

/// Who is further behind a majority than this many datagrams is nobody's deputy: its client would wait for it.
const MAX_BEHIND: u64 = 16;

/// While more calls than this wait at the primary it answers itself: acknowledgements come for many at a time then, and so do its
/// replies, where a deputy's would cost each client another connection's wake-up.
const FEW: usize = 4;

impl<O: Ordering> Stack<O> {
    /// Who answers calls of this group in its primary's place, by the view: the next in rank, if two are a majority of the members
    /// and of the replicas.
    fn deputy(&self, group: &Group) -> Option<Member> {
        let options = &group.options;
        let fits = options.style.has_deputies()
            && options.hold == Hold::Majority
            && options.durability == Durability::Memory;
        let two = |count: usize| count > 1 && majority(count) == 2;
        let by_two = two(self.membership.members().count()) && two(group.synced().count());
        group.synced().nth(1).filter(|_| fits && by_two)
    }

    /// Who is to answer this call, which this node orders as its group's primary: somebody to whom its client is connected, and
    /// who has kept up with the others.
    pub(super) fn deputy_for(&self, call: Call) -> Option<Member> {
        let request = &self.callers.get(&call)?.request;
        let group = self.directory.get(call.0)?;
        let wanted = request.deputy && !request.access.reads() && request.view == group.view;
        let deputy = self.deputy(group).filter(|_| wanted && group.primary() == Some(self.me))?;
        let reached = self.ordering.reached(self.membership.ring(), deputy);
        let quiet = self.callers.len() <= FEW;
        (quiet && self.held.majority <= reached + MAX_BEHIND).then_some(deputy)
    }

    /// A request is delivered whose answer its primary leaves to whoever is the deputy now.
    pub(super) fn stand_in(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        request: &ordered::Request,
    ) {
        let deputy = self.directory.get(request.group).and_then(|group| self.deputy(group));
        let call = (request.group, request.client, request.number);
        if sender == self.me {
            let left_to = self.callers.get(&call).map(|waiting| waiting.answerer);
            if left_to != deputy.map(Answerer::Deputy) {
                self.callers.take_back(&call);
            }
        } else if deputy == Some(self.me)
            && self.callers.get(&call).is_none()
            && self.callers.len() < self.room
            && let Some(caller) = self.callers.connection(request.client)
        {
            let waiting = Waiting {
                caller,
                deadline: now + Duration::from_micros(request.patience_us.into()),
                request: self.as_asked(request),
                wall: request.time,
                stage: Stage::Delivered { sequence },
                given: true,
                order_at: None,
                outcome: None,
                answerer: Answerer::InPlace,
            };
            self.callers.insert(call, waiting);
        }
    }

    /// What is needed of a request to answer it here.
    fn as_asked(&self, request: &ordered::Request) -> Request {
        let known = self.directory.get(request.group);
        Request {
            group: request.group,
            client: request.client,
            number: request.number,
            unanswered: request.unanswered,
            view: known.map(|group| group.view).unwrap_or_default(),
            method: request.method,
            patience_us: request.patience_us,
            json: request.json,
            access: Access::Change,
            deputy: false,
            criticality: request.criticality,
            body: Bytes::new(),
        }
    }

    /// A call that could be answered here is left to its deputy, if that has the request: it will deliver it, execute it, and answer.
    /// If it fails meanwhile the client asks here, and is given what is kept.
    pub(super) fn leave_to(&mut self, call: Call, deputy: Member) {
        if self.planted.is(Bug::AnswerBesidesDeputy) {
            return self.reply(call);
        }
        let stage = self.callers.get(&call).map(|waiting| &waiting.stage);
        let Some(&Stage::Delivered { sequence }) = stage else { return };
        if self.ordering.reached(self.membership.ring(), deputy) >= sequence {
            self.count_answer(call);
            self.callers.remove(&call);
        }
    }

    /// The configuration is over, and a deputy may be gone with it: what was left to one is answered here.
    pub(super) fn take_back_calls(&mut self) {
        for call in self.callers.all() {
            self.callers.take_back(&call);
        }
    }
}
