//! Replicas that join and leave.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use wire::ordered::{Going, GroupOptions, JoinGroup, LeaveGroup, Ordered, Place, Style, Synced};
use wire::versions::GROWTH;
use wire::{GroupId, Member, NodeId, Time, ViewNumber, system};

use crate::api::{Event, Output};
use crate::bug::Bug;
use crate::directory::{Change, Group, JoinRefused, State};
use crate::groups::GroupHandler;
use crate::groups::moves::Motive;
use crate::ordering::Ordering;
use crate::replicas::hosted::{Hosted, is_on_disk};
use crate::replicas::journal::Journal;
use crate::style::StyleRules;

impl<O: Ordering> GroupHandler<'_, O> {
    /// Begins to remove this node's replica. If it is the primary and still serves, another takes
    /// over before.
    pub(crate) fn begin_to_go(&mut self, now: Time, group: GroupId) {
        let Some(hosted) = self.replicas.hosted.get_mut(&group) else { return };
        hosted.departure.begun = true;
        // A service's death is reported once: nobody executes a call with two reported deaths.
        if !hosted.program.fallen {
            hosted.admission.asked = None;
        }
        if !hosted.departure.abandoned {
            self.hand_over(now, group);
        }
    }

    /// Orders that replicas outside the table join, and that departing ones leave. Each is ordered
    /// once a ring: a message of a ring that ended may be lost.
    pub(crate) fn ask_for_views(&mut self, now: Time) -> bool {
        if !self.base.membership.is_active() {
            return false;
        }
        let (me, ring) = (self.base.me, self.base.membership.ring());
        let new_disk = self.base.records.disk().is_some_and(|disk| !disk.is_begun());
        let mut messages = Vec::new();
        for (id, hosted) in &mut self.replicas.hosted {
            // The cheap conditions come first: this runs whenever anything happens.
            if hosted.admission.asked == Some(ring)
                || hosted.on_disk.kept
                || hosted.program.fallen
                || hosted.admission.refused
            {
                continue;
            }
            let group = self.base.directory.get(*id);
            let there = group.is_some_and(|group| match hosted.departure.begun {
                true => group.knows(me),
                false => group.replica(me).is_some(),
            });
            let spares = hosted.departure.spares;
            // A service that died before its group was called leaves nothing behind.
            let lost = hosted.departure.abandoned && group.is_some_and(Group::can_begin_anew);
            let needed = group.is_some_and(|it| it.needs(me) && !lost || spares && it.is_alone(me))
                || self.groups.moves.contains_key(&(*id, Motive::Going));
            let idle = hosted.departure.stays && hosted.departure.begun;
            let kept_out = hosted.rejoin.is_kept_out() && !hosted.departure.begun;
            // If no disk knows this life, its replica could not say later that it had stored
            // nothing.
            let unknown = is_on_disk(hosted) && new_disk && !hosted.departure.begun;
            if idle || there != hosted.departure.begun || needed || kept_out || unknown {
                continue;
            }
            if hosted.departure.begun && hosted.replica.has_calls() {
                continue; // what a passive primary has taken is ordered first
            }
            hosted.admission.asked = Some(ring);
            hosted.admission.coming |= !hosted.departure.begun;
            messages.push(if hosted.departure.begun {
                // The only replica with the state stays if it reports what its service died of.
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
            self.base.order(now, message);
        }
        any
    }

    pub(crate) fn join_refused(
        &mut self,
        now: Time,
        sender: Member,
        name: String,
        options: GroupOptions,
    ) {
        if sender != self.base.me {
            return;
        }
        let id = GroupId::of(&name);
        if let Some(hosted) = self.replicas.hosted.get_mut(&id) {
            hosted.admission.refused = true;
        }
        self.base.event(Event::JoinRefused { name, options });
        self.reconcile_calls(now, id);
    }

    pub(crate) fn reconcile_replicas(&mut self, now: Time) {
        // A replica without a state announced none, and the table says so now. A state that was
        // lost since is not begun anew.
        let announced =
            self.base.membership.announces().get(&self.base.me).map(|announce| &announce.replicas);
        for (id, hosted) in &mut self.replicas.hosted {
            let counted_on = announced.is_some_and(|all| all.iter().any(|(group, _)| group == id));
            hosted.lost &= counted_on;
        }
        let known = self.base.directory.iter().map(|(id, _)| id);
        let ids: BTreeSet<GroupId> = self.replicas.hosted.keys().copied().chain(known).collect();
        for id in ids {
            self.follow_view(now, id);
        }
    }

    /// The table has another view of the group. The service is told of it before what the replica
    /// does in it; if the replica gets its state or begins there, once it does.
    pub(crate) fn follow_view(&mut self, now: Time, id: GroupId) {
        self.replicas().interrupt_merge(now, id);
        self.replicas().tell_view(now, id);
        self.reconcile_replica(now, id);
        self.replicas().tell_view(now, id);
    }

    /// Newer rules are in force: the system's groups may have more replicas.
    pub(crate) fn ask_again(&mut self, now: Time) {
        let own = self.replicas.hosted.keys().copied().filter(|id| system::is_own(*id));
        let own: Vec<GroupId> = own.collect();
        own.into_iter().for_each(|id| self.reconcile_replica(now, id));
    }

    /// Forgets joins of earlier configurations: each has been delivered by now, or is lost.
    pub(crate) fn forget_lost_joins(&mut self) {
        let ids: Vec<GroupId> = self.replicas.hosted.keys().copied().collect();
        for id in ids {
            self.replicas.hosted.entry(id).and_modify(|hosted| hosted.admission.coming = false);
            self.drop_if_done(id);
        }
    }

    /// A replica joins, at this place in the order.
    pub(crate) fn act_on_join(&mut self, now: Time, sender: Member, join: JoinGroup) {
        let id = GroupId::of(&join.name);
        if sender == self.base.me
            && let Some(hosted) = self.replicas.hosted.get_mut(&id)
        {
            hosted.admission.coming = false;
        }
        if self.base.planted.is(Bug::StyleOfJoiner)
            && let Some(group) = self.base.directory.get(id)
        {
            let (view, style) = (group.view, join.options.style);
            let change = self.base.directory.restyle(id, view, style, self.base.planted);
            self.changed(now, id, change);
        }
        let level = self.base.membership.levels().level();
        match self.base.directory.join(sender, &join.name, join.options, level) {
            Ok(change) => self.changed(now, id, change),
            // It asks again when newer rules permit more replicas.
            Err(JoinRefused::Full(_)) if level < GROWTH && system::is_own(id) => {}
            Err(JoinRefused::Options(options) | JoinRefused::Full(options)) => {
                self.join_refused(now, sender, join.name, options);
            }
        }
    }

    /// A replica leaves, at this place in the order.
    pub(crate) fn act_on_leave(&mut self, now: Time, sender: Member, leave: &LeaveGroup) {
        match leave.died.clone() {
            Some(died) => self.replicas().service_died(now, leave.group, sender, died),
            None => self.replicas().with_listed(now, leave.group, |replica, _| {
                replica.member_parts(sender);
            }),
        }
        let before = self.base.directory.get(leave.group).cloned();
        let alone = before.as_ref().is_some_and(|group| group.synced().eq([sender]));
        let anew = alone && before.as_ref().is_some_and(Group::can_begin_anew);
        let change = match leave.going {
            _ if leave.died.is_some() && anew => self.base.directory.go(sender, leave.group),
            // Its node has kept the log from which the group's state follows.
            _ if leave.died.is_some() && alone && !self.base.planted.is(Bug::LastOneLeaves) => {
                // The replica votes anew on calls that it executes again.
                self.replicas.votes.forget(leave.group);
                self.base.directory.stay(sender, leave.group)
            }
            Going::Returns => self.base.directory.come_anew(sender, leave.group),
            Going::ForGood => self.base.directory.leave(sender, leave.group),
            Going::IfSpared => self.base.directory.part(sender, leave.group),
        };
        if let Some(before) = before.filter(|_| change == Change::Removed) {
            self.base.note_gone(leave.group, before);
        }
        if sender == self.base.me
            && let Some(hosted) = self.replicas.hosted.get_mut(&leave.group)
        {
            hosted.admission.asked = None; // if it was needed it asks again when it is not
        }
        self.changed(now, leave.group, change);
        if change == Change::None {
            self.replicas().reconcile_lead(now, leave.group);
        }
        if sender == self.base.me {
            self.rise(now, leave.group);
        }
        if change == Change::None && leave.died.is_some() && self.forgets(leave.group) {
            // The next program knows nothing of calls without a place (seed 900648 of `poison`).
            self.replicas().reconcile_nested(now, leave.group);
        }
        self.count_votes(now, leave.group);
    }

    /// A node counts no more: its replicas are gone, and nobody waits for them.
    pub(crate) fn node_gone(&mut self, now: Time, node: NodeId) {
        for (member, id) in self.base.directory.on_node(node) {
            let before = self.base.directory.get(id).cloned();
            let change = self.base.directory.go(member, id);
            if let Some(before) = before.filter(|_| change == Change::Removed) {
                self.base.note_gone(id, before);
            }
            self.changed(now, id, change);
            self.count_votes(now, id);
        }
    }

    /// Brings this node's replica in line with its entry in the table.
    pub(crate) fn reconcile_replica(&mut self, now: Time, id: GroupId) {
        self.begin_fallen(now, id);
        let group = self.base.directory.get(id);
        let state = group.and_then(|group| group.replica(self.base.me)).map(|r| r.state);
        let there = group.is_some();
        // A group that waits for a deposit needs nobody's state.
        let sleeps = |group: &Group| group.primary().is_none() && group.depositor().is_none();
        let asleep = group.is_some_and(sleeps);
        let awake = group.is_some_and(|group| group.primary().is_some());
        let effective = self.base.membership.is_effective();
        let is_over = self.base.progress.is_transitional();
        let waits = group.is_some_and(|group| group.asleep.contains(&self.base.me));
        let last = group.map_or(Place::default(), |group| group.last);
        let style = group.map(|group| group.options.style).unwrap_or_default();
        let Some(hosted) = self.replicas.hosted.get_mut(&id) else {
            return self.leave_again(now, id);
        };
        if hosted.departure.abandoned {
            return self.drop_if_done(id);
        }
        if hosted.program.fallen {
            return self.reconcile_fallen(now, id);
        }
        if hosted.lost && state.is_some() {
            return;
        }
        (hosted.lost, hosted.on_disk.kept) = (false, false);
        self.reconcile_style(now, id);
        let Some(hosted) = self.replicas.hosted.get_mut(&id).filter(|hosted| !hosted.lost) else {
            return;
        };
        (hosted.yields, hosted.cold.last_one) = (None, false); // of a view that is over
        let is_on_its_way = hosted.on_disk.logged.syncing.is_some();
        let keeps = is_on_disk(hosted) && awake && !effective;
        let leaving = hosted.departure.begun;
        let votes = hosted.replica.style().votes();
        if state == Some(State::Synced) && !hosted.replica.has_state() {
            hosted.resume();
        }
        let stale = self.base.planted.is(Bug::KeepStaleReplica) && hosted.replica.has_state();
        let hasty = self.base.planted.is(Bug::BeginWithoutState) && !hosted.replica.has_state();
        match state {
            // It finishes ordered requests. The last voter leaves: nobody can confirm its results.
            None if leaving && (there || !votes) => {}
            // The members without it may have more in memory alone: their disks need that first.
            None if keeps && hosted.replica.has_state() => {
                hosted.admission.asked = None;
                hosted.on_disk.kept = true;
            }
            // The others decide whether the group goes on with this state. The disk's state was
            // announced and counts while the group sleeps, also if the table lacks this replica.
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
                    self.give_up_state(now, id);
                }
            }
            // A state that a transfer delivered is announced only when the disk has it. Without the
            // announcement, *synced* in the table means that the replica begins.
            Some(State::Synced) if hosted.replica.has_state() && !is_on_its_way => {}
            Some(State::Synced) => {
                hosted.begin_from(last);
                self.replicas().with_replica(now, id, |replica, effects| replica.begin(effects));
            }
            Some(State::Unsynced { transfer, .. }) if stale || hasty => {
                if hasty {
                    self.replicas()
                        .with_replica(now, id, |replica, effects| replica.begin(effects));
                }
                self.base.order(now, Ordered::Synced(Synced { group: id, transfer }));
            }
            // Its state may have every answered request: returning members will show that.
            Some(State::Unsynced { .. }) if asleep && hosted.replica.has_state() => {}
            // The replicas with more may fail before they act. Then the group goes on with this.
            Some(State::Unsynced { .. }) if is_over && hosted.replica.has_state() => {
                hosted.spared = true;
            }
            Some(State::Unsynced { transfer, .. }) => {
                self.await_state(now, id, transfer, (style, last));
            }
        }
        self.reconcile_style(now, id); // that of one that was ahead
        self.replicas().reconcile_reign(now, id);
        self.replicas().reconcile_lead(now, id);
        self.replicas().give_states(now, id);
        self.drop_if_done(id);
    }

    /// The replica is to be given the group's state of this place, unless it waits for that already.
    fn await_state(
        &mut self,
        now: Time,
        id: GroupId,
        transfer: ViewNumber,
        (style, last): (Style, Place),
    ) {
        let hosted = self.replicas.hosted.get_mut(&id);
        let Some(hosted) = hosted.filter(|it| it.replica.transfer() != Some(transfer)) else {
            return;
        };
        hosted.set_aside();
        hosted.take(last, true);
        self.replicas().with_replica(now, id, |replica, effects| {
            replica.await_state(transfer, style, effects);
        });
        // The state to come has the calls that it was executing, and answers them (seed 759 of the
        // world of poison).
        self.replies().park_unanswered(id, 0);
    }

    /// The group goes on without this node's replica, which comes anew. Its service keeps its state
    /// until it is given another.
    fn give_up_state(&mut self, now: Time, id: GroupId) {
        self.replicas.hosted.get_mut(&id).into_iter().for_each(Hosted::set_aside);
        self.replicas().with_replica(now, id, |replica, effects| replica.idle(effects));
        self.replies().lose_calls(id);
    }

    /// Orders once more that this node's replica leaves: its departure was in a history that was
    /// given up.
    fn leave_again(&mut self, now: Time, id: GroupId) {
        if self.base.directory.get(id).is_some_and(|group| group.knows(self.base.me)) {
            let leave = LeaveGroup { group: id, going: Going::ForGood, died: None };
            self.base.order(now, Ordered::LeaveGroup(leave));
        }
    }

    /// Does the same for a replica whose program has died.
    fn reconcile_fallen(&mut self, now: Time, id: GroupId) {
        let group = self.base.directory.get(id);
        let awake = group.is_some_and(|group| group.primary().is_some());
        let known = group.is_some_and(|group| group.knows(self.base.me));
        let Some(hosted) = self.replicas.hosted.get_mut(&id) else { return };
        let effective = self.base.membership.is_effective();
        hosted.on_disk.kept = !known && is_on_disk(hosted) && awake && !effective;
        if !known && !hosted.on_disk.kept {
            return self.lose_fallen(now, id);
        }
        // Checkpoint and log of a cold passive group change to another style with the next program.
        if !hosted.replica.has_log() {
            self.reconcile_style(now, id);
        }
        self.replicas().reconcile_lead(now, id);
    }

    pub(crate) fn drop_if_done(&mut self, id: GroupId) {
        let known = self.base.directory.get(id);
        let there = known.is_some_and(|group| group.knows(self.base.me));
        let done = |hosted: &Hosted| {
            let waits = hosted.replica.waits_for_others();
            let has_state = hosted.replica.has_state();
            let at_rest = hosted.replica.is_drained() || !has_state || waits;
            // The disk's state may be all that is left of the group. No table has judged it yet.
            let counts = hosted.on_disk.recalled && has_state;
            let goes = hosted.departure.begun && !hosted.admission.coming && !there;
            goes && !counts && at_rest
        };
        if self.replicas.hosted.get(&id).is_some_and(done) {
            self.replicas().lose_parted(id);
            self.replicas().forget_notes(id);
            self.replicas.hosted.remove(&id);
            self.groups.cold.remove(id);
            // Verdicts on calls that a voting group's replica has executed may come later, and find
            // no replica here. A later replica of this node can answer them.
            self.replies().park_unanswered(id, 0);
        }
    }

    /// Lets a replica whose program had died begin, if the group begins there by the table: it
    /// begins with the next program. If the replica left, and the group were called before that
    /// departure's place, nobody could begin it.
    pub(crate) fn begin_fallen(&mut self, now: Time, group: GroupId) {
        let Some(known) = self.base.directory.get(group) else { return };
        let (last, begins) = (known.last, known.synced().any(|synced| synced == self.base.me));
        let hosted = self.replicas.hosted.get_mut(&group);
        let Some(hosted) = hosted.filter(|hosted| hosted.program.unbegun && begins) else { return };
        (hosted.departure.abandoned, hosted.departure.begun) = (false, false);
        (hosted.program.unbegun, hosted.program.fallen) = (false, true);
        hosted.begin_from(last);
        self.reconcile_style(now, group);
        self.replicas().with_replica(now, group, |replica, effects| {
            replica.begin(effects);
            replica.fall(effects);
        });
    }

    /// Removes the replica here whose service has died: the group goes on without it. It rejoins
    /// with the next program.
    pub(crate) fn lose_fallen(&mut self, now: Time, group: GroupId) {
        let Some(hosted) = self.replicas.hosted.get_mut(&group) else { return };
        (hosted.program.fallen, hosted.program.died, hosted.admission.asked) = (false, None, None);
        (hosted.departure.abandoned, hosted.departure.begun) = (true, true);
        self.replicas().with_replica(now, group, |replica, effects| replica.idle(effects));
        self.replies().send_on(group);
        self.drop_if_done(group);
    }

    /// The next program of this group knows nothing of the calls that the last one had: they have
    /// no place in the order.
    fn forgets(&self, group: GroupId) -> bool {
        let style = self.base.directory.get(group).map(|group| group.options.style);
        style.is_some_and(|style| !style.orders() || style.executes_on_arrival())
    }

    /// Acts on the ordered report that a service here has died. Its replica is out of the table, or
    /// is the only one with the group's state.
    pub(crate) fn rise(&mut self, now: Time, group: GroupId) {
        let me = self.base.me;
        let stays =
            self.base.directory.get(group).is_some_and(|known| known.synced().any(|it| it == me));
        let Some(hosted) =
            self.replicas.hosted.get_mut(&group).filter(|hosted| hosted.program.fallen)
        else {
            return;
        };
        let kept = hosted.program.journal.as_ref().and_then(Journal::whole);
        if !stays || kept.is_none() && !hosted.replica.has_log() {
            return self.lose_fallen(now, group);
        }
        (hosted.program.fallen, hosted.program.died, hosted.admission.asked) = (false, None, None);
        // The group began here meanwhile. Later views would have it begin once more (seed 900449 of
        // the world of poison).
        hosted.on_disk.logged.syncing = None;
        self.base.outputs.push(Output::Revive(group));
        self.replicas()
            .with_replica(now, group, |replica, effects| replica.rise(now, kept, effects));
        self.replicas().forget_stale_pieces(now, group);
        self.reconcile_style(now, group);
        if self.forgets(group) {
            self.replies().park_given(group);
        }
        self.replicas().reconcile_reign(now, group);
        self.replicas().reconcile_lead(now, group);
        self.replicas().give_states(now, group);
        self.replicas().tell_view(now, group);
        self.reconcile_calls(now, group);
    }

    /// Decides about calls of unknown groups: groups that were on their way are here now, or never
    /// will be.
    pub(crate) fn reconcile_unknown_groups(&mut self, now: Time) {
        for call in self.replies.clients.callers.all() {
            if self.base.directory.get(call.0).is_none() {
                self.route_parked(now, call);
            }
        }
        let callers = self.replicas.nested_callers();
        callers.into_iter().for_each(|caller| self.replicas().reconcile_nested(now, caller));
        self.replicas().answer_binds();
    }
}
