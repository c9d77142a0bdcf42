//! Nodes with disks: whole clusters lose power at once, and come back with what was synced.
//!
//! Each node has a [`Store`] on a [`Disk`] that may fail. Data that a node gives to its store is on
//! the disk some time later, or never, if its life ends first.

mod in_cluster;

use std::collections::VecDeque;

use engine::{Kept, Recovery, Stack};
use ring::Ring;
use store::{
    AppendError, Config, Failure, Op, OpenError, Output, Record, RecordId, Snapshot, SnapshotError,
    Store, Strand,
};
use wire::ordered::Place;
use wire::{Duration, GroupId, Payload, Time};

use crate::check::{Verdict, Violation, demand};
use crate::cluster::decay::{Decay, DecayPlan};
use crate::disk::{Disk, Rot, Troubles};
use crate::draw::Draw;
use crate::faults::FaultPlan;

const PROPERTY: &str = "durable";

/// Bytes of a disk: room for everything.
pub(super) const ROOM: usize = 256 << 20;

/// Bytes of a segment where disks fill up, and of a batch: a batch takes a block of 4,096 bytes at
/// least.
pub(super) const SEGMENT: u64 = 16 * 4_096;
const BATCH: usize = 11 * 4_096;

/// A write that found no room on the disk is retried after this time; so is the start of a node
/// that failed for want of room.
pub(super) const AGAIN: Duration = Duration::from_millis(20);

/// The parameters of disks that a seed draws.
#[derive(Clone, Copy, Debug)]
pub struct DiskPlan {
    /// The longest time that a disk takes for something.
    pub slowest: Duration,
    /// Syncs that fail, per 1,000.
    pub unsynced: u64,
    /// Losses of power that spoil a sector on its way, per 1,000.
    pub spoilt: u64,
    /// Records after which a replica gives a snapshot.
    pub snapshot_after: u64,
    /// A fault becomes the loss of all lives at once, one in so many.
    pub blackouts: u64,
}

impl DiskPlan {
    /// Draws the plan.
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
    pub(super) disk: Disk,
    store: Option<Store>,
    /// The last record of earlier lives.
    base: u64,
    under_way: [Option<(Op, Result<(), Failure>)>; 2],
    records: VecDeque<Record>,
    snapshots: VecDeque<Snapshot>,
    /// Snapshots that the store has. If one finds no room, another is tried, not before this time.
    flying: Vec<Snapshot>,
    retry_at: Option<Time>,
    /// Groups of which nothing is needed any more.
    forgotten: Vec<GroupId>,
    /// The store has said that there is no room, and not since then that there is.
    told_full: bool,
    /// A bit that rotted since the last opening, and the disk without that.
    pub(super) rotten: Option<(Rot, Disk)>,
    timer: Option<Time>,
    draw: Draw,
}

/// The disks of all nodes.
pub(super) struct Disks {
    of_nodes: Vec<NodeDisk>,
    /// How they rot and fill up, if they do.
    decay: Option<Decay>,
}

impl Disks {
    pub(super) fn new(nodes: usize, decay: Option<DecayPlan>, draw: &mut Draw) -> Disks {
        let of_nodes = (0..nodes).map(|_| NodeDisk::new(&mut draw.fork())).collect();
        Disks { of_nodes, decay: decay.map(Decay::new) }
    }

    /// A node's own.
    pub(super) fn of(&mut self, node: usize) -> &mut NodeDisk {
        &mut self.of_nodes[node]
    }

    pub(super) fn decay(&self) -> bool {
        self.decay.is_some()
    }

    /// Nothing fails any more, and there is room.
    pub(super) fn mend(&mut self) {
        for own in &mut self.of_nodes {
            (own.disk.troubles, own.disk.capacity) = (Troubles::default(), ROOM);
        }
    }

    /// A fault may strike: the next disk whose node ends rots if all `bears` that, or one fills up.
    /// The node of that one, how much room is left there, and for how long.
    pub(super) fn strike(
        &mut self,
        bears: bool,
        faults: &FaultPlan,
    ) -> Option<(usize, usize, Duration)> {
        let decay = self.decay.as_mut()?;
        let node = decay.strike(bears, self.of_nodes.len())?;
        let left = decay.draw.count(0, 2 * SEGMENT as usize);
        let span = faults.span(&mut decay.draw) + Duration::from_millis(300);
        let disk = &mut self.of_nodes[node].disk;
        disk.capacity = disk.used() + left;
        Some((node, left, span))
    }

    /// A node is down: now a bit may rot there.
    pub(super) fn rot(&mut self, node: usize) -> Option<Rot> {
        if !std::mem::take(&mut self.decay.as_mut()?.rots) {
            return None;
        }
        let own = &mut self.of_nodes[node];
        let whole = own.disk.clone();
        let bit = own.disk.rot()?;
        own.rotten = Some((bit, whole));
        Some(bit)
    }
}

