//! A disk that may fail: what a crash leaves of what was written is drawn, as freely as the
//! system's promises allow.
//!
//! Data written and not synced survives a loss of power sector by sector, in any subset and any of
//! its versions; a sector that was being written may be spoilt. Names that were given and not
//! synced survive in any subset. After a sync that failed, what it should have written is shown as
//! long as the host runs, and never comes to the disk any more (A. Rebello et al.: *Can
//! Applications Recover from fsync Failures?*, USENIX ATC 2020).

mod file;
mod power;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use store::{Done, Failure, FailureKind, FileName, Op};

use crate::draw::Draw;
use file::{File, Naming, SECTOR, put, rename};

pub use file::Rot;

/// The troubles that may occur while it runs, in 1,000 cases each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Troubles {
    /// A sync fails.
    pub unsynced: u64,
    /// Something else fails.
    pub refused: u64,
    /// A loss of power spoils a sector that was on its way.
    pub spoilt: u64,
    /// Room is taken for what is written over, too.
    pub copies: bool,
}

/// A disk.
#[derive(Clone)]
pub struct Disk {
    /// By number; each that has a name, is on its way to one, or had one before power was lost.
    files: BTreeMap<usize, File>,
    /// The next number.
    next: usize,
    names: BTreeMap<FileName, usize>,
    durable: BTreeMap<FileName, usize>,
    pending: Vec<Naming>,
    /// The last writes that were synced at once: file, offset and bytes.
    recent: VecDeque<(FileName, usize, usize)>,
    /// Bytes.
    pub capacity: usize,
    /// The troubles that may occur.
    pub troubles: Troubles,
    draw: Draw,
}

fn failure(kind: FailureKind, text: &str) -> Failure {
    Failure { kind, text: text.into() }
}

impl Disk {
    /// An empty one.
    pub fn new(capacity: usize, troubles: Troubles, draw: Draw) -> Disk {
        Disk {
            files: BTreeMap::new(),
            next: 0,
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
            recent: VecDeque::new(),
            capacity,
            troubles,
            draw,
        }
    }

    /// Bytes that files take.
    pub fn used(&self) -> usize {
        let of = |number: &usize| self.files[number].shown.len().max(self.files[number].allocated);
        self.names.values().map(of).sum()
    }

    fn has_room(&self, more: usize) -> bool {
        self.used() + more <= self.capacity
    }

    /// Begins an operation: a write is shown at once, and may come to the disk at any time from
    /// here on.
    pub fn begin(&mut self, op: &Op) -> Result<(), Failure> {
        if self.draw.permille(self.troubles.refused) {
            return Err(failure(FailureKind::Refused, "input/output error"));
        }
        let full = || Err(failure(FailureKind::Full, "no space left on device"));
        match op {
            Op::Create { file, size } => {
                let size = *size as usize;
                if !self.has_room(size) {
                    return full();
                }
                let number = self.new_file(*file);
                self.write(number, 0, &vec![0; size]);
            }
            Op::Allocate { file, size } => {
                let number = match self.names.get(file) {
                    Some(&number) => number,
                    None => self.new_file(*file),
                };
                let known = self.files[&number].allocated;
                if !self.has_room((*size as usize).saturating_sub(known)) {
                    return full();
                }
            }
            Op::Write { file, offset, bytes } | Op::Append { file, offset, bytes } => {
                let Some(&number) = self.names.get(file) else {
                    return Err(failure(FailureKind::Missing, "no such file"));
                };
                let offset = *offset as usize;
                let length = self.files[&number].shown.len();
                let grown = (offset + bytes.len()).saturating_sub(length);
                let more = if self.troubles.copies { bytes.len() } else { grown };
                if more > 0 && !self.has_room(more) {
                    // Some of it was written before the room was used up.
                    let part = self.draw.count(0, bytes.len().saturating_sub(grown));
                    self.write(number, offset, &bytes[..part]);
                    return full();
                }
                self.write(number, offset, bytes);
                if let (Op::Append { .. }, FileName::Segment(_)) = (op, file) {
                    self.recent.truncate(1);
                    self.recent.push_front((*file, offset, bytes.len()));
                }
            }
            Op::List
            | Op::Read { .. }
            | Op::Shrink { .. }
            | Op::Sync { .. }
            | Op::Rename { .. }
            | Op::Remove { .. }
            | Op::SyncFolder => {}
        }
        Ok(())
    }

