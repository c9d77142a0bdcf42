//! Writes an image.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use image::{Builder, MAX_MANIFEST, MAX_PART, PAGE, Parent, Place, Root, root_of};
use os::durable::replace_file;
use wire::rank::Snapshot;

/// Bytes that are written at a time.
const RUN: usize = 1 << 20;

/// An image that is whole on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The image.
    pub place: Place,
    /// The root of its manifest.
    pub root: Root,
    /// The bytes of its parts.
    pub bytes: u64,
}

/// Saves one rank's images.
#[derive(Debug)]
pub struct Saver {
    folder: PathBuf,
}

impl Saver {
    /// Saves into this folder, which exists.
    pub fn new(folder: &Path) -> Saver {
        Saver { folder: folder.into() }
    }

    /// Saves a snapshot whose bytes are in this file, on top of the image below it, or as a full
    /// one. When this returns, the image is on the disk.
    ///
    /// # Errors
    /// The file has less than the snapshot says, or the disk does not take it: there is no such
    /// image.
    pub fn save(
        &self,
        (snapshot, staging): (&Snapshot, &File),
        place: Place,
        parent: Option<Parent>,
    ) -> io::Result<Commit> {
        let path = data(&self.folder, place);
        // One whose writer was killed is nothing without its manifest.
        if !manifest_of(&self.folder, place).exists() {
            remove_file(&path)?;
        }
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        let saved = self.write(&file, (snapshot, staging), place, parent);
        if saved.is_err() {
            // The disk may be full because of it. Its manifest may be there, and must not be taken
            // for an image.
            let _ = self.remove(place);
        }
        saved
    }

    fn write(
        &self,
        file: &File,
        (snapshot, staging): (&Snapshot, &File),
        place: Place,
        parent: Option<Parent>,
    ) -> io::Result<Commit> {
        let mut builder = Builder::new(place, parent, snapshot.arrays.clone());
        let mut run = Run { file, begin: 0, bytes: Vec::with_capacity(RUN + MAX_PART) };
        let mut read = 0;
        for span in &snapshot.spans {
            let mut offset = span.offset;
            while offset < span.offset + span.length {
                let length = (span.offset + span.length - offset).min(MAX_PART as u64) as usize;
                let part = run.room(length);
                // A copy of one's own: the rank may be a hostile one.
                staging.read_exact_at(part, read)?;
                let at = builder.part(span.array, offset, part);
                run.placed(at, length)?;
                read += length as u64;
                offset += length as u64;
            }
        }
        run.flush()?;
        file.sync_data()?;
        let manifest = builder.finish(snapshot.step).encode();
        if manifest.len() > MAX_MANIFEST {
            let why = "the changes are in too many places for an increment: save a full image";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        // It also puts the names of both files on the disk.
        replace_file(&manifest_of(&self.folder, place), 0o600, &manifest)?;
        Ok(Commit { place, root: root_of(&manifest), bytes: read })
    }

    /// Removes an image on which no other builds.
    ///
    /// # Errors
    /// The system's own.
    pub fn remove(&self, place: Place) -> io::Result<()> {
        // Without its manifest the data is nothing. It may have been interrupted here before.
        remove_file(&manifest_of(&self.folder, place))?;
        remove_file(&data(&self.folder, place))
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Parts that follow each other in the file are written together.
struct Run<'a> {
    file: &'a File,
    begin: u64,
    bytes: Vec<u8>,
}

impl Run<'_> {
    /// Room for the next part, behind the others.
    fn room(&mut self, length: usize) -> &mut [u8] {
        // Each part begins at a page of the file.
        let from = self.bytes.len().next_multiple_of(PAGE as usize);
        self.bytes.resize(from + length, 0);
        &mut self.bytes[from..]
    }

    /// The part in the room has this place in the file: the one behind the others.
    fn placed(&mut self, at: u64, length: usize) -> io::Result<()> {
        let from = self.bytes.len() - length;
        assert_eq!(self.begin + from as u64, at, "parts are placed one behind the other");
        if self.bytes.len() >= RUN { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.bytes, self.begin)?;
        self.begin += self.bytes.len().next_multiple_of(PAGE as usize) as u64;
        self.bytes.clear();
        Ok(())
    }
}

pub(crate) fn data(folder: &Path, place: Place) -> PathBuf {
    folder.join(format!("{:016x}-{:016x}.data", place.generation, place.start))
}

pub(crate) fn manifest_of(folder: &Path, place: Place) -> PathBuf {
    folder.join(format!("{:016x}-{:016x}.manifest", place.generation, place.start))
}

const _: () = assert!((MAX_PART as u64).is_multiple_of(PAGE), "parts begin at pages");
