//! Everything beside the log's end: segments that are made ready and cut off, snapshots, the manifest, and room.
//!
//! One job at a time, one step of it at a time. The order of steps is what makes a crash at any of them harmless:
//! what a manifest names is on the disk, name and all, before the manifest is; what a manifest no longer names goes when
//! the manifest is on the disk.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::Time;
use wire::limits::{MAX_SEGMENTS, MAX_SNAPSHOTS_WAITING, MAX_STATE, MAX_STRANDS};
use wire::ordered::Place;

use crate::api::{
    Config, Failure, FailureKind, Op, Output, RecordId, Snapshot, SnapshotError, Strand,
};
use crate::bug::planted;
use crate::format::{
    BATCH_HEAD, Entry, FileName, Link, Manifest, PIECE, SNAPSHOT_HEAD, SnapshotHead, padded, piece,
};
use crate::log::{Log, Written};

/// What is known of a segment that the manifest names.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// The last record of each strand in it.
    pub strands: BTreeMap<Strand, RecordId>,
    /// Behind its last batch; `None`: it has none.
    pub end: Option<Link>,
    /// Bytes of its file.
    pub size: u64,
}

/// A snapshot that waits for the disk, or, without a state, a strand that is forgotten.
#[derive(Clone, Debug)]
struct Waiting {
    strand: Strand,
    covers: RecordId,
    place: Place,
    state: Option<Bytes>,
}

/// A job, at the step that the disk is busy with.
#[derive(Debug)]
enum Job {
    /// A file for the log to go on in.
    Segment { number: u64, size: u64, step: Making },
    /// A snapshot's file.
    Snapshot { waiting: Waiting, number: u64, step: Taking },
    /// A new manifest.
    Manifest { step: Naming, told: Change },
    /// A file that is no longer needed; `spare`: it is kept as one.
    Removal { file: FileName, spare: bool },
    /// The reserve is made.
    Reserve,
    /// It is given up, for what needs the room.
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Making {
    Create,
    Reuse,
    SyncFolder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Create,
    /// The head; then pieces from here on in the state, at this offset in the file, after this check.
    Head,
    Piece {
        from: usize,
        offset: u64,
        check: u32,
    },
    Sync,
    SyncFolder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    Create,
    Write,
    Rename,
    SyncFolder,
}

/// What comes true when a manifest is on the disk.
#[derive(Debug, Default)]
struct Change {
    /// A segment that it names for the first time, with its size.
    named: Option<(u64, u64)>,
    /// Files that it no longer names; those that can be used again.
    doomed: Vec<(FileName, bool)>,
    /// Snapshots that it names for the first time.
    stored: Vec<(Strand, RecordId)>,
}

/// What came of a step.
pub(crate) enum Progress {
    /// Go on.
    Well,
    /// The store cannot begin: there is no room.
    NoRoom(String),
    /// The store is broken.
    Broken(String),
}

#[derive(Debug)]
pub(crate) struct House {
    /// As it should be on the disk.
    manifest: Manifest,
    /// It is not what is on the disk.
    dirty: bool,
    /// The segments that it names.
    segments: BTreeMap<u64, Held>,
    next_segment: u64,
    next_snapshot: u64,
    snapshots: VecDeque<Waiting>,
    /// What comes true with the next manifest.
    change: Change,
    garbage: VecDeque<(FileName, bool)>,
    spare: bool,
    reserve: bool,
    /// The disk was full: nothing that takes room is tried before.
    later: Option<Time>,
    full: bool,
    /// The oldest segment for which snapshots were asked.
    asked_for: u64,
    /// The log has begun: from here on, being full is no reason to end.
    begun: bool,
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

impl House {
    pub fn new(found: Found) -> House {
        let Found { mut manifest, mut segments, files, fresh } = found;
        // Segments that nothing was written to are of no use to this life, which writes to its own.
        segments.retain(|_, held| held.end.is_some());
        manifest.segments = segments.keys().copied().collect();
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
        House {
            dirty: fresh,
            next_segment: segment.map_or(1, |number| number + 1),
            next_snapshot: snapshot.map_or(1, |number| number + 1),
            snapshots: VecDeque::new(),
            change: Change { doomed: doomed.collect(), ..Change::default() },
            garbage: VecDeque::new(),
            spare: false,
            reserve: files.contains(&FileName::Reserve),
            later: None,
            full: false,
            asked_for: 0,
            begun: false,
            job: None,
            manifest,
            segments,
        }
    }

