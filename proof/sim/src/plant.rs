//! A mistake that a run makes on purpose, so that its checkers are known to see it.

use wire::ordered::Style;

use crate::options::World;

/// A mistake planted in the machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plant {
    /// In the ring.
    #[cfg(feature = "planted-bugs")]
    pub ring: Option<ring::Bug>,
    /// In the engine.
    #[cfg(feature = "planted-bugs")]
    pub engine: Option<engine::Bug>,
    /// In what seals.
    #[cfg(feature = "planted-bugs")]
    pub seal: Option<seal::Bug>,
    /// In the store.
    #[cfg(feature = "planted-bugs")]
    pub store: Option<store::Bug>,
    /// In clients.
    #[cfg(feature = "planted-bugs")]
    pub client: Option<client::Bug>,
    /// In the manager.
    #[cfg(feature = "planted-bugs")]
    pub manager: Option<manager::Bug>,
}

impl Plant {
    /// The world in which it shows, where there is but one.
    #[cfg(feature = "planted-bugs")]
    pub fn world(self) -> Option<World> {
        if self.seal.is_some() {
            return Some(World::Rings);
        }
        if self.store.is_some_and(|bug| store::Bug::OF_CLUSTERS.contains(&bug)) {
            return Some(World::Decay);
        }
        if self.store.is_some() {
            return Some(World::Stores);
        }
        if self.manager.is_some_and(|bug| manager::Bug::OF_LEADERS.contains(&bug)) {
            return Some(World::Interruptions);
        }
        let of_restyles = |bug| engine::Bug::OF_RESTYLES.contains(&bug);
        if self.is_managed() || self.is_placed() {
            return Some(World::Cluster);
        }
        if self.client.is_some() || self.style().is_some() || self.engine.is_some_and(of_restyles) {
            return Some(World::Cluster);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_DISKS.contains(&bug)) {
            return Some(World::Disks);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_POISON.contains(&bug)) {
            return Some(World::Poison);
        }
        if self.engine.is_some_and(|bug| engine::Bug::OF_VOTING.contains(&bug))
            || self.is_of_hangs()
        {
            return Some(World::Cluster);
        }
        let bug = self.ring?;
        if ring::Bug::OF_LINKS.contains(&bug) {
            return Some(World::Links);
        }
        if ring::Bug::OF_READS.contains(&bug) {
            return Some(World::Cluster);
        }
        // Bounds are tried in trials of bare rings.
        let bounds = [
            &ring::Bug::OF_WAITING[..],
            &ring::Bug::OF_DETECTION,
            &ring::Bug::OF_SHAPES,
            &ring::Bug::OF_STALLS,
        ];
        bounds.concat().contains(&bug).then_some(World::Rings)
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn world(self) -> Option<World> {
        None
    }

    /// It shows only where there is a manager.
    #[cfg(feature = "planted-bugs")]
    pub fn is_managed(self) -> bool {
        let of_ranks =
            |bug| engine::Bug::OF_RANKS.contains(&bug) || engine::Bug::OF_SHEDDING.contains(&bug);
        self.manager.is_some_and(|bug| manager::Bug::ALL.contains(&bug))
            || self.engine.is_some_and(of_ranks)
    }

    /// It shows only where services hang.
    #[cfg(feature = "planted-bugs")]
    pub fn is_of_hangs(self) -> bool {
        self.engine.is_some_and(|bug| engine::Bug::OF_HUNG.contains(&bug))
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn is_of_hangs(self) -> bool {
        false
    }

    /// It shows only where something is deployed.
    #[cfg(feature = "planted-bugs")]
    pub fn is_placed(self) -> bool {
        self.manager.is_some_and(|bug| manager::Bug::OF_PLACEMENT.contains(&bug))
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn is_placed(self) -> bool {
        false
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn is_managed(self) -> bool {
        false
    }

    /// The style of the groups in which it shows, where there is but one.
    #[cfg(feature = "planted-bugs")]
    pub fn style(self) -> Option<Style> {
        let bug = self.engine?;
        if engine::Bug::OF_WARM_PASSIVE.contains(&bug) {
            return Some(Style::WarmPassive);
        }
        engine::Bug::OF_COLD_PASSIVE.contains(&bug).then_some(Style::ColdPassive)
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn style(self) -> Option<Style> {
        None
    }

    /// Plants the mistake in a ring.
    #[cfg(feature = "planted-bugs")]
    pub fn into_ring(self, config: &mut ring::Config) {
        config.bug = self.ring;
    }

    /// Plants the mistake in a stack.
    #[cfg(feature = "planted-bugs")]
    pub fn into_engine(self, config: &mut engine::Config) {
        config.bug = self.engine;
    }

    /// Plants the mistake in a manager.
    #[cfg(feature = "planted-bugs")]
    pub fn into_manager(self, config: &mut manager::Config) {
        config.bug = self.manager;
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_manager(self, _: &mut manager::Config) {}

    /// A placer, with the mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn placer(self) -> manager::placement::Placer {
        manager::placement::Placer::new(self.manager)
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn placer(self) -> manager::placement::Placer {
        manager::placement::Placer::new()
    }

    /// Plants the mistake in a client.
    #[cfg(feature = "planted-bugs")]
    pub fn into_session(self, session: &mut client::Session) {
        if let Some(bug) = self.client {
            session.plant(bug);
        }
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_session(self, _: &mut client::Session) {}

    /// Plants the mistake in what seals.
    #[cfg(feature = "planted-bugs")]
    pub fn into_seal(self, seal: &mut seal::Seal) {
        if let Some(bug) = self.seal {
            seal.plant(bug);
        }
    }

    /// Plants the mistake in a store.
    #[cfg(feature = "planted-bugs")]
    pub fn into_store(self, config: &mut store::Config) {
        config.bug = self.store;
    }

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_store(self, _: &mut store::Config) {}

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_seal(self, _: &mut seal::Seal) {}

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_ring(self, _: &mut ring::Config) {}

    /// Without the feature there is nothing to plant.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn into_engine(self, _: &mut engine::Config) {}
}
