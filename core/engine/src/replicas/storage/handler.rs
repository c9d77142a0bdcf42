//! Writes to the disk, and its recovered state.

use bytes::Bytes;
use wire::kept::{BEGUN, GroupState, TAKEN, encode_style};
use wire::ordered::{Ordered, Place, Recalled, Style, Synced};
use wire::{GroupId, Payload, RingId, Time, ViewNumber};

use super::Logged;
use crate::api::{Config, Output};
use crate::bug::Bug;
use crate::ordering::Ordering;
use crate::replicas::ReplicaHandler;
use crate::replicas::hosted::is_on_disk;
use crate::replicas::journal::Journal;
use crate::style::StyleRules;

impl<O: Ordering> ReplicaHandler<'_, O> {
    pub(crate) fn snapshot_group(&mut self, now: Time, group: GroupId) {
        let Some(hosted) =
            self.replicas.hosted.get(&group).filter(|_| self.base.records.has_disk())
        else {
            return;
        };
        let waits = self.base.records.has_unstored(group);
        if waits || !hosted.replica.may_snapshot() {
            return; // the next record asks again
        }
        self.with_replica(now, group, |replica, effects| replica.keep(effects));
    }

    /// The state that a replica's service has here is to be kept.
    pub(crate) fn keeping(&mut self, group: GroupId) {
        let Some(hosted) = self.replicas.hosted.get_mut(&group) else { return };
        hosted.program.journal.iter_mut().for_each(Journal::take);
        if let Some(disk) = self.base.records.disk().filter(|_| is_on_disk(hosted)) {
            hosted.on_disk.logged =
                Logged { taken: Some((disk.appended(), hosted.taken)), ..hosted.on_disk.logged };
            (hosted.on_disk.logged.records, hosted.on_disk.logged.bytes) = (0, 0);
        }
    }

    /// A replica of a group on disk took an ordered message.
    pub(crate) fn log_taken(&mut self, group: GroupId, place: Place, payload: &Bytes) {
        self.base.records.persist(group, TAKEN, place, payload.clone());
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            hosted.on_disk.logged.records += 1;
            hosted.on_disk.logged.bytes += payload.len();
        }
    }

    /// Logs, for a replica on disk, a change of its state or style that no request made.
    pub(crate) fn log_beside(&mut self, group: GroupId, payload: &Bytes) {
        let hosted =
            self.replicas.hosted.get(&group).filter(|hosted| is_on_disk(hosted) && !hosted.spared);
        if let Some(place) = hosted.map(|hosted| hosted.taken) {
            self.log_taken(group, place, payload);
        }
    }

    /// All messages of the present place have been acted on: the disk is given what that led to.
    pub(crate) fn write_down(&mut self, now: Time) {
        if self.base.records.is_written() {
            return;
        }
        for (group, _) in self.base.records.mark_whole_places(self.base.planted) {
            self.cut_log(now, group);
        }
        self.base.outputs.extend(self.base.records.take_unwritten());
    }

    /// A snapshot is taken if a restart would have too much to do again.
    pub(crate) fn cut_log(&mut self, now: Time, group: GroupId) {
        let (after, most) = (self.base.records.snapshot_after(), Config::SNAPSHOT_BYTES);
        let long = |logged: &Logged| logged.records >= after || logged.bytes >= most;
        if self.replicas.hosted.get(&group).is_some_and(|hosted| long(&hosted.on_disk.logged)) {
            self.snapshot_group(now, group);
        }
    }

    /// A replica's state is there to be kept: of a transfer, or to stand for its records.
    pub(crate) fn store_state(
        &mut self,
        now: Time,
        group: GroupId,
        (style, state): (Style, Payload),
        transfer: Option<ViewNumber>,
    ) {
        let early = self.base.planted.is(Bug::SyncedBeforeStored);
        let Some(hosted) = self.replicas.hosted.get_mut(&group) else { return };
        match &mut hosted.program.journal {
            Some(journal) if style.logs() => journal.forget(style),
            Some(journal) => journal.cut(state.clone().whole(), transfer),
            None => {}
        }
        if !is_on_disk(hosted) {
            if let Some(transfer) = transfer {
                self.base.order(now, Ordered::Synced(Synced { group, transfer }));
            }
            return;
        }
        let (covers, place) = match transfer {
            Some(_) => hosted.on_disk.logged.lost,
            None => hosted.on_disk.logged.taken.take().expect("a state is taken at a known place"),
        };
        if !early {
            hosted.on_disk.logged.syncing = transfer.or(hosted.on_disk.logged.syncing);
        }
        let state = GroupState::encode(style, &state);
        let snapshot = Output::Snapshot { strand: Some(group), covers, place, state };
        self.base.records.store_later(group, snapshot);
        if let Some(transfer) = transfer.filter(|_| early) {
            self.base.order(now, Ordered::Synced(Synced { group, transfer }));
        }
    }

    /// A replica's state begins, or is of no use any more.
    pub(crate) fn mark(&mut self, group: GroupId, kind: u8) {
        if let Some(hosted) = self.replicas.hosted.get_mut(&group)
            && let Some(journal) = &mut hosted.program.journal
        {
            let style = hosted.replica.style();
            match kind {
                BEGUN => journal.begin(style),
                _ => journal.forget(style),
            }
        }
        let Some(hosted) = self.replicas.hosted.get(&group).filter(|hosted| is_on_disk(hosted))
        else {
            return;
        };
        let place = hosted.taken;
        let content = match kind {
            BEGUN => encode_style(hosted.replica.style_so_far()),
            _ => Bytes::new(),
        };
        let number = self.base.records.persist(group, kind, place, content);
        if let Some(hosted) = self.replicas.hosted.get_mut(&group) {
            hosted.on_disk.logged = Logged { lost: (number, place), ..Logged::default() };
        }
    }

    /// This node hosts a group whose state is on its disk.
    pub(crate) fn recall_replica(&mut self, now: Time, group: GroupId) {
        let strand = self.base.records.disk_mut().and_then(|disk| disk.take(group));
        let Some((strand, hosted)) = strand.zip(self.replicas.hosted.get_mut(&group)) else {
            return;
        };
        let taken = strand.taken;
        hosted.take(taken, true);
        hosted.on_disk.recalled = true;
        hosted.on_disk.logged.records = strand.log.len() as u64;
        if let Some(journal) = &mut hosted.program.journal
            && !self.base.planted.is(Bug::JournalWithoutDisk)
        {
            journal.recall(strand.style, strand.state.clone(), &strand.log);
        }
        self.with_replica(now, group, |replica, effects| {
            replica.recall_from_disk(now, (strand.style, strand.state), strand.log, effects);
        });
        if self.base.membership.ring() != RingId::default() {
            // It was not in what this node has announced.
            self.base.order(now, Ordered::Recalled(Recalled { group, taken }));
        }
    }

    /// The component's table has said what those are worth that this node announced.
    pub(crate) fn forget_recalls(&mut self) {
        let announced = self.base.membership.announces().get(&self.base.me);
        let announced = announced.map_or(&[][..], |announce| &announce.replicas);
        for (id, _) in announced {
            if let Some(hosted) = self.replicas.hosted.get_mut(id) {
                hosted.on_disk.recalled = false;
            }
        }
    }
}
