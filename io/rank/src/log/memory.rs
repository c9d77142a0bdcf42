//! Memory that one process writes and others read.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A shared mapping of a memory file of a fixed length.
#[derive(Debug)]
pub(super) struct Memory {
    begin: NonNull<u8>,
    length: usize,
    writable: bool,
}

// The mapping is plain memory, and nothing in it belongs to a thread.
//
// SAFETY: who has the `Memory` has the mapping; `write` needs it exclusively.
unsafe impl Send for Memory {}

impl Memory {
    /// Zeros, which only this mapping can change.
    pub fn create(name: &str, length: usize) -> io::Result<(Memory, File)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create(name, flags)?);
        file.set_len(length as u64)?;
        let memory = Memory::map(&file, length, true)?;
        // Later mappings are for readers; this one stays writable.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE;
        fcntl_add_seals(&file, seals | SealFlags::SEAL)?;
        Ok((memory, file))
    }

    /// Another process's memory, to be read. It has to be sealed: else a read could end this process.
    pub fn open(file: &File) -> io::Result<Memory> {
        let sealed = fcntl_get_seals(file)?.contains(SealFlags::SHRINK);
        let length = usize::try_from(file.metadata()?.len()).ok().filter(|it| *it >= 4_096);
        match length.filter(|_| sealed) {
            Some(length) => Memory::map(file, length, false),
            None => {
                let why = "the memory is not sealed, or too short";
                Err(io::Error::new(io::ErrorKind::InvalidData, why))
            }
        }
    }

    fn map(file: &File, length: usize, writable: bool) -> io::Result<Memory> {
        let write = if writable { ProtFlags::WRITE } else { ProtFlags::empty() };
        let protection = ProtFlags::READ | write;
        // SAFETY: the kernel chooses a free address, and the file has this length. The mapping is
        // undone when this is dropped.
        let begin =
            unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0)? };
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory { begin, length, writable })
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// A word that others may read or write meanwhile. Of a reader's mapping it can only be loaded.
    ///
    /// # Panics
    /// It is not in the memory, or not aligned.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length, "a word lies in the memory");
        // SAFETY: it is in the mapping, aligned as the page is, and accessed as an atomic alone.
        unsafe { AtomicU64::from_ptr(self.begin.as_ptr().add(at).cast()) }
    }

    /// # Panics
    /// The bytes are not in the memory, or it is a reader's.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= self.length);
        assert!(self.writable && fits, "bytes lie in the memory");
        // SAFETY: they lie in the mapping, which is writable. Readers look there only after these
        // bytes are published.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.begin.as_ptr().add(at), bytes.len())
        };
    }

    /// Copies out. What a broken peer changes meanwhile comes out mixed, and nothing else happens: no
    /// reference to these bytes exists.
    ///
    /// # Panics
    /// They are not in the memory.
    pub fn read(&self, at: usize, to: &mut [u8]) {
        let fits = at.checked_add(to.len()).is_some_and(|end| end <= self.length);
        assert!(fits, "bytes lie in the memory");
        // SAFETY: they lie in the mapping, and the target is another memory.
        unsafe { ptr::copy_nonoverlapping(self.begin.as_ptr().add(at), to.as_mut_ptr(), to.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no borrow is left.
        let _ = unsafe { munmap(self.begin.as_ptr().cast(), self.length) };
    }
}
