//! Operations take effect, whichever node dies meanwhile: a drain, an upgrade, a hand-over.
//!
//! Source: docs/protocol/deployment.md, "The leader": if the leader crashes at any point, the next
//! one continues.

use manager::cluster_state::Placed;
use wire::{Duration, NodeId};

use super::{Verdict, demand, liveness};
use crate::cluster::{Operation, is_broken};

const PROPERTY: &str = "operations";

/// The time after which an operation that had no effect is asked for again.
pub const AGAIN: Duration = Duration::from_millis(200);

/// How things stand.
#[derive(Clone)]
pub struct Place<'a> {
    /// The node that is drained, or is to have the primary.
    pub target: NodeId,
    /// The cluster state says that it is drained.
    pub drained: bool,
    /// Deployed groups of which it still runs a replica.
    pub hosts: usize,
    /// Where the group's primary is.
    pub primary: Option<NodeId>,
    /// The group that it is about.
    pub placed: &'a Placed,
}

/// Returns the effect of the operation that is still missing.
pub fn missing(operation: Operation, place: &Place<'_>) -> Option<String> {
    let Place { target, drained, hosts, primary, placed } = place;
    let (program, undone) = (&placed.deployment.program, placed.undone.as_ref());
    let well = match operation {
        Operation::Drain => *drained && *hosts == 0 && !placed.on.contains(target),
        Operation::Upgrade => program.command == ["second"] && undone.is_none(),
        Operation::Broken => !is_broken(program) && undone.is_some(),
        // Its replica was replaced elsewhere while it was away: who asks is told that it has none
        // (seeds 809, 812, 822).
        Operation::Move => *primary == Some(*target) || !placed.on.contains(target),
    };
    (!well).then(|| {
        format!(
            "{operation:?} of {target}: drained {drained}, {hosts} replicas there, primary {primary:?}, {placed:?}"
        )
    })
}

/// Everything was deployed so long ago, and this is not there.
pub fn begun(waited: Duration, missing: String) -> Verdict {
    demand(waited <= liveness::WITHIN, PROPERTY, || format!("nothing happens, and {missing}"))
}

/// The operation, or the death of who led it, was so long ago, and this is not so yet.
pub fn ended(waited: Duration, missing: String) -> Verdict {
    demand(waited <= liveness::WITHIN, PROPERTY, || {
        format!("{:?} later {missing}", liveness::WITHIN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use manager::cluster_state::{ClusterState, Command, Deployment, Fault, Undone};
    use wire::{Share, Time};

    fn placed(program: &str) -> Placed {
        let mut cluster_state = ClusterState::default();
        for node in [NodeId(1), NodeId(2)] {
            let introduced =
                Command::Introduce { node, labels: Default::default(), capacity: Share::ONE };
            cluster_state.apply(Time(1), introduced).unwrap();
        }
        let deployment = Deployment::new("g", vec![program.into()], 2);
        cluster_state.apply(Time(1), Command::Deploy(deployment)).unwrap();
        cluster_state.of("g").unwrap().clone()
    }

    #[test]
    fn what_was_asked_for_and_is_not_so_is_named() {
        let (first, second) = (placed("first"), placed("second"));
        let place = |drained, hosts, primary, placed| Place {
            target: NodeId(1),
            drained,
            hosts,
            primary: Some(NodeId(primary)),
            placed,
        };
        let there = Placed { on: [NodeId(1), NodeId(2)].into(), ..first.clone() };
        let says = |operation, place: Place<'_>| missing(operation, &place).is_some();
        assert!(!says(Operation::Drain, place(true, 0, 2, &first)));
        assert!(says(Operation::Drain, place(false, 0, 2, &first)));
        assert!(says(Operation::Drain, place(true, 1, 2, &first)));
        assert!(!says(Operation::Upgrade, place(false, 1, 2, &second)));
        assert!(says(Operation::Upgrade, place(false, 1, 2, &first)));
        assert!(!says(Operation::Move, place(false, 1, 1, &there)));
        assert!(says(Operation::Move, place(false, 1, 2, &there)));
        let elsewhere = Placed { on: [NodeId(2)].into(), ..first.clone() };
        assert!(!says(Operation::Move, place(false, 0, 2, &elsewhere)));
        let program = placed("x broken").deployment.program;
        let undone = Some(Undone { program, node: NodeId(2), fault: Fault::Ended });
        let back = Placed { undone, ..first.clone() };
        assert!(!says(Operation::Broken, place(false, 1, 2, &back)));
        assert!(says(Operation::Broken, place(false, 1, 2, &first)));
        assert!(ended(liveness::WITHIN * 2, "x".into()).is_err());
        assert!(begun(liveness::WITHIN * 2, "x".into()).is_err());
    }
}
