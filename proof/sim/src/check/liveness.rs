//! After the faults all heals, and within a stated time everything works again.
//!
//! Source: issue "the spine", `sim`: progress is demanded; docs/protocol/ring.md, "Membership"
//! (rings that reach each other merge), docs/protocol/group.md, "State transfer",
//! docs/protocol/client.md (attempts and deadlines).

use wire::Duration;

use super::{Verdict, demand};

const PROPERTY: &str = "liveness after healing";

/// From the end of the faults until everything must work.
pub const WITHIN: Duration = Duration::from_secs(6);

/// A disturbance that a call or a checkpoint under way causes, and ends, is shorter than this. A
/// client of few retries may go on calling for long after everything works.
pub const PASSING: Duration = Duration::from_millis(250);

/// How much later than its deadline a call may be given back: the client's timer and its drift.
pub const LATE: Duration = Duration::from_millis(20);

/// A node as the checker wants it: in the one ring of all, with the quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// It says that its ring is operational.
    pub operational: bool,
    /// Members that it sees.
    pub members: usize,
    /// It has the quorum.
    pub quorate: bool,
    /// Its ring, as a word to compare.
    pub ring: u64,
}

/// Returns a fault that the rings still have.
pub fn rings(nodes: &[Option<NodeState>]) -> Option<String> {
    for (index, node) in nodes.iter().enumerate() {
        let name = index + 1;
        let Some(node) = node else { return Some(format!("n{name} does not run")) };
        if !node.operational || node.members != nodes.len() || !node.quorate {
            return Some(format!("n{name} is at {node:?} of {} nodes", nodes.len()));
        }
        if nodes.iter().flatten().any(|other| other.ring != node.ring) {
            return Some(format!("n{name} is in another ring than others"));
        }
    }
    None
}

/// A group's view at a node: who is in it, and whether each has the state.
pub fn group(name: &str, hosts: usize, synced: usize, members: usize) -> Option<String> {
    let well = hosts == synced && synced == members;
    (!well)
        .then(|| format!("{name}: {synced} of {members} replicas have the state, {hosts} hosted"))
}

/// A group's views at the nodes, whether each node is the primary's, and, where only the primary
/// runs the service, whether it runs there. A hand-over comes to its place at one node after the
/// other: in between nobody runs it.
pub fn handed_over(name: &str, nodes: &[(u64, bool, Option<bool>)]) -> Option<String> {
    let view = nodes.first().map(|(view, ..)| *view);
    let well = nodes.iter().all(|(at, is_primary, runs)| {
        Some(*at) == view && runs.is_none_or(|runs| runs == *is_primary)
    });
    (!well).then(|| {
        format!("{name}: each node's view, whether it is the primary, and runs: {nodes:?}")
    })
}

/// Time is up: all healed so long ago, and every look has found a fault for so long. A fault that
/// comes and goes for ever is no excuse.
pub fn is_over(healed: Duration, amiss: Duration) -> bool {
    healed > WITHIN && amiss > PASSING || healed > 2 * WITHIN
}

/// Time is up: objects if something is still not right.
pub fn finish(missing: Option<String>) -> Verdict {
    let text = || format!("{WITHIN:?} after all healed, {}", missing.clone().unwrap_or_default());
    demand(missing.is_none(), PROPERTY, text)
}

/// A call ended so long after its deadline.
pub fn ended(call: &str, late: Duration) -> Verdict {
    demand(late <= LATE, PROPERTY, || format!("{call} was given back {late:?} after its deadline"))
}

/// A call whose deadline left enough time after the healing, and how it ended.
pub fn answered(call: &str, error: Option<String>) -> Verdict {
    let text = || format!("{call} failed after the healing: {}", error.clone().unwrap_or_default());
    demand(error.is_none(), PROPERTY, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_excused_for_a_while_and_what_stays_is_not() {
        let (short, long) = (PASSING / 2, PASSING * 2);
        assert!(!is_over(WITHIN / 2, long));
        assert!(!is_over(WITHIN * 3 / 2, short));
        assert!(is_over(WITHIN * 3 / 2, long));
        assert!(is_over(WITHIN * 3, short));
    }

    #[test]
    fn what_is_not_right_is_named() {
        let well = NodeState { operational: true, members: 2, quorate: true, ring: 5 };
        assert_eq!(rings(&[Some(well.clone()), Some(well.clone())]), None);
        assert!(rings(&[Some(well.clone()), None]).is_some());
        let other = NodeState { ring: 6, ..well.clone() };
        assert!(rings(&[Some(well.clone()), Some(other)]).is_some());
        let alone = NodeState { members: 1, ..well.clone() };
        assert!(rings(&[Some(well.clone()), Some(alone)]).is_some());
        let silent = NodeState { quorate: false, ..well.clone() };
        assert!(rings(&[Some(well), Some(silent)]).is_some());
        assert_eq!(group("g", 3, 3, 3), None);
        assert!(group("g", 3, 2, 3).is_some());
        let primary = (4, true, Some(true));
        assert_eq!(handed_over("g", &[primary, (4, false, Some(false)), (4, false, None)]), None);
        assert!(handed_over("g", &[primary, (5, false, Some(false))]).is_some());
        assert!(handed_over("g", &[(4, true, Some(false)), (4, false, None)]).is_some());
        assert!(handed_over("g", &[primary, (4, false, Some(true))]).is_some());
        assert!(finish(None).is_ok() && finish(Some("x".into())).is_err());
        assert!(ended("x", LATE * 2).is_err() && ended("x", LATE).is_ok());
        assert!(answered("x", Some("refused".into())).is_err());
    }
}
