//! A folder's files, read, written and synced as a store asks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use os::durable::{self, Lock};
use rustix::fs::{FallocateFlags, fallocate};
use store::{Done, Failure, FailureKind, FileName, Op};
use wire::limits::MAX_STORE_FILES;

use super::error::StorageError;

/// Zeros that are written at a time.
const ZEROS: usize = 1 << 20;

/// In the folder, which may be the node's own data directory with a lock of its own.
const LOCK: &str = "store.lock";

/// Takes the folder for this process, and makes it if need be.
pub(super) fn lock(folder: &Path) -> Result<Lock, StorageError> {
    let wrap = |source| StorageError::Folder { path: folder.into(), source };
    durable::make_folder(folder).map_err(wrap)?;
    durable::lock(folder, LOCK).map_err(|error| match error {
        TryLockError::WouldBlock => StorageError::Taken(folder.into()),
        TryLockError::Error(source) => wrap(source),
    })
}

/// A folder, seen by one of the disk's hands.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The file that was written to last. Names of files that are written to are not given again
    /// while they are open.
    open: Option<(FileName, File)>,
}

impl Folder {
    pub fn new(path: &Path) -> Folder {
        Folder { path: path.into(), open: None }
    }

    /// Does what is asked.
    pub fn perform(&mut self, op: Op) -> Result<Done, Failure> {
        let done = match op {
            Op::List => self.list().map_err(refused),
            Op::Read { file, offset, length } => {
                self.read(file, offset, length).map(Done::Read).map_err(refused)
            }
            _ => self.change(&op).map(|()| Done::Well),
        };
        done.map_err(|(kind, error)| {
            let text = format!("{op} in {}: {error}", self.path.display());
            Failure { kind, text }
        })
    }

    fn change(&mut self, op: &Op) -> Result<(), (FailureKind, io::Error)> {
        match op {
            Op::Create { file, size } => {
                let made = self.make(*file, |made| zeros(made, 0, *size)).map_err(refused)?;
                made.sync_all().map_err(unsynced)?;
                self.open = Some((*file, made));
            }
            Op::Allocate { file, size } => {
                self.allocate(*file, *size).map_err(refused)?;
            }
            Op::Shrink { file, size } => {
                self.file(*file).and_then(|file| file.set_len(*size)).map_err(refused)?;
            }
            Op::Write { file, offset, bytes } => {
                self.file(*file).and_then(|f| f.write_all_at(bytes, *offset)).map_err(refused)?;
            }
            Op::Append { file, offset, bytes } => {
                let file = self.file(*file).map_err(refused)?;
                file.write_all_at(bytes, *offset).map_err(refused)?;
                file.sync_data().map_err(unsynced)?;
            }
            Op::Sync { file } => {
                // The handle that wrote is the one that is told of writes that failed.
                self.file(*file).map_err(refused)?.sync_all().map_err(unsynced)?;
            }
            Op::Rename { from, to } => {
                self.open = None;
                fs::rename(self.path_of(*from), self.path_of(*to)).map_err(refused)?;
            }
            Op::Remove { file } => {
                self.open = None;
                match fs::remove_file(self.path_of(*file)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(refused(error));
                    }
                    _ => {}
                }
            }
            Op::SyncFolder => {
                let folder = File::open(&self.path).map_err(refused)?;
                folder.sync_all().map_err(unsynced)?;
            }
            Op::List | Op::Read { .. } => unreachable!("they change nothing"),
        }
        Ok(())
    }

    fn path_of(&self, file: FileName) -> PathBuf {
        self.path.join(file.to_string())
    }

    fn list(&self) -> io::Result<Done> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            files.extend(entry?.file_name().to_str().and_then(FileName::parse));
            if files.len() > MAX_STORE_FILES {
                return Err(io::Error::other("too many files: this is no store's folder"));
            }
        }
        files.sort_unstable();
        Ok(Done::Listed(files))
    }

    fn read(&self, file: FileName, offset: u64, length: usize) -> io::Result<Bytes> {
        let file = File::open(self.path_of(file))?;
        let left = file.metadata()?.len().saturating_sub(offset);
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(length)];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.into())
    }

    /// The file, open for writing.
    fn file(&mut self, name: FileName) -> io::Result<&File> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != name) {
            let file = OpenOptions::new().write(true).open(self.path_of(name))?;
            self.open = Some((name, file));
        }
        let (_, file) = self.open.as_ref().expect("just opened");
        Ok(file)
    }

    /// Existing contents stay: they may be all that is needed, and the disk full.
    fn allocate(&mut self, name: FileName, size: u64) -> io::Result<()> {
        let path = self.path_of(name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, size) {
            // A file system that promises nothing is given something to hold.
            Err(rustix::io::Errno::OPNOTSUPP) => zeros(&file, file.metadata()?.len(), size),
            result => Ok(result?),
        }
    }

    fn make(
        &mut self,
        name: FileName,
        fill: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<File> {
        self.open = None;
        let file = File::create(self.path_of(name))?;
        fill(&file)?;
        Ok(file)
    }
}

/// Zeros that are written: a file system that only promises room writes its own cluster states with
/// the first sync of each part.
fn zeros(file: &File, from: u64, size: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS.min(size as usize)];
    let mut at = from;
    while at < size {
        let length = (size - at).min(ZEROS as u64);
        file.write_all_at(&zeros[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

/// Before a sync: what is full may have room later.
fn refused(error: io::Error) -> (FailureKind, io::Error) {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => FailureKind::Missing,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FailureKind::Full,
        _ => FailureKind::Refused,
    };
    (kind, error)
}

/// Any error counts as this one: see [`FailureKind::Unsynced`].
fn unsynced(error: io::Error) -> (FailureKind, io::Error) {
    (FailureKind::Unsynced, error)
}
