//! Memory in a file of its own.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// A shared mapping of a whole memory file. It has one owner, and nobody else maps it writable.
#[derive(Debug)]
pub(crate) struct Mapping {
    begin: NonNull<u8>,
    length: usize,
    file: File,
}

// The mapping is plain memory: who has the `Mapping` has the memory.
//
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// So many bytes of zeros, a multiple of the page.
    pub fn new(length: usize) -> io::Result<Mapping> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("steadfast arena", flags)?);
        file.set_len(length as u64)?;
        // Another process that gets the file cannot take the memory away.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses a free address, and the length is the file's. The mapping is
        // undone when this is dropped.
        let begin = unsafe { mmap(ptr::null_mut(), length, protection, flags, &file, 0)? };
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping { begin, length, file };
        // A child would write here unseen by the tracker of its parent.
        //
        // SAFETY: the advice changes no byte.
        unsafe { madvise(mapping.begin.as_ptr().cast(), length, Advice::LinuxDontFork)? };
        // A first write to a large page would have to split it. A kernel without such pages refuses.
        //
        // SAFETY: the advice changes no byte.
        let _ = unsafe { madvise(mapping.begin.as_ptr().cast(), length, Advice::LinuxNoHugepage) };
        Ok(mapping)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped while this lives, and nobody else writes there.
        unsafe { std::slice::from_raw_parts(self.begin.as_ptr(), self.length) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this borrow is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.begin.as_ptr(), self.length) }
    }

    /// The file, for another process to keep.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.begin.as_ptr().addr() as u64
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no borrow is left.
        let _ = unsafe { munmap(self.begin.as_ptr().cast(), self.length) };
    }
}
