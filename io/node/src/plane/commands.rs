//! What this node says to the book, in its own name, and what it sees of it.

use bytes::Bytes;
use manager::book::Command;
use os::clock::wall_clock;
use wire::Time;
use wire::system::MANAGER_ID;

use super::Plane;
use super::waiting::{NO_MANAGER, PATIENCE};
use crate::managing::View;
use crate::order::CommandReply;

impl Plane {
    pub(super) fn say(&mut self, now: Time, command: &Command, reply: Option<CommandReply>) {
        if self.policy.is_none() {
            if let Some(reply) = reply {
                let _ = reply.try_send(Err(NO_MANAGER.into()));
            }
            return;
        }
        let body = Bytes::from(command.encode());
        let (wall, method) = (Time(wall_clock()), Command::METHOD);
        let number = self.stack.call(now, wall, (MANAGER_ID, method), body, PATIENCE);
        if let Some(reply) = reply {
            self.commands.wait(number, reply);
        }
    }

    /// The table and the book as they are at this moment. The book counts if the table says that this node's replica has the state: that was
    /// brought before the table said so.
    pub(super) fn view(&self) -> View {
        let picture = self.stack.picture();
        let me = self.me.node;
        let shape = picture.groups.iter().find(|shape| shape.id == MANAGER_ID);
        let here = shape.is_some_and(|it| it.primary == me || it.backups.contains(&me));
        View { changes: self.stack.changes(), book: here.then(|| self.commands.book()), picture }
    }
}
