//! A mistake that a run makes on purpose, so that its checkers are known to see it.

use wire::ordered::Style;

use crate::options::World;

/// A mistake planted in the machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plant {
    /// In the ring.
    pub ring: ring::Planted,
    /// In the engine.
    #[cfg(feature = "planted-bugs")]
    pub engine: Option<engine::Bug>,
    /// In what seals.
    pub seal: seal::Planted,
    /// In the store.
    pub store: store::Planted,
    /// In clients.
    pub client: client::Planted,
    /// In the manager.
    pub manager: manager::Planted,
    /// In the book of jobs, and in agents.
    pub job: job::Planted,
    /// In channels between ranks.
    pub channel: channel::Planted,
    /// In what reads images.
    pub image: image::Planted,
    /// In cells' books and routers.
    #[cfg(feature = "planted-bugs")]
    pub cells: Option<cells::Bug>,
}

impl Plant {
    /// A placer, with the mistake.
    pub fn placer(self) -> manager::placement::Placer {
        manager::placement::Placer::new(self.manager)
    }
}

/// Without the feature there is nothing to plant, and no world or style in which it would show.
#[cfg(not(feature = "planted-bugs"))]
#[allow(missing_docs)]
impl Plant {
    pub fn world(self) -> Option<World> {
        None
    }

    pub fn is_managed(self) -> bool {
        false
    }

    pub fn is_of_hangs(self) -> bool {
        false
    }

    pub fn is_placed(self) -> bool {
        false
    }

    pub fn style(self) -> Option<Style> {
        None
    }

    pub fn into_engine(self, _: &mut engine::Config) {}
}

#[cfg(feature = "planted-bugs")]
impl Plant {
    /// The world in which it shows, where there is but one.
    pub fn world(self) -> Option<World> {
        if self.seal.bug().is_some() {
            return Some(World::Rings);
        }
        if self.job.bug().is_some() || self.image.bug().is_some() {
            return Some(World::Jobs);
        }
        if self.channel.bug().is_some() {
            return Some(World::Channels);
        }
        if let Some(bug) = self.cells {
            let of_sessions = cells::Bug::SESSIONS.contains(&bug);
            return Some(if of_sessions { World::Cells } else { World::Forest });
        }
        if self.store.bug().is_some_and(|bug| store::Bug::OF_CLUSTERS.contains(&bug)) {
            return Some(World::Decay);
        }
        if self.store.bug().is_some() {
            return Some(World::Stores);
        }
        if self.manager.bug().is_some_and(|bug| manager::Bug::OF_LEADERS.contains(&bug)) {
            return Some(World::Interruptions);
        }
        let of_restyles = |bug| engine::Bug::OF_RESTYLES.contains(&bug);
        if self.is_managed() || self.is_placed() {
            return Some(World::Cluster);
        }
        if self.client.bug().is_some_and(|bug| client::Bug::OF_GATEWAYS.contains(&bug))
            || self.engine.is_some_and(|bug| engine::Bug::OF_KEYS.contains(&bug))
        {
            return Some(World::Gateways);
        }
        if self.client.bug().is_some()
            || self.style().is_some()
            || self.engine.is_some_and(of_restyles)
        {
            return Some(World::Cluster);
        }
        let of_versions = self.ring.bug().is_some_and(|bug| ring::Bug::OF_VERSIONS.contains(&bug));
        if of_versions || self.engine.is_some_and(|bug| engine::Bug::OF_VERSIONS.contains(&bug)) {
            return Some(World::Versions);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_GROWTH.contains(&bug)) {
            return Some(World::Growth);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_DISKS.contains(&bug)) {
            return Some(World::Disks);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_POISON.contains(&bug)) {
            return Some(World::Poison);
        }
        let of_comparisons = |bug| engine::Bug::OF_COMPARISONS.contains(&bug);
        if self.engine.is_some_and(of_comparisons) {
            return Some(World::Cluster);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_VOTING.contains(&bug))
            || self.is_of_hangs()
        {
            return Some(World::Cluster);
        }
        let bug = self.ring.bug()?;
        if ring::Bug::OF_LINKS.contains(&bug) {
            return Some(World::Links);
        }
        if ring::Bug::OF_READS.contains(&bug) {
            return Some(World::Cluster);
        }
        // Bounds are tried in trials of bare rings.
        let bounds = [
            ring::Bug::OF_WAITING,
            ring::Bug::OF_DETECTION,
            ring::Bug::OF_SHAPES,
            ring::Bug::OF_STALLS,
        ];
        bounds.concat().contains(&bug).then_some(World::Rings)
    }

    /// It shows only where there is a manager.
    pub fn is_managed(self) -> bool {
        let of_ranks =
            |bug| engine::Bug::OF_RANKS.contains(&bug) || engine::Bug::OF_SHEDDING.contains(&bug);
        self.manager.bug().is_some_and(|bug| manager::Bug::OF_LOAD.contains(&bug))
            || self.engine.is_some_and(of_ranks)
    }

    /// It shows only where services hang.
    pub fn is_of_hangs(self) -> bool {
        self.engine.is_some_and(|bug| engine::Bug::OF_HUNG.contains(&bug))
    }

    /// It shows only where something is deployed.
    pub fn is_placed(self) -> bool {
        self.manager.bug().is_some_and(|bug| manager::Bug::OF_PLACEMENT.contains(&bug))
    }

    /// The style of the groups in which it shows, where there is but one.
    pub fn style(self) -> Option<Style> {
        let bug = self.engine?;
        if engine::Bug::OF_WARM_PASSIVE.contains(&bug) {
            return Some(Style::WarmPassive);
        }
        engine::Bug::OF_COLD_PASSIVE.contains(&bug).then_some(Style::ColdPassive)
    }

    /// Plants the mistake in a stack.
    pub fn into_engine(self, config: &mut engine::Config) {
        config.bug = self.engine;
    }
}
