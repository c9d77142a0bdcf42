//! Memory that one process writes and others read.
#![allow(unsafe_code)]

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use channel::Head;
use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals,
    fcntl_get_seals, fcntl_getfl, fstatfs, memfd_create, open,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The kind of file system that is memory.
const TMPFS: u64 = 0x0102_1994;

/// Logs may be written to this folder: it is on a disk that takes files without a name.
pub fn is_on_disk(folder: &Path) -> bool {
    let file = open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR);
    file.is_ok_and(|file| is_memory(&File::from(file)).is_ok_and(|memory| !memory))
}

fn is_memory(file: &File) -> io::Result<bool> {
    Ok(fstatfs(file)?.f_type as u64 == TMPFS)
}

/// A shared mapping of a memory file of a fixed length.
#[derive(Debug)]
pub(crate) struct Memory {
    begin: NonNull<u8>,
    length: usize,
    writable: bool,
}

// The mapping is plain memory, and nothing in it belongs to a thread.
//
// SAFETY: who has the `Memory` has the mapping; `write` needs it exclusively.
unsafe impl Send for Memory {}

// SAFETY: `write` needs it exclusively, and all else are atomic loads and stores.
unsafe impl Sync for Memory {}

impl Memory {
    /// Zeros, which only this mapping can change.
    pub fn create(name: &str, length: usize) -> io::Result<(Memory, File)> {
        // Later mappings are for readers; this one stays writable.
        Memory::sealed(name, length, SealFlags::FUTURE_WRITE)
    }

    /// Zeros, which all who have the file can change.
    pub fn create_shared(name: &str, length: usize) -> io::Result<(Memory, File)> {
        Memory::sealed(name, length, SealFlags::empty())
    }

    /// Zeros in a file on a disk, which only this mapping can change; the file is for readers. It has
    /// its room from the beginning: a full disk is no surprise later.
    pub fn create_on_disk(folder: &Path, length: usize) -> io::Result<(Memory, File)> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::RUSR | Mode::WUSR)?);
        fallocate(&file, FallocateFlags::empty(), 0, length as u64)?;
        let memory = Memory::map(&file, length, true)?;
        let readers = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok((memory, readers))
    }

    /// Zeros in a file with this name, which has its room from the beginning. Only this mapping is to
    /// change it.
    pub fn create_named(path: &Path, length: usize) -> io::Result<(Memory, File)> {
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let made = fallocate(&file, FallocateFlags::empty(), 0, length as u64);
        let memory = made.map_err(io::Error::from).and_then(|()| Memory::map(&file, length, true));
        // Without room there is to be no file either.
        let memory = memory.inspect_err(|_| _ = fs::remove_file(path))?;
        Ok((memory, file))
    }

    /// A file with a name that another process has left.
    pub fn open_named(path: &Path) -> io::Result<Memory> {
        let file = File::options().read(true).write(true).open(path)?;
        let length = Memory::long_enough(&file.metadata()?, true)?;
        Memory::map(&file, length, true)
    }

    fn sealed(name: &str, length: usize, seals: SealFlags) -> io::Result<(Memory, File)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create(name, flags)?);
        file.set_len(length as u64)?;
        let memory = Memory::map(&file, length, true)?;
        let seals = seals | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        Ok((memory, file))
    }

    /// Another process's memory, to be read. It has to be sealed: else a read could end this process.
    /// A file in a folder cannot be. It came without the right to write: only processes of the same
    /// user could make it shorter, and those could end this one anyway.
    pub fn open(file: &File) -> io::Result<Memory> {
        let metadata = file.metadata()?;
        if !is_memory(file)? || metadata.nlink() > 0 {
            let flags = fcntl_getfl(file)?;
            let reads = !flags.intersects(OFlags::WRONLY | OFlags::RDWR);
            return Memory::long_enough(&metadata, metadata.is_file() && reads)
                .and_then(|length| Memory::map(file, length, false));
        }
        let seals = fcntl_get_seals(file)?;
        Memory::check(file, seals.intersects(SealFlags::FUTURE_WRITE | SealFlags::WRITE))
            .and_then(|length| Memory::map(file, length, false))
    }

    /// Memory that all who have the file can change.
    pub fn open_shared(file: &File) -> io::Result<Memory> {
        Memory::check(file, true).and_then(|length| Memory::map(file, length, true))
    }

    /// The length of a file that nobody can make shorter.
    fn check(file: &File, sealed: bool) -> io::Result<usize> {
        let stays = fcntl_get_seals(file)?.contains(SealFlags::SHRINK) && sealed;
        Memory::long_enough(&file.metadata()?, stays)
    }

    fn long_enough(metadata: &Metadata, stays: bool) -> io::Result<usize> {
        let length = usize::try_from(metadata.len()).ok().filter(|it| *it >= 4_096);
        length.filter(|_| stays).ok_or_else(|| {
            let why = "the memory is not sealed, or too short";
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
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

    /// The head of a record that begins here.
    ///
    /// # Panics
    /// It is not in the memory, or not aligned.
    pub fn head(&self, at: usize) -> Head {
        let word = |place: usize| self.word(at + place).load(Ordering::Relaxed);
        let (number, mark, length) = (word(0), word(8), word(16));
        // Little-endian: the tag comes first.
        Head { number, tag: mark as u32, check: (mark >> 32) as u32, length }
    }

    /// Half a word, which all may change.
    ///
    /// # Panics
    /// It is not in the memory, or not aligned.
    pub fn half(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.length, "half a word lies in the memory");
        // SAFETY: as above; what is accessed by halves is never accessed by words.
        unsafe { AtomicU32::from_ptr(self.begin.as_ptr().add(at).cast()) }
    }

    /// The words from this one on, as many as so many bytes touch.
    fn words(&self, at: usize, bytes: usize) -> &[AtomicU64] {
        let many = bytes.div_ceil(8);
        let fits = at.is_multiple_of(8) && at <= self.length && many <= (self.length - at) / 8;
        assert!(fits, "words lie in the memory");
        // SAFETY: as in `word`: they are in the mapping, and aligned.
        unsafe { slice::from_raw_parts(self.begin.as_ptr().add(at).cast(), many) }
    }

    /// Writes these bytes, and zeros up to the next word. A word at a time, as others may read here.
    ///
    /// # Panics
    /// They are not in the memory, it is a reader's, or the place is not a word's.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(self.writable, "a reader writes nothing");
        let (whole, rest) = bytes.as_chunks::<8>();
        let words = self.words(at, bytes.len());
        for (word, chunk) in words.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut chunk = [0; 8];
            chunk[..rest.len()].copy_from_slice(rest);
            words[whole.len()].store(u64::from_ne_bytes(chunk), Ordering::Relaxed);
        }
    }

    /// Copies bytes out, a word at a time. A broken peer may change them meanwhile: then they come out
    /// mixed, and nothing else happens.
    ///
    /// # Panics
    /// They are not in the memory, or the place is not a word's.
    pub fn read(&self, at: usize, to: &mut [u8]) {
        let words = self.words(at, to.len());
        let (whole, rest) = to.as_chunks_mut::<8>();
        for (word, chunk) in words.iter().zip(&mut *whole) {
            *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        if !rest.is_empty() {
            let word = words[whole.len()].load(Ordering::Relaxed).to_ne_bytes();
            rest.copy_from_slice(&word[..rest.len()]);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no borrow is left.
        let _ = unsafe { munmap(self.begin.as_ptr().cast(), self.length) };
    }
}
