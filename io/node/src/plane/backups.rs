//! What is asked of the data plane for states that people keep. Nothing here touches a file: a state comes and goes as bytes.

use std::collections::HashMap;

use engine::Saved;
use wire::{GroupId, Time, ViewNumber};

use super::Plane;
use crate::error::{DiscardError, RestoreError, SaveError};
use crate::order::{BackupOrder, RestoreReply, SaveReply};

/// Who waits, by group.
#[derive(Default)]
pub(crate) struct Backups {
    saves: HashMap<GroupId, SaveReply>,
    restores: HashMap<GroupId, RestoreReply>,
}

impl Plane {
    pub(super) fn handle_backup(&mut self, now: Time, order: BackupOrder) {
        // Whoever asked may have given up: then nobody takes the answer.
        match order {
            BackupOrder::Save { name, reply } => {
                let group = GroupId::of(&name);
                match self.stack.save(now, group) {
                    Ok(()) => {
                        self.backups.saves.insert(group, reply);
                    }
                    Err(error) => {
                        let _ = reply.try_send(Err(error.into()));
                    }
                }
            }
            BackupOrder::Restore { restore, reply } => {
                let group = GroupId::of(&restore.name);
                match self.stack.restore(now, restore) {
                    Ok(()) => {
                        self.backups.restores.insert(group, reply);
                    }
                    Err(error) => {
                        let _ = reply.try_send(Err(error.into()));
                    }
                }
            }
            BackupOrder::Discard { name, reply } => {
                let done = self.stack.discard(now, GroupId::of(&name));
                let _ = reply.try_send(done.map_err(DiscardError::from));
            }
        }
    }

    pub(super) fn saved(&mut self, group: GroupId, outcome: Result<Saved, engine::SaveError>) {
        if let Some(reply) = self.backups.saves.remove(&group) {
            let _ = reply.try_send(outcome.map_err(SaveError::from));
        }
    }

    pub(super) fn restored(
        &mut self,
        group: GroupId,
        outcome: Result<ViewNumber, engine::RestoreError>,
    ) {
        if let Some(reply) = self.backups.restores.remove(&group) {
            let _ = reply.try_send(outcome.map_err(RestoreError::from));
        }
    }
}
