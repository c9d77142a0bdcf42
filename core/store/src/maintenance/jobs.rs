//! The jobs of the maintenance, step by step, and what happens to them where there is no room.

use alloc::collections::{BTreeMap, VecDeque};

use wire::{Payload, Time};

use super::job::{Job, Making, Naming, Taking, Waiting};
use super::{Held, Maintenance, Progress};
use crate::api::{Config, Failure, FailureKind, Op, Output};
use crate::bug::Bug;
use crate::format::{FileName, PIECE, SNAPSHOT_HEAD, SnapshotHead, piece};
use crate::log::Log;

impl Maintenance {
    /// The disk operation of the job's step.
    pub(super) fn op(&self, config: &Config) -> Option<Op> {
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
            Job::Removal { file, spare: false } | Job::Clearing { file } => {
                Op::Remove { file: *file }
            }
            Job::Shrink { number, size } => {
                Op::Shrink { file: FileName::Segment(*number), size: *size }
            }
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
        let length = waiting.state.as_ref().map_or(0, Payload::len) as u64;
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
                self.no_room(now + config.retry, job, text, log, outputs)
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
                    Naming::Rename if !config.planted.is(Bug::SkipFolderSync) => Naming::SyncFolder,
                    Naming::Rename | Naming::SyncFolder => {
                        self.unnamed = false;
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
            Job::Shrink { number, size } => {
                self.segments.entry(number).and_modify(|held| held.size = size);
                None
            }
            Job::Clearing { .. } => None,
            Job::Reserve => {
                (self.reserve, self.whole) = (true, true);
                if !log.wants_segment() {
                    self.has_room(log, outputs);
                }
                None
            }
            Job::Release => {
                (self.reserve, self.whole) = (false, false);
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
        let length = waiting.state.as_ref().map_or(0, Payload::len);
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
                Some(piece_or_sync(
                    from + bytes.iter().map(|part| part.len()).sum::<usize>(),
                    offset + written.len() as u64,
                    check,
                ))
            }
            .filter(|&next| next != Taking::Sync || !config.planted.is(Bug::NameUnsyncedSnapshot))
            .or(Some(Taking::SyncFolder)),
            Taking::Sync => Some(Taking::SyncFolder),
            Taking::SyncFolder => None,
        }
    }

    /// A segment's file is there, under its name: the next manifest names it.
    fn name_segment(&mut self, number: u64, size: u64, log: &mut Log, config: &Config) {
        let held = Held { strands: BTreeMap::new(), end: None, size, used: size };
        self.segments.insert(number, held);
        self.manifest.segments.push(number);
        self.dirty = true;
        if config.planted.is(Bug::UseUnnamedSegment) {
            log.take_segment(number, size);
            return;
        }
        self.change.named = Some((number, size));
    }
}

/// The part of a state that goes into the next piece.
fn next_piece(waiting: &Waiting, from: usize) -> [&[u8]; 2] {
    let state = waiting.state.as_ref();
    state.map_or([&[], &[]], |state| state.range(from, PIECE.min(state.len() - from)))
}
