//! What this node says to the registry in its own name, and what it sees for it.

use std::collections::BTreeMap;

use bytes::Bytes;
use os::clock::wall_clock;
use registry::{Command, Hosted, Sight};
use wire::client::Outcome;
use wire::limits::MAX_ADMIN_CONNECTIONS;
use wire::system::{REGISTRY, REGISTRY_ID};
use wire::{Duration, GroupId, Time};

use super::Plane;
use super::commands::answer_of;
use crate::order::RegistryReply;
use crate::registering::{Shelf, View};

/// How long a command may take to be answered. Less than its asker waits.
const PATIENCE: Duration = Duration::from_secs(4);

const SILENT: &str = "the registry does not answer: is there a quorum (`steadfast status`)?";

/// Who waits for answers, by the call's number.
pub(crate) struct Registrations {
    /// `None`: this node has no part in the registry.
    pub shelf: Option<Shelf>,
    waiting: BTreeMap<u64, RegistryReply>,
}

impl Registrations {
    pub fn new(shelf: Option<Shelf>) -> Registrations {
        Registrations { shelf, waiting: BTreeMap::new() }
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

impl Plane {
    pub(super) fn register(&mut self, now: Time, command: &Command, reply: Option<RegistryReply>) {
        let (wall, method) = (Time(wall_clock()), Command::METHOD);
        let body = Bytes::from(command.encode());
        let number = self.stack.call(now, wall, (REGISTRY_ID, method), body, PATIENCE);
        if let Some(reply) = reply {
            let waiting = &mut self.registrations.waiting;
            // Of those that were never answered, nobody waits for the oldest any more.
            while waiting.len() >= MAX_ADMIN_CONNECTIONS {
                waiting.pop_first();
            }
            waiting.insert(number, reply);
        }
    }

    /// The table at this moment, if this node is with a majority and its replica of the registry has the state: that was brought before the table
    /// said so.
    pub(super) fn sight(&self) -> Option<View> {
        let status = self.stack.status();
        if status.ring.quorate != Some(true) {
            return None;
        }
        let registry = status.groups.iter().find(|group| group.name == REGISTRY)?;
        let here = |it: &engine::ReplicaStatus| it.member == self.me && it.synced;
        if !registry.replicas.iter().any(here) {
            return None;
        }
        let leader = registry.primary;
        let groups = status.groups.into_iter().map(|group| {
            let synced = group.replicas.iter().filter(|it| it.synced).map(|it| it.member);
            let hosted = Hosted {
                replicas: group.replicas.iter().map(|it| it.member).collect(),
                synced: synced.collect(),
                name: group.name,
            };
            (GroupId::of(&hosted.name), hosted)
        });
        let groups = groups.collect();
        let sight = Sight { leads: leader == Some(self.me), members: status.ring.members, groups };
        Some(View { leads: leader.map(|leader| leader.node), sight })
    }
}
