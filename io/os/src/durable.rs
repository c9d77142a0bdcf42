//! Files and folders that are there after a loss of power, names and all; and folders for one
//! process alone.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Makes a folder and those above it that are missing, and puts their names on the disk.
///
/// # Errors
/// The system's own.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    make(folder, &mut sync_folder)
}

fn make(folder: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let is_missing = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(folder)?;
    for made in missing.iter().rev() {
        sync(above(made))?;
    }
    if !missing.is_empty() {
        return Ok(());
    }
    // The process that made the folder may have died before the folder's name was on the disk.
    match sync(above(folder)) {
        // Somebody else's, who made this one for the node long ago.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

/// The folder that has this name in it.
fn above(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Replaces a file as a whole: after a crash there is the old one or the new one, and never one
/// that more may read.
///
/// # Errors
/// The system's own.
pub fn replace_file(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    // A file left there by a crash may have another mode.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    file.write_all(bytes).and_then(|()| file.sync_all())?;
    fs::rename(&new, path)?;
    sync_folder(above(path))
}

/// Keeps other processes away as long as it lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes a folder for this process, by the file of this name in it.
///
/// # Errors
/// [`TryLockError::WouldBlock`]: another has it. Else the system's own.
pub fn lock(folder: &Path, name: &str) -> Result<Lock, TryLockError> {
    let file = File::create(folder.join(name)).map_err(TryLockError::Error)?;
    file.try_lock()?;
    Ok(Lock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_each_folder_that_is_made_comes_to_the_disk_from_the_top() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b/c");
        let mut synced = Vec::new();
        let mut sync = |folder: &Path| {
            assert!(folder.is_dir());
            synced.push(folder.to_owned());
            sync_folder(folder)
        };
        make(&folder, &mut sync).unwrap();
        make(&folder, &mut sync).unwrap();
        let expected = [root.path().into(), root.path().join("a"), root.path().join("a/b")];
        assert_eq!(synced[..3], expected);
        assert_eq!(synced[3..], expected[2..], "it may have been made by a life that died then");
        assert_eq!(
            (above(Path::new("data")), above(Path::new("/"))),
            (Path::new("."), Path::new("/"))
        );
        let denied = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        make(&folder, &mut { denied }).unwrap();
        assert!(make(&folder.join("d"), &mut { denied }).is_err(), "what is made must stay");
    }
}
