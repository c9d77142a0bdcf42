//! A whole node without its sockets: what orders messages, and the rooms above it, composed.
//!
//! - here: what comes in, what goes out
//! - `stack/delivery.rs`: what the ring delivers
//! - `stack/clients.rs`: what clients ask
//! - `stack/hosting.rs`: this node's replicas
//! - `stack/reads.rs`: calls that change nothing
//! - `stack/moves.rs`: primaries that move
//! - `stack/leading.rs`: who executes a call first, and what kills whoever executes it
//! - `stack/journal.rs`: what is kept for programs that die
//! - `stack/hung.rs`: replicas whose services are hung
//! - `stack/managing.rs`: what the manager sees and asks for
//! - `stack/nested.rs`: groups that call groups
//! - `stack/restyle.rs`: groups that get another style
//! - `stack/passive.rs`: what passive groups order; `stack/cold.rs`: promotions and checkpoints of cold ones
//! - `stack/votes.rs`: voting groups
//! - `stack/bench.rs`: benchmarks
//! - `stack/keys.rs`: the keys that seal datagrams
//! - `stack/storage.rs`: groups on disk; `stack/status.rs`: what people are told
//! - `stack/saving.rs`, `stack/restoring.rs`: states that people keep

mod bench;
mod clients;
mod cold;
mod delivery;
mod hosted;
mod hosting;
mod hung;
mod journal;
mod keys;
mod leading;
mod managing;
mod moves;
mod nested;
mod own;
mod passive;
mod reads;
mod restoring;
mod restyle;
mod saving;
mod shedding;
mod status;
mod storage;
mod targets;
#[cfg(test)]
mod tests;
mod votes;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_GROUPS, MAX_MOVES, MAX_RESTYLES, MAX_WAITING};
use wire::ordered::{Hold, Ordered, Told};
use wire::{GroupId, Member, NodeId, Random, Time};

use crate::api::{Config, Event, Output};
use crate::bench::Bench;
use crate::bug::Planted;
use crate::component::Membership;
use crate::directory::Directory;
use crate::faults::Faults;
use crate::keys::Keys;
use crate::ordering::{Level, Ordering, Ring};
use crate::parts::{Clients, Hangs, Held, Outbox, Outputs, Progress, Records, Votes};
use cold::ColdGroups;
use hosted::Hosted;
use journal::Journal;
use leading::Leading;
use managing::Load;
use moves::{Motive, Moving};
use nested::Nested;
use own::Own;
use restyle::Restyling;
use saving::Backups;
use storage::is_on_disk;

/// What people and the manager asked this node for, until the order has it.
#[derive(Default)]
struct Wishes {
    /// Moves of primaries.
    moves: BTreeMap<(GroupId, Motive), Moving>,
    /// Other styles for groups.
    restyles: BTreeMap<GroupId, Restyling>,
    /// States to be saved and restored.
    backups: Backups,
}

/// What is told of how it goes.
struct Observed {
    /// Benchmarks of the order.
    bench: Bench,
    /// Faults, from their first sign to the last consequence.
    faults: Faults,
}

/// Calls that no client makes.
#[derive(Default)]
struct Calls {
    /// Of groups, by their handlers.
    between: Nested,
    /// Of the node, in its own name.
    own: Own,
}

/// A node's machine, above what orders its messages: parts that own what they know, and the rules by which one asks another.
pub struct Stack<O = Ring> {
    me: Member,
    planted: Planted,
    random: Random,
    /// The component, and whether its groups may act.
    membership: Membership,
    /// The table of groups.
    directory: Directory,
    /// This node's replicas.
    hosted: BTreeMap<GroupId, Hosted>,
    /// Clients here, and the calls that wait for them.
    clients: Clients,
    /// How far this node is in the order, and in its own life.
    progress: Progress,
    /// What orders messages, and what is on its way there.
    outbox: Outbox<O>,
    /// What is made of all that for people.
    observed: Observed,
    keys: Keys,
    /// What hosts have to do, and what they refuse for it.
    load: Load,
    /// What people and the manager asked this node for, until the order has it.
    wishes: Wishes,
    /// What is kept on disk.
    records: Records,
    /// The votes in voting groups.
    votes: Votes,
    /// Services that hang.
    hangs: Hangs,
    /// Who executes first, and what is told of that.
    leading: Leading,
    /// Cold passive groups that have a replica here.
    cold: ColdGroups,
    /// Calls of groups and of the node's own.
    calls: Calls,
    outputs: Outputs,
}

