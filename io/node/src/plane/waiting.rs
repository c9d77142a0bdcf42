//! Who waits for answers of the cluster's own groups, and for states that people keep.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use engine::Saved;
use manager::book::Book;
use serde::de::DeserializeOwned;
use wire::client::Outcome;
use wire::limits::MAX_ADMIN_CONNECTIONS;
use wire::{Duration, GroupId, ViewNumber};

use crate::error::{RestoreError, SaveError};
use crate::managing::Shelf;
use crate::order::{CommandReply, RegistryReply, RestoreReply, SaveReply};
use crate::registering::Shelf as RegistryShelf;

/// How long a command may take to be answered. Less than its asker waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

const SILENT: &str = "the registry does not answer: is there a quorum (`steadfast status`)?";

/// This node has no part in it.
pub(super) const NO_MANAGER: &str =
    "this node has no manager: set on = true in [manager] of every node, and start them again";

/// Who waits for answers of the book, by the call's number.
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

    pub(super) fn wait(&mut self, number: u64, reply: CommandReply) {
        // Of those that were never answered, nobody waits for the oldest any more.
        while self.waiting.len() >= MAX_ADMIN_CONNECTIONS {
            self.waiting.pop_first();
        }
        self.waiting.insert(number, reply);
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

/// Who waits for answers of the registry, by the call's number.
pub(crate) struct Registrations {
    /// `None`: this node has no part in the registry.
    pub shelf: Option<RegistryShelf>,
    waiting: BTreeMap<u64, RegistryReply>,
}

impl Registrations {
    pub fn new(shelf: Option<RegistryShelf>) -> Registrations {
        Registrations { shelf, waiting: BTreeMap::new() }
    }

    pub(super) fn wait(&mut self, number: u64, reply: RegistryReply) {
        // Of those that were never answered, nobody waits for the oldest any more.
        while self.waiting.len() >= MAX_ADMIN_CONNECTIONS {
            self.waiting.pop_first();
        }
        self.waiting.insert(number, reply);
    }

    /// Takes the outcome of a call of the node's own, if it is of these.
    pub(super) fn answered(&mut self, number: u64, outcome: Outcome) -> Option<Outcome> {
        let Some(reply) = self.waiting.remove(&number) else { return Some(outcome) };
        let answer = answer_of(outcome, SILENT, SILENT);
        // Who asked may have given up.
        let _ = reply.try_send(answer);
        None
    }
}

/// Who waits, by group.
#[derive(Default)]
pub(crate) struct Backups {
    saves: HashMap<GroupId, SaveReply>,
    restores: HashMap<GroupId, RestoreReply>,
}

impl Backups {
    pub(super) fn wait_for_save(&mut self, group: GroupId, reply: SaveReply) {
        self.saves.insert(group, reply);
    }

    pub(super) fn wait_for_restore(&mut self, group: GroupId, reply: RestoreReply) {
        self.restores.insert(group, reply);
    }

    // Whoever asked may have given up: then nobody takes the answer.

    pub(super) fn saved(&mut self, group: GroupId, outcome: Result<Saved, engine::SaveError>) {
        if let Some(reply) = self.saves.remove(&group) {
            let _ = reply.try_send(outcome.map_err(SaveError::from));
        }
    }

    pub(super) fn restored(
        &mut self,
        group: GroupId,
        outcome: Result<ViewNumber, engine::RestoreError>,
    ) {
        if let Some(reply) = self.restores.remove(&group) {
            let _ = reply.try_send(outcome.map_err(RestoreError::from));
        }
    }
}

/// What a group of the cluster's own has answered, or why it has not, for people: it is `silent`, or there is none.
fn answer_of<A: DeserializeOwned>(outcome: Outcome, silent: &str, none: &str) -> Result<A, String> {
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
