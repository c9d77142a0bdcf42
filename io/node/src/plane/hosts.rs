//! What hosts have to do, as their nodes have told.

use admin::status::{GroupStatus, HostStatus, ReplicaUse};
use engine::Stack;
use wire::{Share, Time};

/// All that have told, in order of id.
pub(super) fn hosts(stack: &Stack, groups: &[GroupStatus], now: Time) -> Vec<HostStatus> {
    let level = |node| {
        let told = stack.sheds().find(|(it, _, until)| *it == node && now < *until);
        told.map_or(0, |(_, level, _)| level)
    };
    let told = stack.usages().map(|(member, usage, at)| {
        let uses = groups.iter().map(|group| ReplicaUse {
            used: usage.of(wire::GroupId::of(&group.name)),
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