impl<O: Ordering> Stack<O> {
    /// A node that starts now.
    pub fn new(config: Config, ordering: O, now: Time) -> Stack<O> {
        let planted = Planted {
            #[cfg(feature = "planted-bugs")]
            bug: config.bug,
        };
        let me = config.me;
        let membership = Membership::new(
            me,
            config.quorum,
            config.nodes.clone(),
            config.first_life,
            config.address,
            planted,
        );
        let mut stack = Stack {
            me,
            planted,
            random: Random::new(config.seed ^ 0x57ac),
            membership,
            directory: Directory::default(),
            hosted: BTreeMap::new(),
            clients: Clients::new(config.cluster, config.waiting.min(MAX_WAITING)),
            progress: Progress::new(now),
            outbox: Outbox::new(ordering),
            observed: Observed { bench: Bench::new(me), faults: Faults::default() },
            keys: Keys::new(me.node, config.nodes.clone(), config.sealing),
            load: Load::default(),
            wishes: Wishes::default(),
            records: Records::new(config.storage.clone(), config.snapshot_after),
            votes: Votes::new(config.vote_patience),
            hangs: Hangs::new(config.hang),
            leading: Leading::default(),
            cold: ColdGroups::default(),
            calls: Calls::default(),
            outputs: Outputs::default(),
        };
        if let Some(recovery) = &config.storage {
            stack.begin_on_disk(recovery);
        }
        stack.settle(now);
        stack
    }

    /// A datagram came from another node.
    pub fn handle_datagram(&mut self, now: Time, bytes: &Bytes) {
        self.handle_datagrams(now, core::slice::from_ref(bytes));
    }

    /// Datagrams of another node that arrived together: acknowledged once for all of them.
    pub fn handle_datagrams(&mut self, now: Time, run: &[Bytes]) {
        for bytes in run {
            if let Err(malformed) = self.outbox.ordering.handle_datagram(now, bytes) {
                self.event(Event::Malformed(malformed));
            }
        }
        self.settle(now);
    }

    /// A node's host says that nobody listens there.
    pub fn handle_unreachable(&mut self, now: Time, node: NodeId) {
        self.outbox.ordering.handle_unreachable(now, node);
        self.settle(now);
    }

