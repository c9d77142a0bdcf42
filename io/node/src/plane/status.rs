//! The node's report of itself.

use admin::status::{
    Counters, GroupStatus, HostStatus, ManagerStatus, ReplicaUse, Status, TlsStatus,
};
use engine::Stack;
use os::clock::monotonic;
use os::closer;
use wire::{GroupId, Share, Time};

use super::{Keeping, Plane};
use crate::sockets::tcp::Callers;

/// Names of clients in a status.
const NAMES_TOLD: usize = 64;

impl Plane {
    pub(super) fn status(&self) -> Status {
        let callers = self.sockets.callers.as_ref();
        let clients = callers.map_or(0, Callers::count) as u64;
        let handshakes = callers.and_then(Callers::handshakes).unwrap_or_default();
        let counters = Counters { clients, handshakes, ..self.counters.clone() };
        let names = callers.map(Callers::names).unwrap_or_default();
        let clients = names.into_iter().take(NAMES_TOLD).collect();
        let profile = &self.profile;
        let transport = &self.sockets.transport;
        let status = self.stack.status();
        let seal = transport.seal_status().map(|seal| seal.with_change(status.keys.as_ref()));
        let mut status = Status {
            realtime: self.pacing.granted(),
            closer: closer::status(),
            tls: TlsStatus { clients, ..profile.tls.clone() },
            sockets: transport.sockets(),
            seal,
            storage: self.keeping.as_ref().map(Keeping::status),
            ..Status::new(status, &profile.cluster, profile.client_address, counters)
        };
        status.ring.quorum_off = profile.quorum_off;
        status.ring.links = transport.status(monotonic());
        status.ring.excluded = self.excluded;
        status.hosts = hosts(&self.stack, &status.groups, monotonic());
        status.manager = profile.policy.map(|policy| {
            let (members, quorate) = (&status.ring.members, status.ring.quorate == Some(true));
            let leads = members.iter().map(|member| member.node).min().filter(|_| quorate);
            ManagerStatus { leads, policy: policy.into() }
        });
        status
    }
}

/// The load of all hosts whose nodes have reported, in order of id.
fn hosts(stack: &Stack, groups: &[GroupStatus], now: Time) -> Vec<HostStatus> {
    let level = |node| {
        let told = stack.sheds().find(|(it, _, until)| *it == node && now < *until);
        told.map_or(0, |(_, level, _)| level)
    };
    let told = stack.usages().map(|(member, usage, at)| {
        let uses = groups.iter().map(|group| ReplicaUse {
            used: usage.of(GroupId::of(&group.name)),
            group: group.name.clone(),
        });
        HostStatus {
            node: member.node,
            incarnation: member.incarnation,
            used: usage.used,
            capacity: usage.capacity,
            above: usage.above,
            age_ms: u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX),
            replicas: uses.filter(|it| it.used > Share::ZERO).collect(),
            sheds: level(member.node),
            refused: usage.refused,
            callers: usage.classes.iter().collect(),
        }
    });
    told.collect()
}
