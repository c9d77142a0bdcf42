//! Clients here, and what they are answered. This layer knows no replica.

pub(crate) mod calls;
pub(crate) mod own;

use alloc::vec::Vec;
use wire::client::{Bound, Farewell, Frame, Outcome};
use wire::system::is_closed;

use wire::client::{Reply, Watch};
use wire::kept::NodeRecord;
use wire::ordered::{AckLevel, Relay};
use wire::{Caller, GroupId, Member, RingId, Time, ViewNumber};

use crate::api::{Event, Output};
use crate::base::Base;
use crate::bug::Bug;
use crate::callers::{Call, Stage, Waiting};
use crate::directory::Group;
use crate::faults::Faults;
use crate::ordering::Ordering;
use crate::parts::Clients;
use crate::replies::own::Own;
use crate::session::kept;
use crate::style::StyleRules;

/// Clients here, and what they wait for.
#[derive(Clone, Debug)]
pub(crate) struct Replies {
    /// Their connections, and the calls that wait.
    pub(crate) clients: Clients,
    /// Calls of the node's own.
    pub(crate) own: Own,
    /// Faults, from their first sign to the last consequence.
    pub(crate) faults: Faults,
}

/// Answers clients.
pub(crate) struct ReplyHandler<'a, O> {
    pub(crate) base: &'a mut Base<O>,
    pub(crate) replies: &'a mut Replies,
}

