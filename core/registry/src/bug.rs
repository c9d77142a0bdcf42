//! Mistakes planted on purpose, to prove that the tests find them.

wire::planted_bugs! {
    /// Every bug.
    ALL {
        /// Who was unbound is bound again by what it said before.
        Revive,
        /// A node's new life keeps alive what its former one bound.
        KeepFormerLife,
        /// News of a death ends a binding that was made after it.
        EndTheNewer,
        /// What ends leaves the epoch as it was.
        EndSilently,
        /// Who is left alone under both techniques gets no lease.
        NoLastLease,
        /// What is to be unbound is told once, whether it came through or not.
        TellOnce,
    }
}
