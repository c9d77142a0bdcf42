//! Memory in a file of its own.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Addresses that are reserved for a mapping at first; half of it where the system refuses, and so
/// on. Memory is taken only where it is written.
const RESERVE: usize = 1 << 40;

/// Less than this is not worth another try.
const LEAST: usize = 1 << 32;

/// A shared mapping of a memory file, which may grow without moving. It has one owner, and nobody
/// else maps it writable.
#[derive(Debug)]
pub(crate) struct Mapping {
    begin: NonNull<u8>,
    /// Addresses that it may have, and bytes that it has.
    reserved: usize,
    length: usize,
    file: File,
}

// The mapping is plain memory: who has the `Mapping` has the memory.
//
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Mapping {}

/// Addresses of a mapping, for a thread that has memory made there before it is needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    begin: usize,
    reserved: usize,
}

impl Room {
    /// The kernel makes memory for these bytes, and maps it: a write there is no fault then.
    pub fn populate(self, from: usize, length: usize) -> io::Result<()> {
        if from.checked_add(length).is_none_or(|end| end > self.reserved) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let begin = ptr::without_provenance_mut(self.begin + from);
        // SAFETY: the advice changes no byte, whatever is mapped there by now.
        unsafe { madvise(begin, length, Advice::LinuxPopulateWrite)? };
        Ok(())
    }
}

impl Mapping {
    /// A file in memory without a name.
    pub fn file_named(name: &str) -> io::Result<File> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        Ok(File::from(memfd_create(name, flags)?))
    }

    /// So many bytes of zeros, a multiple of the page.
    pub fn new(length: usize) -> io::Result<Mapping> {
        Mapping::of(Mapping::file_named("steadfast arena")?, length)
    }

    /// So many bytes of a file in memory, a multiple of the page.
    pub fn of(file: File, length: usize) -> io::Result<Mapping> {
        let mut reserved = RESERVE.max(length);
        let mapping = loop {
            match Mapping::reserve(file.try_clone()?, length, reserved) {
                Err(_) if reserved / 2 >= LEAST.max(length) => reserved /= 2,
                mapping => break mapping?,
            }
        };
        // Another process that gets the file cannot take the memory away. One that it came from may
        // have done so.
        match fcntl_add_seals(&mapping.file, SealFlags::SHRINK | SealFlags::GROW) {
            Err(error) if error != Errno::PERM => Err(error.into()),
            _ => Ok(mapping),
        }
    }

    fn reserve(file: File, length: usize, reserved: usize) -> io::Result<Mapping> {
        // Beyond what is written, the file takes no memory.
        file.set_len(reserved as u64)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses a free address, and the length is the file's. The mapping is
        // undone when this is dropped.
        let begin = unsafe { mmap(ptr::null_mut(), reserved, protection, flags, &file, 0)? };
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping { begin, reserved, length, file };
        // A child would write here unseen by the tracker of its parent.
        //
        // SAFETY: the advice changes no byte.
        unsafe { madvise(mapping.begin.as_ptr().cast(), reserved, Advice::LinuxDontFork)? };
        // A first write to a large page would have to split it, and a dump of the process would walk
        // through all addresses. A kernel without such pages refuses.
        for advice in [Advice::LinuxNoHugepage, Advice::LinuxDontDump] {
            // SAFETY: the advice changes no byte.
            let _ = unsafe { madvise(mapping.begin.as_ptr().cast(), reserved, advice) };
        }
        Ok(mapping)
    }

    /// It has so many bytes from now on, a multiple of the page; the new ones are zeros.
    pub fn grow(&mut self, length: usize) -> io::Result<()> {
        if length > self.reserved {
            let why = format!(
                "the arrays of a rank may have {} GiB here together: the system reserves no more \
                 addresses (ulimit -v)",
                self.reserved >> 30
            );
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        self.length = self.length.max(length);
        Ok(())
    }

    /// It has no more bytes than this from now on.
    pub fn shorten(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped while this lives, and nobody else writes there.
        unsafe { std::slice::from_raw_parts(self.begin.as_ptr(), self.length) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this borrow is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.begin.as_ptr(), self.length) }
    }

    /// Where it begins, for others that write there while nobody borrows the bytes. It is good while
    /// this lives.
    pub fn pointer(&self) -> *mut u8 {
        self.begin.as_ptr()
    }

    /// Its addresses.
    pub fn room(&self) -> Room {
        Room { begin: self.begin.as_ptr().addr(), reserved: self.reserved }
    }

    /// The file, for another process to read.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// All addresses that it may have.
    pub fn reserved(&self) -> u64 {
        self.reserved as u64
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.begin.as_ptr().addr() as u64
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no borrow is left.
        let _ = unsafe { munmap(self.begin.as_ptr().cast(), self.reserved) };
    }
}
