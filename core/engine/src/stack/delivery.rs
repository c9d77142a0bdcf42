//! What is delivered: configurations, ordered messages, and who holds them.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::kept::NodeRecord;
use wire::ordered::{Going, Hold, Install, Move, Ordered, Place, Request, Restyle};
use wire::{GroupId, Member, RingId, Time};

use super::{Held, Stack};
use crate::api::{Event, Output};
use crate::bug::Bug;
use crate::component::{Bearing, Passage};
use crate::directory::{Change, Group, JoinRefused, majority, recalled};
use crate::ordering::{self, Configuration, ConfigurationKind, Delivery, Ordering};
use crate::style::Conduct;

impl<O: Ordering> Stack<O> {
    pub(super) fn handle_ordering(&mut self, now: Time, output: ordering::Output) {
        match output {
            ordering::Output::Send { to, datagram, route } => {
                self.outputs.push(Output::Send { to, datagram, route });
            }
            ordering::Output::Deliver(delivery) => self.deliver(now, delivery),
            ordering::Output::Configuration(configuration) => self.configure(now, configuration),
            ordering::Output::Held { ring, majority, all } => {
                if ring == self.membership.ring() {
                    self.progress.hold(Held { majority, all });
                    self.observed.bench.held(now, all);
                    self.release(ring);
                    self.pay_all(now);
                    self.go_on_trying(now);
                }
            }
            ordering::Output::Stored { ring } => {
                if ring == self.membership.ring() {
                    self.release(ring);
                    self.pay_all(now);
                    self.go_on_trying(now);
                }
            }
            ordering::Output::Confirmed { ring, round, upto } => {
                if ring == self.membership.ring() {
                    self.confirmed(round, upto);
                }
            }
            ordering::Output::Event(event) => {
                let suspected = self.observed.faults.ring_says(now, &event);
                self.event(Event::Ring(event));
                suspected.into_iter().for_each(|suspected| self.event(suspected));
            }
        }
    }

    /// Groups stop acting; every member says what it brings along.
    fn configure(&mut self, now: Time, configuration: Configuration) {
        // Before it, the last messages of the old ring follow the transitional one: each says if it is contiguous.
        let transitional = configuration.kind == ConfigurationKind::Transitional;
        self.progress.set_transitional(transitional);
        if transitional {
            return;
        }
        self.hosted.values_mut().for_each(|hosted| hosted.spared = false);
        let Configuration { ring, members, .. } = configuration;
        self.settle_reads();
        self.event(Event::Configuration { ring, members: members.clone() });
        self.tell_faults(now, ring, &members);
        self.forget_usages(&members);
        self.bench_interrupted(now);
        // What was to be said about an earlier configuration is of no use in this one.
        let lasting = |ordered: &Ordered| {
            !matches!(
                ordered,
                Ordered::Announce(_)
                    | Ordered::Install(_)
                    | Ordered::PrimaryChunk(_)
                    | Ordered::Relay(_)
            )
        };
        self.outbox.retain(lasting);
        self.progress.configured(now);
        self.records.new_configuration();
        self.suspend_primaries(now);
        let brought = (self.replicas_with_state(), self.replicas_ahead());
        let recall = self.recall();
        let announce = self.membership.configuration(ring, members, brought, recall);
        self.order(now, Ordered::Announce(announce));
    }

    /// Tells who is gone and who has come back.
    fn tell_faults(&mut self, now: Time, ring: RingId, members: &[Member]) {
        let primaries =
            self.directory.iter().filter_map(|(id, group)| Some((id, group.primary()?)));
        let struck: Vec<(GroupId, Member)> =
            primaries.filter(|(_, primary)| !members.contains(primary)).collect();
        for event in self.observed.faults.configuration(now, ring, members, &struck) {
            self.event(event);
        }
    }

