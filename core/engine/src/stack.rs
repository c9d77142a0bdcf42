//! A whole node without its sockets: layers, each of which sees only those below it.
//!
//! - `base`: the order, the component, the table of groups, the disk
//! - `replies`: clients and their answers
//! - `replicas`: this node's replicas: execution, votes, leading, nested calls, journals
//! - `groups`: views, admission, moves, styles, load
//! - here: inputs and outputs; `stack/delivery.rs`: deliveries of the ring;
//!   `stack/asked.rs`: requests of people, programs and the manager

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use bench::BenchHandler;
use bytes::Bytes;
use keys::KeyHandler;
use wire::attach::Notice;
use wire::client::{Bind, Frame};
use wire::keys::KeyName;
use wire::limits::{MAX_GROUPS, MAX_MOVES, MAX_RESTYLES, MAX_WAITING};
use wire::ordered::{End, Ordered, Place, StateDeclined, StateDigest, Synced};
use wire::{Caller, GroupId, NodeId, Payload, Random, Time};

use crate::api::{
    AwayWait, Config, Event, Executed, GrowthStatus, NestedCall, Output, StateNote, Ticket,
    Transfer,
};
use crate::base::Base;
use crate::bench::Bench;
use crate::bug::Planted;
use crate::component::Membership;
use crate::directory::Directory;
use crate::faults::Faults;
use crate::groups::moves::Motive;
use crate::groups::{GroupHandler, Groups};
use crate::keys::Keys;
use crate::ordering::{Ordering, Ring};
use crate::parts::{
    Clients, Comparisons, Hangs, Lineages, Merges, Outbox, Outputs, Progress, Records, Retries,
    StateNotes, Votes,
};
use crate::replicas::hosted::{Hosted, is_on_disk};
use crate::replicas::leading::Leading;
use crate::replicas::nested::Nested;
use crate::replicas::saving::Backups;
use crate::replicas::{ReplicaHandler, Replicas};
use crate::replies::own::Own;
use crate::replies::{Replies, ReplyHandler};

mod asked;
mod bench;
mod delivery;
mod keys;
mod rosters;
#[cfg(test)]
mod tests;

/// A node's machine: layers, each of which sees only those below it.
#[derive(Clone, Debug)]
pub struct Stack<O = Ring> {
    base: Base<O>,
    replies: Replies,
    replicas: Replicas,
    groups: Groups,
    keys: Keys,
    /// Benchmarks of the order.
    bench: Bench,
}

impl<O: Ordering> Stack<O> {
    /// Returns a node that starts now.
    pub fn new(config: Config, ordering: O, now: Time) -> Stack<O> {
        let planted = Planted {
            #[cfg(feature = "planted-bugs")]
            bug: config.bug,
        };
        let me = config.me;
        let membership = Membership::new(&config, planted);
        let base = Base {
            me,
            planted,
            streamed: config.streamed,
            random: Random::new(config.seed ^ 0x57ac),
            membership,
            lineages: Lineages::default(),
            directory: Directory::default(),
            progress: Progress::new(now),
            outbox: Outbox::new(ordering),
            records: Records::new(config.storage.clone(), config.snapshot_after),
            outputs: Outputs::default(),
        };
        let replies = Replies {
            clients: Clients::new(config.cluster, config.waiting.min(MAX_WAITING)),
            own: Own::default(),
            faults: Faults::default(),
        };
        let replicas = Replicas {
            hosted: BTreeMap::new(),
            nested: Nested::default(),
            votes: Votes::new(config.vote_timeout),
            hangs: Hangs::new(config.hang),
            leading: Leading::default(),
            backups: Backups::default(),
            notes: StateNotes::default(),
            comparisons: Comparisons::new(config.compare_every),
            retries: Retries::default(),
            merges: Merges::default(),
        };
        let mut stack = Stack {
            base,
            replies,
            replicas,
            groups: Groups::default(),
            keys: Keys::new(me.node, config.sealing),
            bench: Bench::new(me),
        };
        if let Some(recovery) = &config.storage {
            stack.base.begin_on_disk(now, recovery);
        }
        stack.base.begin_with_roster(now, config.roster.as_ref());
        stack.settle(now);
        stack
    }

