//! Mistakes planted on purpose, to prove that the tests find them.

wire::planted_bugs! {
    /// Every bug.
    ALL {
        /// An ended binding is made again by an older command.
        Revive,
        /// A node's new life keeps alive what its former one bound.
        KeepFormerLife,
        /// News of a death ends a binding that was made after it.
        EndTheNewer,
        /// The end of a binding does not change the epoch.
        EndSilently,
        /// A binding left alone under both techniques gets no lease.
        NoLastLease,
        /// An unbind is sent once, whether it arrived or not.
        TellOnce,
    }
}
