//! Everything beside the log's end: segments that are made ready and cut off, snapshots, the
//! manifest, and room.
//!
//! One job at a time, one step of it at a time. The order of steps is what makes a crash at any of
//! them harmless: what a manifest names is on the disk, name and all, before the manifest is; what
//! a manifest no longer names goes when the manifest is on the disk.

mod asking;
mod job;
mod jobs;
mod room;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use wire::limits::{MAX_SEGMENTS, MAX_SNAPSHOT, MAX_SNAPSHOTS_WAITING, MAX_STRANDS};
use wire::ordered::Place;
use wire::{Payload, Time};

use crate::api::{Config, Op, Output, RecordId, Snapshot, SnapshotError, Strand};
use crate::bug::Bug;
use crate::format::{BATCH_HEAD, Entry, FileName, Link, Manifest, padded};
use crate::log::{Log, Written};
use job::{Change, Job, Making, Naming, Taking, Waiting};

/// A segment that the manifest names, as far as known.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// The last record of each strand in it.
    pub strands: BTreeMap<Strand, RecordId>,
    /// Behind its last batch; `None`: it has none.
    pub end: Option<Link>,
    /// Bytes of its file.
    pub size: u64,
    /// Bytes that batches can have: all, or up to the last batch of an earlier life.
    pub used: u64,
}

/// The result of a step.
pub(crate) enum Progress {
    /// Go on.
    Well,
    /// The store cannot begin: there is no room.
    NoRoom(String),
    /// The store is broken.
    Broken(String),
}

#[derive(Debug)]
pub(crate) struct Maintenance {
    /// As it should be on the disk.
    manifest: Manifest,
    /// It is not what is on the disk.
    dirty: bool,
    /// The segments that it names.
    segments: BTreeMap<u64, Held>,
    next_segment: u64,
    next_snapshot: u64,
    snapshots: VecDeque<Waiting>,
    /// The changes that take effect with the next manifest.
    change: Change,
    /// Files that are no longer needed, and whether they may be used again.
    garbage: VecDeque<(FileName, bool)>,
    /// Segments of earlier lives that have room behind their last batch.
    slack: VecDeque<u64>,
    /// The remains of a file that found no room.
    leftover: Option<FileName>,
    spare: bool,
    /// There is a reserve, of whatever size.
    reserve: bool,
    /// It is as large as it should be.
    whole: bool,
    /// The disk was full: what takes more room than a snapshot or a manifest is not tried before.
    later: Option<Time>,
    /// It was too full for a manifest.
    unnamed: bool,
    /// It was too full even to take a name away: nothing at all is tried before.
    jammed: bool,
    full: bool,
    /// The oldest segment for which snapshots were asked.
    asked_for: u64,
    /// The strands whose snapshots were requested for its sake, and have not come.
    asked: BTreeSet<Strand>,
    job: Option<Job>,
}

/// How the folder was found.
pub(crate) struct Found {
    pub manifest: Manifest,
    pub segments: BTreeMap<u64, Held>,
    pub files: Vec<FileName>,
    /// There was no manifest.
    pub fresh: bool,
}

impl Maintenance {
    pub fn new(found: Found, config: &Config) -> Maintenance {
        let Found { mut manifest, mut segments, files, fresh } = found;
        // Segments that nothing was written to are of no use to this life, which writes to its own.
        segments.retain(|_, held| held.end.is_some());
        manifest.segments = segments.keys().copied().collect();
        let slack = segments.iter().filter(|(_, held)| held.used < held.size);
        let slack = slack.map(|(&number, _)| number).collect();
        let named = |file: &FileName| match *file {
            FileName::Manifest | FileName::Reserve => true,
            FileName::Segment(number) => segments.contains_key(&number),
            FileName::Snapshot(number) => {
                manifest.strands.values().any(|entry| entry.snapshot.is_some_and(|s| s.0 == number))
            }
            FileName::NewManifest | FileName::Spare => false,
        };
        // Nothing goes before a manifest of this life is on the disk: what was read may not be.
        let doomed = files.iter().copied().filter(|file| !named(file)).map(|file| (file, false));
        let largest = |of: fn(&FileName) -> Option<u64>| files.iter().filter_map(of).max();
        let segment = largest(|file| match file {
            FileName::Segment(number) => Some(*number),
            _ => None,
        });
        let snapshot = largest(|file| match file {
            FileName::Snapshot(number) => Some(*number),
            _ => None,
        });
        Maintenance {
            dirty: fresh,
            next_segment: segment.map_or(1, |number| number + 1),
            next_snapshot: snapshot.map_or(1, |number| number + 1),
            snapshots: VecDeque::new(),
            change: Change { doomed: doomed.collect(), ..Change::default() },
            garbage: VecDeque::new(),
            slack,
            leftover: None,
            spare: false,
            reserve: files.contains(&FileName::Reserve),
            // Its maker may have died before it had its room, or have wanted less.
            whole: config.planted.is(Bug::TrustReserve) && files.contains(&FileName::Reserve),
            later: None,
            unnamed: false,
            jammed: false,
            full: false,
            asked_for: 0,
            asked: BTreeSet::new(),
            job: None,
            manifest,
            segments,
        }
    }