    /// Tells which groups that lost their primary are answered for again.
    pub(super) fn tell_resumed(&mut self, now: Time) {
        for (group, after) in self.observed.faults.take_resumed(now) {
            if let Some(known) = self.directory.get(group) {
                let (name, view) = (known.name.clone(), known.view);
                self.event(Event::Resumed { group, name, view, after });
            }
        }
    }

    fn deliver(&mut self, now: Time, delivery: Delivery) {
        self.progress.deliver(delivery.sequence);
        if !delivery.contiguous {
            self.membership.gap();
        }
        match Ordered::decode(&delivery.payload) {
            // A member of the ring that sends such bytes is broken, but alike for everybody.
            Err(malformed) => self.event(Event::Malformed(malformed)),
            Ok(Ordered::Announce(announce)) => {
                if let Some((quorate, install)) =
                    self.membership.announce(delivery.sender, announce)
                {
                    self.judged(now, quorate, install);
                }
            }
            Ok(Ordered::Install(install)) => self.install(now, &delivery, &install),
            // No part of any history: neither kept for a component nor a step in one.
            Ok(Ordered::Load(load)) => {
                self.observed.bench.load(now, delivery.sender, delivery.sequence, &load);
            }
            Ok(Ordered::Bench(word)) => self.bench_word(now, delivery.sender, word),
            Ok(Ordered::Usage(usage)) => self.usage_told(now, delivery.sender, usage),
            Ok(Ordered::Shedding(shedding)) => self.shedding_told(now, shedding),
            Ok(ordered) => {
                let Delivery { ring, sequence, .. } = delivery;
                match self.membership.bearing(ring, sequence) {
                    Bearing::Act => {
                        self.records.begin_to_act((sequence, sequence), false);
                        self.act(now, delivery.sender, sequence, ordered, &delivery.payload);
                        self.records.end_acting();
                    }
                    Bearing::Wait => self.progress.defer(delivery),
                    Bearing::Ignore => {}
                }
            }
        }
    }

    /// All announcements are in.
    fn judged(&mut self, now: Time, quorate: bool, install: bool) {
        let (ring, epoch) = (self.membership.ring(), self.membership.next_epoch());
        if !quorate {
            self.event(Event::Quorum { ring, quorate, epoch });
            self.refuse_without_quorum();
        } else if install {
            let groups = self.directory.entries();
            let keys = self.keys.table();
            self.order(now, Ordered::Install(Install { ring, epoch, groups, keys }));
        }
    }

    /// The component begins: the table is everybody's, and what waited is done.
    fn install(&mut self, now: Time, delivery: &Delivery, install: &Install) {
        let installed = self.membership.install(delivery.sender, install.ring, delivery.sequence);
        let Some(Passage { announces, installer, recalled: incomplete, gathering }) = installed
        else {
            return;
        };
        let planted = self.planted;
        let chronology = incomplete.then_some(gathering.chronology);
        let entries = recalled(&install.groups, announces, installer, chronology, planted);
        let changed = self.directory.install(install.ring, &entries, announces, gathering);
        let Install { ring, epoch, .. } = *install;
        self.event(Event::Quorum { ring, quorate: true, epoch });
        // What was ordered before counts from here on, and is not there before this is.
        let first = self.progress.first_deferred().unwrap_or(delivery.sequence);
        self.records.begin_to_act((first.min(delivery.sequence), delivery.sequence), true);
        self.note_installed();
        let present = self.present();
        let mut effects = Vec::new();
        self.keys.install(install.keys.as_ref(), &present, &mut effects);
        self.key_effects(effects);
        self.votes.begin_component(planted);
        self.enthrone_all();
        for id in changed {
            self.view_changed(id);
        }
        self.progress.await_joins(now, self.membership.has_all_nodes());
        self.load.changed();
        self.reconcile_replicas(now);
        self.forget_recalls();
        self.open_votes(now);
        self.calls_in_new_component(now, delivery.sequence);
        self.nested_in_new_component(now);
        self.reconcile_leads(now);
        let deferred = self.progress.take_deferred();
        for delivery in deferred {
            let Delivery { sender, sequence, payload, .. } = &delivery;
            if let Ok(ordered) = Ordered::decode(payload)
                && !self.is_of_the_past(*sender, &ordered)
            {
                self.act(now, *sender, *sequence, ordered, payload);
            }
        }
        self.records.end_acting();
        self.forget_lost_joins();
        self.release(install.ring);
        self.pay_all(now);
        self.go_on_trying(now);
    }

