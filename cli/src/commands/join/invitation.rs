//! All that a new node needs, as one line that people can paste: `steadfast init --add` makes it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use base64ct::{Base64UrlUnpadded, Encoding};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use wire::NodeId;

use crate::commands::Failure;

/// The beginning, by which people and later versions know it.
const PREFIX: &str = "steadfast-join-1.";

/// The configuration's name in a node's folder.
pub const CONFIG: &str = "steadfast.toml";

/// A node's folder, and where the cluster is asked. Its text is as secret as the node's key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The node.
    pub node: NodeId,
    /// Ports for administrators of the cluster's nodes, as they were when this was made.
    pub admins: Vec<String>,
    /// The files of its folder, by name.
    pub files: Vec<InvitedFile>,
}

/// A file of a node's folder.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitedFile {
    /// Its name, without a folder.
    pub name: String,
    /// For the node's user alone.
    pub secret: bool,
    /// Its text.
    pub text: String,
}

impl Invitation {
    /// The line.
    pub fn token(&self) -> Result<String, Failure> {
        let bytes = postcard::to_allocvec(self).map_err(Failure::failed)?;
        Ok(format!("{PREFIX}{}", Base64UrlUnpadded::encode_string(&bytes)))
    }

    /// Reads a line, or the file that `@PATH` names.
    pub fn read(token: &str) -> Result<Invitation, Failure> {
        let line = match token.strip_prefix('@') {
            Some(path) => fs::read_to_string(path).map_err(|error| {
                Failure::Usage(format!(
                    "cannot read {path}: {error}; `steadfast init --add` makes it"
                ))
            })?,
            None => token.to_owned(),
        };
        let wrong = || {
            Failure::Usage(
                "this is no token of `steadfast init --add`, or a part of one: paste all of its line, or \
                 give its file as --token @FILE"
                    .into(),
            )
        };
        let text = line.trim().strip_prefix(PREFIX).ok_or_else(wrong)?;
        let bytes = Base64UrlUnpadded::decode_vec(text).map_err(|_| wrong())?;
        let invitation: Invitation = postcard::from_bytes(&bytes).map_err(|_| wrong())?;
        let plain = |name: &str| {
            !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
        };
        let files = &invitation.files;
        let complete = files.iter().any(|file| file.name == CONFIG);
        if !complete || !files.iter().all(|file| plain(&file.name)) {
            return Err(wrong());
        }
        Ok(invitation)
    }

    /// Writes the files into this folder, and returns the configuration's path. What is there already
    /// must be the same, but for the configuration and the cluster's key, which may be newer.
    pub fn unpack(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let failed = |path: &Path, error: std::io::Error| {
            Failure::Failed(format!("cannot write {}: {error}", path.display()))
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed(folder, error))?;
        for file in &self.files {
            let path = folder.join(&file.name);
            match fs::read_to_string(&path) {
                Ok(text) if text == file.text || [CONFIG, CLUSTER_KEY].contains(&&*file.name) => {}
                Ok(_) => {
                    return Err(Failure::Failed(format!(
                        "{} exists and is another: give another --out, or remove it",
                        path.display()
                    )));
                }
                Err(_) => {
                    write(&path, &file.text, file.secret).map_err(|error| failed(&path, error))?
                }
            }
        }
        Ok(folder.join(CONFIG))
    }
}

/// The key file's name in a node's folder.
pub const CLUSTER_KEY: &str = "cluster.key";

/// Writes a file beside its place, and moves it there: nobody finds half of it.
pub fn write(path: &Path, text: &str, secret: bool) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mode = if secret { 0o600 } else { 0o644 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    // It belongs to the owner of the file before, or of the folder: root may do this for another.
    let before = fs::metadata(path).or_else(|_| fs::metadata(path.with_file_name(".")))?;
    if geteuid().is_root() {
        chown(&beside, Some(before.uid()), Some(before.gid()))?;
    }
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invitation(names: &[&str]) -> Invitation {
        let file = |name: &&str| InvitedFile {
            name: (*name).into(),
            secret: true,
            text: format!("text of {name}"),
        };
        let admins = vec!["10.0.0.1:7101".into()];
        Invitation { node: NodeId(4), admins, files: names.iter().map(file).collect() }
    }

    #[test]
    fn a_token_is_read_as_it_was_made_and_a_part_of_it_is_refused() {
        let made = invitation(&[CONFIG, "node-4.key"]);
        let token = made.token().unwrap();
        assert!(Invitation::read(&format!("  {token}\n")).unwrap() == made);
        for wrong in [&token[..token.len() - 5], &token[3..], "", "@/nowhere"] {
            assert!(matches!(Invitation::read(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn a_token_writes_into_its_folder_alone() {
        for name in ["../x", "/etc/x", "a/b", ".x", ""] {
            let token = invitation(&[CONFIG, name]).token().unwrap();
            assert!(Invitation::read(&token).is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_there_stays_unless_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let made = invitation(&[CONFIG, "node-4.key"]);
        made.unpack(folder.path()).unwrap();
        fs::write(folder.path().join(CONFIG), "edited").unwrap();
        made.unpack(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join(CONFIG)).unwrap(), "edited");
        fs::write(folder.path().join("node-4.key"), "another").unwrap();
        assert!(made.unpack(folder.path()).is_err());
    }
}
