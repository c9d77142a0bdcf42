//! Large buffers: how the kernel gives and takes their pages.
//!
//! To take a gibibyte back in one call takes it some 100 ms here, in which no thread of the process
//! can map memory. In steps, others have their turn.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use rustix::mm::{Advice, madvise, munlock};
use rustix::param::page_size;

/// Bytes that are given back at a time: some 0.5 ms.
const STEP: usize = 4 << 20;

/// The kernel may back this room by huge pages, where it has some: a first write to a gibibyte is
/// then 512 faults, and not 262,144. No harm is done where it has none.
pub fn prefer_huge_pages(room: &mut [MaybeUninit<u8>]) {
    let (from, length) = whole_pages(room.as_ptr().addr(), room.len());
    if length > 0 {
        let start = room[from..].as_mut_ptr();
        // SAFETY: the pages lie within the exclusive borrow, and this advice changes no byte.
        let _ = unsafe { madvise(start.cast(), length, Advice::LinuxHugepage) };
    }
}

/// Drops a buffer. Its pages go back to the kernel in steps.
pub fn free_in_steps(mut buffer: Vec<u8>) {
    buffer.clear();
    let room = buffer.spare_capacity_mut();
    let (from, length) = whole_pages(room.as_ptr().addr(), room.len());
    let mut left = &mut room[from..from + length];
    while !left.is_empty() {
        // Whole steps by their addresses: so no huge page is split.
        let step = STEP - left.as_ptr().addr() % STEP;
        let (piece, rest) = left.split_at_mut(step.min(left.len()));
        left = rest;
        let (start, length) = (piece.as_mut_ptr().cast(), piece.len());
        // SAFETY: the pages lie within the buffer, which this function owns, and which has no bytes
        // any more that anybody could read. Locked pages would not go.
        unsafe {
            let _ = munlock(start, length);
            let _ = madvise(start, length, Advice::LinuxDontNeed);
        }
    }
}

/// The whole pages within so many bytes at this address: from which byte on, and how many bytes.
fn whole_pages(address: usize, length: usize) -> (usize, usize) {
    let page = page_size();
    let from = address.next_multiple_of(page) - address;
    match length.checked_sub(from) {
        Some(length) => (from, length - length % page),
        None => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_that_are_whole_are_touched() {
        let page = page_size();
        assert_eq!(whole_pages(0, 3 * page), (0, 3 * page));
        assert_eq!(whole_pages(page + 1, 3 * page), (page - 1, 2 * page));
        assert_eq!(whole_pages(page + 1, page - 2), (0, 0));
        assert_eq!(whole_pages(page + 1, page - 1), (page - 1, 0));
    }

    #[test]
    fn a_buffer_keeps_its_bytes_on_huge_pages_and_its_neighbours_when_it_goes() {
        let mut buffer: Vec<u8> = Vec::with_capacity(9 << 20);
        prefer_huge_pages(buffer.spare_capacity_mut());
        buffer.extend((0..9 << 20).map(|at: usize| at as u8));
        assert!(buffer.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        let neighbours: Vec<Vec<u8>> = (0..100).map(|size| vec![7; size * 100]).collect();
        free_in_steps(buffer);
        assert!(neighbours.iter().flatten().all(|byte| *byte == 7));
        free_in_steps(Vec::new());
    }
}