    pub fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    /// Something that was taken is not on the disk yet.
    pub fn owes(&self) -> bool {
        let Change { stored, forgotten, .. } = &self.change;
        !(self.snapshots.is_empty() && stored.is_empty() && forgotten.is_empty())
    }

    /// Refuses the accepted snapshots that are not on the disk: nothing waits for them any more.
    pub fn give_up(&mut self, outputs: &mut VecDeque<Output>) {
        let Change { stored, forgotten, .. } = core::mem::take(&mut self.change);
        let named = stored.into_iter().chain(forgotten).map(|(strand, _)| strand);
        let waiting = self.snapshots.drain(..).map(|waiting| waiting.strand);
        outputs.extend(named.chain(waiting).map(Output::SnapshotRefused));
    }

    /// A batch is on the disk.
    pub fn note(&mut self, written: &Written) {
        let held = self.segments.get_mut(&written.segment).expect("the log writes to named ones");
        held.end = Some(written.link);
        held.strands.extend(written.strands.iter().map(|(&strand, &last)| (strand, last)));
    }

    fn covered(&self, strand: Strand) -> RecordId {
        self.manifest.strands.get(&strand).map_or(RecordId(0), |entry| entry.covers)
    }

    pub fn snapshot(
        &mut self,
        snapshot: Snapshot,
        log: &Log,
        config: &Config,
    ) -> Result<(), SnapshotError> {
        let Snapshot { strand, covers, place, state } = snapshot;
        if state.len() > MAX_SNAPSHOT {
            return Err(SnapshotError::TooLarge(state.len()));
        }
        self.enqueue(Waiting { strand, covers, place, state: Some(state) }, log, config)
    }

    pub fn forget(
        &mut self,
        strand: Strand,
        place: Place,
        log: &Log,
        config: &Config,
    ) -> Result<(), SnapshotError> {
        let covers = log.appended();
        self.enqueue(Waiting { strand, covers, place, state: None }, log, config)
    }

    fn enqueue(
        &mut self,
        waiting: Waiting,
        log: &Log,
        config: &Config,
    ) -> Result<(), SnapshotError> {
        if waiting.covers > log.appended() || waiting.covers < self.covered(waiting.strand) {
            return Err(SnapshotError::Misplaced(waiting.covers));
        }
        // One that is written comes back here if the disk is full.
        let written = usize::from(matches!(self.job, Some(Job::Snapshot { .. })));
        let taken = self.snapshots.len() + written >= MAX_SNAPSHOTS_WAITING;
        if taken || self.has(waiting.strand) {
            self.not_asked(waiting.strand, config);
            return Err(SnapshotError::Busy);
        }
        // Each that waits may add one.
        let known = self.manifest.strands.len() + MAX_SNAPSHOTS_WAITING;
        if !self.manifest.strands.contains_key(&waiting.strand) && known >= MAX_STRANDS {
            return Err(SnapshotError::TooManyStrands);
        }
        if config.planted.is(Bug::CutBeforeSnapshot) {
            let before = self.manifest.strands.clone();
            self.cover(&waiting, None, log, config);
            self.manifest.strands = before;
            self.garbage.extend(self.change.doomed.drain(..));
        }
        self.not_asked(waiting.strand, config);
        self.snapshots.push_back(waiting);
        Ok(())
    }

    /// A snapshot of this strand is under way.
    fn has(&self, strand: Strand) -> bool {
        let under_way = match &self.job {
            Some(Job::Snapshot { waiting, .. }) => Some(waiting),
            _ => None,
        };
        self.snapshots.iter().chain(under_way).any(|waiting| waiting.strand == strand)
    }

    /// The next operation of the disk, if it is idle.
    pub fn next_op(&mut self, now: Time, log: &Log, config: &Config) -> Option<Op> {
        if self.job.is_none() {
            self.later = self.later.filter(|&later| now < later);
            self.jammed &= self.later.is_some();
            if self.jammed {
                return None;
            }
            self.job = self.next_job(log, config);
            return self.op(config);
        }
        None
    }

