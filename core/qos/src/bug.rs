//! Mistakes planted on purpose, to prove that the tests find them.

wire::planted_bugs! {
    /// Every bug.
    ALL {
        /// A user takes over what another user holds.
        AnybodyTakesOver,
        /// An admitted reserve counts as in force, though the kernel refused it.
        BelieveTheHost,
        /// A reserve without a mechanism is not told to be degraded.
        DegradeSilently,
        /// A path that goes to another thread makes that one ordinary, not the former.
        ReleaseTheNew,
        /// A path that goes to another thread leaves the former one its class.
        ForgetTheOld,
        /// A reserve that the kernel refused takes room.
        KeepTheRefused,
        /// A change that the kernel refused takes the room of what is in force.
        ForgetTheChanged,
        /// The end of a connection ends what the next has taken over.
        EndTheTakenOver,
        /// A reserve that has ended takes room.
        LeakTheRoom,
        /// The thread of a reserve that has ended keeps its class.
        LeakTheClass,
    }
}
