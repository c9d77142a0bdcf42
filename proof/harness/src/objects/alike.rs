//! Whether all replicas have the same state.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use steadfast::NodeId;

use crate::cluster::Cluster;
use crate::{Outcome, bail};

/// Replicas that nobody calls are alike within this.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often they are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// The state that the replicas on the first `replicas` nodes have. Where the primary's service
/// alone runs (`alone`), each becomes primary for that.
pub fn common_state(
    cluster: &Cluster,
    group: &str,
    replicas: u32,
    alone: bool,
) -> Outcome<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut states: BTreeMap<Vec<u8>, Vec<NodeId>> = BTreeMap::new();
        for id in (1..=replicas).map(NodeId) {
            let state = state(cluster, group, id, alone, deadline)?;
            states.entry(state).or_default().push(id);
        }
        if states.len() == 1 {
            return Ok(states.into_keys().next().unwrap_or_default());
        }
        if Instant::now() > deadline {
            let alike: Vec<_> = states.into_values().collect();
            bail!("replicas differ; these are alike: {alike:?}");
        }
        thread::sleep(LOOK);
    }
}

/// The state of this node's replica.
fn state(
    cluster: &Cluster,
    group: &str,
    id: NodeId,
    alone: bool,
    deadline: Instant,
) -> Outcome<Vec<u8>> {
    let mut admin = cluster.node(id)?;
    if !alone {
        return Ok(admin.state(group)?.1);
    }
    loop {
        // The view may be there before its service is.
        let moved = admin.move_primary(group, id).map_err(Into::into);
        match moved.and_then(|_| Ok(admin.state(group)?)) {
            Ok((_, state)) => return Ok(state),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => thread::sleep(LOOK),
        }
    }
}