    pub fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The log has begun.
    pub fn begin(&mut self) {
        self.begun = true;
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
        if state.len() > MAX_STATE {
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
        let same = |other: &&Waiting| other.strand == waiting.strand;
        let under_way = match &self.job {
            Some(Job::Snapshot { waiting, .. }) => Some(waiting),
            _ => None,
        };
        if waiting.covers > log.appended() || waiting.covers < self.covered(waiting.strand) {
            return Err(SnapshotError::Misplaced(waiting.covers));
        }
        let taken = self.snapshots.len() >= MAX_SNAPSHOTS_WAITING;
        if taken || self.snapshots.iter().chain(under_way).any(|other| same(&other)) {
            return Err(SnapshotError::Busy);
        }
        // Each that waits may add one.
        let known = self.manifest.strands.len() + MAX_SNAPSHOTS_WAITING;
        if !self.manifest.strands.contains_key(&waiting.strand) && known >= MAX_STRANDS {
            return Err(SnapshotError::TooManyStrands);
        }
        if planted!(config, CutBeforeSnapshot) {
            let before = self.manifest.strands.clone();
            self.cover(&waiting, None, log, config);
            self.manifest.strands = before;
            self.garbage.extend(self.change.doomed.drain(..));
        }
        self.snapshots.push_back(waiting);
        Ok(())
    }

    /// What the disk is to do next, if it is idle.
    pub fn next_op(&mut self, now: Time, log: &Log, config: &Config) -> Option<Op> {
        if self.job.is_none() {
            self.later = self.later.filter(|&later| now < later);
            self.job = self.next_job(log, config);
            return self.op(config);
        }
        None
    }

    fn next_job(&mut self, log: &Log, config: &Config) -> Option<Job> {
        let waits = self.later.is_some();
        if self.dirty && !waits {
            self.dirty = false;
            let told = core::mem::take(&mut self.change);
            return Some(Job::Manifest { step: Naming::Create, told });
        }
        let wanted = log.wants_segment() && self.change.named.is_none();
        if wanted && !self.begun {
            return Some(self.make_segment(log, config));
        }
        if let Some((file, reusable)) = self.garbage.pop_front() {
            let spare = reusable && !self.spare;
            return Some(Job::Removal { file, spare });
        }
        if let Some(job) = self.next_snapshot(log, config) {
            return Some(job);
        }
        if self.dirty && !waits {
            return self.next_job(log, config);
        }
        if !self.reserve && !waits {
            return Some(Job::Reserve);
        }
        let possible = self.spare || self.reserve && !waits;
        if wanted && possible && self.manifest.segments.len() < MAX_SEGMENTS {
            return Some(self.make_segment(log, config));
        }
        None
    }

    /// The next snapshot that may be taken. A strand that is forgotten takes no file.
    fn next_snapshot(&mut self, log: &Log, config: &Config) -> Option<Job> {
        loop {
            let front = self.snapshots.front()?;
            // The numbers of records that are not on the disk may be given to others in another life.
            if front.covers > log.persisted() && !planted!(config, SnapshotAhead) {
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
        // What is said again was written by a life whose batches may have been larger.
        let repeated = padded(BATCH_HEAD + log.repeated()) + padded(BATCH_HEAD);
        let size = config.segment.max(repeated as u64);
        let step =
            if self.spare && size == config.segment { Making::Reuse } else { Making::Create };
        Job::Segment { number, size, step }
    }

    /// What the job's step asks of the disk.
    fn op(&self, config: &Config) -> Option<Op> {
        Some(match self.job.as_ref()? {
            Job::Segment { number, size, step } => {
                let file = FileName::Segment(*number);
                match step {
                    Making::Create => Op::Create { file, size: *size },
                    Making::Reuse => Op::Rename { from: FileName::Spare, to: file },
                    Making::SyncFolder => Op::SyncFolder,
                }
            }
            Job::Snapshot { waiting, number, step } => self.snapshot_op(waiting, *number, *step),
            Job::Manifest { step, .. } => {
                let file = FileName::NewManifest;
                match step {
                    Naming::Create => Op::Create { file, size: 0 },
                    Naming::Write => Op::Append { file, offset: 0, bytes: self.manifest.encode() },
                    Naming::Rename => Op::Rename { from: file, to: FileName::Manifest },
                    Naming::SyncFolder => Op::SyncFolder,
                }
            }
            Job::Removal { file, spare: true } => Op::Rename { from: *file, to: FileName::Spare },
            Job::Removal { file, spare: false } => Op::Remove { file: *file },
            Job::Reserve => Op::Allocate { file: FileName::Reserve, size: config.reserve },
            Job::Release => Op::Remove { file: FileName::Reserve },
        })
    }

    fn snapshot_op(&self, waiting: &Waiting, number: u64, step: Taking) -> Op {
        let file = FileName::Snapshot(number);
        match step {
            Taking::Create => Op::Create { file, size: 0 },
            Taking::Head => {
                Op::Write { file, offset: 0, bytes: self.head(waiting, number).encode().0 }
            }
            Taking::Piece { from, offset, check } => {
                let (bytes, _) = piece(next_piece(waiting, from), check);
                Op::Write { file, offset, bytes }
            }
            Taking::Sync => Op::Sync { file },
            Taking::SyncFolder => Op::SyncFolder,
        }
    }

    fn head(&self, waiting: &Waiting, number: u64) -> SnapshotHead {
        let length = waiting.state.as_ref().map_or(0, Bytes::len) as u64;
        SnapshotHead { store: self.manifest.store, number, length }
    }

    /// The disk did what it was asked for, or not.
    pub fn done(
        &mut self,
        now: Time,
        result: Result<(), Failure>,
        log: &mut Log,
        config: &Config,
        outputs: &mut VecDeque<Output>,
    ) -> Progress {
        let job = self.job.take().expect("the disk does what it is asked for");
        match result {
            Ok(()) => {
                self.job = self.step(job, log, config, outputs);
                Progress::Well
            }
            Err(Failure { kind: FailureKind::Full, text }) => {
                self.no_room(now, job, text, config, outputs)
            }
            Err(failure) => Progress::Broken(failure.text),
        }
    }

    /// Goes on in the job that is under way.
    pub fn go_on(&self, config: &Config) -> Option<Op> {
        self.op(config)
    }

    /// The step is done: the job at its next one; `None` if it is done.
    fn step(
        &mut self,
        job: Job,
        log: &mut Log,
        config: &Config,
        outputs: &mut VecDeque<Output>,
    ) -> Option<Job> {
        match job {
            Job::Segment { number, size, step } => match step {
                Making::Create | Making::Reuse => {
                    self.spare = self.spare && step != Making::Reuse;
                    Some(Job::Segment { number, size, step: Making::SyncFolder })
                }
                Making::SyncFolder => {
                    self.name_segment(number, size, log, config);
                    None
                }
            },
            Job::Snapshot { waiting, number, step } => {
                let step = match self.after(&waiting, number, step, config) {
                    Some(step) => step,
                    None => {
                        self.cover(&waiting, Some(number), log, config);
                        return None;
                    }
                };
                Some(Job::Snapshot { waiting, number, step })
            }
            Job::Manifest { step, told } => {
                let step = match step {
                    Naming::Create => Naming::Write,
                    Naming::Write => Naming::Rename,
                    Naming::Rename if !planted!(config, SkipFolderSync) => Naming::SyncFolder,
                    Naming::Rename | Naming::SyncFolder => {
                        self.come_true(told, log, outputs);
                        return None;
                    }
                };
                Some(Job::Manifest { step, told })
            }
            Job::Removal { spare, .. } => {
                self.spare |= spare;
                self.later = None;
                None
            }
            Job::Reserve => {
                self.reserve = true;
                if self.full && !log.wants_segment() {
                    self.full = false;
                    outputs.push_back(Output::Room);
                }
                None
            }
            Job::Release => {
                self.reserve = false;
                None
            }
        }
    }

    /// The step of a snapshot that comes after this one; `None` when it is on the disk.
    fn after(
        &self,
        waiting: &Waiting,
        number: u64,
        step: Taking,
        config: &Config,
    ) -> Option<Taking> {
        let length = waiting.state.as_ref().map_or(0, Bytes::len);
        let piece_or_sync = |from: usize, offset: u64, check: u32| match from < length {
            true => Taking::Piece { from, offset, check },
            false => Taking::Sync,
        };
        match step {
            Taking::Create => Some(Taking::Head),
            Taking::Head => {
                let (_, checksum) = self.head(waiting, number).encode();
                Some(piece_or_sync(0, SNAPSHOT_HEAD as u64, checksum))
            }
            Taking::Piece { from, offset, check } => {
                let bytes = next_piece(waiting, from);
                let (written, check) = piece(bytes, check);
                Some(piece_or_sync(from + bytes.len(), offset + written.len() as u64, check))
            }
            .filter(|&next| next != Taking::Sync || !planted!(config, NameUnsyncedSnapshot))
            .or(Some(Taking::SyncFolder)),
            Taking::Sync => Some(Taking::SyncFolder),
            Taking::SyncFolder => None,
        }
    }

    /// A segment's file is there, under its name: the next manifest names it.
    fn name_segment(&mut self, number: u64, size: u64, log: &mut Log, config: &Config) {
        let held = Held { strands: BTreeMap::new(), end: None, size };
        self.segments.insert(number, held);
        self.manifest.segments.push(number);
        self.dirty = true;
        if planted!(config, UseUnnamedSegment) {
            log.take_segment(number, size);
            return;
        }
        self.change.named = Some((number, size));
    }

    /// A strand's records up to `covers` are not needed any more, with the next manifest.
    fn cover(&mut self, waiting: &Waiting, number: Option<u64>, log: &Log, config: &Config) {
        let Waiting { strand, covers, place, ref state } = *waiting;
        let length = state.as_ref().map_or(0, Bytes::len) as u64;
        let snapshot = number.map(|number| (number, length));
        let entry = Entry { covers, place, snapshot };
        let last = self.manifest.strands.insert(strand, entry);
        if let Some((number, _)) = last.and_then(|entry| entry.snapshot) {
            self.change.doomed.push((FileName::Snapshot(number), false));
        }
        if number.is_some() {
            self.change.stored.push((strand, covers));
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
            if core::mem::take(&mut self.full) {
                outputs.push_back(Output::Room);
            }
        }
        self.garbage.extend(told.doomed);
        let stored = |(strand, covers)| Output::SnapshotStored(strand, covers);
        outputs.extend(told.stored.into_iter().map(stored));
    }

    /// The disk was full. Snapshots and manifests, which make room, get the reserve's; everything else waits.
    fn no_room(
        &mut self,
        now: Time,
        job: Job,
        text: String,
        config: &Config,
        outputs: &mut VecDeque<Output>,
    ) -> Progress {
        let mut may_use_reserve = true;
        let mut refused = None;
        match job {
            Job::Segment { number, .. } => {
                self.garbage.push_front((FileName::Segment(number), false));
                may_use_reserve = !self.begun;
            }
            Job::Snapshot { waiting, number, .. } => {
                self.garbage.push_front((FileName::Snapshot(number), false));
                if self.reserve {
                    self.snapshots.push_front(waiting);
                } else {
                    refused = Some(waiting.strand);
                }
            }
            Job::Manifest { told, .. } => {
                self.dirty = true;
                self.change.doomed.extend(told.doomed);
                self.change.stored.extend(told.stored);
                self.change.named = self.change.named.or(told.named);
            }
            Job::Reserve => {
                self.garbage.push_front((FileName::Reserve, false));
                may_use_reserve = false;
            }
            Job::Removal { .. } | Job::Release => return Progress::Broken(text),
        }
        if self.reserve && may_use_reserve {
            self.job = Some(Job::Release);
            return Progress::Well;
        }
        if !self.begun {
            return Progress::NoRoom(text);
        }
        self.later = Some(now + config.retry);
        if let Some(strand) = refused {
            self.asked_for = 0;
            outputs.push_back(Output::SnapshotRefused(strand));
        }
        if !core::mem::replace(&mut self.full, true) {
            outputs.push_back(Output::Full(text));
        }
        Progress::Well
    }

    /// Asks for the snapshots that would let the oldest segment go, once for each.
    pub fn ask_for_snapshots(
        &mut self,
        log: &Log,
        config: &Config,
        outputs: &mut VecDeque<Output>,
    ) {
        if self.manifest.segments.len() >= MAX_SEGMENTS && !core::mem::replace(&mut self.full, true)
        {
            outputs.push_back(Output::Full("the log has as many segments as it may".into()));
        }
        let Some((&oldest, held)) = self.segments.first_key_value() else { return };
        let due = self.full || self.segments.len() > config.keep;
        if !due || oldest == self.asked_for || oldest >= log.first_needed() || self.later.is_some()
        {
            return;
        }
        let needed = held.strands.iter().filter(|(strand, last)| **last > self.covered(**strand));
        outputs.extend(needed.map(|(&strand, _)| Output::SnapshotWanted(strand)));
        self.asked_for = oldest;
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

/// The part of a state that goes into the next piece.
fn next_piece(waiting: &Waiting, from: usize) -> &[u8] {
    let state: &[u8] = waiting.state.as_deref().unwrap_or_default();
    &state[from..state.len().min(from + PIECE)]
}
