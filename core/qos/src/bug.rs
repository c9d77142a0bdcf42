//! Mistakes planted on purpose, to prove that the tests find them.

wire::planted_bugs! {
    /// Every bug.
    ALL {
        /// A user takes over what another user holds.
        AnybodyTakesOver,
        /// What the host admits counts as in force, whatever the kernel says.
        BelieveTheHost,
        /// What is not permitted is not told.
        DegradeSilently,
        /// A path that goes to another thread makes that one ordinary, not the former.
        ReleaseTheNew,
        /// A path that goes to another thread leaves the former one its class.
        ForgetTheOld,
        /// What the kernel refused takes room.
        KeepTheRefused,
        /// A change that the kernel refused takes the room of what is in force.
        ForgetTheChanged,
        /// The end of a connection ends what the next has taken over.
        EndTheTakenOver,
        /// What has ended takes room.
        LeakTheRoom,
        /// What has ended keeps its class.
        LeakTheClass,
    }
}
