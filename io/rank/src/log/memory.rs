//! Memory that one process writes and others read.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

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
        let seals = fcntl_get_seals(file)?;
        let written = seals.intersects(SealFlags::FUTURE_WRITE | SealFlags::WRITE);
        let sealed = seals.contains(SealFlags::SHRINK) && written;
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

    /// A word that others may read or write meanwhile. Of a reader's mapping it can only be loaded,
    /// relaxed.
    ///
    /// # Panics
    /// It is not in the memory, or not aligned.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length, "a word lies in the memory");
        // SAFETY: it is in the mapping, aligned as the page is, and all of the memory is accessed as
        // such words alone.
        unsafe { AtomicU64::from_ptr(self.begin.as_ptr().add(at).cast()) }
    }

    /// Writes these bytes, and zeros up to the next word. A word at a time, as others may read here.
    ///
    /// # Panics
    /// They are not in the memory, it is a reader's, or the place is not a word's.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(self.writable, "a reader writes nothing");
        for (place, chunk) in (at..).step_by(8).zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(place).store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// Copies bytes out, a word at a time. A broken peer may change them meanwhile: then they come out
    /// mixed, and nothing else happens.
    ///
    /// # Panics
    /// They are not in the memory, or the place is not a word's.
    pub fn read(&self, at: usize, to: &mut [u8]) {
        for (place, chunk) in (at..).step_by(8).zip(to.chunks_mut(8)) {
            let word = self.word(place).load(Ordering::Relaxed).to_ne_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no borrow is left.
        let _ = unsafe { munmap(self.begin.as_ptr().cast(), self.length) };
    }
}
