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
#[cfg(test)]
mod tests;
mod votes;
mod watching;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_GROUPS, MAX_MOVES, MAX_RESTYLES, MAX_SEND_QUEUE, MAX_WAITING};
use wire::ordered::{Died, GroupOptions, Hold, Ordered, Place, Told};
use wire::{Duration, GroupId, Member, NodeId, Random, RingId, Time, ViewNumber};

use crate::api::{Config, Event, HangRule, Output};
use crate::bench::Bench;
use crate::bug::Planted;
use crate::callers::Callers;
use crate::component::Membership;
use crate::directory::Directory;
use crate::disk::Disk;
use crate::faults::Faults;
use crate::keys::Keys;
use crate::ordering::{Delivery, Level, Ordering, Ring};
use crate::pace::Pace;
use crate::replica::{Effect, Replica};
use crate::stopwatch::Stopwatch;
use crate::tally::Tally;
use cold::ColdTimes;
use journal::Journal;
use leading::Leading;
use managing::Told as ToldUsage;
use moves::{Motive, Moving};
use nested::Nested;
use own::Own;
use passive::Yield;
use restyle::Restyling;
use saving::Backups;
use shedding::Sheds;
use storage::{Logged, is_on_disk};
use votes::{Arrears, Penance};
use watching::Watches;

/// A clean stop waits this long for its hand-over to be ordered before it leaves all the same.
const LEAVE_PATIENCE: Duration = Duration::from_millis(500);

/// After an installation, the replicas of groups that nobody knew join within some round trips: for
/// this long at least no client is told that a group does not exist. On a slow ring for as many times as long as
/// the announcements took, which went the same way.
const JOIN_GRACE: Duration = Duration::from_millis(50);
const JOIN_ROUNDS: u32 = 4;

/// The same while configured nodes are missing, and at most: the cluster may still be forming.
const FORMING_GRACE: Duration = Duration::from_secs(2);

/// Ordered messages that may wait for an installation: what all members may have queued.
const MAX_DEFERRED: usize = MAX_SEND_QUEUE * 4;

/// A replica that this node hosts.
struct Hosted {
    name: String,
    options: GroupOptions,
    replica: Replica,
    /// The place of the last request that it took, or that the state on its way has in it.
    taken: Place,
    /// When the last configuration ended, all that it had taken was held.
    settled: bool,
    /// It is to go.
    leaving: bool,
    /// But not as long as no other has the state.
    spares: bool,
    /// It goes with its node, and remains the group's.
    stays: bool,
    /// Its service executes nothing any more: it only waits to be out of the table.
    abandoned: bool,
    /// A component that was over when it was installed would have given it another state: it keeps what it has, and takes nothing
    /// more of what was ordered there.
    spared: bool,
    /// It lost the state that the table says it has: it only waits to be out of the table, and comes anew.
    lost: bool,
    /// What is particular to cold passive groups.
    cold: ColdTimes,
    /// As a passive group's primary, it says this as soon as what it has taken is ordered; and whether it has.
    yields: Option<(Yield, bool)>,
    /// The group would not have it: it is not tried again.
    refused: bool,
    /// What is kept in case that its program dies.
    journal: Option<Journal>,
    /// Its program has died, and what that leads to has no place in the order yet.
    fallen: bool,
    /// Its service died, and how far it was.
    died: Option<Died>,
    /// The ring on which its coming or going was ordered last.
    asked: Option<RingId>,
    /// Its coming was ordered and may still be delivered.
    coming: bool,
    /// Its state came from the disk, and no table has said yet what it is worth.
    recalled: bool,
    /// It is out of the table, and keeps its state until all disks know that.
    kept: bool,
    /// What the disk has of it.
    logged: Logged,
    /// The views, first and last, in which it was the primary without a break.
    led: Option<(ViewNumber, ViewNumber)>,
    penance: Penance,
    /// Times what its service executes.
    stopwatch: Stopwatch,
    /// That its service is hung was told; and the ring and the view in which its end was asked for last.
    hung: Option<Option<(RingId, ViewNumber)>>,
}

