//! Which node may be stopped next.

use serde::Serialize;
use steadfast::NodeId;
use steadfast::status::{GroupStatus, Status};
use wire::Program;

/// The node that may be stopped next; or why none may be.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Next {
    /// The node. `None` without [`waits`](Next::waits): all nodes run the newest program.
    pub node: Option<NodeId>,
    /// The release that it runs.
    pub release: Option<String>,
    /// A consequence of the stop that cannot be avoided.
    pub notice: Option<String>,
    /// Nodes without the newest program that may not be stopped now, or why no node may be.
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
/// for the first member does what one has to do for all. A node without the newest program is to be
/// stopped: of those that nodes run, and of `own`, which asks.
pub(super) fn next(status: &Status, own: &Program) -> Next {
    let lagging = lagging(status, own);
    // A node that has stopped knows of no nodes at all, so not that all are done.
    if lagging.is_empty() && !status.ring.configured.is_empty() {
        return Next::default();
    }
    let (mut candidates, mut waits) = (Vec::new(), Vec::new());
    for (node, release) in lagging {
        match release {
            Some(release) if is_in(status, node) => candidates.push((node, release)),
            release => waits.push(Wait { node: Some(node), why: away(node, release) }),
        }
    }
    let goes_on = match goes_on(status) {
        Ok(goes_on) => goes_on,
        Err(why) => {
            waits.insert(0, Wait { node: None, why });
            return Next { waits, ..Next::default() };
        }
    };
    let primaries = |node: NodeId| {
        let primary = |group: &&GroupStatus| group.primary.is_some_and(|it| it.node == node);
        status.groups.iter().filter(primary).count()
    };
    candidates.sort_by_key(|(node, _)| (primaries(*node), std::cmp::Reverse(*node)));
    for (node, release) in candidates {
        let Some(why) = needed(status, node) else {
            let notice = (!goes_on).then(|| {
                format!("the cluster answers nothing until {node} is back: it lacks the quorum")
            });
            return Next { node: Some(node), release: Some(release), notice, waits };
        };
        waits.push(Wait { node: Some(node), why });
    }
    Next { waits, ..Next::default() }
}

/// Whether this node is in the ring.
pub(super) fn is_in(status: &Status, node: NodeId) -> bool {
    status.ring.members.iter().any(|member| member.node == node)
}

/// Configured nodes that are not known to run the newest program, with their release if known.
fn lagging(status: &Status, own: &Program) -> Vec<(NodeId, Option<String>)> {
    let version = |program: &Program| {
        let protocols = [program.ring, program.rules, program.client, program.attach, program.rank];
        (protocols.map(|range| range.greatest), Release::parse(&program.release))
    };
    let programs = &status.versions.programs;
    let newest = programs.iter().map(|it| version(&it.program)).max().max(Some(version(own)));
    let lags = |node: &NodeId| {
        let program = programs.iter().find(|it| it.node == *node).map(|it| &it.program);
        match program {
            Some(program) if Some(version(program)) == newest => None,
            other => Some((*node, other.map(|program| program.release.clone()))),
        }
    };
    status.ring.configured.iter().filter_map(lags).collect()
}

/// Why a node is not done that is not in the ring, or has not told its program.
fn away(node: NodeId, release: Option<String>) -> String {
    match release {
        Some(release) => format!(
            "{node} is not in the ring, and ran an older program ({release}): start it with the \
             new one"
        ),
        None => format!("the program of {node} is not known: wait until it is in the ring"),
    }
}

/// The name of a release in semver's order: 0.2.10 is newer than 0.2.9, and 0.3.0 than 0.3.0-rc.1.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Release {
    core: [u64; 3],
    stage: Stage,
}

/// Pre-releases come before the release itself, and numbers before other identifiers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    PreRelease(Vec<Identifier>),
    Final,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Release {
    /// Missing numbers count as 0: every name has its place.
    fn parse(name: &str) -> Release {
        // The metadata of a build has no rank.
        let name = name.split_once('+').map_or(name, |(name, _)| name);
        let (core, stage) = match name.split_once('-') {
            None => (name, Stage::Final),
            Some((core, identifiers)) => {
                let identifier = |text: &str| match text.parse() {
                    Ok(number) => Identifier::Number(number),
                    Err(_) => Identifier::Text(text.into()),
                };
                (core, Stage::PreRelease(identifiers.split('.').map(identifier).collect()))
            }
        };
        let mut numbers = core.split('.').map(|number| number.parse().unwrap_or(0));
        Release { core: std::array::from_fn(|_| numbers.next().unwrap_or(0)), stage }
    }
}

