//! Nodes with disks: whole clusters lose power at once, and come back with what was synced.
//!
//! Each node has a [`Store`] on a [`Disk`] that may fail. What a node gives to its store is on the disk some time later, or
//! never, if its life ends first.

use std::collections::VecDeque;

use engine::{Kept, Recovery, Stack};
use ring::Ring;
use store::{
    AppendError, Config, Done, Failure, Lane, Op, Output, Owner, Record, RecordId, Snapshot,
    SnapshotError, Store, Strand,
};
use wire::ordered::Place;
use wire::{Duration, GroupId, Incarnation, Time};

use super::{Cluster, Extra};
use crate::check::{Verdict, demand};
use crate::disk::{Disk, Troubles};
use crate::draw::Draw;
use crate::fabric::node_id;
use crate::options::CLUSTER_ID;

const PROPERTY: &str = "durable";

/// Bytes of a disk: room for everything.
const ROOM: usize = 256 << 20;

/// What a seed draws for clusters with disks.
#[derive(Clone, Copy, Debug)]
pub struct DiskPlan {
    /// The longest time that a disk takes for something.
    pub slowest: Duration,
    /// A sync fails, of 1,000.
    pub unsynced: u64,
    /// A loss of power spoils a sector that was on its way, of 1,000.
    pub spoilt: u64,
    /// Records after which a replica gives a snapshot.
    pub snapshot_after: u64,
    /// A fault becomes the loss of all lives at once, one in so many.
    pub blackouts: u64,
}

impl DiskPlan {
    /// What a seed draws.
    pub fn draw(draw: &mut Draw) -> DiskPlan {
        DiskPlan {
            slowest: Duration::from_micros(draw.pick(&[50, 500, 500, 5_000, 20_000])),
            unsynced: draw.pick(&[0, 0, 2, 10]),
            spoilt: draw.pick(&[0, 20, 200]),
            snapshot_after: draw.pick(&[3, 20, 10_000]),
            blackouts: draw.pick(&[2, 4, 8]),
        }
    }
}

/// A node's disk, and the store of its present life.
pub(super) struct NodeDisk {
    disk: Disk,
    store: Option<Store>,
    /// The last record of earlier lives.
    base: u64,
    under_way: [Option<(Op, Result<(), Failure>)>; 2],
    records: VecDeque<Record>,
    snapshots: VecDeque<Snapshot>,
    timer: Option<Time>,
    draw: Draw,
}

impl NodeDisk {
    pub(super) fn new(draw: &mut Draw) -> NodeDisk {
        NodeDisk {
            disk: Disk::new(ROOM, Troubles::default(), draw.fork()),
            store: None,
            base: 0,
            under_way: [None, None],
            records: VecDeque::new(),
            snapshots: VecDeque::new(),
            timer: None,
            draw: draw.fork(),
        }
    }

    /// The node's life is over, and its host's if it loses power.
    pub(super) fn end(&mut self, power: bool) {
        self.store = None;
        self.under_way = [None, None];
        self.records.clear();
        self.snapshots.clear();
        self.timer = None;
        if power {
            self.disk.lose_power();
        }
    }
}

fn group_of(strand: Strand) -> Option<GroupId> {
    match strand {
        Strand::Node => None,
        Strand::Group(group) => Some(group),
    }
}

impl Cluster {
    /// Opens the store of a node that starts. Nothing fails meanwhile: the world of stores sees to that.
    pub(super) fn open_store(&mut self, node: usize) -> Option<Recovery> {
        let plan = self.options.disks?;
        let now = self.fabric.now();
        let own = &mut self.disks[node];
        let owner = Owner { cluster: CLUSTER_ID, node: node_id(node) };
        let mut config = Config::new(owner, own.draw.bits());
        (config.segment, config.batch) = (2 << 20, 1_200_000);
        (config.reserve, config.keep) = (config.segment, 2);
        config.mark_after = Duration::from_millis(10);
        own.disk.troubles = Troubles::default();
        let mut store = Store::open(config).expect("the knobs are in range");
        let mut pieces = Vec::new();
        loop {
            match store.poll_output() {
                Some(Output::Disk(lane, op)) => {
                    let done = own.disk.begin(&op).and_then(|()| own.disk.finish(&op));
                    store.handle_done(now, lane, done);
                }
                Some(Output::Restored(Snapshot { strand, place, state, .. })) => {
                    let strand = group_of(strand);
                    pieces.push(Kept { strand, kind: None, place, bytes: state });
                }
                Some(Output::Replayed(_, Record { strand, kind, place, bytes })) => {
                    let strand = group_of(strand);
                    pieces.push(Kept { strand, kind: Some(kind), place, bytes });
                }
                Some(Output::Opened(opened)) => {
                    own.base = opened.next.0 - 1;
                    break;
                }
                Some(Output::NotOpened(error)) => panic!("no bit rots here: {error}"),
                Some(_) => {}
                None => store.handle_timeout(store.next_timeout().unwrap_or(now)),
            }
        }
        let (unsynced, spoilt) = (plan.unsynced, plan.spoilt);
        own.disk.troubles = Troubles { unsynced, spoilt, ..Troubles::default() };
        own.store = Some(store);
        Some(Recovery::read(pieces).expect("what was kept can be read"))
    }