impl<O: Ordering> ReplyHandler<'_, O> {
    pub(crate) fn dismiss(&mut self, caller: Caller, reason: &str) {
        let frame = Frame::Farewell(Farewell::new(reason));
        self.base.outputs.push(Output::Frame { caller, frame });
        self.base.outputs.push(Output::Close { caller });
    }

    /// Answers frames to a group that clients may not reach, as if it did not exist.
    pub(crate) fn hide(&mut self, caller: Caller, frame: &Frame) -> bool {
        let frame = match frame {
            Frame::Bind(bind) if is_closed(GroupId::of(&bind.name)) => {
                Frame::Bound(Bound { group: GroupId::of(&bind.name), targets: None })
            }
            Frame::Request(request) if is_closed(request.group) => Frame::Reply(Reply {
                number: request.number,
                group: request.group,
                view: request.view,
                targets: None,
                outcome: Outcome::NoSuchGroup,
            }),
            _ => return false,
        };
        self.base.outputs.push(Output::Frame { caller, frame });
        true
    }

    /// Calls that were delivered after this place and have no outcome begin anew.
    pub(crate) fn park_unanswered(&mut self, id: GroupId, after: u64) {
        for call in self.replies.clients.callers.of_group(id) {
            let unanswered = self.replies.clients.callers.get(&call).is_some_and(|waiting| {
                let delivered =
                    matches!(waiting.stage, Stage::Delivered { sequence } if sequence > after);
                delivered && waiting.outcome.is_none()
            });
            if unanswered {
                self.replies.clients.callers.park(&call);
            }
        }
    }

    /// A request found no room in the log. If its client waits here, it is ordered again when there
    /// may be room.
    pub(crate) fn unplaced(&mut self, now: Time, call: Call) {
        if self.replies.clients.callers.get(&call).is_some() {
            self.replies.clients.callers.park(&call);
            self.replies
                .clients
                .callers
                .order_later(&call, now + self.replies.clients.retry_after(1));
        }
    }

    /// A cold passive group's primary answers a call that this node may have had ordered.
    pub(crate) fn act_on_relay(&mut self, sender: Member, relay: Relay) {
        let Relay { group, since, client, number, reply, asked } = relay;
        if sender == self.base.me || !self.base.directory.reigns(group, sender, since) {
            return;
        }
        let call = (group, client, number);
        let asked = (asked > 0).then_some(asked);
        self.delivered(call, asked);
        self.answer(call, asked, kept(reply));
    }

    /// Tells who is gone and who has come back.
    pub(crate) fn tell_faults(&mut self, now: Time, ring: RingId, members: &[Member]) {
        let primaries =
            self.base.directory.iter().filter_map(|(id, group)| Some((id, group.primary()?)));
        let struck: Vec<(GroupId, Member)> =
            primaries.filter(|(_, primary)| !members.contains(primary)).collect();
        for event in self.replies.faults.configuration(now, ring, members, &struck) {
            self.base.event(event);
        }
    }

    /// Tells which groups that lost their primary are answered for again.
    pub(crate) fn tell_resumed(&mut self, now: Time) {
        while let Some((group, after)) = self.replies.faults.next_resumed(now) {
            if let Some(known) = self.base.directory.get(group) {
                let (name, view) = (known.name.clone(), known.view);
                self.base.event(Event::Resumed { group, name, view, after });
            }
        }
    }

    /// More is held: replies may leave.
    pub(crate) fn release(&mut self, ring: RingId) {
        let all = self.base.held_and_stored();
        let became_effective = self.base.membership.held(ring, all);
        if became_effective {
            // All announced after that, and had gone on to no other configuration.
            self.replies.clients.reads.confirm(self.base.progress.configured_at());
        }
        if became_effective && self.base.records.has_disk() {
            self.base.note(NodeRecord::Effective);
            self.base.records.became_effective();
        }
        let held = self.base.progress.held();
        // Until now even those waited that need not be held by anybody else.
        let upto = if became_effective { u64::MAX } else { held.majority.max(held.all) };
        let ready = self
            .replies
            .clients
            .callers
            .ready(upto, |call, sequence| self.base.is_held(call.0, sequence));
        for call in ready {
            self.reply_if_ready(call);
        }
    }

    /// A call of this node's own has ended.
    pub(crate) fn own_ended(&mut self, reply: Reply) {
        self.replies.own.end(reply.number);
        self.base.outputs.push(Output::Own { number: reply.number, outcome: reply.outcome });
    }

    /// Calls that were ordered and have no place begin anew.
    pub(crate) fn park_ordered(&mut self, id: GroupId) {
        self.park_if(id, |waiting| waiting.stage == Stage::Ordered);
    }

    /// Calls that a replica was given, and that have no place and no outcome, begin anew: its next
    /// program has not got them (seed 900187 of the world of poison).
    pub(crate) fn park_given(&mut self, id: GroupId) {
        self.park_if(id, |waiting| match waiting.stage {
            Stage::Ordered => true,
            Stage::Serving => waiting.outcome.is_none(),
            _ => false,
        });
    }

    fn park_if(&mut self, id: GroupId, begins_anew: impl Fn(&Waiting) -> bool) {
        for call in self.replies.clients.callers.of_group(id) {
            if self.replies.clients.callers.get(&call).is_some_and(&begins_anew) {
                self.replies.clients.callers.park(&call);
            }
        }
    }

    /// A majority was in the ring after all that asked for this round had come.
    pub(crate) fn confirmed(&mut self, round: u64, upto: u64) {
        let upto = if self.base.planted.is(Bug::ReadTooEarly) { 0 } else { upto };
        self.replies.clients.reads.answered(round, upto);
        while let Some(call) = self.replies.clients.callers.asked_by(round) {
            let stage =
                self.replies.clients.callers.get(&call).map(|waiting| waiting.stage.clone());
            let Some(Stage::Asking { at, .. }) = stage else { unreachable!("it is found by that") };
            self.replies.clients.callers.set_stage(&call, Stage::Placed { upto, at });
        }
    }

    /// A read at a passive group's primary has its place in the order. That place says nothing of
    /// an earlier execution of the same read, before the component began.
    pub(crate) fn read_placed(&mut self, call: Call, execution: u64) {
        let stage = self.replies.clients.callers.get(&call).map(|waiting| &waiting.stage);
        if stage == Some(&Stage::Reading { execution }) {
            self.replies
                .clients
                .callers
                .set_stage(&call, Stage::Delivered { sequence: self.base.progress.delivered() });
            self.reply_if_ready(call); // its outcome may have been there before
        }
    }

    /// Parks the reads of a group: from here on they are answered in another way.
    pub(crate) fn park_reads_of(&mut self, id: GroupId) {
        for call in self.replies.clients.callers.of_group(id) {
            let stage = self.replies.clients.callers.get(&call).map(|waiting| &waiting.stage);
            if matches!(stage, Some(Stage::Asking { .. } | Stage::Placed { .. })) {
                self.replies.clients.callers.park(&call);
            }
        }
    }

    /// A client wants to hear of a group's newer views, and of one that it has missed now. At the
    /// limit it is not told: it hears of them with its replies, as it does without asking.
    pub(crate) fn watch(&mut self, caller: Caller, watch: Watch) {
        if self.replies.clients.watches.add(watch.group, caller) {
            self.base.tell_watcher(caller, watch.group, watch.view);
        }
    }

    /// Tells those who watch groups that have newer views. After everything else that a view asks
    /// for: who takes over has no time to lose.
    pub(crate) fn tell_watchers(&mut self) {
        while let Some(group) = self.replies.clients.watches.next_changed() {
            for caller in self.replies.clients.watches.of(group) {
                self.base.tell_watcher(caller, group, ViewNumber(0));
            }
        }
    }
}

impl Replies {
    /// Whether this call is a read that need not be ordered. Where an answer waits for nobody's
    /// copy, nobody but its entry may know of it: then the order alone says what a read has to see;
    /// or the primary, if it is the only entry.
    pub(crate) fn reads_without_order(&self, group: &Group, call: Call) -> bool {
        let style = group.options.style;
        style.orders()
            && !style.orders_reads()
            && (group.options.ack != AckLevel::One || style.executes_on_arrival())
            && self.clients.callers.get(&call).is_some_and(|waiting| waiting.request.access.reads())
    }
}
