//! The kinds of worlds.

/// Which kind of world a seed is run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Stacks, services and clients.
    Cluster,
    /// Clusters on nodes with disks, whose lives may all end at once.
    Disks,
    /// Clusters in which all that the manager does happens together.
    Everything,
    /// Clusters in which the leader dies after each step of an operation.
    Interruptions,
    /// Clusters on nodes with disks that rot and fill up.
    Decay,
    /// Clusters with calls that kill every service that executes them, and programs that die.
    Poison,
    /// Clusters on nodes with disks that run programs of several versions.
    Versions,
    /// Clusters on nodes with disks that come and go.
    Growth,
    /// Clusters whose clients are gateways, to which callers come that count their calls.
    Gateways,
    /// Rings alone: their deliveries and configurations are visible to the checkers.
    Rings,
    /// Rings over two networks, of which one at a time is faulty.
    Links,
    /// One store and its disk.
    Stores,
    /// Jobs: their book, director and agents, and ranks with images on disks.
    Jobs,
    /// Channels between ranks, which save, die and go on.
    Channels,
    /// Systems of cells, each of which is a cluster.
    Cells,
    /// Systems of cells, whose rings are models.
    Forest,
}

impl World {
    /// Stacks, services and clients are in it.
    pub(super) fn is_cluster(self) -> bool {
        let managed = matches!(self, World::Everything | World::Interruptions);
        managed
            || matches!(self, World::Cluster | World::Poison | World::Gateways)
            || self.has_disks()
    }

    /// All nodes have disks.
    pub(super) fn has_disks(self) -> bool {
        matches!(self, World::Disks | World::Decay | World::Versions | World::Growth)
    }
}
