//! This node's replicas: their coming and going, and what they ask for.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use wire::limits::{MAX_GROUPS, MAX_NAME};
use wire::ordered::{
    Durability, Going, GroupOptions, JoinGroup, LeaveGroup, Ordered, Place, Progress, Synced,
};
use wire::{GroupId, Member, Time, ViewNumber};

use super::cold::Milestone;
use super::storage::is_on_disk;
use super::{Hosted, Journal, Motive, Stack};
use crate::api::{Begun, Event, Executed, HostError, Output, Ticket};
use crate::bug::Bug;
use crate::directory::{Group, State};
use crate::ordering::Ordering;
use crate::replica::{Effect, Replica};
use crate::style::Conduct;

impl<O: Ordering> Stack<O> {
    /// This node hosts a replica of the group `name` from now on. It joins as soon as there is a
    /// quorum; until then, and while its state is on the way, it waits.
    ///
    /// # Errors
    /// If the name is impossible, or this node hosts the group or too many groups already.
    pub fn host(
        &mut self,
        now: Time,
        name: &str,
        options: GroupOptions,
    ) -> Result<GroupId, HostError> {
        self.host_served(now, name, options, None)
    }

    /// The same, of a replica that a program serves: that may die while the node lives, and is started again
    /// ([`Stack::service_lost`]).
    ///
    /// # Errors
    /// As [`Stack::host`].
    pub fn host_program(
        &mut self,
        now: Time,
        name: &str,
        options: GroupOptions,
    ) -> Result<GroupId, HostError> {
        self.host_served(now, name, options, Some(Journal::default()))
    }