/// What the ring has said of who holds what.
#[derive(Clone, Copy, Default)]
struct Held {
    majority: u64,
    all: u64,
}

/// A node's machine, above what orders its messages.
pub struct Stack<O = Ring> {
    me: Member,
    cluster_name: String,
    planted: Planted,
    ordering: O,
    random: Random,
    membership: Membership,
    directory: Directory,
    hosted: BTreeMap<GroupId, Hosted>,
    /// Those of them whose groups are cold passive, and when the next checkpoint of one is due.
    cold: (BTreeSet<GroupId>, Option<Time>),
    callers: Callers,
    watches: Watches,
    /// Calls that may wait here.
    room: usize,
    /// Calls answered by their service, and how quickly that goes.
    answered: u64,
    pace: Pace,
    held: Held,
    /// What is delivered now was ordered in a ring that has ended.
    transitional: bool,
    /// All that was answered by this time was delivered here.
    current: Option<Time>,
    /// Reads that replicas here were given.
    executions: u64,
    /// Delivered before the installation of their component.
    deferred: VecDeque<Delivery>,
    /// To be ordered as soon as the ring takes more.
    unsent: VecDeque<Ordered>,
    /// Messages that were ever handed in to be ordered.
    handed: u64,
    bench: Bench,
    faults: Faults,
    keys: Keys,
    /// What members have told of their hosts, and how often something has changed that a manager looks at.
    usages: BTreeMap<Member, ToldUsage>,
    changes: u64,
    /// What hosts refuse, and who calls here.
    sheds: Sheds,
    /// Moves of primaries that this node wishes.
    moves: BTreeMap<(GroupId, Motive), Moving>,
    /// Other styles that this node wishes for groups.
    restyles: BTreeMap<GroupId, Restyling>,
    /// States that this node was asked to save and to restore.
    backups: Backups,
    /// What is kept on disk, if there is one, and after how many records a snapshot is.
    disk: Option<Disk>,
    snapshot_after: u64,
    /// What is acted on now: records count as what was ordered from here on, and up to there.
    acting: Option<(u64, u64)>,
    /// Where in the order of this configuration a group changed last.
    changed_at: BTreeMap<GroupId, u64>,
    /// When others are asked for what they have on their disks.
    ask_at: Option<Time>,
    /// The component has become effective: what was kept until then is to go.
    look_at_kept: bool,
    /// The votes in voting groups, since the component began.
    tallies: BTreeMap<GroupId, Tally>,
    /// Groups in which this node's replica may have votes to tell.
    ballots_due: BTreeSet<GroupId>,
    arrears: BTreeMap<GroupId, Arrears>,
    /// How long a vote may be missing at least.
    vote_patience: Duration,
    /// When a service is hung, when one may next have missed a deadline, and whose are.
    hang: HangRule,
    services_due: Option<Time>,
    hung: BTreeSet<GroupId>,
    /// What leaders here have to tell.
    leading: Leading,
    /// Calls between groups.
    nested: Nested,
    /// Calls of the node's own.
    own: Own,
    /// The wall clock when a handler here last called another group.
    asked_wall: Time,
    delivered: u64,
    /// When the last configuration was delivered.
    configured_at: Time,
    /// Until when groups that are not in the table may still be on their way.
    joining_until: Option<Time>,
    /// When a clean stop ends at the latest.
    leaving: Option<Time>,
    left: bool,
    outputs: VecDeque<Output>,
    /// When the last one came of what comes in crowds, clients' frames and services' answers. What follows from all of them is seen to
    /// when outputs are asked for, so that what many clients ask for at once is ordered together.
    unsettled: Option<Time>,
    /// What the disk is to be given when all that is ordered at the present place has been acted on.
    unwritten: Vec<Output>,
    /// States for the disk, each with the number of the last record when it was taken: they wait for that.
    unstored: Vec<(GroupId, u64, Output)>,
    /// Room for what a replica asks for, kept from call to call.
    effects: Vec<Effect>,
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
            cluster_name: config.cluster,
            planted,
            random: Random::new(config.seed ^ 0x57ac),
            membership,
            ordering,
            directory: Directory::default(),
            hosted: BTreeMap::new(),
            cold: (BTreeSet::new(), None),
            callers: Callers::default(),
            watches: Watches::default(),
            room: config.waiting.min(MAX_WAITING),
            answered: 0,
            pace: Pace::default(),
            held: Held::default(),
            transitional: false,
            current: None,
            executions: 0,
            deferred: VecDeque::new(),
            unsent: VecDeque::new(),
            handed: 0,
            bench: Bench::new(me),
            faults: Faults::default(),
            keys: Keys::new(me.node, config.nodes.clone(), config.sealing),
            usages: BTreeMap::new(),
            changes: 0,
            sheds: Sheds::default(),
            moves: BTreeMap::new(),
            restyles: BTreeMap::new(),
            backups: Backups::default(),
            disk: config.storage.clone().map(Disk::new),
            snapshot_after: config.snapshot_after,
            acting: None,
            changed_at: BTreeMap::new(),
            ask_at: None,
            look_at_kept: false,
            tallies: BTreeMap::new(),
            ballots_due: BTreeSet::new(),
            arrears: BTreeMap::new(),
            vote_patience: config.vote_patience,
            hang: config.hang,
            services_due: None,
            hung: BTreeSet::new(),
            leading: Leading::default(),
            nested: Nested::default(),
            own: Own::default(),
            asked_wall: Time::ZERO,
            delivered: 0,
            configured_at: now,
            joining_until: None,
            leaving: None,
            left: false,
            outputs: VecDeque::new(),
            unsettled: None,
            unwritten: Vec::new(),
            unstored: Vec::new(),
            effects: Vec::new(),
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
            if let Err(malformed) = self.ordering.handle_datagram(now, bytes) {
                self.event(Event::Malformed(malformed));
            }
        }
        self.settle(now);
    }

    /// A node's host says that nobody listens there.
    pub fn handle_unreachable(&mut self, now: Time, node: NodeId) {
        self.ordering.handle_unreachable(now, node);
        self.settle(now);
    }

    /// The time that [`Stack::next_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.ordering.next_timeout().is_some_and(|due| due <= now) {
            self.ordering.handle_timeout(now);
        }
        self.callers.expire(now);
        self.order_due(now);
        self.ask_disks(now);
        self.accuse(now);
        self.end_penance(now);
        self.time_services(now);
        self.end_shedding(now);
        self.nested_timeout(now);
        if self.membership.is_active() {
            self.tell_progress(now);
            self.relieve_leaders(now);
        }
        if self.joining_until.is_some_and(|until| until <= now) {
            // While a ring is formed nothing is ordered: what was on its way still is.
            let ordering = self.ordering.state_name() == "operational";
            self.joining_until = (!ordering).then(|| now + JOIN_GRACE);
            if ordering {
                self.reconcile_unknown_groups(now);
            }
        }
        self.settle(now);
    }

    /// When [`Stack::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.left {
            return None;
        }
        let own = self.joining_until.into_iter().chain(self.leaving).chain(self.ask_at).min();
        let moves = self.next_move_timeout().into_iter().chain(self.next_restyle_timeout()).min();
        let votes = self.next_arrears().into_iter().chain(self.next_return()).min();
        let nested = self.nested.next_timeout().filter(|_| self.membership.is_active());
        let rooms = [self.callers.next_deadline(), self.bench.next_timeout(), own, moves, votes];
        let sheds = self.next_shedding_timeout();
        let progress = self.next_leading();
        let rooms =
            rooms.into_iter().chain([self.cold.1, nested, self.services_due, sheds, progress]);
        rooms.chain([self.backups.next_timeout(), self.ordering.next_timeout()]).flatten().min()
    }

    /// Stops cleanly: hands the primaries over and leaves the ring. Ends with [`Event::Left`].
    pub fn leave(&mut self, now: Time) {
        if self.leaving.is_none() {
            self.leaving = Some(now + LEAVE_PATIENCE);
            let groups: Vec<GroupId> = self.hosted.keys().copied().collect();
            for group in groups {
                self.begin_to_go(now, group);
                if let Some(hosted) = self.hosted.get_mut(&group) {
                    // Its state stays on the disk: when all nodes stop, nobody is to have left the group.
                    hosted.stays = is_on_disk(hosted);
                }
            }
            self.settle(now);
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        if self.outputs.is_empty()
            && let Some(now) = self.unsettled.take()
        {
            self.settle(now);
        }
        self.outputs.pop_front()
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Takes what the ring has to say, then does what that makes possible, until all is quiet.
    fn settle(&mut self, now: Time) {
        self.unsettled = None;
        self.bench.new_turn();
        loop {
            while let Some(output) = self.ordering.poll_output() {
                self.handle_ordering(now, output);
            }
            if self.left || !self.pump(now) {
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
        while let Some(ordered) = self.unsent.front() {
            let (payload, level) = (ordered.encode(), self.level_of(ordered));
            if !self.multicast(now, payload, level) {
                break;
            }
            self.unsent.pop_front();
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
        if let Some(patience_ends) = self.leaving {
            any |= self.leave_ring_if_done(now, patience_ends);
        }
        any
    }

    fn leave_ring_if_done(&mut self, now: Time, patience_ends: Time) -> bool {
        let in_a_group = self.directory.iter().any(|(id, group)| {
            let stays = self.hosted.get(&id).is_some_and(|hosted| hosted.stays);
            let moves = self.moves.contains_key(&(id, Motive::Going));
            group.replica(self.me).is_some() && (!stays || moves)
        });
        // While it is not known yet whether groups act, this node may have what nobody else has (simulator world `poison`, seed 688).
        let done = match self.membership.quorate() {
            None => false,
            Some(false) => true,
            Some(true) => !in_a_group && !self.callers.any_under_way(),
        };
        if self.left || !(done || now >= patience_ends) {
            return false;
        }
        self.left = true;
        self.ordering.leave(now);
        while let Some(output) = self.ordering.poll_output() {
            self.handle_ordering(now, output);
        }
        self.event(Event::Left);
        true
    }

    /// Orders a message, now or as soon as the ring takes it.
    fn order(&mut self, now: Time, ordered: Ordered) {
        let level = self.level_of(&ordered);
        if !self.unsent.is_empty() || !self.multicast(now, ordered.encode(), level) {
            // Bounded: what a node orders by itself answers what was delivered to it.
            self.unsent.push_back(ordered);
        }
    }

    /// Hands a message in. False if it was refused: then nothing has happened.
    fn multicast(&mut self, now: Time, payload: Bytes, level: Level) -> bool {
        if self.ordering.multicast(now, payload, level).is_err() {
            return false;
        }
        // Not `handed += u64::from(taken)` with `taken` given back: where that is inlined into a
        // condition, rustc 1.95 drops the comparison that makes `taken`, and what is added is undefined
        // (rust-lang/rust#158206). `the_wait_for_the_flow_control_is_told_apart` shows it, optimized.
        self.handed += 1;
        true
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
        &self.ordering
    }

    /// What must hold whatever happened.
    ///
    /// # Panics
    /// If it does not: a bug in this crate.
    pub fn check_invariants(&self) {
        self.ordering.check_invariants();
        self.directory.check_invariants();
        self.callers.check_invariants();
        self.watches.check_invariants();
        self.disk.iter().for_each(Disk::check_invariants);
        self.nested.check_invariants();
        assert!(self.callers.len() <= MAX_WAITING, "waiting calls are bounded");
        assert!(self.deferred.len() <= MAX_DEFERRED, "deferred messages are bounded");
        assert!(self.moves.len() <= MAX_MOVES + MAX_GROUPS, "moves under way are bounded");
        assert!(self.restyles.len() <= MAX_RESTYLES, "changes of style under way are bounded");
        self.backups.check_invariants();
        self.check_styles();
        self.tallies.values().for_each(Tally::check_invariants);
        for hosted in self.hosted.values() {
            hosted.replica.check_invariants();
        }
    }
}
