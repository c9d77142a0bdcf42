//! Mistakes planted on purpose, to prove that the simulator finds them from what clients see.

wire::planted_bugs! {
    /// Those of sessions whose clients count the calls.
    OF_CLIENTS {
        /// A retry has a number of its own, so replicas take it for another call.
        RetryAsNew,
        /// A request without an answer is forgotten: at its deadline the call counts as not
        /// executed.
        ForgetSilence,
        /// A reply ends any call that waits on its connection.
        AnswerAnyCall,
        /// The second request of a hedged call has a number of its own.
        HedgeAnew,
        /// The client hedges every call that takes long, whatever its budget says.
        HedgeWithoutEnd,
        /// The client sends a call again as often as it likes, whatever its budget says.
        RetryWithoutEnd,
        /// A majority of answers counts as one, even if they differ.
        CountUnlike,
        /// A call that waits for all replicas ends when all but one have answered.
        AllButOne,
    }
    /// Those of sessions whose callers count the calls, and present them by several gateways.
    OF_GATEWAYS {
        /// A call that its caller repeats has a number of its own, so replicas take it for another
        /// call.
        GatewayRenumbers,
        /// A gateway tells the lowest number of its own open calls, in place of its caller's, so
        /// replicas drop replies that the caller still wants.
        GatewayForgetsUnanswered,
        /// A gateway tells that no call is given up, so one that was may be executed after a later
        /// one.
        GatewayKeepsGivenUp,
        /// A gateway sends another call under a number that it has used, and takes late replies to
        /// the first for that one's.
        SendOtherCall,
        /// The newest attempt of a repeated call ends as well as the former one.
        RepeatedEndsBoth,
    }
}
