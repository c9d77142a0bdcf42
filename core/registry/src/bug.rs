//! Mistakes planted on purpose, to prove that the tests find them.

/// One realistic mistake of the registry. Exists only with the feature `planted-bugs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
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

impl Bug {
    /// Every bug.
    #[cfg(feature = "planted-bugs")]
    pub const ALL: &[Bug] = &[
        Bug::Revive,
        Bug::KeepFormerLife,
        Bug::EndTheNewer,
        Bug::EndSilently,
        Bug::NoLastLease,
        Bug::TellOnce,
    ];
}

/// Which bug, if any, is planted in this machine. Costs nothing without the feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
