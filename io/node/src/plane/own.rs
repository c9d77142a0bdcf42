//! This node's own calls of the cluster's own groups, and its view of them.

use bytes::Bytes;
use manager::cluster_state;
use os::clock::wall_clock;
use registry::{Hosted, Sight};
use wire::system::{MANAGER_ID, REGISTRY, REGISTRY_ID};
use wire::{Duration, GroupId, MethodId, Time};

use super::Plane;
use super::waiting::{NO_MANAGER, answer};
use crate::managing::View;
use crate::order::{CommandReply, RegistryReply};
use crate::registering::View as Sighted;

/// How long a command may take to be answered. Less than its asker waits.
const TIMEOUT: Duration = Duration::from_secs(4);

impl Plane {
    fn call(&mut self, now: Time, of: (GroupId, MethodId), body: Vec<u8>) -> u64 {
        self.stack.call(now, Time(wall_clock()), of, Bytes::from(body), TIMEOUT)
    }

    /// Says something to the cluster state.
    pub(super) fn command(
        &mut self,
        now: Time,
        command: &cluster_state::Command,
        reply: Option<CommandReply>,
    ) {
        if !self.profile.has_manager() {
            if let Some(reply) = reply {
                answer(&reply, Err(NO_MANAGER.into()));
            }
            return;
        }
        let number = self.call(now, (MANAGER_ID, cluster_state::Command::METHOD), command.encode());
        if let Some(reply) = reply {
            self.waiting.cluster_state.wait(number, reply);
        }
    }

    /// Says something to the registry.
    pub(super) fn register(
        &mut self,
        now: Time,
        command: &registry::Command,
        reply: Option<RegistryReply>,
    ) {
        let number = self.call(now, (REGISTRY_ID, registry::Command::METHOD), command.encode());
        if let Some(reply) = reply {
            self.waiting.registry.wait(number, reply);
        }
    }

    /// The table and the cluster state as they are at this moment. The cluster state counts if the
    /// table says that this node's replica has the state: that was brought before the table said
    /// so.
    pub(super) fn view(&self) -> View {
        let picture = self.stack.picture();
        let me = self.profile.me.node;
        let shape = picture.groups.iter().find(|shape| shape.id == MANAGER_ID);
        let here = shape.is_some_and(|it| it.primary == me || it.backups.contains(&me));
        View {
            changes: self.stack.changes(),
            cluster_state: here.then(|| self.cluster_state.cluster_state()),
            picture,
        }
    }

    /// The table at this moment, if this node is with a majority and its replica of the registry
    /// has the state: that was brought before the table said so.
    pub(super) fn sight(&self) -> Option<Sighted> {
        let me = self.profile.me;
        let status = self.stack.status();
        if status.ring.quorate != Some(true) {
            return None;
        }
        let registry = status.groups.iter().find(|group| group.name == REGISTRY)?;
        if !registry.replicas.iter().any(|it| it.member == me && it.synced) {
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
        let sight = Sight { leads: leader == Some(me), members: status.ring.members, groups };
        Some(Sighted { leads: leader.map(|leader| leader.node), sight })
    }
}
