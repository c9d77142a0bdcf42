//! Images in a folder.
//!
//! ```text
//! FOLDER/0000000000000007-0000000000000002.data       the parts of image 7, of start 2
//! FOLDER/0000000000000007-0000000000000002.manifest   what it has: written last
//! ```
//!
//! A file is never written twice: a start that is over cannot touch a later one's images.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use image::{
    Array, Builder, Damage, MAX_MANIFEST, MAX_PART, Opening, PAGE, Parent, Place, Root, root_of,
};
use os::durable::replace_file;

use crate::arena::Arena;
use crate::snapshot::Snapshot;

/// An image that is whole on the disk. Nothing else may be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The image.
    pub place: Place,
    /// The root of its manifest.
    pub root: Root,
    /// The bytes of its parts.
    pub bytes: u64,
}

/// Why an image cannot be restored.
#[derive(Debug)]
pub enum RestoreError {
    /// It is damaged.
    Damaged(Damage),
    /// The disk does not give it.
    Io(io::Error),
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

    /// Saves a snapshot, on top of the image below it, or as a full one. When this returns, the image
    /// is on the disk.
    ///
    /// # Errors
    /// The disk does not take it: there is no such image.
    pub fn save(
        &self,
        snapshot: &Snapshot,
        place: Place,
        parent: Option<Parent>,
    ) -> io::Result<Commit> {
        let path = data(&self.folder, place);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        let saved = self.write(&file, snapshot, place, parent);
        if saved.is_err() {
            // The disk may be full because of it.
            let _ = fs::remove_file(&path);
        }
        saved
    }

    fn write(
        &self,
        file: &File,
        snapshot: &Snapshot,
        place: Place,
        parent: Option<Parent>,
    ) -> io::Result<Commit> {
        let mut builder = Builder::new(place, parent, snapshot.arrays.clone());
        let bytes = snapshot.bytes();
        // Parts that follow each other in the file as they do here are written together.
        let (mut run, mut begin) = (0..0, 0);
        for (array, offset, part) in snapshot.parts() {
            let at = builder.part(array, offset, &bytes[part.clone()]);
            if begin + run.len() as u64 != at {
                file.write_all_at(&bytes[run], begin)?;
                (run, begin) = (part.start..part.start, at);
            }
            run.end = part.end;
        }
        file.write_all_at(&bytes[run], begin)?;
        file.sync_data()?;
        let manifest = builder.finish(snapshot.step).encode();
        if manifest.len() > MAX_MANIFEST {
            let why = "the changes are in too many places for an increment: save a full image";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        // It also puts the names of both files on the disk.
        replace_file(&manifest_of(&self.folder, place), 0o600, &manifest)?;
        Ok(Commit { place, root: root_of(&manifest), bytes: bytes.len() as u64 })
    }

    /// Removes an image on which no other builds.
    ///
    /// # Errors
    /// The system's own.
    pub fn remove(&self, place: Place) -> io::Result<()> {
        // Without its manifest the data is nothing. It may have been interrupted here before.
        for path in [manifest_of(&self.folder, place), data(&self.folder, place)] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Restores what was committed, from a folder: the arena, and how far the rank was. Every part is
/// verified before anybody sees it.
///
/// # Errors
/// It is damaged, or not there.
pub fn restore(folder: &Path, commit: Commit) -> Result<(Arena, u64), RestoreError> {
    let mut opening = Opening::new(commit.place, commit.root);
    while let Some(place) = opening.wanted() {
        let file = open(&manifest_of(folder, place), place)?;
        let mut manifest = Vec::new();
        // A longer one is none.
        file.take(MAX_MANIFEST as u64 + 1).read_to_end(&mut manifest)?;
        opening.take(&manifest)?;
    }
    let chain = opening.finish()?;
    let arrays: Vec<Array> = chain.arrays().to_vec();
    let mut arena = Arena::new(arrays)?;
    let mut last: Option<(Place, File)> = None;
    let mut part = vec![0; MAX_PART];
    for read in chain.reads() {
        let file = match &last {
            Some((place, file)) if *place == read.place => file,
            _ => &last.insert((read.place, open(&data(folder, read.place), read.place)?)).1,
        };
        let part = &mut part[..read.length as usize];
        match file.read_exact_at(part, read.at) {
            // It is cut short, which is told as any other damage.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => part.fill(0),
            read => read?,
        }
        chain.accept(&read, part)?;
        let place = read.offset as usize;
        arena.bytes_mut(read.array as usize)[place..place + part.len()].copy_from_slice(part);
    }
    Ok((arena, chain.step()))
}

/// A file of an image. That it is not there is a damage as any other.
fn open(path: &Path, place: Place) -> Result<File, RestoreError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Damage::Missing(place).into(),
        _ => error.into(),
    })
}

fn data(folder: &Path, place: Place) -> PathBuf {
    folder.join(format!("{:016x}-{:016x}.data", place.generation, place.start))
}

fn manifest_of(folder: &Path, place: Place) -> PathBuf {
    folder.join(format!("{:016x}-{:016x}.manifest", place.generation, place.start))
}

impl From<Damage> for RestoreError {
    fn from(damage: Damage) -> Self {
        RestoreError::Damaged(damage)
    }
}

impl From<io::Error> for RestoreError {
    fn from(error: io::Error) -> Self {
        RestoreError::Io(error)
    }
}

impl std::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RestoreError::Damaged(damage) => write!(f, "{damage}: another copy is to be used"),
            RestoreError::Io(error) => write!(f, "the image cannot be read: {error}"),
        }
    }
}

impl std::error::Error for RestoreError {}

const _: () = assert!((MAX_PART as u64).is_multiple_of(PAGE), "parts begin at pages");
