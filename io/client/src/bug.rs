//! Mistakes planted on purpose, to prove that the simulator finds them from what clients see.

/// One realistic mistake in the session. Exists only with the feature `planted-bugs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// A retry has a number of its own, so that replicas take it for another call.
    RetryAsNew,
    /// A request that was neither answered nor declined is forgotten: at the deadline the call is said not to have been executed.
    ForgetSilence,
    /// A reply ends whichever call waits on its connection.
    AnswerAnyCall,
    /// The second replica of an active group is asked for the call under a number of its own.
    HedgeAnew,
    /// A second replica is asked for every call that takes long, however many these are.
    HedgeWithoutEnd,
    /// A call is tried again as often as it takes, whatever the budget says.
    RetryWithoutEnd,
    /// So many answers as make a majority are one, whatever they say.
    CountUnlike,
    /// A call that waits for all replicas ends when all but one have answered.
    AllButOne,
}

impl Bug {
    /// Every bug.
    #[cfg(feature = "planted-bugs")]
    pub const ALL: [Bug; 8] = [
        Bug::RetryAsNew,
        Bug::ForgetSilence,
        Bug::AnswerAnyCall,
        Bug::HedgeAnew,
        Bug::HedgeWithoutEnd,
        Bug::RetryWithoutEnd,
        Bug::CountUnlike,
        Bug::AllButOne,
    ];
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