    /// What was ordered before this component began says something of an earlier one.
    fn is_of_the_past(&self, sender: Member, ordered: &Ordered) -> bool {
        match ordered {
            // Transfers have begun anew: what was said of earlier ones is void, even if a new one
            // has the name of one in a history that was given up.
            Ordered::Synced(_) | Ordered::StateChunk(_) => true,
            // Votes are told anew.
            Ordered::Ballot(_) | Ordered::Absent(_) => true,
            // A passive primary said that all it had taken was ordered. It takes calls again since.
            Ordered::Move(Move { group, .. }) | Ordered::Restyle(Restyle { group, .. }) => {
                self.directory.get(*group).is_some_and(|group| {
                    group.options.style.keeps_its_primary() && group.primary() == Some(sender)
                })
            }
            _ => false,
        }
    }

    /// Acts on an ordered message at its place.
    fn act(&mut self, now: Time, sender: Member, sequence: u64, ordered: Ordered, payload: &Bytes) {
        match ordered {
            Ordered::Request(request) => {
                self.nested_delivered(now, sender, &request);
                self.act_on_request(now, sender, sequence, request, payload);
            }
            Ordered::NestedEnd(end) => {
                self.act_on_nested_end(now, sender, sequence, end, payload);
            }
            Ordered::JoinGroup(join) => {
                let id = GroupId::of(&join.name);
                if sender == self.me
                    && let Some(hosted) = self.hosted.get_mut(&id)
                {
                    hosted.admission.coming = false;
                }
                if self.planted.is(Bug::StyleOfJoiner)
                    && let Some(group) = self.directory.get(id)
                {
                    let (view, style) = (group.view, join.options.style);
                    let change = self.directory.restyle(id, view, style, self.planted);
                    self.changed(now, id, change);
                }
                match self.directory.join(sender, &join.name, join.options) {
                    Ok(change) => self.changed(now, id, change),
                    Err(JoinRefused::Options(options) | JoinRefused::Full(options)) => {
                        self.join_refused(now, sender, join.name, options);
                    }
                }
            }
            Ordered::LeaveGroup(leave) => {
                match leave.died.clone() {
                    Some(died) => self.service_died(now, leave.group, sender, died),
                    None => self.with_replica(now, leave.group, |replica, _| {
                        replica.member_parts(sender);
                    }),
                }
                let before = self.directory.get(leave.group).cloned();
                let alone = before.as_ref().is_some_and(|group| group.synced().eq([sender]));
                let anew = alone && before.as_ref().is_some_and(Group::can_begin_anew);
                let change = match leave.going {
                    _ if leave.died.is_some() && anew => self.directory.go(sender, leave.group),
                    // Its node has kept what the group's state follows from.
                    _ if leave.died.is_some() && alone && !self.planted.is(Bug::LastOneLeaves) => {
                        // It votes anew on what it executes again.
                        self.votes.forget(leave.group);
                        self.directory.stay(sender, leave.group)
                    }
                    Going::Returns => self.directory.come_anew(sender, leave.group),
                    Going::ForGood => self.directory.leave(sender, leave.group),
                    Going::IfSpared => self.directory.part(sender, leave.group),
                };
                if let Some(before) = before.filter(|_| change == Change::Removed) {
                    self.note_gone(leave.group, before);
                }
                if sender == self.me
                    && let Some(hosted) = self.hosted.get_mut(&leave.group)
                {
                    hosted.admission.asked = None; // if it was needed it asks again when it is not
                }
                self.changed(now, leave.group, change);
                if change == Change::None {
                    self.reconcile_lead(now, leave.group);
                }
                if sender == self.me {
                    self.rise(now, leave.group);
                }
                self.count_votes(now, leave.group);
            }
            Ordered::Synced(synced) => {
                let change = self.directory.synced(sender, synced.group, synced.transfer);
                self.changed(now, synced.group, change);
                self.count_votes(now, synced.group);
            }
            Ordered::StateChunk(chunk) => {
                let group = chunk.group;
                self.deposit_chunk(now, sender, &chunk);
                self.with_replica(now, group, |replica, effects| {
                    replica.state_chunk(now, chunk, effects);
                });
            }
            Ordered::Move(wish) => self.act_on_move(now, sender, wish),
            Ordered::Restyle(restyle) => self.act_on_restyle(now, sender, restyle),
            Ordered::Rank(rank) => self.act_on_rank(now, &rank),
            Ordered::Demote(demote) => self.act_on_demote(now, sender, demote),
            Ordered::PrimaryChunk(chunk) => {
                self.act_on_update(now, sender, sequence, &chunk, payload);
            }
            Ordered::Recalled(recalled) => self.act_on_recalled(now, sender, recalled),
            Ordered::Relay(relay) => self.act_on_relay(sender, relay),
            Ordered::Key(step) => self.act_on_key(sender, step),
            Ordered::Backup(step) => self.act_on_backup(now, sender, sequence, step),
            Ordered::Ballot(ballot) => self.act_on_ballot(now, sender, &ballot),
            Ordered::Absent(absent) => self.act_on_absent(now, &absent),
            Ordered::Progress(progress) => {
                self.act_on_progress(now, sender, sequence, progress, payload);
            }
            Ordered::Poisoned(poisoned) => {
                self.act_on_poisoned(now, sender, sequence, poisoned, payload);
            }
            Ordered::Announce(_)
            | Ordered::Install(_)
            | Ordered::Bench(_)
            | Ordered::Load(_)
            | Ordered::Usage(_)
            | Ordered::Shedding(_) => unreachable!("these are not part of a history"),
        }
    }