    /// Ends what was begun well.
    pub fn finish(&mut self, op: &Op) -> Result<Done, Failure> {
        match op {
            Op::List => return Ok(Done::Listed(self.names.keys().copied().collect())),
            Op::Read { file, offset, length } => return self.read(*file, *offset, *length),
            Op::Create { file, .. } | Op::Append { file, .. } | Op::Sync { file } => {
                self.sync(*file)?;
            }
            Op::Allocate { file, size } => {
                let Some(&number) = self.names.get(file) else {
                    return Err(failure(FailureKind::Refused, "no such file to allocate"));
                };
                let known = self.files[&number].allocated;
                if !self.has_room((*size as usize).saturating_sub(known)) {
                    return Err(failure(FailureKind::Full, "no space left on device"));
                }
                self.file(number).allocated = known.max(*size as usize);
            }
            Op::Write { .. } => {}
            Op::Shrink { file, size } => {
                let Some(&number) = self.names.get(file) else {
                    return Err(failure(FailureKind::Refused, "no such file to shrink"));
                };
                self.shrink(number, *size as usize);
            }
            Op::Rename { from, to } => {
                let Some(number) = self.names.remove(from) else {
                    return Err(failure(FailureKind::Refused, "no such file to rename"));
                };
                self.names.insert(*to, number);
                self.pending.push(Naming::Moved(*from, *to, number));
            }
            Op::Remove { file } => {
                if self.names.remove(file).is_some() {
                    self.pending.push(Naming::Gone(*file));
                }
            }
            Op::SyncFolder => self.sync_folder()?,
        }
        Ok(Done::Well)
    }

    fn add(&mut self, file: File) -> usize {
        let number = self.next;
        self.next += 1;
        self.files.insert(number, file);
        number
    }

    fn file(&mut self, number: usize) -> &mut File {
        self.files.get_mut(&number).expect("who has a name has contents")
    }

    fn new_file(&mut self, name: FileName) -> usize {
        // As with O_TRUNC the file keeps its identity if it is there, but a new one is as good
        // here: its old content is of no use to anybody.
        let number = self.add(File::default());
        self.names.insert(name, number);
        self.pending.push(Naming::Is(name, number));
        number
    }

    fn write(&mut self, number: usize, offset: usize, bytes: &[u8]) {
        let file = self.file(number);
        let end = offset + bytes.len();
        if file.shown.len() < end {
            file.shown.resize(end, 0);
        }
        file.shown[offset..end].copy_from_slice(bytes);
        let sectors = offset / SECTOR..end.div_ceil(SECTOR);
        let start = sectors.start * SECTOR;
        let whole = (sectors.end * SECTOR).min(file.shown.len());
        let written = Bytes::copy_from_slice(&file.shown[start.min(whole)..whole]);
        for sector in sectors {
            let from = sector * SECTOR - start;
            file.pending.push((sector, written.slice(from..(from + SECTOR).min(written.len()))));
        }
    }

    /// The part that is cut off may be back after a loss of power.
    fn shrink(&mut self, number: usize, size: usize) {
        let is_certain = self.draw.one_in(2);
        let file = self.file(number);
        file.shown.truncate(size);
        file.pending.retain(|(sector, _)| (sector + 1) * SECTOR <= size);
        if is_certain {
            file.durable.truncate(size);
        }
    }

    fn read(&self, name: FileName, offset: u64, length: usize) -> Result<Done, Failure> {
        let Some(&number) = self.names.get(&name) else {
            return Err(failure(FailureKind::Missing, "no such file"));
        };
        let shown = &self.files[&number].shown;
        let from = (offset as usize).min(shown.len());
        let to = (from + length).min(shown.len());
        Ok(Done::Read(Bytes::copy_from_slice(&shown[from..to])))
    }

    fn sync(&mut self, name: FileName) -> Result<(), Failure> {
        let Some(&number) = self.names.get(&name) else {
            return Err(failure(FailureKind::Refused, "no such file to sync"));
        };
        let fails = self.draw.permille(self.troubles.unsynced);
        let file = self.files.get_mut(&number).expect("who has a name has contents");
        for (sector, bytes) in std::mem::take(&mut file.pending) {
            if !fails || self.draw.one_in(2) {
                put(&mut file.durable, sector, &bytes);
            }
        }
        if fails { Err(failure(FailureKind::Unsynced, "sync: input/output error")) } else { Ok(()) }
    }

    fn sync_folder(&mut self) -> Result<(), Failure> {
        let fails = self.draw.permille(self.troubles.unsynced);
        for naming in std::mem::take(&mut self.pending) {
            if !fails || self.draw.one_in(2) {
                rename(&mut self.durable, naming);
            }
        }
        self.tidy();
        if fails { Err(failure(FailureKind::Unsynced, "sync: input/output error")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