    /// Takes a datagram of another node.
    pub fn handle_datagram(&mut self, now: Time, bytes: &Bytes) {
        self.handle_datagrams(now, core::slice::from_ref(bytes));
    }

    /// Takes datagrams of another node that arrived together. They are acknowledged once for all.
    pub fn handle_datagrams(&mut self, now: Time, run: &[Bytes]) {
        for bytes in run {
            if let Err(malformed) = self.base.outbox.ordering.handle_datagram(now, bytes) {
                self.base.event(Event::Malformed(malformed));
            }
        }
        self.settle(now);
    }

    /// Takes the report of a node's host that nobody listens there.
    pub fn handle_unreachable(&mut self, now: Time, node: NodeId) {
        self.base.outbox.ordering.handle_unreachable(now, node);
        self.settle(now);
    }

    /// Acts at the time that [`Stack::next_timeout`] has returned.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.base.outbox.ordering.next_timeout().is_some_and(|due| due <= now) {
            self.base.outbox.ordering.handle_timeout(now);
        }
        self.replies.clients.callers.expire(now);
        self.replicas().order_due(now);
        self.base.ask_disks(now);
        self.replicas().accuse(now);
        self.replicas().end_backoffs(now);
        self.replicas.merges.wake(now);
        self.replicas().time_services(now);
        self.groups().end_shedding(now);
        self.replicas().nested_timeout(now);
        if self.base.membership.is_active() {
            self.replicas().tell_progress(now);
            self.replicas().relieve_leaders(now);
        }
        let orders = self.base.outbox.ordering.state_name() == "operational";
        if self.base.progress.ends_joins(now, orders) {
            self.groups().reconcile_unknown_groups(now);
        }
        self.settle(now);
    }

    /// Returns when [`Stack::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.base.progress.has_left() {
            return None;
        }
        let Stack { base, replies, replicas, groups, bench, .. } = self;
        let confirms = base.membership.is_effective() && !replicas.hosted.is_empty();
        let nested = replicas.nested.next_timeout().filter(|_| base.membership.is_active());
        let timeouts = [
            base.outbox.ordering.next_timeout(),
            base.progress.next_timeout(),
            base.membership.levels().next_timeout().filter(|_| base.leads_upgrade()),
            base.records.next_timeout(),
            replies.clients.callers.next_deadline(),
            replicas.votes.next_timeout(),
            replicas.hangs.next_timeout(),
            replicas.backups.next_timeout(),
            replicas.next_return(),
            replicas.retries.next_timeout().filter(|_| base.membership.is_active()),
            replicas.merges.next_timeout(),
            replicas.comparisons.next_timeout().filter(|_| base.membership.is_active()),
            replicas.next_leading(base),
            replies.clients.reads.next_timeout().filter(|_| confirms),
            nested,
            groups.cold.next_timeout(),
            groups.next_move_timeout(),
            groups.next_restyle_timeout(),
            groups.next_shedding_timeout(),
            bench.next_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// Returns what this group's replicas cannot do with its state, in order of node.
    pub fn state_notes(&self, group: GroupId) -> Vec<StateNote> {
        let own = self.replicas.notes.of_own(group).map(|(about, text)| {
            let (member, text) = (self.base.me, String::from(text));
            StateNote { member, about, text }
        });
        let others = self.replicas.notes.of_others(group).map(|(member, note)| {
            let (about, text) = (note.about, note.text.clone());
            StateNote { member, about, text }
        });
        let mut notes: Vec<StateNote> = own.chain(others).collect();
        notes.sort_by_key(|note| (note.member.node, note.about));
        notes
    }

    /// Returns the level of the rules in force; 0: none are known.
    pub fn level(&self) -> u8 {
        self.base.membership.levels().level()
    }

    /// The service of this node's replica says something about its state.
    pub fn handle_notice(&mut self, now: Time, group: GroupId, notice: Notice) {
        self.replicas().service_says(group, notice);
        self.settle(now);
    }

    /// Whether the service of this node's replica merges the state of another history with its own.
    /// Before this, one in the node does not, and of one in a program it is not known.
    pub fn handle_merges(&mut self, group: GroupId, merges: bool) {
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            hosted.program.merges = Some(merges);
        }
    }

    /// The service of this node's replica tells a digest of its state, for
    /// [`Command::Digest`](crate::Command::Digest) of this number.
    pub fn handle_digest(&mut self, now: Time, group: GroupId, number: u64, state: StateDigest) {
        self.replicas().with_replica(now, group, |replica, effects| {
            replica.digested(number, state, effects);
        });
        self.settle(now);
    }

    /// Stops cleanly: hands the primaries over and leaves the ring. Ends with [`Event::Left`].
    pub fn leave(&mut self, now: Time) {
        if self.base.progress.begin_to_leave(now) {
            let groups: Vec<GroupId> = self.replicas.hosted.keys().copied().collect();
            for group in groups {
                self.groups().begin_to_go(now, group);
                if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
                    hosted.program.unbegun = false;
                    // Its state stays on the disk. When all nodes stop, none of them may have left
                    // the group.
                    hosted.departure.stays = is_on_disk(hosted);
                }
            }
            self.settle(now);
        }
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(now) = self.base.outputs.crowd_waits() {
            self.settle(now);
        }
        self.base.outputs.pop()
    }

    /// Acts on the ring's outputs and their consequences until nothing is left to do.
    fn settle(&mut self, now: Time) {
        self.base.outputs.settled();
        self.bench.new_turn();
        loop {
            while let Some(output) = self.base.outbox.ordering.poll_output() {
                self.handle_ordering(now, output);
            }
            if self.base.progress.has_left() || !self.pump(now) {
                break;
            }
        }
        self.replies().tell_watchers();
        self.replies().tell_resumed(now);
        self.replicas().write_down(now);
        self.groups().watch_disks(now);
    }

    /// Orders messages that are due. True if there were any.
    fn pump(&mut self, now: Time) -> bool {
        let mut any = self.base.order_waiting(now);
        any |= self.groups().pump_moves(now);
        any |= self.groups().pump_restyles(now);
        any |= self.replicas().pump_saves(now);
        any |= self.replicas().pump_restores(now);
        any |= self.groups().pump_checkpoints(now);
        any |= self.replicas().pump_yields(now);
        any |= self.replicas().pump_reads(now);
        any |= self.replicas().pump_confirmation(now);
        any |= self.groups().give_up_kept(now);
        any |= self.groups().ask_for_views(now);
        any |= self.replicas().pump_ballots(now);
        any |= self.replicas().pump_hung(now);
        any |= self.replicas().pump_fallen(now);
        any |= self.replicas().pump_notes(now);
        any |= self.replicas().pump_retries(now);
        any |= self.replicas().pump_merges(now);
        any |= self.replicas().pump_comparisons(now);
        any |= self.benchmarks().pump(now);
        any |= self.base.pump_levels(now);
        if let Some(leave_deadline) = self.base.progress.leaving() {
            any |= self.leave_ring_if_done(now, leave_deadline);
        }
        any
    }

    fn leave_ring_if_done(&mut self, now: Time, leave_deadline: Time) -> bool {
        let in_a_group = self.base.directory.iter().any(|(id, group)| {
            let stays = self.replicas.hosted.get(&id).is_some_and(|hosted| hosted.departure.stays);
            let moves = self.groups.moves.contains_key(&(id, Motive::Going));
            group.replica(self.base.me).is_some() && (!stays || moves)
        });
        // While it is not known whether groups act, this node may have the only copy of something.
        let done = match self.base.membership.quorate() {
            None => false,
            Some(false) => true,
            Some(true) => !in_a_group && !self.replies.clients.callers.any_under_way(),
        };
        if self.base.progress.has_left() || !(done || now >= leave_deadline) {
            return false;
        }
        self.base.progress.leave();
        self.base.outbox.ordering.leave(now);
        while let Some(output) = self.base.outbox.ordering.poll_output() {
            self.handle_ordering(now, output);
        }
        self.base.event(Event::Left);
        true
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one is broken: a bug in this crate.
    pub fn check_invariants(&self) {
        self.base.outbox.ordering.check_invariants();
        self.base.directory.check_invariants();
        self.replies.clients.callers.check_invariants();
        self.replies.clients.watches.check_invariants();
        self.base.records.check_invariants();
        self.replicas.nested.check_invariants();
        assert!(self.replies.clients.callers.len() <= MAX_WAITING, "waiting calls are bounded");
        self.base.progress.check_invariants();
        assert!(self.groups.moves.len() <= MAX_MOVES + MAX_GROUPS, "moves under way are bounded");
        assert!(
            self.groups.restyles.len() <= MAX_RESTYLES,
            "changes of style under way are bounded"
        );
        self.replicas.backups.check_invariants();
        self.replicas.check_styles(&self.base);
        self.replicas.votes.check_invariants();
        for hosted in self.replicas.hosted.values() {
            hosted.replica.check_invariants();
        }
    }

    /// Takes a frame of a client. `wall` is the node's wall clock, in nanoseconds since the Unix
    /// epoch: it becomes the request's ordered time.
    pub fn handle_frame(&mut self, now: Time, wall: Time, caller: Caller, frame: Frame) {
        if self.replies().hide(caller, &frame) {
            return;
        }
        match (frame, self.replies.clients.callers.client(caller)) {
            (Frame::Hello(hello), None) => self.replies().hello(caller, hello),
            (Frame::Bind(Bind { name }), Some(_)) if name.ends_with(':') => {
                self.base.outputs.push(Output::Place { caller, name });
            }
            (Frame::Bind(bind), Some(_)) => self.replicas().bind(caller, bind),
            (Frame::Watch(watch), Some(_)) => self.replies().watch(caller, watch),
            (Frame::Request(request), Some(client)) if request.client == client => {
                self.groups().request(now, wall, caller, request);
            }
            (Frame::Request(_), Some(_)) => {
                self.replies()
                    .dismiss(caller, "a connection serves one session: connect once per client");
            }
            (_, None) => self.replies().dismiss(caller, "the first frame must be Hello"),
            (_, Some(_)) => {
                self.replies().dismiss(caller, "a client sends Bind, Watch and Request only")
            }
        }
        self.base.outputs.crowd(now);
    }

    /// A client's connection is lost.
    pub fn handle_disconnect(&mut self, now: Time, caller: Caller) {
        self.replies.clients.callers.disconnect(caller);
        self.replies.clients.watches.forget(caller);
        self.settle(now);
    }

    /// Takes the answer of a replica's service to a command.
    pub fn handle_executed(
        &mut self,
        now: Time,
        group: GroupId,
        ticket: Ticket,
        executed: Executed,
    ) {
        let Some(executed) = self.replicas().take_parted(group, ticket, executed) else {
            return self.settle(now);
        };
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            let in_order = hosted.options.style.has_state();
            hosted.stopwatch.answered(now, ticket, in_order, self.base.planted);
            if hosted.stopwatch.is_hung(self.replicas.hangs.rule()) {
                self.replicas.hangs.note(group);
            }
        }
        self.replicas().with_replica(now, group, |replica, effects| {
            replica.answered(ticket, executed, effects);
        });
        self.groups().drop_if_done(group);
        self.base.outputs.crowd(now);
    }

    /// The nodes that count, and those that come, go or have gone.
    pub fn growth(&self) -> GrowthStatus {
        self.base.growth()
    }

    /// The change of the nodes that is under way.
    pub fn moving(&self) -> Option<wire::roster::Motion> {
        let moving = self.base.membership.roll().roster().moving.as_ref();
        moving.map(|moving| moving.motion.clone())
    }

    /// The roster of this stamp is on the node's disk ([`Output::Keep`](crate::Output::Keep)).
    pub fn handle_roster_kept(&mut self, now: Time, stamp: Place) {
        self.base.roster_kept(now, stamp);
        self.settle(now);
    }

    /// A key is in this node's file and opens messages; if `sealing`, it seals too.
    pub fn handle_key_kept(&mut self, now: Time, key: KeyName, sealing: bool) {
        self.keys().kept(now, key, sealing);
        self.settle(now);
    }

    /// Takes a call of another group by a handler of this node's replica. `wall` is the node's wall
    /// clock. The outcome follows as [`Output::Resume`](crate::Output::Resume), maybe at once.
    pub fn handle_nested(&mut self, now: Time, wall: Time, group: GroupId, call: NestedCall) {
        self.replicas.nested.asked_at(wall);
        self.replicas()
            .with_replica(now, group, |replica, effects| replica.call(now, call, effects));
        self.settle(now);
    }

    /// A call of [`Output::Away`](crate::Output::Away) has ended. One that is not known to have been
    /// executed, or not, need not be told: the handler waits until its deadline.
    pub fn handle_away(&mut self, now: Time, wait: AwayWait, end: End) {
        self.replicas().away_ended(now, wait, end);
        self.settle(now);
    }

    /// The disk has all records of [`Output::Persist`](crate::Output::Persist) up to the `upto`-th.
    pub fn handle_persisted(&mut self, now: Time, upto: u64) {
        if let Some(disk) = self.base.records.disk_mut()
            && let Some(stored) = disk.persisted(upto)
        {
            let ring = self.base.membership.ring();
            self.base.outbox.ordering.tell_stored(now, ring, stored);
            self.replies().release(ring);
            self.replicas().pay_all(now);
            self.replicas().go_on_trying(now);
        }
        self.base.records.give_unstored();
        self.settle(now);
    }

    /// The disk has a state from [`Output::Snapshot`](crate::Output::Snapshot). If it had no room
    /// for a transferred state, a later state of the group stands for that one.
    pub fn handle_snapshot_stored(&mut self, now: Time, group: GroupId, covers: u64) {
        if let Some(hosted) = self.replicas.hosted.get_mut(&group)
            && covers >= hosted.on_disk.logged.lost.0
            && let Some(transfer) = hosted.on_disk.logged.syncing.take()
            && hosted.replica.transfer() == Some(transfer)
        {
            self.base.order(now, Ordered::Synced(Synced { group, transfer }));
        }
        self.settle(now);
    }

    /// The store's log is long. A snapshot of this strand would shorten it.
    pub fn handle_snapshot_wanted(&mut self, now: Time, strand: Option<GroupId>) {
        match strand {
            None => self.base.snapshot_node(),
            Some(group) if self.replicas.hosted.contains_key(&group) => {
                self.replicas().snapshot_group(now, group)
            }
            // A state that waits for a host stays.
            Some(group) if self.base.records.has(group) => {}
            Some(group) => self.base.records.forget(group),
        }
        self.settle(now);
    }

    /// The state that this node gives by this transfer, if it gives any. Its bytes are shared.
    pub fn offered(&self, transfer: Transfer) -> Option<Payload> {
        let Transfer { ring, group, view } = transfer;
        if ring != self.base.membership.ring() {
            return None;
        }
        let hosted = self.replicas.hosted.get(&group);
        let own = hosted.and_then(|hosted| hosted.replica.offered(view));
        own.or_else(|| self.replicas.deposit_offered(group, view)).cloned()
    }

    /// An [`Output::Fetch`](crate::Output::Fetch) has ended: with all bytes of the state, or
    /// `None`. Without them, the replica asks for the state in chunks. False: nobody waits for it
    /// any more.
    pub fn handle_fetched(&mut self, now: Time, transfer: Transfer, state: Option<Bytes>) -> bool {
        let Transfer { ring, group, view } = transfer;
        let joins = |hosted: &Hosted| hosted.replica.joins_by(view);
        if ring != self.base.membership.ring()
            || !self.replicas.hosted.get(&group).is_some_and(joins)
        {
            return false;
        }
        match state {
            Some(state) => self.replicas().with_replica(now, group, |replica, effects| {
                replica.fetched(now, view, state, effects);
            }),
            None => {
                let declined = StateDeclined { group, transfer: view };
                self.base.order(now, Ordered::StateDeclined(declined));
            }
        }
        self.settle(now);
        true
    }

    /// Returns the engine that orders this node's messages.
    pub fn ordering(&self) -> &O {
        &self.base.outbox.ordering
    }

    fn benchmarks(&mut self) -> BenchHandler<'_, O> {
        BenchHandler { base: &mut self.base, bench: &mut self.bench }
    }

    fn keys(&mut self) -> KeyHandler<'_, O> {
        KeyHandler { base: &mut self.base, keys: &mut self.keys }
    }

    fn replies(&mut self) -> ReplyHandler<'_, O> {
        ReplyHandler { base: &mut self.base, replies: &mut self.replies }
    }

    fn replicas(&mut self) -> ReplicaHandler<'_, O> {
        let Stack { base, replies, replicas, .. } = self;
        ReplicaHandler { base, replies, replicas }
    }

    fn groups(&mut self) -> GroupHandler<'_, O> {
        let Stack { base, replies, replicas, groups, .. } = self;
        GroupHandler { base, replies, replicas, groups }
    }
}