    fn host_served(
        &mut self,
        now: Time,
        name: &str,
        options: GroupOptions,
        journal: Option<Journal>,
    ) -> Result<GroupId, HostError> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(HostError::Name(name.len()));
        }
        let id = GroupId::of(name);
        if self.hosted.contains_key(&id) {
            return Err(HostError::Twice);
        }
        if self.hosted.len() >= MAX_GROUPS {
            return Err(HostError::TooMany);
        }
        let on_disk = options.durability == Durability::Disk;
        if on_disk && !options.style.has_state() {
            return Err(HostError::DiskOfStateless);
        }
        if on_disk && !self.records.has_disk() {
            return Err(HostError::NoStorage);
        }
        let logs = on_disk || journal.is_some();
        let hosted = Hosted::new((id, name), options, (journal, logs), self.planted);
        self.hosted.insert(id, hosted);
        if on_disk {
            self.recall_replica(now, id);
        }
        // What is on the disk may be of another style than what was configured.
        if self.hosted.get(&id).is_some_and(|hosted| hosted.replica.style().logs()) {
            self.cold.insert(id);
        }
        self.settle(now);
        Ok(id)
    }

    /// This node gives its replica of the group up. What was ordered before is answered still.
    pub fn unhost(&mut self, now: Time, group: GroupId) {
        self.go(now, group, false);
    }

    /// The same, if another replica has the state, or as soon as one has it: until then it serves. For services that are to go on, wherever
    /// their replicas are (simulator world `everything`, seed 568).
    pub fn part(&mut self, now: Time, group: GroupId) {
        self.go(now, group, true);
    }

    fn go(&mut self, now: Time, group: GroupId, spares: bool) {
        if let Some(hosted) = self.hosted.get_mut(&group) {
            (hosted.departure.spares, hosted.program.unbegun) = (spares, false);
            self.begin_to_go(now, group);
            self.drop_if_done(group);
            self.settle(now);
        }
    }

    /// This node's replica goes when another has the state.
    pub fn is_parting(&self, group: GroupId) -> bool {
        self.hosted
            .get(&group)
            .is_some_and(|hosted| hosted.departure.begun && hosted.departure.spares)
    }

    /// This node's replica serves until another has the state, even if it is to go.
    pub(super) fn is_needed(&self, id: GroupId) -> bool {
        let spares = self.hosted.get(&id).is_some_and(|hosted| hosted.departure.spares);
        let needed = |group: &Group| group.needs(self.me) || spares && group.is_alone(self.me);
        self.directory.get(id).is_some_and(needed)
    }

    /// This node's replica is to go, after another has taken over if it is the primary and still serves.
    pub(super) fn begin_to_go(&mut self, now: Time, group: GroupId) {
        let Some(hosted) = self.hosted.get_mut(&group) else { return };
        hosted.departure.begun = true;
        // That its service has died is said once: what two have died of nobody executes (simulator
        // world `poison`, seed 629).
        if !hosted.program.fallen {
            hosted.admission.asked = None;
        }
        if !hosted.departure.abandoned {
            self.hand_over(now, group);
        }
    }

    /// Whether this node still has a replica of the group, be it one on its way out.
    pub fn is_hosting(&self, group: GroupId) -> bool {
        self.hosted.contains_key(&group)
    }

    /// The group has gone on without this node's replica, which still has something to execute.
    pub fn has_left(&self, group: GroupId) -> bool {
        let there = self.directory.get(group).is_some_and(|known| known.knows(self.me));
        !there && self.hosted.get(&group).is_some_and(|hosted| hosted.departure.begun)
    }

    /// This node's replica is lost: its service executes nothing any more, and answers nothing of
    /// what it was given. It goes; calls that waited for it here are answered elsewhere.
    pub fn abandon(&mut self, now: Time, group: GroupId) {
        let died = self.reach(group, Begun::Any);
        if let Some(hosted) = self.hosted.get_mut(&group) {
            hosted.departure.abandoned = true;
            hosted.program.died = Some(died);
            self.with_replica(now, group, |replica, effects| replica.idle(effects));
            self.take_back(now);
            self.send_on(group);
            self.unhost(now, group);
        }
    }

    /// A state is lost here. If the members are just telling each other what they bring, they are told at once: whom they take for
    /// the one who has the most makes all others give up what they have (seed 309362).
    fn take_back(&mut self, now: Time) {
        if self.membership.counts_on_announces() {
            let brought = (self.replicas_with_state(), self.replicas_ahead());
            let announce = self.membership.announcement(brought, self.recall());
            self.order(now, Ordered::Announce(announce));
        }
    }

    /// A replica's service answers a command.
    pub fn handle_executed(
        &mut self,
        now: Time,
        group: GroupId,
        ticket: Ticket,
        executed: Executed,
    ) {
        if let Some(hosted) = self.hosted.get_mut(&group) {
            hosted.stopwatch.answered(now, ticket, self.planted);
            if hosted.stopwatch.is_hung(self.hangs.rule()) {
                self.hangs.note(group);
            }
        }
        self.with_replica(now, group, |replica, effects| {
            replica.answered(ticket, executed, effects);
        });
        self.drop_if_done(group);
        self.outputs.crowd(now);
    }

    /// Lets a hosted replica do something, and does what it asks for.
    pub(super) fn with_replica(
        &mut self,
        now: Time,
        group: GroupId,
        act: impl FnOnce(&mut Replica, &mut Vec<Effect>),
    ) {
        let Some(hosted) = self.hosted.get_mut(&group).filter(|hosted| !hosted.spared) else {
            return;
        };
        // What these lead to may come here again, and then finds no room kept.
        let mut effects = self.outputs.take_room();
        act(&mut hosted.replica, &mut effects);
        if let Some(limit) = hosted.stopwatch.follow(now, hosted.replica.work(), self.hangs.rule())
        {
            self.hangs.limit(limit);
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Run(command) => self.outputs.push(Output::Run { group, command }),
                Effect::Order(ordered) => self.order(now, ordered),
                Effect::Suspect { number, call, blame } => {
                    self.try_or_condemn(now, group, (number, call), blame);
                }
                Effect::Tell(executed) => {
                    self.order(now, Ordered::Progress(Progress { group, executed, trial: None }));
                }
                Effect::Vote(slip) => self.order_votes(now, group, slip),
                Effect::Answer { client, number, outcome } => {
                    self.answer((group, client, number), outcome);
                }
                Effect::Placed { client, number } => {
                    self.clients
                        .callers
                        .delivered(&(group, client, number), self.progress.delivered());
                }
                Effect::ReadPlaced { client, number, execution } => {
                    self.read_placed((group, client, number), execution);
                }
                Effect::Settled { client, number, sequence } => {
                    self.settled((group, client, number), sequence);
                }
                Effect::Owe { client, number, asked, end } => {
                    self.owe(now, (group, client, number), asked, end);
                }
                Effect::Ask(ask) => self.ask(now, group, *ask),
                Effect::Mandate(child, mandate) => self.mandated(now, group, child, mandate),
                Effect::Resume { ticket, outcome } => {
                    self.resumed(group);
                    self.outputs.push(Output::Resume { group, ticket, outcome });
                }
                Effect::Overflow => self.rejoin(now, group),
                Effect::Unfit => self.resign(now, group),
                Effect::Mark(kind) => self.mark(group, kind),
                Effect::Keeping => self.keeping(group),
                Effect::Saved(taken) => self.state_saved(group, taken),
                Effect::Store { style, state, transfer } => {
                    self.store_state(now, group, (style, state), transfer);
                }
                Effect::Cast => {
                    self.votes.note_due(group);
                }
                Effect::Unplaced { client, number } => self.unplaced(now, (group, client, number)),
                Effect::Promoting => self.reached(now, group, Milestone::Promoting),
                Effect::CheckpointRestored => self.reached(now, group, Milestone::Restored),
                Effect::Replayed { requests } => {
                    self.reached(now, group, Milestone::Replayed(requests));
                }
                Effect::Checkpointed => self.reached(now, group, Milestone::Checkpointed),
                Effect::CheckpointFailed => self.reached(now, group, Milestone::CheckpointFailed),
                Effect::Event(event) => self.event(event),
            }
        }
        self.outputs.give_room(effects);
        self.note_lead(now, group);
    }

    /// A replica that could not keep up, or is out of step, begins again.
    pub(super) fn rejoin(&mut self, now: Time, group: GroupId) {
        let Some(hosted) = self.hosted.get_mut(&group) else { return };
        hosted.lost = true;
        let going = if hosted.departure.begun { Going::ForGood } else { Going::Returns };
        self.take_back(now);
        self.order(now, Ordered::LeaveGroup(LeaveGroup { group, going, died: None }));
    }

    /// Orders the coming of replicas that are not in the table, and the going of those that are to
    /// go. Each is asked for once a ring: what was ordered on a ring that ended may be lost.
    pub(super) fn ask_for_views(&mut self, now: Time) -> bool {
        if !self.membership.is_active() {
            return false;
        }
        let (me, ring) = (self.me, self.membership.ring());
        let new_disk = self.records.disk().is_some_and(|disk| !disk.is_begun());
        let mut messages = Vec::new();
        for (id, hosted) in &mut self.hosted {
            let group = self.directory.get(*id);
            let there = group.is_some_and(|group| match hosted.departure.begun {
                true => group.knows(me),
                false => group.replica(me).is_some(),
            });
            let spares = hosted.departure.spares;
            // A service that died before its group was called leaves nothing behind (simulator seed 2368).
            let lost = hosted.departure.abandoned && group.is_some_and(Group::can_begin_anew);
            let needed = group.is_some_and(|it| it.needs(me) && !lost || spares && it.is_alone(me))
                || self.wishes.moves.contains_key(&(*id, Motive::Going));
            let idle =
                hosted.admission.refused || (hosted.departure.stays && hosted.departure.begun);
            let kept_out = hosted.rejoin.is_kept_out() && !hosted.departure.begun;
            // A replica of a life that no disk knows of could not say later that it had stored nothing.
            let unknown = is_on_disk(hosted) && new_disk && !hosted.departure.begun;
            let done = hosted.admission.asked == Some(ring)
                || hosted.on_disk.kept
                || hosted.program.fallen
                || idle
                || there != hosted.departure.begun;
            if done || needed || kept_out || unknown {
                continue;
            }
            if hosted.departure.begun && hosted.replica.has_calls() {
                continue; // what a passive primary has taken is ordered first
            }
            hosted.admission.asked = Some(ring);
            hosted.admission.coming |= !hosted.departure.begun;
            messages.push(if hosted.departure.begun {
                // If nobody else has the state, whoever says of what its service died stays.
                let alone = group.is_some_and(|group| group.synced().eq([me]));
                let died = hosted.program.died.clone().filter(|_| lost || !alone);
                let going = if hosted.departure.spares { Going::IfSpared } else { Going::ForGood };
                Ordered::LeaveGroup(LeaveGroup { group: *id, going, died })
            } else {
                Ordered::JoinGroup(JoinGroup { name: hosted.name.clone(), options: hosted.options })
            });
        }
        let any = !messages.is_empty();
        for message in messages {
            self.order(now, message);
        }
        any
    }

    pub(super) fn join_refused(
        &mut self,
        now: Time,
        sender: Member,
        name: String,
        options: GroupOptions,
    ) {
        if sender != self.me {
            return;
        }
        let id = GroupId::of(&name);
        if let Some(hosted) = self.hosted.get_mut(&id) {
            hosted.admission.refused = true;
        }
        self.event(Event::JoinRefused { name, options });
        self.reconcile_calls(now, id);
    }

    pub(super) fn reconcile_replicas(&mut self, now: Time) {
        // Who has no state did not announce any: the table says so now. What was lost since is not begun anew.
        let announced =
            self.membership.announces().get(&self.me).map(|announce| &announce.replicas);
        for (id, hosted) in &mut self.hosted {
            let counted_on = announced.is_some_and(|all| all.iter().any(|(group, _)| group == id));
            hosted.lost &= counted_on;
        }
        let known = self.directory.iter().map(|(id, _)| id);
        let ids: BTreeSet<GroupId> = self.hosted.keys().copied().chain(known).collect();
        for id in ids {
            self.reconcile_replica(now, id);
        }
    }

    /// What this node ordered in earlier configurations has been delivered by now or is lost.
    pub(super) fn forget_lost_joins(&mut self) {
        let ids: Vec<GroupId> = self.hosted.keys().copied().collect();
        for id in ids {
            self.hosted.entry(id).and_modify(|hosted| hosted.admission.coming = false);
            self.drop_if_done(id);
        }
    }

    /// The groups whose state is here, each with the place of the last request that was taken.
    pub(super) fn replicas_with_state(&self) -> Vec<(GroupId, Place)> {
        let with_state = self.hosted.iter().filter_map(|(id, hosted)| {
            let in_table = |group: &Group| {
                let sleeps = !group.asleep.is_empty() && is_on_disk(hosted);
                let waits = sleeps || group.asleep.contains(&self.me);
                group.options.style.has_state() && (waits || group.replica(self.me).is_some())
            };
            let brings = hosted.on_disk.recalled
                || hosted.on_disk.kept
                || self.directory.get(*id).is_some_and(in_table);
            // A state that a transfer brought is not there before the disk has it.
            let is_kept = hosted.on_disk.logged.syncing.is_none();
            (brings && is_kept && hosted.replica.has_state()).then_some((*id, hosted.taken))
        });
        with_state.collect()
    }

    /// Brings this node's replica in line with what the table says of it.
    pub(super) fn reconcile_replica(&mut self, now: Time, id: GroupId) {
        self.begin_fallen(now, id);
        let group = self.directory.get(id);
        let state = group.and_then(|group| group.replica(self.me)).map(|r| r.state);
        let there = group.is_some();
        // What anybody has is of no use to a group that waits for a deposit.
        let sleeps = |group: &Group| group.primary().is_none() && group.depositor().is_none();
        let asleep = group.is_some_and(sleeps);
        let awake = group.is_some_and(|group| group.primary().is_some());
        let effective = self.membership.is_effective();
        let is_over = self.progress.is_transitional();
        let waits = group.is_some_and(|group| group.asleep.contains(&self.me));
        let last = group.map_or(Place::default(), |group| group.last);
        let style = group.map(|group| group.options.style).unwrap_or_default();
        let Some(hosted) = self.hosted.get_mut(&id) else {
            if group.is_some_and(|group| group.knows(self.me)) {
                // It went in a history that was given up.
                let leave = LeaveGroup { group: id, going: Going::ForGood, died: None };
                self.order(now, Ordered::LeaveGroup(leave));
            }
            return;
        };
        if hosted.departure.abandoned {
            return self.drop_if_done(id);
        }
        if hosted.program.fallen {
            let known = group.is_some_and(|group| group.knows(self.me));
            hosted.on_disk.kept = !known && is_on_disk(hosted) && awake && !effective;
            if !known && !hosted.on_disk.kept {
                return self.lose_fallen(now, id);
            }
            // Checkpoint and log of a cold passive group go over to another style with the next program.
            if !hosted.replica.has_log() {
                self.reconcile_style(now, id);
            }
            return self.reconcile_lead(now, id);
        }
        if hosted.lost && state.is_some() {
            return;
        }
        hosted.lost = false;
        hosted.on_disk.kept = false;
        self.reconcile_style(now, id);
        let Some(hosted) = self.hosted.get_mut(&id).filter(|hosted| !hosted.lost) else { return };
        hosted.yields = None; // of a view that is over
        hosted.cold.last_one = false;
        let is_on_its_way = hosted.on_disk.logged.syncing.is_some();
        let keeps = is_on_disk(hosted) && awake && !effective;
        let leaving = hosted.departure.begun;
        let votes = hosted.replica.style().votes();
        let stale = self.planted.is(Bug::KeepStaleReplica) && hosted.replica.has_state();
        let hasty = self.planted.is(Bug::BeginWithoutState) && !hosted.replica.has_state();
        match state {
            // It finishes what was ordered before; if it was the last of those that vote, nobody could say what is right.
            None if leaving && (there || !votes) => {}
            // Those who go on without it may have more in memory only: their disks, too, have to have it.
            None if keeps && hosted.replica.has_state() => {
                hosted.admission.asked = None;
                hosted.on_disk.kept = true;
            }
            // Others will tell whether the group goes on with what it has. What its disk has was announced, and counts while the group
            // sleeps, whether the table names this replica or not (simulator world `everything`, seed 279).
            None if (hosted.on_disk.recalled || waits || asleep && is_on_disk(hosted))
                && hosted.replica.has_state() =>
            {
                hosted.admission.asked = None;
            }
            None => {
                // Out by an overflow or struck out: it comes anew.
                hosted.admission.asked = None;
                // Without a state it has nothing that the others might have gone beyond.
                if !stale && hosted.options.style.has_state() {
                    self.with_replica(now, id, |replica, effects| replica.idle(effects));
                    self.lose_calls(id);
                }
            }
            // What a transfer brought and the disk does not have yet was told to nobody: the table means that it begins.
            Some(State::Synced) if hosted.replica.has_state() && !is_on_its_way => {}
            Some(State::Synced) => {
                hosted.taken = last;
                self.with_replica(now, id, |replica, effects| replica.begin(effects));
            }
            Some(State::Unsynced { transfer, .. }) if stale || hasty => {
                if hasty {
                    self.with_replica(now, id, |replica, effects| replica.begin(effects));
                }
                self.order(now, Ordered::Synced(Synced { group: id, transfer }));
            }
            // What it has may be all that was answered: others will tell when they are back.
            Some(State::Unsynced { .. }) if asleep && hosted.replica.has_state() => {}
            // Who has more may be gone before it could act, and then this is what goes on.
            Some(State::Unsynced { .. }) if is_over && hosted.replica.has_state() => {
                hosted.spared = true;
            }
            Some(State::Unsynced { transfer, .. }) => {
                if hosted.replica.transfer() != Some(transfer) {
                    hosted.taken = last;
                    self.with_replica(now, id, |replica, effects| {
                        replica.await_state(transfer, style, effects);
                    });
                }
            }
        }
        self.reconcile_style(now, id); // that of one that was ahead
        self.reconcile_reign(now, id);
        self.reconcile_lead(now, id);
        self.give_states(now, id);
        self.drop_if_done(id);
    }

    /// Takes the state for those whom this node is to give it, at this place of the order.
    pub(super) fn give_states(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.directory.get(id) else { return };
        if self
            .hosted
            .get(&id)
            .is_some_and(|hosted| hosted.program.fallen || hosted.departure.abandoned)
        {
            return; // the next program gives them, if there is one here
        }
        let me = self.me;
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
        self.with_replica(now, id, |replica, effects| {
            replica.give_states(&wanted, effects);
        });
    }

    pub(super) fn drop_if_done(&mut self, id: GroupId) {
        let known = self.directory.get(id);
        let there = known.is_some_and(|group| group.knows(self.me));
        let done = |hosted: &Hosted| {
            let waits = hosted.replica.waits_for_others();
            let has_state = hosted.replica.has_state();
            let at_rest = hosted.replica.is_drained() || !has_state || waits;
            // What the disk gave back may be all that there is of the group: the first component's table has not said yet what it
            // is worth (simulator world `poison`, seed 1079).
            let counts = hosted.on_disk.recalled && has_state;
            let goes = hosted.departure.begun && !hosted.admission.coming && !there;
            goes && !counts && at_rest
        };
        if self.hosted.get(&id).is_some_and(done) {
            self.hosted.remove(&id);
            self.cold.remove(id);
            // The verdicts on what a voting group's replica has executed may be yet to come, and find nobody here. One that comes to
            // this node later can answer for it.
            self.park_unanswered(id, 0);
        }
    }
}