    fn act_on_request(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        request: Request,
        payload: &Bytes,
    ) {
        let group = request.group;
        // What its client has been answered elsewhere keeps no place here, where nobody could take it.
        self.clients.callers.forget_ended(group, request.client, request.unanswered);
        let style = self.directory.get(group).map(|group| group.options.style);
        if style.is_some_and(Conduct::executes_on_arrival) {
            if self.hosted.contains_key(&group) {
                self.owe_end(now, &request, sequence);
            }
            return self.forwarded(now, request);
        }
        let call = (group, request.client, request.number);
        if request.origin.is_some() && style.is_some_and(|style| !style.orders()) {
            return self.serve_nested(now, sequence, request);
        }
        let place = self.place(sequence);
        if !self.directory.requested(group, place) {
            return; // nobody takes it: it is in no history of the group
        }
        // A replica that has left answers what was ordered before, and takes nothing more.
        let known = self.directory.get(group);
        if known.is_some_and(|group| group.options.style.executes(group.standing(self.me))) {
            if let Some(hosted) = self.hosted.get_mut(&group).filter(|hosted| !hosted.spared) {
                hosted.taken = place;
                // Only a replica with the state can answer; others leave the call to who has it.
                if hosted.replica.has_state() {
                    self.placed(sender, call, sequence);
                }
                self.keep_taken(group, payload);
            }
            if self.hosted.contains_key(&group) {
                self.owe_end(now, &request, sequence);
            }
            let elsewhere = sender != self.me;
            self.with_replica(now, group, |replica, effects| {
                replica.prove(request.proven, sequence, effects);
                replica.deliver(now, request, elsewhere, effects);
            });
            self.cut_journal(now, group);
        } else if self.hosted.contains_key(&group) {
            // It has left, and answers what was ordered before.
            self.with_replica(now, group, |replica, effects| {
                replica.prove(request.proven, sequence, effects);
            });
        }
        if sender == self.me {
            self.clients.callers.not_taken(&call);
        }
    }

