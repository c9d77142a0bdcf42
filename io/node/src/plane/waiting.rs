//! Those who wait for what comes of something, and how they are answered.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::SyncSender;

use cells::{Refusal, Verdict};
use job::{Taken, Void};
use manager::cluster_state::Answer;
use serde::de::DeserializeOwned;
use wire::client::Outcome;
use wire::limits::MAX_ADMIN_CONNECTIONS;
use wire::{GroupId, ViewNumber};

use crate::error::{MoveError, RestoreError, RestyleError, SaveError};
use crate::order::BenchOutcome;

const SILENT: &str = "the manager's group does not answer: is there a quorum (`steadfast status`)?";

const SILENT_REGISTRY: &str =
    "the registry does not answer: is there a quorum (`steadfast status`)?";

const SILENT_JOBS: &str =
    "the book of jobs does not answer: is there a quorum (`steadfast status`)?";

const SILENT_CELL: &str =
    "the cell's book does not answer: is there a quorum (`steadfast status`)?";

/// This node has no part in it.
pub(super) const NO_MANAGER: &str =
    "this node has no manager: set on = true in [manager] of every node, and start them again";

/// All who wait.
pub(crate) struct Waiting {
    pub(super) bench: Option<SyncSender<BenchOutcome>>,
    pub(super) moves: Pending<ViewNumber, MoveError>,
    pub(super) restyles: Pending<ViewNumber, RestyleError>,
    pub(super) saves: Pending<engine::Saved, SaveError>,
    pub(super) restores: Pending<ViewNumber, RestoreError>,
    pub(super) cluster_state: Calls<Answer>,
    pub(super) registry: Calls<registry::Answer>,
    pub(super) jobs: Calls<Result<Taken, Void>>,
    pub(super) cell: Calls<Result<Verdict, Refusal>>,
}

impl Waiting {
    pub fn new() -> Waiting {
        Waiting {
            bench: None,
            moves: Pending::default(),
            restyles: Pending::default(),
            saves: Pending::default(),
            restores: Pending::default(),
            cluster_state: Calls::new(SILENT, NO_MANAGER),
            registry: Calls::new(SILENT_REGISTRY, SILENT_REGISTRY),
            jobs: Calls::new(SILENT_JOBS, SILENT_JOBS),
            cell: Calls::new(SILENT_CELL, SILENT_CELL),
        }
    }

    /// A call of the node's own has its outcome.
    pub(super) fn own_ended(&mut self, number: u64, outcome: Outcome) {
        let left = self.registry.ended(number, outcome);
        let left = left.and_then(|outcome| self.jobs.ended(number, outcome));
        let left = left.and_then(|outcome| self.cell.ended(number, outcome));
        left.and_then(|outcome| self.cluster_state.ended(number, outcome));
    }
}

/// Sends an answer. The asker may have given up: then nobody takes it.
pub(super) fn answer<T>(reply: &SyncSender<T>, answer: T) {
    let _ = reply.try_send(answer);
}

/// Those who wait for what they began in a group: one for each.
pub(super) struct Pending<T, E>(HashMap<GroupId, SyncSender<Result<T, E>>>);

impl<T, E> Default for Pending<T, E> {
    fn default() -> Self {
        Pending(HashMap::new())
    }
}

impl<T, E> Pending<T, E> {
    /// Keeps `reply` until the work ends; if the work has not begun, answers at once.
    pub fn begun<C>(
        &mut self,
        group: GroupId,
        begun: Result<(), C>,
        reply: SyncSender<Result<T, E>>,
    ) where
        E: From<C>,
    {
        match begun {
            Ok(()) => drop(self.0.insert(group, reply)),
            Err(cause) => answer(&reply, Err(cause.into())),
        }
    }

    pub fn ended<C>(&mut self, group: GroupId, outcome: Result<T, C>)
    where
        E: From<C>,
    {
        if let Some(reply) = self.0.remove(&group) {
            answer(&reply, outcome.map_err(E::from));
        }
    }
}

/// Those who wait for answers of one of the cluster's own groups, by the call's number.
pub(super) struct Calls<A> {
    waiting: BTreeMap<u64, SyncSender<Result<A, String>>>,
    /// Errors for people, if the group does not answer, and if there is none.
    silent: &'static str,
    none: &'static str,
}

impl<A: DeserializeOwned> Calls<A> {
    fn new(silent: &'static str, none: &'static str) -> Calls<A> {
        Calls { waiting: BTreeMap::new(), silent, none }
    }

    pub fn wait(&mut self, number: u64, reply: SyncSender<Result<A, String>>) {
        // Nobody waits any more for the oldest of those that were never answered.
        while self.waiting.len() >= MAX_ADMIN_CONNECTIONS {
            self.waiting.pop_first();
        }
        self.waiting.insert(number, reply);
    }

    /// Takes the outcome of a call of the node's own, if it is of these.
    fn ended(&mut self, number: u64, outcome: Outcome) -> Option<Outcome> {
        let Some(reply) = self.waiting.remove(&number) else { return Some(outcome) };
        answer(&reply, self.read(outcome));
        None
    }

    /// The group's answer, or why there is none, for people.
    fn read(&self, outcome: Outcome) -> Result<A, String> {
        match outcome {
            Outcome::Ok(bytes) => postcard::from_bytes(&bytes)
                .map_err(|_| "the answer is of another version: let all nodes run the same".into()),
            Outcome::Service(text) => Err(String::from_utf8_lossy(&text).into_owned()),
            Outcome::Refused(_, reason)
            | Outcome::Busy { reason, .. }
            | Outcome::Shed { reason, .. } => Err(reason),
            Outcome::NoReplica | Outcome::NotPrimary | Outcome::Gone => Err(self.silent.into()),
            Outcome::NoSuchGroup => Err(self.none.into()),
        }
    }
}
