//! What this node says to the registry in its own name, and what it sees for it.

use bytes::Bytes;
use os::clock::wall_clock;
use registry::{Command, Hosted, Sight};
use wire::system::{REGISTRY, REGISTRY_ID};
use wire::{GroupId, Time};

use super::Plane;
use super::waiting::PATIENCE;
use crate::order::RegistryReply;
use crate::registering::View;

impl Plane {
    pub(super) fn register(&mut self, now: Time, command: &Command, reply: Option<RegistryReply>) {
        let (wall, method) = (Time(wall_clock()), Command::METHOD);
        let body = Bytes::from(command.encode());
        let number = self.stack.call(now, wall, (REGISTRY_ID, method), body, PATIENCE);
        if let Some(reply) = reply {
            self.registrations.wait(number, reply);
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
