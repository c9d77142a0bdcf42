//! A disk that may fail: what a crash leaves of what was written is drawn, as freely as the system's promises allow.
//!
//! What was written and not synced survives a loss of power sector by sector, in any subset and any of its versions; a
//! sector that was being written may be spoilt. Names that were given and not synced survive in any subset. After a sync
//! that failed, what it should have written is shown as long as the host runs, and never comes to the disk any more
//! (A. Rebello et al.: *Can Applications Recover from fsync Failures?*, USENIX ATC 2020).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use store::{Done, Failure, FailureKind, FileName, Op};

use crate::draw::Draw;

/// What is written or not, as a whole.
const SECTOR: usize = 512;

/// The contents of one file.
#[derive(Clone, Default)]
struct File {
    /// As the system shows it.
    shown: Vec<u8>,
    /// As it is on the disk.
    durable: Vec<u8>,
    /// Sectors on their way, oldest first.
    pending: Vec<(usize, Vec<u8>)>,
    /// Bytes that are taken from the disk's room, at least.
    allocated: usize,
}

/// A change of names on its way.
#[derive(Clone)]
enum Naming {
    /// The file of this number is called so.
    Is(FileName, usize),
    /// No file is called so.
    Gone(FileName),
    /// The file of this number is called the second, and not the first any more.
    Moved(FileName, FileName, usize),
}

