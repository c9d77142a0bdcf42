//! Reads images back. Every part is verified before anybody sees it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::{Array, Chain, Damage, MAX_MANIFEST, MAX_PART, Opening, PAGE, Place, Read, Root};
use rustix::fs::{MemfdFlags, memfd_create};

use super::saver::{data, manifest_of};

/// A state that is whole.
#[derive(Debug)]
pub struct Restored {
    /// A file in memory that has the arrays one behind the other, each from a page on.
    pub file: File,
    /// The arrays, in their order.
    pub arrays: Vec<Array>,
    /// How far the rank was.
    pub step: u64,
}

/// Why an image cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It is damaged.
    #[error("{0}: another copy is to be used")]
    Damaged(#[from] Damage),
    /// The disk does not give it.
    #[error("the image cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// A part of an image that is read.
pub enum Visit<'a> {
    /// These bytes of this array, from this one on.
    Part(u32, u64, &'a [u8]),
    /// This is damaged.
    Damage(Damage),
}

/// Restores a state from a rank's folder: that of the image with this root.
///
/// # Errors
/// It is damaged, or not there.
pub fn restore(folder: &Path, place: Place, root: Root) -> Result<Restored, RestoreError> {
    let chain = open(folder, place, root)?;
    let mut begins = Vec::with_capacity(chain.arrays().len());
    let mut end = 0_u64;
    for array in chain.arrays() {
        begins.push(end);
        end += array.length.next_multiple_of(PAGE);
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("steadfast state", flags).map_err(io::Error::from)?);
    file.set_len(end)?;
    read(folder, &chain, |visit| match visit {
        Visit::Part(array, offset, bytes) => {
            Ok(file.write_all_at(bytes, begins[array as usize] + offset)?)
        }
        Visit::Damage(damage) => Err(damage.into()),
    })?;
    Ok(Restored { file, arrays: chain.arrays().to_vec(), step: chain.step() })
}

/// Reads all parts of a state, and tells of each, also of each that is damaged. Returns the arrays,
/// and how far the rank was.
///
/// # Errors
/// A manifest is damaged, or the disk does not give it.
pub fn visit(
    folder: &Path,
    (place, root): (Place, Root),
    mut each: impl FnMut(&[Array], Visit<'_>) -> io::Result<()>,
) -> Result<(Vec<Array>, u64), RestoreError> {
    let chain = open(folder, place, root)?;
    read(folder, &chain, |visit| Ok(each(chain.arrays(), visit)?))?;
    Ok((chain.arrays().to_vec(), chain.step()))
}

/// The manifests of a state, from the one that was committed downwards.
fn open(folder: &Path, place: Place, root: Root) -> Result<Chain, RestoreError> {
    let mut opening = Opening::new(place, root);
    while let Some(place) = opening.wanted() {
        let file = file(&manifest_of(folder, place), place)?;
        let mut manifest = Vec::new();
        // A longer one is none.
        file.take(MAX_MANIFEST as u64 + 1).read_to_end(&mut manifest)?;
        opening.take(&manifest)?;
    }
    Ok(opening.finish()?)
}

fn read(
    folder: &Path,
    chain: &Chain,
    mut each: impl FnMut(Visit<'_>) -> Result<(), RestoreError>,
) -> Result<(), RestoreError> {
    let mut last: Option<(Place, File)> = None;
    let mut part = vec![0; MAX_PART];
    for read in chain.reads() {
        let open = match &last {
            Some((place, open)) if *place == read.place => open,
            _ => match file(&data(folder, read.place), read.place) {
                Ok(open) => &last.insert((read.place, open)).1,
                Err(RestoreError::Damaged(damage)) => {
                    each(Visit::Damage(damage))?;
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        let part = &mut part[..read.length as usize];
        match take(open, chain, &read, part) {
            Ok(()) => each(Visit::Part(read.array, read.offset, part))?,
            Err(RestoreError::Damaged(damage)) => each(Visit::Damage(damage))?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn take(file: &File, chain: &Chain, read: &Read, part: &mut [u8]) -> Result<(), RestoreError> {
    match file.read_exact_at(part, read.at) {
        // It is cut short, which is told as any other damage.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => part.fill(0),
        read => read?,
    }
    Ok(chain.accept(read, part)?)
}

/// A file of an image. That it is not there is a damage as any other.
fn file(path: &Path, place: Place) -> Result<File, RestoreError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Damage::Missing(place).into(),
        _ => error.into(),
    })
}