/// The result of opening a node's store.
pub(super) enum Opening {
    /// There are no disks.
    Nothing,
    /// This is what came back.
    Opened(Box<Recovery>),
    /// There is no room for what it takes to begin.
    Full,
}

/// A store that is open.
pub(super) struct Opened {
    store: Store,
    /// The pieces that came back.
    pub(super) pieces: Vec<Kept>,
    /// The last record of earlier lives.
    base: u64,
    /// It has said that there is no room.
    full: bool,
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
            flying: Vec::new(),
            retry_at: None,
            forgotten: Vec::new(),
            told_full: false,
            rotten: None,
            timer: None,
            draw: draw.fork(),
        }
    }

    /// The node gives this to its store.
    pub(super) fn keep(&mut self, kept: Kept) {
        let Kept { strand, kind, place, bytes } = kept;
        let strand = self.needs(strand);
        let kind = kind.expect("a record has a kind");
        self.records.push_back(Record { strand, kind, place, bytes });
    }

    pub(super) fn keep_snapshot(
        &mut self,
        strand: Option<GroupId>,
        (covers, place): (u64, Place),
        state: Payload,
    ) {
        let strand = self.needs(strand);
        let covers = RecordId(self.base + covers);
        self.snapshots.push_back(Snapshot { strand, covers, place, state });
    }

    /// A group that was to be forgotten is needed again.
    fn needs(&mut self, group: Option<GroupId>) -> Strand {
        self.forgotten.retain(|forgotten| Some(*forgotten) != group);
        group.map_or(Strand::Node, Strand::Group)
    }

    /// The node's life is over, and its host's if it loses power.
    pub(super) fn end(&mut self, power: bool) {
        self.store = None;
        self.under_way = [None, None];
        self.records.clear();
        self.snapshots.clear();
        self.flying.clear();
        self.forgotten.clear();
        (self.timer, self.retry_at, self.told_full) = (None, None, false);
        if power {
            self.disk.lose_power();
        }
    }

    /// Somebody gives the node an empty disk.
    pub(super) fn renew(&mut self) {
        self.disk = Disk::new(ROOM, Troubles::default(), self.draw.fork());
    }
}

fn group_of(strand: Strand) -> Option<GroupId> {
    match strand {
        Strand::Node => None,
        Strand::Group(group) => Some(group),
    }
}

/// Opens a store on this disk, at once.
pub(super) fn open(disk: &mut Disk, config: Config, now: Time) -> Result<Opened, OpenError> {
    let mut store = Store::open(config).expect("the knobs are in range");
    let (mut pieces, mut full) = (Vec::new(), false);
    loop {
        match store.poll_output() {
            Some(Output::Disk(lane, op)) => {
                let done = disk.begin(&op).and_then(|()| disk.finish(&op));
                store.handle_done(now, lane, done);
            }
            Some(Output::Restored(Snapshot { strand, place, state, .. })) => {
                let strand = group_of(strand);
                pieces.push(Kept { strand, kind: None, place, bytes: state.whole() });
            }
            Some(Output::Replayed(_, Record { strand, kind, place, bytes })) => {
                let strand = group_of(strand);
                pieces.push(Kept { strand, kind: Some(kind), place, bytes });
            }
            Some(Output::Opened(opened)) => {
                return Ok(Opened { store, pieces, base: opened.next.0 - 1, full });
            }
            Some(Output::NotOpened(error)) => return Err(error),
            Some(Output::Full(_)) => full = true,
            Some(Output::Room) => full = false,
            Some(_) => {}
            None => store.handle_timeout(store.next_timeout().unwrap_or(now)),
        }
    }
}

/// Hands in the records that the store takes. True if there is no room for more.
fn fill(store: &mut Store, records: &mut VecDeque<Record>, now: Time) -> Result<bool, Violation> {
    while let Some(record) = records.front() {
        match store.append(now, record.clone()) {
            Ok(_) => {
                records.pop_front();
            }
            Err(AppendError::Busy | AppendError::NotOpen) => return Ok(false),
            Err(AppendError::Full) => return Ok(true),
            Err(error) => {
                demand(false, PROPERTY, || format!("a record is refused: {error}"))?;
            }
        }
    }
    Ok(false)
}

/// Hands in the snapshots that the store takes.
fn hand_in(
    store: &mut Store,
    snapshots: &mut VecDeque<Snapshot>,
    flying: &mut Vec<Snapshot>,
    now: Time,
) -> Verdict {
    while let Some(snapshot) = snapshots.front() {
        match store.snapshot(now, snapshot.clone()) {
            Ok(()) => flying.extend(snapshots.pop_front()),
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