/// What may go wrong while it runs, of 1,000 cases each.
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
pub struct Disk {
    files: Vec<File>,
    names: BTreeMap<FileName, usize>,
    durable: BTreeMap<FileName, usize>,
    pending: Vec<Naming>,
    /// The last writes that were synced at once: file, offset and bytes.
    recent: VecDeque<(FileName, usize, usize)>,
    /// Bytes.
    pub capacity: usize,
    /// What may go wrong.
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
            files: Vec::new(),
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
        let of =
            |number: &usize| self.files[*number].shown.len().max(self.files[*number].allocated);
        self.names.values().map(of).sum()
    }

    fn has_room(&self, more: usize) -> bool {
        self.used() + more <= self.capacity
    }

    /// Begins to do something: what is written is shown at once, and may come to the disk at any time from here on.
    pub fn begin(&mut self, op: &Op) -> Result<(), Failure> {
        if self.draw.permille(self.troubles.refused) {
            return Err(failure(FailureKind::Refused, "input/output error"));
        }
        let full = || Err(failure(FailureKind::Full, "no space left on device"));
        match op {
            Op::Create { file, size } | Op::Allocate { file, size } => {
                let size = *size as usize;
                if !self.has_room(size) {
                    return full();
                }
                let number = self.new_file(*file);
                if matches!(op, Op::Create { .. }) {
                    self.write(number, 0, &vec![0; size]);
                } else {
                    self.files[number].allocated = size;
                }
            }
            Op::Write { file, offset, bytes } | Op::Append { file, offset, bytes } => {
                let Some(&number) = self.names.get(file) else {
                    return Err(failure(FailureKind::Missing, "no such file"));
                };
                let offset = *offset as usize;
                let length = self.files[number].shown.len();
                let grown = (offset + bytes.len()).saturating_sub(length);
                let more = if self.troubles.copies { bytes.len() } else { grown };
                if more > 0 && !self.has_room(more) {
                    // Some of it was written before the room was used up.
                    let part = self.draw.count(0, bytes.len() - grown);
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
            Op::Allocate { .. } | Op::Write { .. } => {}
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

    fn new_file(&mut self, name: FileName) -> usize {
        // As with O_TRUNC the file keeps its identity if it is there, but a new one is as good here: its old
        // content is of no use to anybody.
        let number = self.files.len();
        self.files.push(File::default());
        self.names.insert(name, number);
        self.pending.push(Naming::Is(name, number));
        number
    }

    fn write(&mut self, number: usize, offset: usize, bytes: &[u8]) {
        let file = &mut self.files[number];
        let end = offset + bytes.len();
        if file.shown.len() < end {
            file.shown.resize(end, 0);
        }
        file.shown[offset..end].copy_from_slice(bytes);
        for sector in offset / SECTOR..end.div_ceil(SECTOR) {
            let from = sector * SECTOR;
            let to = (from + SECTOR).min(file.shown.len());
            file.pending.push((sector, file.shown[from..to].to_vec()));
        }
    }

    fn read(&self, name: FileName, offset: u64, length: usize) -> Result<Done, Failure> {
        let Some(&number) = self.names.get(&name) else {
            return Err(failure(FailureKind::Missing, "no such file"));
        };
        let shown = &self.files[number].shown;
        let from = (offset as usize).min(shown.len());
        let to = (from + length).min(shown.len());
        Ok(Done::Read(Bytes::copy_from_slice(&shown[from..to])))
    }

    fn sync(&mut self, name: FileName) -> Result<(), Failure> {
        let Some(&number) = self.names.get(&name) else {
            return Err(failure(FailureKind::Refused, "no such file to sync"));
        };
        let fails = self.draw.permille(self.troubles.unsynced);
        let file = &mut self.files[number];
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
        if fails { Err(failure(FailureKind::Unsynced, "sync: input/output error")) } else { Ok(()) }
    }

    /// The host loses power: what is not on the disk is gone, but for what happens to be.
    pub fn lose_power(&mut self) {
        for naming in std::mem::take(&mut self.pending) {
            if self.draw.one_in(2) {
                rename(&mut self.durable, naming);
            }
        }
        for file in &mut self.files {
            let mut spoilt = Vec::new();
            for (sector, bytes) in std::mem::take(&mut file.pending) {
                if self.draw.one_in(2) {
                    put(&mut file.durable, sector, &bytes);
                }
                if self.draw.permille(self.troubles.spoilt) {
                    spoilt.push(sector);
                }
            }
            for sector in spoilt {
                let noise: Vec<u8> = (0..SECTOR).map(|_| self.draw.bits() as u8).collect();
                if sector * SECTOR < file.durable.len() {
                    put_within(&mut file.durable, sector, &noise);
                }
            }
            file.shown = file.durable.clone();
        }
        self.names = self.durable.clone();
        self.tidy();
    }

    /// Forgets the contents that nobody can name any more.
    fn tidy(&mut self) {
        let named = |number: usize| {
            self.names.values().chain(self.durable.values()).any(|&other| other == number)
        };
        let gone: Vec<usize> = (0..self.files.len()).filter(|&number| !named(number)).collect();
        for number in gone {
            self.files[number] = File::default();
        }
    }

    /// A bit of a file changes by itself, on the disk and in all that is shown of it. Gives what mends it.
    pub fn rot(&mut self) -> Option<(FileName, usize, u8)> {
        let lasting = |name: &&FileName| {
            matches!(name, FileName::Manifest | FileName::Segment(_) | FileName::Snapshot(_))
        };
        let names: Vec<FileName> = self.names.keys().filter(lasting).copied().collect();
        if names.is_empty() {
            return None;
        }
        let mut name = self.draw.pick(&names);
        let shown = &self.files[self.names[&name]].shown;
        // Most of a segment may be empty.
        let used = shown.iter().rposition(|&byte| byte != 0)? + 1;
        let mut at = self.draw.count(0, used - 1);
        // The log's end is where it matters most.
        if !self.recent.is_empty() && self.draw.one_in(2) {
            let recent: Vec<_> = self.recent.iter().copied().collect();
            let (file, offset, length) = self.draw.pick(&recent);
            (name, at) = (file, offset + self.draw.count(0, length.min(200) - 1));
        }
        let bit = 1 << self.draw.between(0, 7);
        self.flip((name, at, bit));
        Some((name, at, bit))
    }

    /// Changes a bit, or changes it back.
    pub fn flip(&mut self, (name, at, bit): (FileName, usize, u8)) {
        let Some(&number) = self.names.get(&name) else { return };
        let file = &mut self.files[number];
        for bytes in [&mut file.shown, &mut file.durable] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bit;
            }
        }
    }
}

fn put(durable: &mut Vec<u8>, sector: usize, bytes: &[u8]) {
    let from = sector * SECTOR;
    if durable.len() < from + bytes.len() {
        durable.resize(from + bytes.len(), 0);
    }
    durable[from..from + bytes.len()].copy_from_slice(bytes);
}

fn put_within(durable: &mut [u8], sector: usize, bytes: &[u8]) {
    let from = sector * SECTOR;
    let length = bytes.len().min(durable.len() - from);
    durable[from..from + length].copy_from_slice(&bytes[..length]);
}

fn rename(names: &mut BTreeMap<FileName, usize>, naming: Naming) {
    match naming {
        Naming::Is(name, number) => {
            names.insert(name, number);
        }
        Naming::Gone(name) => {
            names.remove(&name);
        }
        Naming::Moved(from, to, number) => {
            // Another file may be called so by now.
            if names.get(&from) == Some(&number) {
                names.remove(&from);
            }
            names.insert(to, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(troubles: Troubles, seed: u64) -> Disk {
        let mut disk = Disk::new(1 << 20, troubles, Draw::new(seed));
        run(&mut disk, Op::Create { file: FileName::Segment(1), size: 4_096 }).unwrap();
        run(&mut disk, Op::SyncFolder).unwrap();
        disk
    }

    fn run(disk: &mut Disk, op: Op) -> Result<Done, Failure> {
        disk.begin(&op)?;
        disk.finish(&op)
    }

    fn write(disk: &mut Disk, byte: u8, synced: bool) -> Result<Done, Failure> {
        let (file, bytes) = (FileName::Segment(1), Bytes::from(vec![byte; 4_096]));
        run(
            disk,
            match synced {
                true => Op::Append { file, offset: 0, bytes },
                false => Op::Write { file, offset: 0, bytes },
            },
        )
    }

    fn content(disk: &mut Disk) -> Vec<u8> {
        let op = Op::Read { file: FileName::Segment(1), offset: 0, length: 8_192 };
        let Ok(Done::Read(bytes)) = run(disk, op) else { panic!("it is there") };
        bytes.to_vec()
    }

    #[test]
    fn what_is_synced_stays_and_the_rest_survives_in_any_part() {
        let (mut mixed, mut lost) = (0, 0);
        for seed in 0..50 {
            let mut disk = disk(Troubles::default(), seed);
            write(&mut disk, 1, true).unwrap();
            disk.lose_power();
            assert_eq!(content(&mut disk), vec![1; 4_096]);
            write(&mut disk, 2, false).unwrap();
            disk.lose_power();
            let left = content(&mut disk);
            assert!(left.iter().all(|&byte| byte == 1 || byte == 2));
            mixed += usize::from(left.contains(&1) && left.contains(&2));
            run(&mut disk, Op::Create { file: FileName::Spare, size: 0 }).unwrap();
            disk.lose_power();
            lost += usize::from(!disk.names.contains_key(&FileName::Spare));
        }
        assert!(mixed > 40 && (10..40).contains(&lost), "{mixed} {lost}");
    }

    #[test]
    fn a_sync_that_failed_is_not_made_good_by_another() {
        let unsynced = Troubles { unsynced: 1_000, ..Troubles::default() };
        let mut disk = disk(Troubles::default(), 7);
        disk.troubles = unsynced;
        assert_eq!(write(&mut disk, 1, true).unwrap_err().kind, FailureKind::Unsynced);
        disk.troubles = Troubles::default();
        run(&mut disk, Op::Sync { file: FileName::Segment(1) }).unwrap();
        assert_eq!(content(&mut disk), vec![1; 4_096], "it is shown");
        disk.lose_power();
        assert!(content(&mut disk).contains(&0), "it was not on the disk");
    }

    #[test]
    fn a_full_disk_says_so() {
        let mut disk = disk(Troubles::default(), 1);
        disk.capacity = 8_192;
        let create = |size| Op::Create { file: FileName::Segment(2), size };
        assert_eq!(run(&mut disk, create(4_097)).unwrap_err().kind, FailureKind::Full);
        run(&mut disk, create(4_096)).unwrap();
        write(&mut disk, 1, true).unwrap();
    }
}
