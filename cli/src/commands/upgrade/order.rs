//! Which node may be stopped next.

use serde::Serialize;
use steadfast::NodeId;
use steadfast::status::{GroupStatus, Status};

/// The node that may be stopped next; or why none may be.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Next {
    /// The node. `None` without [`waits`](Next::waits): all nodes run the newest program.
    pub node: Option<NodeId>,
    /// The release that it runs.
    pub release: Option<String>,
    /// Nodes with an older program that may not be stopped now, or why no node may be.
    pub waits: Vec<Wait>,
}

/// Why a node may not be stopped now.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Wait {
    /// The node, if it is about one.
    pub node: Option<NodeId>,
    /// The reason.
    pub why: String,
}

/// Nodes that are primary of few groups first: each of these moves. Of equal ones the last first,
/// for the first member does what one has to do for all.
pub(super) fn next(status: &Status) -> Next {
    let older = older(status);
    if let Some(why) = trouble(status) {
        let waits = if older.is_empty() { Vec::new() } else { vec![Wait { node: None, why }] };
        return Next { waits, ..Next::default() };
    }
    let primaries = |node: NodeId| {
        let primary = |group: &&GroupStatus| group.primary.is_some_and(|it| it.node == node);
        status.groups.iter().filter(primary).count()
    };
    let mut waits = Vec::new();
    let mut candidates = older;
    candidates.sort_by_key(|(node, _)| (primaries(*node), std::cmp::Reverse(*node)));
    for (node, release) in candidates {
        match needed(status, node) {
            None => return Next { node: Some(node), release: Some(release), waits },
            Some(why) => waits.push(Wait { node: Some(node), why }),
        }
    }
    Next { waits, ..Next::default() }
}

/// Whether this node is in the ring.
pub(super) fn is_in(status: &Status, node: NodeId) -> bool {
    status.ring.members.iter().any(|member| member.node == node)
}

/// Members with an older program than the newest, with its release.
fn older(status: &Status) -> Vec<(NodeId, String)> {
    let version = |it: &steadfast::status::NodeProgram| {
        let program = &it.program;
        let protocols = [program.ring, program.rules, program.client, program.attach, program.rank];
        (protocols.map(|range| range.greatest), numbers(&program.release))
    };
    let programs = &status.versions.programs;
    let newest = programs.iter().map(version).max();
    let older = programs.iter().filter(|it| Some(version(it)) != newest && is_in(status, it.node));
    older.map(|it| (it.node, it.program.release.clone())).collect()
}