/// Whether the cluster goes on without one more node; or why no node may be stopped at all.
fn goes_on(status: &Status) -> Result<bool, String> {
    let ring = &status.ring;
    if ring.state != "operational" || ring.quorate != Some(true) {
        return Err("the ring is not operational with a quorum: wait, and ask again".into());
    }
    let (here, all) = (ring.members.len(), ring.configured.len());
    let left = here.saturating_sub(1);
    // After the next stop a majority of the list must still be there.
    let goes_on = if ring.quorum_off { left > 0 } else { left * 2 > all };
    if !goes_on && !ring.absent().is_empty() {
        return Err(format!(
            "{here} of {all} nodes are in the ring, and the cluster stops with one fewer: start \
             the missing ones first"
        ));
    }
    // A cluster of two nodes cannot do better: both are here.
    Ok(goes_on)
}

/// Why this node may not be stopped now.
fn needed(status: &Status, node: NodeId) -> Option<String> {
    let synced = |group: &GroupStatus| {
        let others = group.replicas.iter().filter(|it| it.node != node && it.synced);
        others.count()
    };
    for group in status.groups.iter().filter(|group| group.style.has_state()) {
        let deposit = group.depositor.filter(|it| it.node == node);
        // Another life of the node has lost what it held.
        if deposit.is_some_and(|holder| status.ring.members.contains(&holder)) {
            return Some(format!(
                "{node} alone has the restored state with which {} is to begin: start a replica \
                 of the group, and wait until it has the state",
                group.name
            ));
        }
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
    use wire::VersionRange;

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
            notes: Vec::new(),
            sessions: None,
            executed: None,
            hung: false,
            depositor: None,
            log: None,
            journal: None,
        }
    }

    #[test]
    fn the_first_node_is_named_where_the_new_program_asks() {
        let status = cluster(&[1, 1, 1], &[1, 2, 3]);
        let newer = Program { release: "0.2".into(), ..Program::this("") };
        assert_eq!(next(&status, &newer).node, Some(NodeId(3)));
        let older = Program { release: "0.0.9".into(), ..Program::this("") };
        assert_eq!(next(&status, &older), Next::default());
    }

    #[test]
    fn a_node_without_a_primary_goes_first_and_then_the_others() {
        let mut status = cluster(&[1, 1, 1], &[1, 2, 3]);
        assert_eq!(next(&status, &Program::this("")), Next::default(), "all run the newest");
        status = cluster(&[1, 1, 2], &[1, 2, 3]);
        status.groups = vec![group("counter", &[(2, true), (1, true), (3, true)])];
        let named = next(&status, &Program::this(""));
        assert_eq!((named.node, named.release.as_deref()), (Some(NodeId(1)), Some("0.1")));
    }

    #[test]
    fn of_programs_that_speak_the_same_the_later_release_is_newer() {
        let mut status = cluster(&[1, 1, 1], &[1, 2, 3]);
        for (place, release) in ["0.2.9", "0.2.10", "0.2.10"].into_iter().enumerate() {
            status.versions.programs[place].program.release = release.into();
        }
        assert_eq!(next(&status, &Program::this("")).node, Some(NodeId(1)));
    }

    #[test]
    fn nothing_that_would_cost_the_quorum_is_named() {
        let status = cluster(&[1, 2, 2], &[1, 2]);
        let named = next(&status, &Program::this(""));
        assert_eq!(named.node, None);
        assert!(named.waits[0].why.contains("2 of 3 nodes"), "{named:?}");
    }

    #[test]
    fn a_node_that_alone_has_a_state_is_not_named() {
        let mut status = cluster(&[1, 1, 2], &[1, 2, 3]);
        status.groups = vec![group("counter", &[(2, true), (3, false)])];
        let named = next(&status, &Program::this(""));
        assert_eq!(named.node, Some(NodeId(1)));
        status = cluster(&[2, 1, 2], &[1, 2, 3]);
        status.groups = vec![group("counter", &[(2, true), (3, false)])];
        let named = next(&status, &Program::this(""));
        assert_eq!((named.node, named.waits.len()), (None, 1));
        assert!(named.waits[0].why.contains("alone has the state of counter"), "{named:?}");
    }

    #[test]
    fn all_run_the_newest_only_if_every_configured_node_is_known_to() {
        let mut status = cluster(&[2, 2, 1], &[1, 2]);
        let named = next(&status, &Program::this(""));
        let away = named.waits.iter().find(|wait| wait.node == Some(NodeId(3)));
        assert!(away.is_some_and(|wait| wait.why.contains("older program (0.1)")), "{named:?}");
        status = cluster(&[2, 2, 2], &[1, 2, 3]);
        status.versions.programs.pop();
        let named = next(&status, &Program::this(""));
        assert_eq!((named.node, named.waits.len()), (None, 1));
        assert!(named.waits[0].why.contains("program of n3 is not known"), "{named:?}");
        // The asked node has installed no component in this life.
        status.versions.programs.clear();
        status.ring.quorate = None;
        let named = next(&status, &Program::this(""));
        assert_eq!((named.node, named.waits.len()), (None, 4));
        assert!(named.waits[0].why.contains("wait, and ask again"), "{named:?}");
        let stopped = Status::stopped(member(1), "trial");
        assert!(
            !next(&stopped, &Program::this("")).waits.is_empty(),
            "a stopped node knows nothing"
        );
    }

    #[test]
    fn a_node_with_a_restored_state_that_no_replica_has_is_not_named() {
        let mut status = cluster(&[2, 1, 2], &[1, 2, 3]);
        status.groups = vec![group("counter", &[])];
        status.groups[0].depositor = Some(member(2));
        let named = next(&status, &Program::this(""));
        assert_eq!((named.node, named.waits.len()), (None, 1));
        assert!(named.waits[0].why.contains("restored state with which counter"), "{named:?}");
        status.groups[0].depositor = Some(Member { incarnation: Incarnation(0), ..member(2) });
        assert_eq!(
            next(&status, &Program::this("")).node,
            Some(NodeId(2)),
            "its former life has lost the state"
        );
    }

    #[test]
    fn a_cluster_of_two_nodes_stops_while_one_is_replaced() {
        let mut status = cluster(&[1, 2], &[1, 2]);
        status.groups = vec![group("counter", &[(1, true), (2, true)])];
        let named = next(&status, &Program::this(""));
        assert_eq!((named.node, named.waits.len()), (Some(NodeId(1)), 0));
        let notice = named.notice.expect("the quorum is lost");
        assert!(notice.contains("answers nothing until n1 is back"), "{notice}");
        status.ring.quorum_off = true;
        let named = next(&status, &Program::this(""));
        assert_eq!((named.node, named.notice), (Some(NodeId(1)), None));
        // Three nodes with one missing lose nothing either.
        status = cluster(&[1, 2, 2], &[1, 2]);
        status.ring.quorum_off = true;
        let named = next(&status, &Program::this(""));
        assert_eq!((named.node, named.notice), (Some(NodeId(1)), None));
    }

    #[test]
    fn releases_are_in_the_order_of_semver() {
        let mut status = cluster(&[1, 1, 1], &[1, 2, 3]);
        for (place, release) in ["0.3.0-rc.1", "0.3.0", "0.3.0+1f"].into_iter().enumerate() {
            status.versions.programs[place].program.release = release.into();
        }
        assert_eq!(next(&status, &Program::this("")).node, Some(NodeId(1)));
        let ordered = [
            "0.2.9",
            "0.2.10",
            "0.3.0-1",
            "0.3.0-alpha",
            "0.3.0-alpha.1",
            "0.3.0-alpha.beta",
            "0.3.0-rc.2",
            "0.3.0-rc.10",
            "0.3.0",
            "0.3.1-rc.1",
            "1.0.0",
        ];
        let releases = ordered.map(Release::parse);
        assert!(releases.is_sorted_by(|one, other| one < other));
    }
}
