//! States that people keep, on the threads of those who ask for them (`docs/protocol/backup.md`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::{Restore, Saved};
pub use store::backup::{Backup, BackupError};
pub use wire::ordered::Content;
use wire::system::is_system;
use wire::{Duration, ViewNumber};

use os::clock::wall_clock;
use os::durable::{make_folder, replace_file};

use crate::control::Control;
use crate::error::{DiscardError, RestoreError, SaveError};
use crate::order::Order;

/// Longer than the engine takes.
const SAVE_WITHIN: Duration = Duration::from_secs(65);
const RESTORE_WITHIN: Duration = Duration::from_secs(15);

/// Writes a saved state's file so that a crash leaves the old one or the new one, whole. Only its
/// owner may read it. Folders above it that are missing are made.
///
/// # Errors
/// The system's own.
pub fn write_backup(path: &Path, file: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_folder(folder)?;
    }
    replace_file(path, 0o600, file).inspect_err(|_| {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        // A file that could not be written whole is of no use, and may fill the disk.
        let _ = fs::remove_file(PathBuf::from(new));
    })
}

impl Control {
    /// The group's state at one place of the order, as it goes to a file.
    pub fn save(&self, group: &str) -> Result<Backup, SaveError> {
        let name = group.to_owned();
        let saved = self
            .ask(SAVE_WITHIN, |reply| Order::Save { name, reply })
            .map_err(SaveError::from)??;
        let Saved { name, options, place, form, state } = saved;
        let content = form.look(&state).map_err(BackupError::from)?;
        Ok(Backup {
            cluster: self.cluster.clone(),
            group: name,
            options,
            place,
            node: self.me.node,
            saved: wall_clock() / 1_000,
            executed: content.executed,
            form,
            state,
        })
    }

    /// Has a group begin with a state.
    pub fn restore(&self, backup: Backup, replace: bool) -> Result<ViewNumber, RestoreError> {
        if is_system(&backup.group) {
            return Err(engine::RestoreError::System.into());
        }
        backup.form.look(&backup.state).map_err(BackupError::from)?;
        let Backup { group: name, options, form, state, .. } = backup;
        let restore = Restore { name, options, form, state, replace };
        self.ask(RESTORE_WITHIN, |reply| Order::Restore { restore, reply })?
    }

    /// Has a group begin without the state that it waits for.
    pub fn discard(&self, group: &str) -> Result<(), DiscardError> {
        let name = group.to_owned();
        self.ask(RESTORE_WITHIN, |reply| Order::Discard { name, reply })?
    }
}
