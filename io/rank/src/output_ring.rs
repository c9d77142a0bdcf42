//! The last bytes of a file as a ring: byte `n` of the file is at `n` modulo the capacity.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Copies bytes of the ring, from this one on. What cannot be read is zeros.
pub(crate) fn copy_ring(file: &File, (length, capacity): (u64, u64), from: u64, to: &mut [u8]) {
    let (round, head) = (length / capacity * capacity, length % capacity);
    // Behind the newest byte are those of a round before.
    let newest = head.saturating_sub(from).min(to.len() as u64) as usize;
    let (new, old) = to.split_at_mut(newest);
    read(file, Some(round + from), new);
    read(file, (round + from + newest as u64).checked_sub(capacity), old);
}

fn read(file: &File, from: Option<u64>, mut to: &mut [u8]) {
    let Some(mut from) = from else { return to.fill(0) };
    while !to.is_empty() {
        match file.read_at(to, from) {
            Ok(count) if count > 0 => {
                to = &mut to[count..];
                from += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return to.fill(0),
        }
    }
}