    pub(super) fn changed(&mut self, now: Time, id: GroupId, change: Change) {
        match change {
            Change::None => {}
            Change::View | Change::Removed => {
                if change == Change::Removed {
                    self.observed.faults.forget(id);
                    self.hosted.entry(id).and_modify(|hosted| hosted.led = None);
                }
                self.note_changed(id);
                let is_another = self.directory.enthrone(id, self.place(self.progress.delivered()));
                self.view_changed(id);
                self.reconcile_replica(now, id);
                if is_another {
                    self.park_forwarded(id);
                }
                self.reconcile_calls(now, id);
                self.reconcile_nested(now, id);
            }
        }
    }

    /// Tells that a group has a new view.
    fn view_changed(&mut self, id: GroupId) {
        self.load.changed();
        self.clients.watches.changed(id);
        let Some(group) = self.directory.get(id) else { return };
        if group.primary() == Some(self.me)
            && let Some(hosted) = self.hosted.get_mut(&id)
        {
            hosted.led = match hosted.led {
                Some((first, last)) if last.0 + 1 == group.view.0 => Some((first, group.view)),
                _ => Some((group.view, group.view)),
            };
        }
        let replicas = group
            .replicas
            .iter()
            .map(|replica| (replica.member, replica.state == crate::directory::State::Synced));
        let event = Event::View {
            group: id,
            name: group.name.clone(),
            style: group.options.style,
            view: group.view,
            replicas: replicas.collect(),
            primary: group.primary(),
        };
        self.event(event);
    }

    /// More is held: replies may leave.
    pub(super) fn release(&mut self, ring: RingId) {
        let all = self.held_and_stored();
        let became_effective = self.membership.held(ring, all);
        if became_effective && self.records.has_disk() {
            self.note(NodeRecord::Effective);
            self.records.became_effective();
        }
        let held = self.progress.held();
        // Until now even those waited that need not be held by anybody else.
        let upto = if became_effective { u64::MAX } else { held.majority.max(held.all) };
        let ready =
            self.clients.callers.ready(upto, |call, sequence| self.is_held(call.0, sequence));
        for call in ready {
            self.reply_if_ready(call);
        }
    }

    /// This place of the present component.
    pub(super) fn place(&self, sequence: u64) -> Place {
        Place { epoch: self.membership.epoch(), ring: self.membership.ring(), sequence }
    }

    /// Whether a call with this place in the order may be answered now.
    pub(super) fn is_held(&self, group: GroupId, sequence: u64) -> bool {
        if self.planted.is(Bug::ReplyBeforeHeld) {
            return true;
        }
        // Of a group that is gone nothing is known any more: the most careful rule is right for all.
        let (id, group) = (group, self.directory.get(group));
        let hold = group.map_or(Hold::All, |group| group.options.hold);
        let held = self.progress.held();
        let by_all = sequence <= held.all;
        self.membership.is_effective()
            && match (hold, group) {
                (Hold::One, _) => true,
                (Hold::Majority, Some(group)) => {
                    by_all || (sequence <= held.majority && self.is_held_in(group, sequence))
                }
                (Hold::Majority | Hold::All, _) => by_all,
            }
            && group.is_none_or(|group| self.is_stored(group, id, sequence))
    }

    /// A majority of the group's replicas that had the state at this place have all up to there. Only
    /// they keep it when the ring is gone.
    fn is_held_in(&self, group: &Group, sequence: u64) -> bool {
        if self.planted.is(Bug::CountBystanders) {
            return true;
        }
        if self.place(sequence) <= group.floor {
            return false; // they were others then: all members have to hold it
        }
        let ring = self.membership.ring();
        let holds = |member: &Member| self.outbox.ordering.reached(ring, *member) >= sequence;
        group.synced().filter(holds).count() >= majority(group.synced().count())
    }
}
