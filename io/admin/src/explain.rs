//! Why a group's primary is where it is, who is tried next, and what would become of hosts that
//! share the work.

use std::collections::BTreeMap;

use manager::cluster::Cluster;
use manager::{Config, Manager, Picture, Shape};
use qos::Policy;
use serde::{Deserialize, Serialize};
use wire::ordered::{Style, Usage};
use wire::{GroupId, NodeId, RingId, Share, Time, ViewNumber};

use crate::status::{HostStatus, Status};

/// The manager's view of a group. Shares are in millionths of a processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The group's name.
    pub group: String,
    /// How it is replicated.
    pub style: Style,
    /// Its view.
    pub view: ViewNumber,
    /// The node of its primary.
    pub primary: Option<NodeId>,
    /// The node that decides; `None` where nobody does: [manager] is off, or there is no quorum.
    pub decides: Option<NodeId>,
    /// The load that moves with the primary: its use above that of the least busy backup.
    pub moves: Share,
    /// The service of the asked node's replica is hung.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hung: bool,
    /// The things that keep copies of its state from being as many as they should be, with the remedies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
    /// The hosts of its replicas that have the state, in order of rank.
    pub hosts: Vec<Standing>,
    /// The consequences of losing each one of these hosts.
    pub if_lost: Vec<IfLost>,
}

/// How the host of a replica stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The node.
    pub node: NodeId,
    /// The use there now; `None`: it has not reported.
    pub used: Option<Share>,
    /// The capacity there.
    pub capacity: Option<Share>,
    /// Its use as the host of the primary, after the loss of the present host with everything on
    /// it.
    pub then: Option<Share>,
    /// Whether all would be in time there, by the policy's bound.
    pub fits: Option<bool>,
}

/// After the loss of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IfLost {
    /// The node that is lost.
    pub node: NodeId,
    /// Where the group's primary would be.
    pub primary: Option<NodeId>,
    /// Primaries of all groups that would be elsewhere, in order of name.
    pub moves: Vec<(String, NodeId)>,
    /// Hosts on which not all would be in time any more, by the policy's bound.
    pub overloaded: Vec<NodeId>,
}

/// Explains a group by what a node knows. `None`: it knows no such group.
pub fn explain(status: &Status, group: &str) -> Option<Explanation> {
    let known = status.groups.iter().find(|known| known.name == group)?;
    let picture = picture(status);
    let policy = match status.manager.as_ref().map(|manager| manager.policy.as_str()) {
        Some("hyperbolic") => Policy::Hyperbolic,
        Some("earliest-deadline") => Policy::EarliestDeadline,
        _ => Policy::RateMonotonic,
    };
    let mut manager = Manager::new(Config { policy, ..Config::default() });
    // The manager's proposals do not matter here, only its ranking of the picture.
    manager.look(Time::ZERO, picture.clone());
    let cluster = manager.ranking().cluster();
    let id = GroupId::of(group);
    let shape = picture.groups.iter().find(|shape| shape.id == id);
    let nodes: Vec<NodeId> =
        shape.map(|shape| [&[shape.primary][..], &shape.backups].concat()).unwrap_or_default();
    let hosts = nodes.iter().map(|node| Some(standing(&picture, cluster, shape?, *node)));
    let lost = |node: &NodeId| if_lost(status, &picture, cluster, id, *node);
    Some(Explanation {
        group: group.into(),
        style: known.style,
        view: known.view,
        primary: known.primary.map(|member| member.node),
        decides: status.manager.as_ref().and_then(|manager| manager.leads),
        moves: cluster.group(id).map_or(Share::ZERO, |group| group.task.share()),
        hung: known.hung,
        troubles: known.state_troubles().collect(),
        hosts: hosts.collect::<Option<Vec<Standing>>>().unwrap_or_default(),
        if_lost: nodes.iter().map(lost).collect(),
    })
}

fn picture(status: &Status) -> Picture {
    let usage = |host: &HostStatus| {
        let mut replicas: Vec<(GroupId, Share)> =
            host.replicas.iter().map(|it| (GroupId::of(&it.group), it.used)).collect();
        replicas.sort_unstable();
        Usage {
            used: host.used,
            capacity: host.capacity,
            above: host.above,
            replicas,
            ..Usage::default()
        }
    };
    let nodes = status.ring.members.iter().map(|member| {
        let told = status
            .hosts
            .iter()
            .find(|host| (host.node, host.incarnation) == (member.node, member.incarnation));
        (member.node, told.map(usage))
    });
    let shapes = status.groups.iter().filter_map(|group| {
        let primary = group.primary?.node;
        let synced = group.replicas.iter().filter(|replica| replica.synced);
        let backups = synced.map(|replica| replica.node).filter(|node| *node != primary).collect();
        Some(Shape { id: GroupId::of(&group.name), view: group.view, primary, backups })
    });
    let mut groups: Vec<Shape> = shapes.collect();
    groups.sort_unstable_by_key(|shape| shape.id);
    Picture {
        ring: RingId::default(),
        leads: true,
        nodes: nodes.collect(),
        groups,
        ..Picture::default()
    }
}

/// Where primaries go when a host is lost: to the first backup that is not there.
fn moving(picture: &Picture, lost: NodeId) -> Vec<(GroupId, NodeId)> {
    let there = picture.groups.iter().filter(|shape| shape.primary == lost);
    there.filter_map(|shape| Some((shape.id, *shape.backups.first()?))).collect()
}

fn standing(picture: &Picture, cluster: &Cluster, shape: &Shape, node: NodeId) -> Standing {
    let usage = picture.usage(node);
    let mut come: Vec<GroupId> = moving(picture, shape.primary)
        .into_iter()
        .filter(|(group, to)| *to == node && *group != shape.id)
        .map(|(group, _)| group)
        .collect();
    come.push(shape.id);
    let is_backup = node != shape.primary && cluster.group(shape.id).is_some();
    let known = usage.filter(|_| is_backup);
    let share = |id: &GroupId| cluster.group(*id).map_or(Share::ZERO, |group| group.task.share());
    Standing {
        node,
        used: usage.map(|usage| usage.used),
        capacity: usage.map(|usage| usage.capacity),
        then: known.map(|usage| usage.used + come.iter().map(share).sum::<Share>()),
        fits: known.map(|_| cluster.excess(node, &come, &[]) == Share::ZERO),
    }
}

fn if_lost(
    status: &Status,
    picture: &Picture,
    cluster: &Cluster,
    group: GroupId,
    lost: NodeId,
) -> IfLost {
    let moves = moving(picture, lost);
    let mut come: BTreeMap<NodeId, Vec<GroupId>> = BTreeMap::new();
    for (id, to) in &moves {
        come.entry(*to).or_default().push(*id);
    }
    let is_over = |(node, come): &(NodeId, Vec<GroupId>)| {
        picture.usage(*node).is_some() && cluster.excess(*node, come, &[]) > Share::ZERO
    };
    let shape = picture.groups.iter().find(|shape| shape.id == group);
    let stays = shape.map(|shape| shape.primary).filter(|primary| *primary != lost);
    let next = moves.iter().find(|(id, _)| *id == group).map(|(_, to)| *to);
    let names = status.groups.iter().filter_map(|known| {
        let id = GroupId::of(&known.name);
        let (_, to) = moves.iter().find(|(moved, _)| *moved == id)?;
        Some((known.name.clone(), *to))
    });
    IfLost {
        node: lost,
        primary: stays.or(next),
        moves: names.collect(),
        overloaded: come.into_iter().filter(is_over).map(|(node, _)| node).collect(),
    }
}
