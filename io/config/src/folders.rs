//! Where a node's relative paths lie.

use std::path::{Path, PathBuf};

/// One folder for a node that is tried by hand, three for one that the system runs: then its
/// configuration may be read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The configuration file's own: certificates, and the folders in which programs run.
    pub config: PathBuf,
    /// Files that the node writes and must find again: `data_dir`, `[storage] folder`, and
    /// `[security] cluster_key`, which changes when keys rotate.
    pub state: PathBuf,
    /// Files that live as long as the node's process: the admin socket.
    pub runtime: PathBuf,
}

impl Folders {
    /// All in one folder.
    pub fn one(folder: &Path) -> Folders {
        Folders { config: folder.into(), state: folder.into(), runtime: folder.into() }
    }
}