    /// The time that [`Stack::next_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.outbox.ordering.next_timeout().is_some_and(|due| due <= now) {
            self.outbox.ordering.handle_timeout(now);
        }
        self.clients.callers.expire(now);
        self.order_due(now);
        self.ask_disks(now);
        self.accuse(now);
        self.end_backoffs(now);
        self.time_services(now);
        self.end_shedding(now);
        self.nested_timeout(now);
        if self.membership.is_active() {
            self.tell_progress(now);
            self.relieve_leaders(now);
        }
        let orders = self.outbox.ordering.state_name() == "operational";
        if self.progress.ends_joins(now, orders) {
            self.reconcile_unknown_groups(now);
        }
        self.settle(now);
    }

    /// When [`Stack::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.progress.has_left() {
            return None;
        }
        let own = self.progress.next_timeout().into_iter().chain(self.records.next_timeout()).min();
        let moves = self.next_move_timeout().into_iter().chain(self.next_restyle_timeout()).min();
        let votes = self.votes.next_timeout().into_iter().chain(self.next_return()).min();
        let nested = self.calls.between.next_timeout().filter(|_| self.membership.is_active());
        let rooms = [
            self.clients.callers.next_deadline(),
            self.observed.bench.next_timeout(),
            own,
            moves,
            votes,
        ];
        let sheds = self.next_shedding_timeout();
        let progress = self.next_leading();
        let rooms = rooms.into_iter().chain([
            self.cold.next_timeout(),
            nested,
            self.hangs.next_timeout(),
            sheds,
            progress,
        ]);
        rooms
            .chain([self.wishes.backups.next_timeout(), self.outbox.ordering.next_timeout()])
            .flatten()
            .min()
    }

    /// Stops cleanly: hands the primaries over and leaves the ring. Ends with [`Event::Left`].
    pub fn leave(&mut self, now: Time) {
        if self.progress.begin_to_leave(now) {
            let groups: Vec<GroupId> = self.hosted.keys().copied().collect();
            for group in groups {
                self.begin_to_go(now, group);
                if let Some(hosted) = self.hosted.get_mut(&group) {
                    hosted.program.unbegun = false;
                    // Its state stays on the disk: when all nodes stop, nobody is to have left the group.
                    hosted.departure.stays = is_on_disk(hosted);
                }
            }
            self.settle(now);
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(now) = self.outputs.crowd_waits() {
            self.settle(now);
        }
        self.outputs.pop()
    }

    fn event(&mut self, event: Event) {
        self.outputs.event(event);
    }

    /// Takes what the ring has to say, then does what that makes possible, until all is quiet.
    fn settle(&mut self, now: Time) {
        self.outputs.settled();
        self.observed.bench.new_turn();
        loop {
            while let Some(output) = self.outbox.ordering.poll_output() {
                self.handle_ordering(now, output);
            }
            if self.progress.has_left() || !self.pump(now) {
                break;
            }
        }
        self.tell_watchers();
        self.tell_resumed(now);
        self.write_down(now);
        self.watch_disks(now);
    }

    /// Orders what is due. True if anything was.
    fn pump(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some(ordered) = self.outbox.first() {
            let (payload, level) = (ordered.encode(), self.level_of(ordered));
            if !self.multicast(now, payload, level) {
                break;
            }
            self.outbox.pop();
            any = true;
        }
        any |= self.pump_moves(now);
        any |= self.pump_restyles(now);
        any |= self.pump_saves(now);
        any |= self.pump_restores(now);
        any |= self.pump_checkpoints(now);
        any |= self.pump_yields(now);
        any |= self.pump_reads(now);
        any |= self.give_up_kept(now);
        any |= self.ask_for_views(now);
        any |= self.pump_ballots(now);
        any |= self.pump_hung(now);
        any |= self.pump_fallen(now);
        any |= self.pump_bench(now);
        if let Some(patience_ends) = self.progress.leaving() {
            any |= self.leave_ring_if_done(now, patience_ends);
        }
        any
    }

    fn leave_ring_if_done(&mut self, now: Time, patience_ends: Time) -> bool {
        let in_a_group = self.directory.iter().any(|(id, group)| {
            let stays = self.hosted.get(&id).is_some_and(|hosted| hosted.departure.stays);
            let moves = self.wishes.moves.contains_key(&(id, Motive::Going));
            group.replica(self.me).is_some() && (!stays || moves)
        });
        // While it is not known yet whether groups act, this node may have what nobody else has (simulator world `poison`, seed 688).
        let done = match self.membership.quorate() {
            None => false,
            Some(false) => true,
            Some(true) => !in_a_group && !self.clients.callers.any_under_way(),
        };
        if self.progress.has_left() || !(done || now >= patience_ends) {
            return false;
        }
        self.progress.leave();
        self.outbox.ordering.leave(now);
        while let Some(output) = self.outbox.ordering.poll_output() {
            self.handle_ordering(now, output);
        }
        self.event(Event::Left);
        true
    }

    /// Orders a message, now or as soon as the ring takes it.
    fn order(&mut self, now: Time, ordered: Ordered) {
        let level = self.level_of(&ordered);
        let payload = ordered.encode();
        self.outbox.order(now, ordered, payload, level);
    }

    /// Hands a message in. False if it was refused: then nothing has happened.
    fn multicast(&mut self, now: Time, payload: Bytes, level: Level) -> bool {
        self.outbox.multicast(now, payload, level)
    }

    /// Somebody waits for whatever a node orders by itself, unless it is the update of a group whose replies wait for nobody. For an
    /// installation all members do: no reply leaves before they know that all have it, and of a safe message all are told.
    fn level_of(&self, ordered: &Ordered) -> Level {
        match ordered {
            Ordered::Install(_) => Level::Safe,
            Ordered::PrimaryChunk(chunk)
                if !chunk.last
                    || chunk.what == Told::Checkpoint
                    || self.holds_alone(chunk.group) =>
            {
                Level::Agreed
            }
            // What is answered waits for the call to be held, and votes are told anew in a new component.
            Ordered::Ballot(_) => Level::Agreed,
            _ => Level::Held,
        }
    }

    /// Whether the group's replies wait for no other node.
    fn holds_alone(&self, group: GroupId) -> bool {
        self.directory.get(group).is_some_and(|group| group.options.hold == Hold::One)
    }

    /// What orders this node's messages.
    pub fn ordering(&self) -> &O {
        &self.outbox.ordering
    }

    /// What must hold whatever happened.
    ///
    /// # Panics
    /// If it does not: a bug in this crate.
    pub fn check_invariants(&self) {
        self.outbox.ordering.check_invariants();
        self.directory.check_invariants();
        self.clients.callers.check_invariants();
        self.clients.watches.check_invariants();
        self.records.check_invariants();
        self.calls.between.check_invariants();
        assert!(self.clients.callers.len() <= MAX_WAITING, "waiting calls are bounded");
        self.progress.check_invariants();
        assert!(self.wishes.moves.len() <= MAX_MOVES + MAX_GROUPS, "moves under way are bounded");
        assert!(
            self.wishes.restyles.len() <= MAX_RESTYLES,
            "changes of style under way are bounded"
        );
        self.wishes.backups.check_invariants();
        self.check_styles();
        self.votes.check_invariants();
        for hosted in self.hosted.values() {
            hosted.replica.check_invariants();
        }
    }
}
