//! Mistakes planted on purpose, to prove that the simulator finds them from what clients see.

wire::planted_bugs! {
    /// Every bug.
    ALL {
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
}