/// The numbers in the name of a release: 0.2.10 is newer than 0.2.9.
fn numbers(release: &str) -> Vec<u64> {
    let digits = release.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

/// Why no node may be stopped at all.
fn trouble(status: &Status) -> Option<String> {
    let ring = &status.ring;
    if ring.state != "operational" || ring.quorate != Some(true) {
        return Some("the ring is not operational with a quorum: wait, and ask again".into());
    }
    let (here, all) = (ring.members.len(), ring.configured.len());
    // After the next stop a majority of the list must still be there.
    if (here - 1) * 2 <= all {
        return Some(format!(
            "{here} of {all} nodes are in the ring, and without one more there is no quorum: start \
             the missing ones first"
        ));
    }
    None
}

/// Why this node may not be stopped now.
fn needed(status: &Status, node: NodeId) -> Option<String> {
    let synced = |group: &GroupStatus| {
        let others = group.replicas.iter().filter(|it| it.node != node && it.synced);
        others.count()
    };
    for group in status.groups.iter().filter(|group| group.style.has_state()) {
        let hosts = group.replicas.iter().any(|it| it.node == node);
        if hosts && synced(group) == 0 {
            return Some(format!(
                "{node} alone has the state of {}: give the group another replica, or wait until \
                 one has the state",
                group.name
            ));
        }
        let unsynced = group.replicas.iter().find(|it| !it.synced);
        if let Some(replica) = unsynced.filter(|_| hosts && synced(group) < 2) {
            return Some(format!(
                "the replica of {} at {} has no state yet: wait",
                group.name, replica.node
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use steadfast::status::{NodeProgram, ReplicaStatus, RingStatus, VersionsStatus};
    use steadfast::{AckLevel, Durability, Incarnation, Member, Style, ViewNumber};
    use wire::{Program, VersionRange};

    use super::*;

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    /// Nodes from 1 on, with these versions; some of them are in the ring.
    fn cluster(versions: &[u8], here: &[u32]) -> Status {
        let program = |(place, version): (usize, &u8)| NodeProgram {
            node: NodeId(place as u32 + 1),
            program: Program {
                release: format!("0.{version}"),
                ring: VersionRange::new(1, *version),
                ..Program::this("")
            },
        };
        let programs = versions.iter().enumerate().map(program).collect();
        Status {
            ring: RingStatus {
                state: "operational".into(),
                quorate: Some(true),
                configured: (1..=versions.len() as u32).map(NodeId).collect(),
                members: here.iter().copied().map(member).collect(),
                ..RingStatus::default()
            },
            versions: VersionsStatus { programs, ..VersionsStatus::default() },
            ..Status::default()
        }
    }

    fn group(name: &str, replicas: &[(u32, bool)]) -> GroupStatus {
        let replica = |(node, synced): &(u32, bool)| ReplicaStatus {
            node: NodeId(*node),
            incarnation: Incarnation(1),
            synced: *synced,
        };
        GroupStatus {
            name: name.into(),
            primary: replicas.iter().find(|it| it.1).map(|it| member(it.0)),
            replicas: replicas.iter().map(replica).collect(),
            style: Style::SemiActive,
            ack: AckLevel::Majority,
            durability: Durability::Memory,
            view: ViewNumber(3),
            sessions: None,
            executed: None,
            hung: false,
            depositor: None,
            log: None,
            journal: None,
        }
    }

    #[test]
    fn a_node_without_a_primary_goes_first_and_then_the_others() {
        let mut status = cluster(&[1, 1, 1], &[1, 2, 3]);
        assert_eq!(next(&status), Next::default(), "all run the newest");
        status = cluster(&[1, 1, 2], &[1, 2, 3]);
        status.groups = vec![group("counter", &[(2, true), (1, true), (3, true)])];
        let named = next(&status);
        assert_eq!((named.node, named.release.as_deref()), (Some(NodeId(1)), Some("0.1")));
    }

    #[test]
    fn of_programs_that_speak_the_same_the_later_release_is_newer() {
        let mut status = cluster(&[1, 1, 1], &[1, 2, 3]);
        for (place, release) in ["0.2.9", "0.2.10", "0.2.10"].into_iter().enumerate() {
            status.versions.programs[place].program.release = release.into();
        }
        assert_eq!(next(&status).node, Some(NodeId(1)));
    }

    #[test]
    fn nothing_that_would_cost_the_quorum_is_named() {
        let status = cluster(&[1, 2, 2], &[1, 2]);
        let named = next(&status);
        assert_eq!(named.node, None);
        assert!(named.waits[0].why.contains("2 of 3 nodes"), "{named:?}");
    }

    #[test]
    fn a_node_that_alone_has_a_state_is_not_named() {
        let mut status = cluster(&[1, 1, 2], &[1, 2, 3]);
        status.groups = vec![group("counter", &[(2, true), (3, false)])];
        let named = next(&status);
        assert_eq!(named.node, Some(NodeId(1)));
        status = cluster(&[2, 1, 2], &[1, 2, 3]);
        status.groups = vec![group("counter", &[(2, true), (3, false)])];
        let named = next(&status);
        assert_eq!((named.node, named.waits.len()), (None, 1));
        assert!(named.waits[0].why.contains("alone has the state of counter"), "{named:?}");
    }
}
