//! A replica that this node hosts: in parts, each of one topic.

use alloc::string::String;

use wire::ordered::{Died, Durability, GroupOptions, Place};
use wire::{GroupId, RingId, ViewNumber};

use crate::bug::Planted;
use crate::parts::{Counts, RejoinBackoff};
use crate::replica::Replica;
use crate::replicas::cold::ColdTimes;
use crate::replicas::journal::Journal;
use crate::replicas::passive::Yield;
use crate::replicas::storage::Logged;
use crate::stopwatch::Stopwatch;

/// How it goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departure {
    /// It is to go.
    pub(crate) begun: bool,
    /// But not as long as no other has the state.
    pub(crate) spares: bool,
    /// It goes with its node, and remains the group's.
    pub(crate) stays: bool,
    /// Its service executes nothing any more: it only waits to be out of the table.
    pub(crate) abandoned: bool,
}

/// How it comes into the group's table, and goes out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Admission {
    /// The ring on which its coming or going was ordered last.
    pub(crate) asked: Option<RingId>,
    /// Its coming was ordered and may still be delivered.
    pub(crate) coming: bool,
    /// The group would not have it: it is not tried again.
    pub(crate) refused: bool,
}

/// The program that serves it, if one does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// Kept for the next program in case that this one dies.
    pub(crate) journal: Option<Journal>,
    /// It has died, and what that leads to has no place in the order yet.
    pub(crate) fallen: bool,
    /// It died before the replica had the group's state, and the replica is not to go for another
    /// reason.
    pub(crate) unbegun: bool,
    /// It died, and how far it was.
    pub(crate) died: Option<Died>,
    /// Whether the service merges the state of another history with its own. `None`: its program has not
    /// said so yet.
    pub(crate) merges: Option<bool>,
}

/// Its state on this node's disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnDisk {
    /// Its state came from the disk, and no table has said yet what it is worth.
    pub(crate) recalled: bool,
    /// It is out of the table, and keeps its state until all disks know that.
    pub(crate) kept: bool,
    /// The part of its history that is on the disk.
    pub(crate) logged: Logged,
}

/// A replica that this node hosts.
#[derive(Clone, Debug)]
pub(crate) struct Hosted {
    pub(crate) name: String,
    pub(crate) options: GroupOptions,
    pub(crate) replica: Replica,
    /// The place of the last request that it took, or that the state on its way has in it.
    pub(crate) taken: Place,
    /// The place of the last one of them that may have changed the state.
    pub(crate) changed: Place,
    /// The replica as it was before it was to be given another state.
    former: Option<Former>,
    /// When the last configuration ended, all that it had taken was held.
    pub(crate) settled: bool,
    /// A component that was over when it was installed would have given it another state: it keeps
    /// what it has, and takes nothing more of what was ordered there.
    pub(crate) spared: bool,
    /// It lost the state that the table says it has: it only waits to be out of the table, and
    /// comes anew.
    pub(crate) lost: bool,
    /// How many calls its history has, and had.
    pub(crate) counts: Counts,
    pub(crate) departure: Departure,
    pub(crate) admission: Admission,
    pub(crate) program: Program,
    pub(crate) on_disk: OnDisk,
    /// Times of a cold passive group.
    pub(crate) cold: ColdTimes,
    /// As a passive group's primary, it says this as soon as what it has taken is ordered; and
    /// whether it has.
    pub(crate) yields: Option<(Yield, bool)>,
    /// The views, first and last, in which it was the primary without a break.
    pub(crate) led: Option<(ViewNumber, ViewNumber)>,
    pub(crate) rejoin: RejoinBackoff,
    /// Times what its service executes.
    pub(crate) stopwatch: Stopwatch,
    /// That its service is hung was told; and the ring and the view in which its end was asked for
    /// last.
    pub(crate) hung: Option<Option<(RingId, ViewNumber)>>,
}

impl Hosted {
    /// A replica that has no state yet. `journal`: a program serves it. `logs`: what it takes is
    /// kept.
    pub(crate) fn new(
        (id, name): (GroupId, &str),
        options: GroupOptions,
        (journal, logs): (Option<Journal>, bool),
        planted: Planted,
    ) -> Hosted {
        Hosted {
            name: name.into(),
            options,
            replica: Replica::new(id, options.style, logs, planted),
            taken: Place::default(),
            changed: Place::default(),
            former: None,
            settled: false,
            spared: false,
            lost: false,
            counts: Counts::default(),
            departure: Departure::default(),
            admission: Admission::default(),
            program: Program {
                merges: journal.is_none().then_some(false),
                journal,
                ..Program::default()
            },
            on_disk: OnDisk::default(),
            cold: ColdTimes::default(),
            yields: None,
            led: None,
            rejoin: RejoinBackoff::default(),
            stopwatch: Stopwatch::default(),
            hung: None,
        }
    }
}

/// A replica that was set aside.
#[derive(Clone, Debug)]
struct Former {
    replica: Replica,
    taken: Place,
    journal: Option<Journal>,
}

impl Hosted {
    /// It is to be given another state: it keeps its own until then. A group on disk has it there.
    pub(crate) fn set_aside(&mut self) {
        if is_on_disk(self) {
            return;
        }
        if let Some(replica) = self.replica.set_aside() {
            let journal = self.program.journal.as_mut().map(core::mem::take);
            self.former = Some(Former { replica, taken: self.taken, journal });
        }
    }

    /// The last place in the state that it keeps beside the one that is to come.
    pub(crate) fn former(&self) -> Option<Place> {
        let former = self.former.as_ref().filter(|_| !self.departure.abandoned)?;
        self.replica.can_resume(&former.replica).then_some(former.taken)
    }

    /// It takes what has this place in the order, and may change the state.
    pub(crate) fn take(&mut self, place: Place, changes: bool) {
        self.taken = place;
        if changes {
            self.changed = place;
        }
    }

    /// The group begins here, behind this place. The state that a transfer had brought, and no disk
    /// had, counts no more: later views would have the replica begin again.
    pub(crate) fn begin_from(&mut self, last: Place) {
        self.take(last, true);
        self.on_disk.logged.syncing = None;
    }

    /// It goes on with the state that it kept, if it has one.
    pub(crate) fn resume(&mut self) {
        let Some(former) = self.former().and_then(|_| self.former.take()) else { return };
        let Former { replica, taken, journal } = former;
        self.replica.resume(replica);
        self.take(taken, true);
        self.program.journal = journal;
    }

    /// Forgets the state that it kept, once another has come.
    pub(crate) fn forget_former(&mut self) {
        if !self.replica.holds_former() {
            self.former = None;
        }
    }
}

pub(crate) fn is_on_disk(hosted: &Hosted) -> bool {
    hosted.options.durability == Durability::Disk
}
