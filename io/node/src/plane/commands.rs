//! What this node says to the book, in its own name, and what it sees of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use manager::book::{Book, Command};
use os::clock::wall_clock;
use serde::de::DeserializeOwned;
use wire::client::Outcome;
use wire::limits::MAX_ADMIN_CONNECTIONS;
use wire::system::MANAGER_ID;
use wire::{Duration, Time};

use super::Plane;
use crate::managing::{Shelf, View};
use crate::order::CommandReply;

/// How long a command may take to be answered. Less than its asker waits.
const PATIENCE: Duration = Duration::from_secs(4);

/// Who waits for answers, by the call's number.
pub(crate) struct Commands {
    shelf: Shelf,
    waiting: BTreeMap<u64, CommandReply>,
}

impl Commands {
    pub fn new(shelf: Shelf) -> Commands {
        Commands { shelf, waiting: BTreeMap::new() }
    }

    /// What this node's replica has of the book.
    pub(super) fn book(&self) -> Arc<Book> {
        self.shelf.book()
    }

    pub(super) fn answered(&mut self, number: u64, outcome: Outcome) {
        let Some(reply) = self.waiting.remove(&number) else { return };
        let answer = answer_of(
            outcome,
            "the manager's group does not answer: is there a quorum (`steadfast status`)?",
            NO_MANAGER,
        );
        // Who asked may have given up.
        let _ = reply.try_send(answer);
    }
}

/// What a group of the cluster's own has answered, or why it has not, for people: it is `silent`, or there is none.
pub(super) fn answer_of<A: DeserializeOwned>(
    outcome: Outcome,
    silent: &str,
    none: &str,
) -> Result<A, String> {
    match outcome {
        Outcome::Ok(bytes) => postcard::from_bytes(&bytes)
            .map_err(|_| "the answer is of another version: let all nodes run the same".into()),
        Outcome::Service(text) => Err(String::from_utf8_lossy(&text).into_owned()),
        Outcome::Refused(_, reason)
        | Outcome::Busy { reason, .. }
        | Outcome::Shed { reason, .. } => Err(reason),
        Outcome::NoReplica | Outcome::NotPrimary | Outcome::Gone => Err(silent.into()),
        Outcome::NoSuchGroup => Err(none.into()),
    }
}

/// This node has no part in it.
const NO_MANAGER: &str =
    "this node has no manager: set on = true in [manager] of every node, and start them again";

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
            // Of those that were never answered, nobody waits for the oldest any more.
            while self.commands.waiting.len() >= MAX_ADMIN_CONNECTIONS {
                self.commands.waiting.pop_first();
            }
            self.commands.waiting.insert(number, reply);
        }
    }

    /// The table and the book as they are at this moment. The book counts if the table says that this node's replica has the state: that was
    /// brought before the table said so.
    pub(super) fn view(&self) -> View {
        let picture = self.stack.picture();
        let me = self.me.node;
        let shape = picture.groups.iter().find(|shape| shape.id == MANAGER_ID);
        let here = shape.is_some_and(|it| it.primary == me || it.backups.contains(&me));
        View {
            changes: self.stack.changes(),
            book: here.then(|| self.commands.shelf.book()),
            picture,
        }
    }
}
