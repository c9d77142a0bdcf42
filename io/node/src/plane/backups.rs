//! What is asked of the data plane for states that people keep. Nothing here touches a file: a state comes and goes as bytes.

use wire::{GroupId, Time};

use super::Plane;
use crate::error::DiscardError;
use crate::order::BackupOrder;

impl Plane {
    pub(super) fn handle_backup(&mut self, now: Time, order: BackupOrder) {
        // Whoever asked may have given up: then nobody takes the answer.
        match order {
            BackupOrder::Save { name, reply } => {
                let group = GroupId::of(&name);
                match self.stack.save(now, group) {
                    Ok(()) => {
                        self.backups.wait_for_save(group, reply);
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
                        self.backups.wait_for_restore(group, reply);
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
}
