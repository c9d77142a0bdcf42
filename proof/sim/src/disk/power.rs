//! The fate of a disk while nobody uses it: power is lost, bits rot, files are replaced.

use std::collections::BTreeSet;

use store::FileName;

use super::Disk;
use super::file::{File, Rot, SECTOR, put, put_within, rename};

impl Disk {
    /// The host loses power: unsynced data is gone, but for what the disk happens to have.
    pub fn lose_power(&mut self) {
        for naming in std::mem::take(&mut self.pending) {
            if self.draw.one_in(2) {
                rename(&mut self.durable, naming);
            }
        }
        for file in self.files.values_mut() {
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
            // Room that was given was not synced, either.
            if file.allocated > 0 && self.draw.one_in(2) {
                file.allocated = self.draw.count(0, file.allocated);
            }
        }
        self.names = self.durable.clone();
        self.tidy();
    }

    /// Forgets the contents that nobody can name any more.
    pub(super) fn tidy(&mut self) {
        debug_assert!(self.pending.is_empty(), "what is on its way names files, too");
        let named: BTreeSet<usize> =
            self.names.values().chain(self.durable.values()).copied().collect();
        self.files.retain(|number, _| named.contains(number));
    }

    /// A bit of a file changes by itself, on the disk and in all that is shown of it. Gives what
    /// mends it.
    pub fn rot(&mut self) -> Option<Rot> {
        let lasting = |name: &&FileName| {
            matches!(name, FileName::Manifest | FileName::Segment(_) | FileName::Snapshot(_))
        };
        let names: Vec<FileName> = self.names.keys().filter(lasting).copied().collect();
        if names.is_empty() {
            return None;
        }
        let mut name = self.draw.pick(&names);
        let shown = &self.files[&self.names[&name]].shown;
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
        // The most recent write may be gone by now.
        self.flip((name, at, bit)).then_some((name, at, bit))
    }

    /// Changes a bit, or changes it back. Tells whether there is such a bit.
    pub fn flip(&mut self, (name, at, bit): Rot) -> bool {
        let Some(&number) = self.names.get(&name) else { return false };
        let file = self.file(number);
        let there = at < file.shown.len();
        for bytes in [&mut file.shown, &mut file.durable] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bit;
            }
        }
        there
    }

    /// This bit is of what was written last, and synced.
    pub fn is_recent(&self, (name, at, _): Rot) -> bool {
        self.recent
            .iter()
            .any(|(file, offset, length)| *file == name && (*offset..offset + length).contains(&at))
    }

    /// Returns the contents of a file.
    pub fn content(&self, name: FileName) -> Option<Vec<u8>> {
        self.names.get(&name).map(|&number| self.files[&number].shown.clone())
    }

    /// Somebody replaces a file, name and all.
    pub fn put(&mut self, name: FileName, bytes: Vec<u8>) {
        let number = self.add(File { shown: bytes.clone(), durable: bytes, ..File::default() });
        self.names.insert(name, number);
        self.durable.insert(name, number);
    }

    /// Somebody removes a file for good.
    pub fn take(&mut self, name: FileName) {
        self.names.remove(&name);
        self.durable.remove(&name);
    }

    /// The files that it shows.
    pub fn names(&self) -> impl Iterator<Item = FileName> + '_ {
        self.names.keys().copied()
    }

    /// Files of the log.
    pub fn segments(&self) -> usize {
        self.names.keys().filter(|name| matches!(name, FileName::Segment(_))).count()
    }

    /// Bytes of room that a file has.
    pub fn room_of(&self, name: FileName) -> usize {
        self.names.get(&name).map_or(0, |&number| self.files[&number].allocated)
    }
}