    fn next_job(&mut self, log: &Log, config: &Config) -> Option<Job> {
        let waits = self.later.is_some();
        let names = self.dirty && !(waits && self.unnamed);
        if names {
            self.dirty = false;
            let told = core::mem::take(&mut self.change);
            return Some(Job::Manifest { step: Naming::Create, told });
        }
        if let Some(file) = self.leftover.take() {
            return Some(Job::Clearing { file });
        }
        // Before this life's segment: lives that end soon would use the disk up.
        while let Some(number) = self.slack.pop_front() {
            if let Some(held) = self.segments.get(&number) {
                return Some(Job::Shrink { number, size: held.used });
            }
        }
        let wanted = log.wants_segment() && self.change.named.is_none();
        if wanted && !log.has_begun() {
            return Some(self.make_segment(log, config));
        }
        if let Some((file, reusable)) = self.garbage.pop_front() {
            let spare = reusable && !self.spare;
            return Some(Job::Removal { file, spare });
        }
        if let Some(job) = self.next_snapshot(log, config) {
            return Some(job);
        }
        if self.dirty && !(waits && self.unnamed) {
            return self.next_job(log, config);
        }
        if !self.whole && !waits {
            return Some(Job::Reserve);
        }
        let possible = self.spare || self.whole && !waits;
        if wanted && possible && self.manifest.segments.len() < MAX_SEGMENTS {
            return Some(self.make_segment(log, config));
        }
        None
    }

    /// The next snapshot that may be taken. A strand that is forgotten takes no file.
    fn next_snapshot(&mut self, log: &Log, config: &Config) -> Option<Job> {
        loop {
            let front = self.snapshots.front()?;
            // The numbers of records that are not on the disk may be given to others in another
            // life.
            if front.covers > log.persisted() && !config.planted.is(Bug::SnapshotAhead) {
                return None;
            }
            let waiting = self.snapshots.pop_front()?;
            if waiting.state.is_some() {
                let number = self.next_snapshot;
                self.next_snapshot += 1;
                return Some(Job::Snapshot { waiting, number, step: Taking::Create });
            }
            self.cover(&waiting, None, log, config);
        }
    }

    fn make_segment(&mut self, log: &Log, config: &Config) -> Job {
        let number = self.next_segment;
        self.next_segment += 1;
        // The repeated batch was written by a life whose batches may have been larger.
        let repeated = padded(BATCH_HEAD + log.repeated()) + padded(BATCH_HEAD);
        let size = config.segment.max(repeated as u64);
        let step =
            if self.spare && size == config.segment { Making::Reuse } else { Making::Create };
        Job::Segment { number, size, step }
    }

    /// A strand's records up to `covers` are not needed any more, with the next manifest.
    fn cover(&mut self, waiting: &Waiting, number: Option<u64>, log: &Log, config: &Config) {
        let Waiting { strand, covers, place, ref state } = *waiting;
        let length = state.as_ref().map_or(0, Payload::len) as u64;
        let snapshot = number.map(|number| (number, length));
        let entry = Entry { covers, place, snapshot };
        let last = self.manifest.strands.insert(strand, entry);
        if let Some((number, _)) = last.and_then(|entry| entry.snapshot) {
            self.change.doomed.push((FileName::Snapshot(number), false));
        }
        match number {
            Some(_) => self.change.stored.push((strand, covers)),
            None => self.change.forgotten.push((strand, covers)),
        }
        self.cut(log, config);
        self.dirty = true;
    }

    /// Leaves out the oldest segments, as far as nobody needs their records.
    fn cut(&mut self, log: &Log, config: &Config) {
        while let Some((&number, held)) = self.segments.first_key_value() {
            let needed = |(strand, last): (&Strand, &RecordId)| *last > self.covered(*strand);
            if number >= log.first_needed() || held.strands.iter().any(needed) {
                break;
            }
            self.manifest.start = held.end.unwrap_or(self.manifest.start);
            self.change.doomed.push((FileName::Segment(number), held.size == config.segment));
            self.segments.remove(&number);
        }
        self.manifest.segments = self.segments.keys().copied().collect();
        let first = self.manifest.start.next;
        self.manifest.strands.retain(|_, entry| entry.snapshot.is_some() || entry.covers >= first);
    }

    /// A manifest is on the disk, and with it this.
    fn come_true(&mut self, told: Change, log: &mut Log, outputs: &mut VecDeque<Output>) {
        if let Some((number, size)) = told.named {
            log.take_segment(number, size);
            self.has_room(log, outputs);
        }
        self.garbage.extend(told.doomed);
        let stored = |(strand, covers)| Output::SnapshotStored(strand, covers);
        outputs.extend(told.stored.into_iter().map(stored));
        let forgotten = |(strand, upto)| Output::Forgotten(strand, upto);
        outputs.extend(told.forgotten.into_iter().map(forgotten));
    }

    pub fn next_timeout(&self) -> Option<Time> {
        self.later.filter(|_| self.job.is_none())
    }

    pub fn check_invariants(&self) {
        assert!(self.manifest.segments.iter().eq(self.segments.keys()), "what is named is known");
        assert!(self.manifest.segments.len() <= MAX_SEGMENTS);
        assert!(self.manifest.strands.len() <= MAX_STRANDS);
        assert!(self.snapshots.len() <= MAX_SNAPSHOTS_WAITING);
        let named = self.change.named.map(|(number, _)| number);
        assert!(named.is_none_or(|number| self.segments.contains_key(&number)));
    }
}