    /// Syncs do not fail any more: a node whose disk fails leaves.
    pub(super) fn mend_disks(&mut self) {
        if let Some(plan) = &mut self.options.disks {
            plan.unsynced = 0;
        }
        self.disks.iter_mut().for_each(|own| own.disk.troubles = Troubles::default());
    }

    /// A node gives this to its store.
    pub(super) fn keep(&mut self, node: usize, kept: Kept) {
        let Kept { strand, kind, place, bytes } = kept;
        let strand = strand.map_or(Strand::Node, Strand::Group);
        let kind = kind.expect("a record has a kind");
        self.disks[node].records.push_back(Record { strand, kind, place, bytes });
    }

    pub(super) fn keep_snapshot(
        &mut self,
        node: usize,
        strand: Option<GroupId>,
        (covers, place): (u64, Place),
        state: bytes::Bytes,
    ) {
        let own = &mut self.disks[node];
        let strand = strand.map_or(Strand::Node, Strand::Group);
        let covers = RecordId(own.base + covers);
        own.snapshots.push_back(Snapshot { strand, covers, place, state });
    }

    /// The disk has done what it was asked for.
    pub(super) fn disk_done(&mut self, node: usize, lane: Lane, life: Incarnation) {
        let now = self.fabric.now();
        if self.fabric.hosts[node].incarnation != life {
            return;
        }
        let own = &mut self.disks[node];
        let Some((op, begun)) = own.under_way[lane as usize].take() else { return };
        let done: Result<Done, Failure> = begun.and_then(|()| own.disk.finish(&op));
        if let Some(store) = &mut own.store {
            store.handle_done(now, lane, done);
        }
    }

    /// The store does what is due.
    pub(super) fn disk_due(&mut self, node: usize, life: Incarnation) {
        let now = self.fabric.now();
        if self.fabric.hosts[node].incarnation == life {
            self.disks[node].timer = None;
            if let Some(store) = &mut self.disks[node].store {
                store.handle_timeout(now);
            }
        }
    }

    /// Gives the store what waits, and does what it asks for. True if the node was told something.
    pub(super) fn pump_disk(&mut self, node: usize) -> Result<bool, crate::check::Violation> {
        let Some(plan) = self.options.disks else { return Ok(false) };
        let (now, local) = (self.fabric.now(), self.fabric.local(node));
        let life = self.fabric.hosts[node].incarnation;
        let own = &mut self.disks[node];
        let (Some(store), Some(stack)) = (&mut own.store, &mut self.fabric.hosts[node].process)
        else {
            return Ok(false);
        };
        fill(store, &mut own.records, &mut own.snapshots, now)?;
        let (mut any, mut broken, mut begun) = (false, false, Vec::new());
        while let Some(output) = store.poll_output() {
            any = true;
            match output {
                Output::Disk(lane, op) => begun.push((lane, op)),
                output => broken |= tell(stack, local, own.base, output),
            }
        }
        for (lane, op) in begun {
            let well = own.disk.begin(&op);
            own.under_way[lane as usize] = Some((op, well));
            let span = own.draw.span(Duration::from_micros(5), plan.slowest);
            self.fabric.deliver(now + span, node, Extra::Disk(lane, life));
        }
        if let Some(due) = own.store.as_ref().and_then(Store::next_timeout)
            && own.timer.is_none_or(|timer| due < timer)
        {
            own.timer = Some(due);
            self.fabric.deliver(due.max(now), node, Extra::DiskDue(life));
        }
        if broken {
            own.store = None;
            self.watch.served.leaves(self.fabric.member(node));
        }
        Ok(any)
    }
}

/// Hands in what the store takes.
fn fill(
    store: &mut Store,
    records: &mut VecDeque<Record>,
    snapshots: &mut VecDeque<Snapshot>,
    now: Time,
) -> Verdict {
    while let Some(record) = records.front() {
        match store.append(now, record.clone()) {
            Ok(_) => {
                records.pop_front();
            }
            Err(AppendError::Busy | AppendError::NotOpen) => return Ok(()),
            Err(error) => {
                return demand(false, PROPERTY, || format!("a record is refused: {error}"));
            }
        }
    }
    while let Some(snapshot) = snapshots.front() {
        match store.snapshot(now, snapshot.clone()) {
            Ok(()) => {
                snapshots.pop_front();
            }
            Err(SnapshotError::Busy | SnapshotError::NotOpen) => return Ok(()),
            Err(error) => {
                return demand(false, PROPERTY, || format!("a snapshot is refused: {error}"));
            }
        }
    }
    Ok(())
}

/// Tells a node what its store says. True if that is the last word.
fn tell(stack: &mut Stack<Ring>, now: Time, base: u64, output: Output) -> bool {
    match output {
        Output::Persisted(RecordId(upto)) => {
            stack.handle_persisted(now, upto.saturating_sub(base));
        }
        Output::SnapshotStored(Strand::Group(group), RecordId(covers)) => {
            stack.handle_snapshot_stored(now, group, covers.saturating_sub(base));
        }
        Output::SnapshotWanted(strand) => stack.handle_snapshot_wanted(now, group_of(strand)),
        // The disk failed: the node leaves, so that others go on.
        Output::Closed(_) => {
            stack.leave(now);
            return true;
        }
        _ => {}
    }
    false
}
