//! Files and names, as they are shown and as they are on the disk.

use std::collections::BTreeMap;

use bytes::Bytes;
use store::FileName;

/// A bit that changed by itself: the file, the byte, the bit.
pub type Rot = (FileName, usize, u8);

/// Bytes that are written as a whole, or not at all.
pub(super) const SECTOR: usize = 512;

/// The contents of one file.
#[derive(Clone, Default)]
pub(super) struct File {
    /// As the system shows it.
    pub shown: Vec<u8>,
    /// As it is on the disk.
    pub durable: Vec<u8>,
    /// Sectors on their way, oldest first.
    pub pending: Vec<(usize, Bytes)>,
    /// Bytes that are taken from the disk's room, at least.
    pub allocated: usize,
}

/// A change of names on its way.
#[derive(Clone)]
pub(super) enum Naming {
    /// The file of this number is called so.
    Is(FileName, usize),
    /// No file is called so.
    Gone(FileName),
    /// The file of this number is called the second, and not the first any more.
    Moved(FileName, FileName, usize),
}

pub(super) fn put(durable: &mut Vec<u8>, sector: usize, bytes: &[u8]) {
    let from = sector * SECTOR;
    if durable.len() < from + bytes.len() {
        durable.resize(from + bytes.len(), 0);
    }
    durable[from..from + bytes.len()].copy_from_slice(bytes);
}

pub(super) fn put_within(durable: &mut [u8], sector: usize, bytes: &[u8]) {
    let from = sector * SECTOR;
    let length = bytes.len().min(durable.len() - from);
    durable[from..from + length].copy_from_slice(&bytes[..length]);
}

pub(super) fn rename(names: &mut BTreeMap<FileName, usize>, naming: Naming) {
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
