//! Nodes that come to the cluster while it runs, and that go.

use node::free_ring_addresses;
use steadfast::{NodeAddress, NodeId};

use super::health::LOOK;
use super::{Cluster, TIMEOUT};
use crate::wait::until_so;
use crate::{Outcome, bail};

impl Cluster {
    /// The nodes that are to be there.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        (1..=self.plan.nodes).map(NodeId).filter(|id| !self.gone.contains(id))
    }

    /// A further node comes, with replicas of all groups. Returns when all is well.
    ///
    /// # Errors
    /// The nodes have hosts of their own, or the cluster does not take it in, or not in time.
    pub fn join(&mut self, by: NodeId) -> Outcome<NodeId> {
        if self.hosts.is_some() {
            bail!("a further node would need a further host");
        }
        self.rings.push(free_ring_addresses(1));
        self.plan.nodes += 1;
        self.plan.replicas += 1;
        let id = NodeId(self.plan.nodes);
        self.start_node(id)?;
        let ring = self.rings[id.0 as usize - 1].clone();
        self.node(by)?.admit(NodeAddress::linked(id, ring))?;
        self.wait_until_well()?;
        Ok(id)
    }

    /// A node goes for good, and its process ends by itself. Returns when all is well.
    ///
    /// # Errors
    /// It does not go, or not in time.
    pub fn retire(&mut self, id: NodeId, by: NodeId) -> Outcome<()> {
        self.node(by)?.retire(id)?;
        self.gone.insert(id);
        let mut process = self.processes.remove(&id).ok_or("this node does not run")?;
        self.members.remove(&id);
        let missing = format!("{id} was retired, and runs after {TIMEOUT:?}");
        until_so(TIMEOUT, LOOK, &missing, || Ok(process.has_ended()?))?;
        self.wait_until_well()
    }
}
