//! The file that keeps the cluster's keys.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use os::{durable, random};
use seal::{ClusterKey, Fingerprint, KeyFileError, Keys};

/// Only the node's user may read it.
const MODE: u32 = 0o600;

/// A key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileProblem {
    /// It cannot be read or written.
    #[error("cluster key {}: {source}; `steadfast init` makes the file", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Others may read it.
    #[error(
        "cluster key {} may be read by others (mode {mode:o}): chmod 600 it, and if they may have \
         read it, change the key (`steadfast key rotate`)", path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It holds something else.
    #[error("cluster key {}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: KeyFileError,
    },
}

/// Reads a key file.
///
/// # Errors
/// The problem with it, and the remedy.
pub fn read(path: &Path) -> Result<Keys, KeyFileProblem> {
    let wrap = |source| KeyFileProblem::Io { path: path.into(), source };
    let file = File::open(path).map_err(wrap)?;
    let mode = file.metadata().map_err(wrap)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileProblem::Open { path: path.into(), mode });
    }
    let text = zeroize::Zeroizing::new(io::read_to_string(file).map_err(wrap)?);
    Keys::parse(&text).map_err(|problem| KeyFileProblem::Content { path: path.into(), problem })
}

/// Makes a key file with one new key, which nobody else has.
///
/// # Errors
/// The file exists, or cannot be written.
pub fn create(path: &Path) -> Result<Fingerprint, KeyFileProblem> {
    let wrap = |source| KeyFileProblem::Io { path: path.into(), source };
    let keys = Keys::single(ClusterKey::new(1, random::secret().map_err(wrap)?));
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(MODE).open(path).map_err(wrap)?;
    file.write_all(keys.print().as_bytes()).and_then(|()| file.sync_all()).map_err(wrap)?;
    Ok(keys.sealing().fingerprint())
}

/// Replaces a key file as a whole: after a crash there is the old text or the new one.
///
/// # Errors
/// It cannot be written.
pub fn replace(path: &Path, keys: &Keys) -> Result<(), KeyFileProblem> {
    let wrap = |source| KeyFileProblem::Io { path: path.into(), source };
    durable::replace_file(path, MODE, keys.print().as_bytes()).map_err(wrap)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_was_made_can_be_read_and_replaced_and_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.key");
        let missing = read(&path).unwrap_err().to_string();
        assert!(missing.contains("steadfast init"), "{missing}");
        let made = create(&path).unwrap();
        assert!(create(&path).is_err(), "a key is never overwritten");
        let mut keys = read(&path).unwrap();
        assert_eq!(keys.sealing().fingerprint(), made);
        keys.add(ClusterKey::new(2, random::secret().unwrap()));
        fs::write(folder.path().join("cluster.key.new"), "left over").unwrap();
        replace(&path, &keys).unwrap();
        assert_eq!(read(&path).unwrap().iter().count(), 2);
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, MODE);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.key");
        create(&path).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = read(&path).unwrap_err().to_string();
            assert!(refused.contains("chmod 600"), "{refused}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(read(&path).is_ok());
    }
}
