//! The kernel marks written pages: userfaultfd(2) in its asynchronous mode, and the scan of the
//! page map (PAGEMAP_SCAN). Linux 6.7.
//!
//! No library of ours has these calls whole. The numbers are those of `linux/userfaultfd.h` and
//! `linux/fs.h`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::mapping::Mapping;
use crate::stretch::{Stretch, add};

/// `UFFD_USER_MODE_ONLY`: needs no permission.
const USER_MODE_ONLY: libc::c_int = 1;

const UFFD_API: u64 = 0xaa;
/// Write protection of pages of files in memory, of those that are not there yet, and without a
/// thread that answers.
const FEATURES: u64 = 1 << 12 | 1 << 13 | 1 << 15;
const MODE_WP: u64 = 1 << 1;
const WRITEPROTECT_WP: u64 = 1;

const IOCTL_API: libc::c_ulong = 0xc018_aa3f;
const IOCTL_REGISTER: libc::c_ulong = 0xc020_aa00;
const IOCTL_WRITEPROTECT: libc::c_ulong = 0xc018_aa06;
const IOCTL_PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;

/// Protect what is found again, and refuse a range that is not asynchronous.
const SCAN_FLAGS: u64 = 1 << 0 | 1 << 1;
/// A page that was written. It is the only category that is asked for and told: then the kernel also
/// tells pages that were swapped out.
const IS_WRITTEN: u64 = 1 << 1;

/// Stretches that one scan tells at most.
const AT_ONCE: usize = 512;

#[repr(C)]
#[derive(Default)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Default)]
struct Register {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Default)]
struct WriteProtect {
    start: u64,
    length: u64,
    mode: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_length: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    told: u64,
}

/// A mapping whose written pages the kernel marks.
#[derive(Debug)]
pub(super) struct Written {
    /// The registration ends with it.
    faults: OwnedFd,
    pages: File,
}

impl Written {
    pub fn new(memory: &Mapping) -> io::Result<Written> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
        // SAFETY: the call takes flags alone, and returns a new descriptor or -1.
        let faults = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        let faults = i32::try_from(faults).unwrap_or(-1);
        if faults < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is open, and nobody else has it.
        let faults = unsafe { OwnedFd::from_raw_fd(faults) };
        let mut api = Api { api: UFFD_API, features: FEATURES, ioctls: 0 };
        control(&faults, IOCTL_API, &mut api)?;
        let (start, length) = (memory.address(), memory.reserved());
        let mut register = Register { start, length, mode: MODE_WP, ioctls: 0 };
        control(&faults, IOCTL_REGISTER, &mut register)?;
        let mut written = Written { faults, pages: File::open("/proc/self/pagemap")? };
        written.protect(memory, 0, memory.bytes().len() as u64)?;
        Ok(written)
    }

    /// From here on, writes to these bytes are seen.
    pub fn protect(&mut self, memory: &Mapping, from: u64, to: u64) -> io::Result<()> {
        if from == to {
            return Ok(());
        }
        let (start, length) = (memory.address() + from, to - from);
        let mut protect = WriteProtect { start, length, mode: WRITEPROTECT_WP };
        control(&self.faults, IOCTL_WRITEPROTECT, &mut protect).map(drop)
    }

    /// The written stretches among so many bytes from the mapping's beginning. They are protected again in the same
    /// step, so that no write between is lost.
    pub fn changed(&mut self, memory: &Mapping, length: u64) -> io::Result<Vec<Stretch>> {
        let begin = memory.address();
        let mut regions = [Region::default(); AT_ONCE];
        let (mut stretches, mut start) = (Vec::new(), begin);
        while start < begin + length {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                flags: SCAN_FLAGS,
                start,
                end: begin + length,
                regions: regions.as_mut_ptr().addr() as u64,
                regions_length: AT_ONCE as u64,
                all_of: IS_WRITTEN,
                told: IS_WRITTEN,
                ..Scan::default()
            };
            let count = control(&self.pages, IOCTL_PAGEMAP_SCAN, &mut scan)?;
            for region in regions.iter().take(usize::try_from(count).unwrap_or(0)) {
                let (from, to) = (region.start - begin, region.end - begin);
                add(&mut stretches, Stretch::new(from, to));
            }
            // It stops early where the list is full.
            if scan.walk_end <= start {
                return Err(io::Error::other("the scan of the page map does not go on"));
            }
            start = scan.walk_end;
        }
        Ok(stretches)
    }
}

/// One of the calls above.
fn control<T>(file: &impl AsRawFd, call: libc::c_ulong, argument: &mut T) -> io::Result<i32> {
    // SAFETY: each call above reads and writes the structure that belongs to it, which lives as
    // long as the call; a scan also writes the list that it names, whose length it is told.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), call as _, argument as *mut T) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
