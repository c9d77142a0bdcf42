//! Images in folders.
//!
//! ```text
//! FOLDER/JOB/RANK/0000000000000007-0000000000000002.data       the parts of image 7, of start 2
//! FOLDER/JOB/RANK/0000000000000007-0000000000000002.manifest   what it has: written last
//! FOLDER/JOB/RANK.log                                          what it has printed: standard output
//! FOLDER/JOB/RANK.err                                          and standard error
//! ```
//!
//! Numbers are hexadecimal. A file is never written twice: a start that is over cannot touch a later
//! one's images.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use image::{MAX_MANIFEST, Manifest, Place, Root, root_of};

mod restorer;
mod saver;

pub use restorer::{RestoreError, Restored, Visit, restore, visit};
pub use saver::{Commit, Saver};
pub(crate) use saver::{data as data_of, manifest_of, remove_file};

/// The folder of a rank's images, in the folder of all.
pub fn folder_of(folder: &Path, job: u64, rank: u32) -> PathBuf {
    folder.join(format!("{job:016x}")).join(format!("{rank:08x}"))
}

/// The file with a rank's standard output: that of its last start here, which has what the starts
/// before it have printed as well.
pub fn log_of(folder: &Path, job: u64, rank: u32) -> PathBuf {
    folder.join(format!("{job:016x}")).join(format!("{rank:08x}.log"))
}

/// The file with a rank's standard error: that of all its starts here.
pub fn errors_of(folder: &Path, job: u64, rank: u32) -> PathBuf {
    log_of(folder, job, rank).with_extension("err")
}

/// The images of a folder, by their manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Those whose manifests are whole and have their data, with their roots. Whether they count, the book says.
    pub images: Vec<(Place, Root)>,
    /// Manifests that are torn, rotten, another's, or without data.
    pub torn: Vec<PathBuf>,
}

/// Lists the images of a folder.
///
/// # Errors
/// The folder cannot be read.
pub fn list(folder: &Path) -> io::Result<Listed> {
    let mut found = Listed::default();
    for (job, path) in numbered(folder)? {
        for (rank, path) in numbered(&path)? {
            let Ok(rank) = u32::try_from(rank) else { continue };
            for entry in fs::read_dir(&path)? {
                let path = entry?.path();
                if path.extension().is_none_or(|end| end != "manifest") {
                    continue;
                }
                let fits = |size: u64| size <= MAX_MANIFEST as u64;
                if !path.metadata().is_ok_and(|data| fits(data.len())) {
                    found.torn.push(path);
                    continue;
                }
                let bytes = fs::read(&path)?;
                match Manifest::decode(&bytes) {
                    // A loss of power may leave a manifest without its data.
                    Ok(manifest)
                        if (manifest.place.job, manifest.place.rank) == (job, rank)
                            && path
                                == saver::manifest_of(
                                    &folder_of(folder, job, rank),
                                    manifest.place,
                                )
                            && path
                                .with_extension("data")
                                .metadata()
                                .is_ok_and(|data| data.len() >= manifest.end()) =>
                    {
                        found.images.push((manifest.place, root_of(&bytes)));
                    }
                    _ => found.torn.push(path),
                }
            }
        }
    }
    found.images.sort_unstable();
    found.torn.sort_unstable();
    Ok(found)
}

/// Removes what writers have left that were killed, or a loss of power: data without a manifest, a
/// manifest without data, and half a manifest.
///
/// # Errors
/// The system's own.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for (_, path) in numbered(folder)? {
        for (_, path) in numbered(&path)? {
            for entry in fs::read_dir(&path)? {
                let path = entry?.path();
                let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
                let alone = match end {
                    "data" => !path.with_extension("manifest").exists(),
                    "manifest" => !path.with_extension("data").exists(),
                    end => end == "new",
                };
                if alone {
                    fs::remove_file(path)?;
                }
            }
        }
    }
    // A writer that was killed may have named an image, and not yet have made the name last.
    for (_, path) in numbered(folder)? {
        for (_, rank) in numbered(&path)? {
            fs::File::open(rank)?.sync_all()?;
        }
        fs::File::open(path)?.sync_all()?;
    }
    // No state can be made of these, and no book asks for them to be removed.
    for manifest in list(folder)?.torn {
        tracing::warn!(manifest = %manifest.display(), "a torn image is removed");
        remove_file(&manifest)?;
        remove_file(&manifest.with_extension("data"))?;
    }
    Ok(())
}

/// Removes a job that was forgotten, with what its ranks have printed.
///
/// # Errors
/// The system's own.
pub fn forget(folder: &Path, job: u64) -> io::Result<()> {
    match fs::remove_dir_all(folder.join(format!("{job:016x}"))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes an image, and folders that are empty then.
///
/// # Errors
/// The system's own.
pub fn remove(folder: &Path, place: Place) -> io::Result<()> {
    let folder = folder_of(folder, place.job, place.rank);
    Saver::new(&folder).remove(place)?;
    // Another image may be there, or the log.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// The folders whose names are numbers.
pub(crate) fn numbered(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| u64::from_str_radix(name, 16).ok());
        if let Some(number) = number
            && entry.file_type()?.is_dir()
        {
            found.push((number, entry.path()));
        }
    }
    Ok(found)
}
