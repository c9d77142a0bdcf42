//! Executes the effects that a replica asks for.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wire::ordered::{Going, LeaveGroup, Ordered, Place, Progress};
use wire::versions::WHOLE;
use wire::{GroupId, Member, NodeId, Time, ViewNumber};

use crate::api::{Output, Transfer};
use crate::directory::State;
use crate::ordering::Ordering;
use crate::replica::{Effect, Replica};
use crate::replicas::ReplicaHandler;
use crate::replicas::cold::Milestone;

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// A state is lost here. If the members are just announcing their states, this node corrects
    /// its announcement at once. All others give up their states for those of the members believed
    /// to have the most.
    pub(crate) fn take_back(&mut self, now: Time) {
        if self.base.membership.counts_on_announces() {
            let brought =
                (self.replicas.replicas_with_state(self.base), self.replicas.replicas_ahead());
            let announce = self.base.membership.announcement(brought, self.base.recall());
            self.base.order(now, Ordered::Announce(Box::new(announce)));
        }
    }

    /// Runs an action that the order asks of the replicas in the group's table, if this node's is
    /// one. Another keeps a state of another history, in which the same number is another call.
    pub(crate) fn with_listed(
        &mut self,
        now: Time,
        group: GroupId,
        act: impl FnOnce(&mut Replica, &mut Vec<Effect>),
    ) {
        let known = self.base.directory.get(group);
        if known.is_some_and(|known| known.replica(self.base.me).is_some()) {
            self.with_replica(now, group, act);
        }
    }

    /// Runs an action of a hosted replica, and executes its effects.
    pub(crate) fn with_replica(
        &mut self,
        now: Time,
        group: GroupId,
        act: impl FnOnce(&mut Replica, &mut Vec<Effect>),
    ) {
        let Some(hosted) = self.replicas.hosted.get_mut(&group).filter(|hosted| !hosted.spared)
        else {
            return;
        };
        // The effects may lead here again. The nested run then finds no spare buffer.
        let mut effects = self.base.outputs.take_room();
        act(&mut hosted.replica, &mut effects);
        hosted.forget_former();
        if let Some(limit) =
            hosted.stopwatch.follow(now, hosted.replica.work(), self.replicas.hangs.rule())
        {
            self.replicas.hangs.limit(limit);
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Run(command) => self.base.outputs.push(Output::Run { group, command }),
                Effect::Order(ordered) => self.base.order(now, ordered),
                Effect::Suspect { number, call, blame } => {
                    self.try_or_condemn(now, group, (number, call), blame);
                }
                Effect::Tell(executed) => {
                    self.base
                        .order(now, Ordered::Progress(Progress { group, executed, trial: None }));
                }
                Effect::Vote(slip) => self.order_votes(now, group, slip),
                Effect::Answer { client, number, asked, outcome } => {
                    self.replies().answer((group, client, number), asked.digest(), outcome);
                }
                Effect::Placed { client, number, asked } => {
                    self.replies().delivered((group, client, number), asked.digest());
                }
                Effect::ReadPlaced { client, number, execution } => {
                    self.replies().read_placed((group, client, number), execution);
                }
                Effect::Settled { client, number, sequence } => {
                    self.settled((group, client, number), sequence);
                }
                Effect::Owe { client, number, asked, end } => {
                    self.owe(now, (group, client, number), asked, end);
                }
                Effect::Ask(ask) => self.ask(now, group, *ask),
                Effect::CallQuorum(child, call_quorum) => {
                    self.call_quorum_told(now, group, child, call_quorum)
                }
                Effect::Resume { ticket, outcome } => {
                    self.resumed(group);
                    self.base.outputs.push(Output::Resume { group, ticket, outcome });
                }
                Effect::Overflow => self.rejoin(now, group),
                Effect::Unfit => self.resign(now, group),
                Effect::Mark(kind) => self.mark(group, kind),
                Effect::Keeping => self.keeping(group),
                Effect::Saved(taken) => self.state_saved(group, taken),
                Effect::Store { style, state, transfer } => {
                    self.store_state(now, group, (style, state), transfer);
                }
                Effect::Fetch { transfer, from, bytes } => {
                    self.fetch(now, group, (transfer, from), bytes);
                }
                Effect::Cast => {
                    self.replicas.votes.note_due(group);
                }
                Effect::Unplaced { client, number } => {
                    self.replies().unplaced(now, (group, client, number))
                }
                Effect::Promoting => self.reached(now, group, Milestone::Promoting),
                Effect::CheckpointRestored => self.reached(now, group, Milestone::Restored),
                Effect::Replayed { requests } => {
                    self.reached(now, group, Milestone::Replayed(requests));
                }
                Effect::Checkpointed => self.reached(now, group, Milestone::Checkpointed),
                Effect::CheckpointFailed => self.reached(now, group, Milestone::CheckpointFailed),
                Effect::Noted(about, text) => self.note_state(group, about, text),
                Effect::Event(event) => self.base.event(event),
            }
        }
        self.base.outputs.give_room(effects);
        self.note_lead(now, group);
    }

    /// Has a state fetched, unless it is a deposit of this node.
    fn fetch(
        &mut self,
        now: Time,
        group: GroupId,
        (transfer, from): (ViewNumber, NodeId),
        bytes: u64,
    ) {
        if from != self.base.me.node {
            let ring = self.base.membership.ring();
            let transfer = Transfer { ring, group, view: transfer };
            return self.base.outputs.push(Output::Fetch { transfer, from, bytes });
        }
        if let Some(state) = self.replicas.deposit_offered(group, transfer).cloned() {
            self.with_replica(now, group, |replica, effects| {
                replica.fetched(now, transfer, state.whole(), effects);
            });
        }
    }

    /// A replica that could not keep up, or is out of step, begins again.
    pub(crate) fn rejoin(&mut self, now: Time, group: GroupId) {
        let Some(hosted) = self.replicas.hosted.get_mut(&group) else { return };
        hosted.lost = true;
        let going = if hosted.departure.begun { Going::ForGood } else { Going::Returns };
        self.take_back(now);
        self.base.order(now, Ordered::LeaveGroup(LeaveGroup { group, going, died: None }));
    }

    /// Takes the state for those whom this node is to give it, at this place of the order.
    pub(crate) fn give_states(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.base.directory.get(id) else { return };
        if self
            .replicas
            .hosted
            .get(&id)
            .is_some_and(|hosted| hosted.program.fallen || hosted.departure.abandoned)
        {
            return; // the next program gives them, if there is one here
        }
        let me = self.base.me;
        let wanted: Vec<(ViewNumber, Member)> = group
            .replicas
            .iter()
            .filter_map(|replica| match replica.state {
                State::Unsynced { transfer, donor } if donor == Some(me) => {
                    Some((transfer, replica.member))
                }
                _ => None,
            })
            .collect();
        let tells = self.base.membership.levels().level() >= WHOLE;
        self.with_replica(now, id, |replica, effects| {
            replica.tell_blame(tells);
            replica.give_states(&wanted, effects);
        });
    }

    /// Where a log begins or ends is part of the group's history, as its requests are: who has
    /// missed it has another log. So it is on disk, where a replica has to know from where on it
    /// votes. A group that was never called has none: anybody may begin it, in whatever style it
    /// has by then (seeds 4942 and 10849).
    pub(crate) fn count_change(&mut self, id: GroupId, sequence: u64) {
        if self.base.directory.get(id).is_none_or(|group| group.last == Place::default()) {
            return;
        }
        // It may have waited for the installation, among requests of its own and other places.
        let place = self.base.place(sequence);
        self.base.directory.requested(id, place);
        let here =
            self.base.directory.get(id).is_some_and(|group| group.replica(self.base.me).is_some());
        if let Some(hosted) =
            self.replicas.hosted.get_mut(&id).filter(|hosted| here && !hosted.spared)
        {
            hosted.take(place, true);
        }
    }
}
