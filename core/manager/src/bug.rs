//! Mistakes planted on purpose, to prove that the simulator's checkers find them.

wire::planted_bugs! {
    /// Those that show where there is a manager.
    OF_LOAD {
        /// The most used backup is tried first.
        MostUsedFirst,
        /// Every difference between two reports re-orders the backups.
        ObeyNoise,
        /// A host from which a primary has just moved is relieved again at every look.
        RelieveAgain,
        /// A request is not repeated if the view has changed meanwhile.
        AskOnce,
        /// A host with too much to do refuses calls though a primary of it can move.
        ShedThoughMoveHelps,
        /// It refuses the most critical calls, too.
        ShedCriticalFirst,
        /// It goes on refusing when it has room.
        ShedWithoutEnd,
    }
    /// Those that show where something is deployed.
    OF_PLACEMENT {
        /// A host that is being drained gets replicas, and keeps them.
        PlaceOnDrained,
        /// An old replica goes before the new one has the state.
        LeaveBeforeArrival,
        /// A replica changes over to a new program even if no other has the state.
        UpgradeRegardless,
        /// A host that has a replica gets another one of the same group.
        PlaceTwice,
    }
    /// Those that show where a deployment gets a new program.
    OF_UPGRADES {
        /// A new program that does not serve is waited for.
        UndoNothing,
    }
    /// Those that show when the leader dies.
    OF_LEADERS {
        /// A new leader does not know the hosts that were to be drained before.
        #[cfg(feature = "planted-bugs")]
        ForgetDrains,
        /// A new leader takes the replica that is changing over for one that has done so.
        #[cfg(feature = "planted-bugs")]
        TakeForDone,
    }
}
