//! Whether all replicas have the same state.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast::NodeId;

use crate::Outcome;
use crate::cluster::Cluster;
use crate::wait::until;

/// Replicas that nobody calls are alike within this.
const TIMEOUT: Duration = Duration::from_secs(20);

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
    until(TIMEOUT, LOOK, || {
        let mut states: BTreeMap<Vec<u8>, Vec<NodeId>> = BTreeMap::new();
        for id in cluster.nodes().filter(|id| id.0 <= replicas) {
            states.entry(state(cluster, group, id, alone)?).or_default().push(id);
        }
        if states.len() == 1 {
            return Ok(Ok(states.into_keys().next().unwrap_or_default()));
        }
        let alike: Vec<_> = states.into_values().collect();
        Ok(Err(format!("replicas differ; these are alike: {alike:?}")))
    })
}

/// The state of this node's replica.
fn state(cluster: &Cluster, group: &str, id: NodeId, alone: bool) -> Outcome<Vec<u8>> {
    let mut admin = cluster.node(id)?;
    if !alone {
        return Ok(admin.state(group)?.1);
    }
    // The view may be there before its service is.
    until(TIMEOUT, LOOK, || {
        let moved = admin.move_primary(group, id);
        let state = moved.and_then(|_| admin.state(group));
        Ok(state.map(|(_, state)| state).map_err(|error| error.to_string()))
    })
}
