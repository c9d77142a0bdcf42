//! A disk that does what it is asked for, and says no when a test wants it to.

use std::collections::BTreeMap;

use bytes::Bytes;
use steadfast_store::format::BLOCK;
use steadfast_store::{
    Config, Done, Failure, FailureKind, FileName, Op, Output, Owner, Record, Store, Strand,
};
use wire::ordered::Place;
use wire::{ClusterId, GroupId, NodeId, RingId, Time};

pub const NOW: Time = Time(1_000);
pub const GROUP: Strand = Strand::Group(GroupId(5));

pub type Which = fn(&Op) -> bool;

#[derive(Default)]
pub struct Disk {
    pub files: BTreeMap<FileName, Vec<u8>>,
    /// The operations done, without their bytes.
    pub done: Vec<String>,
    /// Says no to the first that is of this kind.
    pub refuses: Option<(Which, FailureKind)>,
    /// Has no room for any that is of this kind.
    pub always: Option<Which>,
}

impl Disk {
    pub fn writes_to_the_log(&self) -> usize {
        self.done.iter().filter(|op| op.starts_with("write and sync log")).count()
    }

    pub fn perform(&mut self, op: &Op) -> Result<Done, Failure> {
        if let Some((which, kind)) = self.refuses
            && which(op)
        {
            self.refuses = None;
            return Err(Failure { kind, text: format!("{op}: no") });
        }
        if self.always.is_some_and(|which| which(op)) {
            return Err(Failure { kind: FailureKind::Full, text: format!("{op}: full") });
        }
        self.done.push(op.to_string());
        match op {
            Op::List => return Ok(Done::Listed(self.files.keys().copied().collect())),
            Op::Read { file, offset, .. } => {
                let missing = || Failure { kind: FailureKind::Missing, text: file.to_string() };
                let file = self.files.get(file).ok_or_else(missing)?;
                let from = file.len().min(*offset as usize);
                return Ok(Done::Read(Bytes::copy_from_slice(&file[from..])));
            }
            Op::Create { file, size } => {
                self.files.insert(*file, vec![0; *size as usize]);
            }
            Op::Allocate { file, size } => {
                let file = self.files.entry(*file).or_default();
                file.resize(file.len().max(*size as usize), 0);
            }
            Op::Shrink { file, size } => self.files.get_mut(file).unwrap().truncate(*size as usize),
            Op::Write { file, offset, bytes } | Op::Append { file, offset, bytes } => {
                let (file, from) = (self.files.get_mut(file).unwrap(), *offset as usize);
                file.resize(file.len().max(from + bytes.len()), 0);
                file[from..from + bytes.len()].copy_from_slice(bytes);
            }
            Op::Rename { from, to } => {
                let file = self.files.remove(from).unwrap();
                self.files.insert(*to, file);
            }
            Op::Remove { file } => drop(self.files.remove(file)),
            Op::Sync { .. } | Op::SyncFolder => {}
        }
        Ok(Done::Well)
    }
}

pub fn config() -> Config {
    let owner = Owner { cluster: ClusterId(0x0102_0304), node: NodeId(1) };
    let mut config = Config::new(owner, 0x0506_0708);
    (config.segment, config.batch, config.keep) = (7 * BLOCK as u64, 4_000, 1);
    config.reserve = config.segment;
    config
}

pub fn record(strand: Strand, sequence: u64, length: usize) -> Record {
    let ring = RingId { sequence: 9, representative: NodeId(1) };
    let bytes = (0..length).map(|byte| byte as u8).collect();
    Record { strand, kind: 3, place: Place { epoch: 7, ring, sequence }, bytes }
}

/// Has the disk do all that is asked for; gives what else is said.
pub fn run(store: &mut Store, disk: &mut Disk) -> Vec<Output> {
    let mut said = Vec::new();
    while let Some(output) = store.poll_output() {
        match output {
            Output::Disk(lane, op) => {
                let result = disk.perform(&op);
                store.handle_done(NOW, lane, result);
                store.check_invariants();
            }
            other => said.push(other),
        }
    }
    said
}

pub fn open(disk: &mut Disk) -> (Store, Vec<Output>) {
    let mut store = Store::open(config()).unwrap();
    let said = run(&mut store, disk);
    (store, said)
}

pub fn opened(said: &[Output]) -> bool {
    said.iter().any(|output| matches!(output, Output::Opened(_)))
}
