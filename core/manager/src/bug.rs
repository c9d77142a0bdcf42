//! Mistakes planted on purpose, to prove that the simulator's checkers find them.

/// One realistic mistake of the manager. Exists only with the feature `planted-bugs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// Who is used most is tried first.
    MostUsedFirst,
    /// Every difference between two reports re-orders the backups.
    ObeyNoise,
    /// A host from which a primary has just moved is relieved again at every look.
    RelieveAgain,
    /// What was asked for is not asked for again where the view has changed meanwhile.
    AskOnce,
    /// A host with too much to do refuses calls though a primary of it can move.
    ShedThoughMoveHelps,
    /// It refuses the most critical calls, too.
    ShedCriticalFirst,
    /// It goes on refusing when it has room.
    ShedWithoutEnd,
    /// A host that is being drained gets replicas, and keeps them.
    PlaceOnDrained,
    /// An old replica goes before the new one has the state.
    LeaveBeforeArrival,
    /// A replica changes over to a new program whoever else has the state.
    UpgradeRegardless,
    /// A new program that does not serve is waited for.
    UndoNothing,
    /// A host that has a replica gets another one of the same group.
    PlaceTwice,
    /// Whoever begins to lead knows nothing of hosts that were to be emptied before.
    #[cfg(feature = "planted-bugs")]
    ForgetDrains,
    /// Whoever begins to lead takes the one that is changing over for one that has.
    #[cfg(feature = "planted-bugs")]
    TakeForDone,
}

impl Bug {
    /// Those that show where there is a manager.
    #[cfg(feature = "planted-bugs")]
    pub const ALL: &[Bug] = &[
        Bug::MostUsedFirst,
        Bug::ObeyNoise,
        Bug::RelieveAgain,
        Bug::AskOnce,
        Bug::ShedThoughMoveHelps,
        Bug::ShedCriticalFirst,
        Bug::ShedWithoutEnd,
    ];

    /// Those that show where something is deployed.
    #[cfg(feature = "planted-bugs")]
    pub const OF_PLACEMENT: &[Bug] =
        &[Bug::PlaceOnDrained, Bug::LeaveBeforeArrival, Bug::UpgradeRegardless, Bug::PlaceTwice];

    /// Those that show when whoever leads dies.
    #[cfg(feature = "planted-bugs")]
    pub const OF_LEADERS: &[Bug] = &[Bug::ForgetDrains, Bug::TakeForDone];
}

/// Which bug, if any, is planted in this machine. Costs nothing without the feature.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planted {
    #[cfg(feature = "planted-bugs")]
    pub(crate) bug: Option<Bug>,
}

impl Planted {
    /// Whether this bug is.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn is(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether this bug is.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) fn is(self, _: Bug) -> bool {
        false
    }
}
