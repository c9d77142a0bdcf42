//! A cluster's use of its disks.

use engine::Recovery;
use store::{Config, Done, Failure, Lane, OpenError, Output, Owner, Store, Strand};
use wire::ordered::Place;
use wire::{Duration, GroupId, Incarnation};

use super::{AGAIN, BATCH, Opening, SEGMENT, fill, hand_in, open, tell};
use crate::check::{Violation, decay};
use crate::cluster::{Cluster, Extra};
use crate::disk::Troubles;
use crate::fabric::node_id;
use crate::options::CLUSTER_ID;

impl Cluster {
    /// Opens the store of a node that starts. Nothing fails meanwhile but for want of room: the
    /// world of stores sees to that.
    pub(in crate::cluster) fn open_store(&mut self, node: usize) -> Result<Opening, Violation> {
        let Some(plan) = self.options.disks else { return Ok(Opening::Nothing) };
        let now = self.fabric.now();
        let own = self.disks.of(node);
        let owner = Owner { cluster: CLUSTER_ID, node: node_id(node) };
        let mut config = Config::new(owner, own.draw.bits());
        (config.segment, config.batch) = (2 << 20, 1_200_000);
        if self.options.decay.is_some() {
            (config.segment, config.batch, config.retry) = (SEGMENT, BATCH, AGAIN);
        }
        (config.reserve, config.keep) = (config.segment, 2);
        config.mark_after = Duration::from_millis(10);
        config.planted = self.plant.store;
        own.disk.troubles = Troubles::default();
        self.look_for_rot(node, config)?;
        let own = self.disks.of(node);
        let opened = match open(&mut own.disk, config, now) {
            Err(OpenError::Full(_)) if self.options.decay.is_some() => return Ok(Opening::Full),
            opened => opened.unwrap_or_else(|error| panic!("no bit rots here: {error}")),
        };
        let (unsynced, spoilt) = (plan.unsynced, plan.spoilt);
        let copies = self.options.decay.is_some_and(|decay| decay.copies);
        own.disk.troubles = Troubles { unsynced, spoilt, copies, ..Troubles::default() };
        (own.store, own.base, own.told_full) = (Some(opened.store), opened.base, opened.full);
        let recovery = Recovery::read(opened.pieces).expect("what was kept can be read");
        Ok(Opening::Opened(Box::new(recovery)))
    }

    /// Syncs do not fail any more: a node whose disk fails leaves.
    pub(in crate::cluster) fn mend_disks(&mut self) {
        if let Some(plan) = &mut self.options.disks {
            plan.unsynced = 0;
        }
        self.disks.mend();
    }

    /// The data that a node has of this group is of no use any more. On disks that fill up the log
    /// must not wait for it.
    pub(in crate::cluster) fn forget_kept(&mut self, node: usize, group: GroupId) {
        if self.disks.decay() {
            self.disks.of(node).forgotten.push(group);
        }
    }

    /// The disk has done what it was asked for.
    pub(in crate::cluster) fn disk_done(&mut self, node: usize, lane: Lane, life: Incarnation) {
        let now = self.fabric.now();
        if self.fabric.hosts[node].incarnation != life {
            return;
        }
        let own = self.disks.of(node);
        let Some((op, begun)) = own.under_way[lane as usize].take() else { return };
        let done: Result<Done, Failure> = begun.and_then(|()| own.disk.finish(&op));
        if let Some(store) = &mut own.store {
            store.handle_done(now, lane, done);
        }
    }

    /// The store does what is due.
    pub(in crate::cluster) fn disk_due(&mut self, node: usize, life: Incarnation) {
        let now = self.fabric.now();
        if self.fabric.hosts[node].incarnation == life {
            let own = self.disks.of(node);
            own.timer = None;
            own.retry_at.take_if(|at| *at <= now);
            if let Some(store) = &mut own.store {
                store.handle_timeout(now);
            }
        }
    }

    /// Gives the store what waits, and does what it asks for. True if the node was told something.
    pub(in crate::cluster) fn pump_disk(&mut self, node: usize) -> Result<bool, Violation> {
        let Some(plan) = self.options.disks else { return Ok(false) };
        let (now, local) = (self.fabric.now(), self.fabric.local(node));
        let life = self.fabric.hosts[node].incarnation;
        let own = self.disks.of(node);
        let (Some(store), Some(stack)) = (&mut own.store, &mut self.fabric.hosts[node].process)
        else {
            return Ok(false);
        };
        let (mut any, mut begun) = (false, Vec::new());
        let mut broken = fill(store, &mut own.records, now)?;
        let refused = broken;
        if refused {
            stack.leave(local);
        } else if own.records.is_empty() && own.retry_at.is_none() {
            hand_in(store, &mut own.snapshots, &mut own.flying, now)?;
            let forget = |group: &GroupId| {
                store.forget(now, Strand::Group(*group), Place::default()).is_err()
            };
            own.forgotten.retain(forget);
        }
        while let Some(output) = store.poll_output() {
            any = true;
            match output {
                Output::Disk(lane, op) => begun.push((lane, op)),
                Output::Full(_) => own.told_full = true,
                Output::Room => own.told_full = false,
                Output::SnapshotRefused(strand) => {
                    let refused = own.flying.iter().position(|flying| flying.strand == strand);
                    let refused = refused.map(|at| own.flying.swap_remove(at));
                    // A newer snapshot replaces the refused one.
                    let mut since = own.snapshots.iter().chain(&own.flying);
                    let newer = since.any(|since| since.strand == strand);
                    own.snapshots.extend(refused.filter(|_| !newer));
                    own.retry_at = Some(now + AGAIN);
                }
                output => {
                    if let Output::SnapshotStored(strand, _) = &output {
                        own.flying.retain(|flying| flying.strand != *strand);
                    }
                    broken |= tell(stack, local, own.base, output);
                }
            }
        }
        if refused {
            decay::refused(own.told_full)?;
            self.summary.full += 1;
        }
        if let Some(at) = own.retry_at.filter(|at| *at == now + AGAIN) {
            self.fabric.deliver(at, node, Extra::DiskDue(life));
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
            let member = self.fabric.member(node);
            self.watch.served.leaves(member);
            self.watch.promise.leaves(member);
            self.watch.poisons.goes(now);
        }
        Ok(any)
    }
}
