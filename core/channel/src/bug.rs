//! Mistakes planted on purpose, to prove that the tests find them.

wire::planted_bugs! {
    /// Every bug.
    ALL {
        /// Messages go that only the newest state does not need.
        TrimByNewest,
        /// A choice is not noted.
        SkipChoice,
        /// A message of a start counts that is over.
        AcceptOldStart,
        /// In a replay the program gets what is there first, and not what it had chosen.
        ReplayOutOfOrder,
        /// An image does not have the log.
        LogNotInImage,
        /// A message that was taken is taken once more.
        DeliverTwice,
        /// A message leaves before the choices are noted that it may depend on.
        OpenGate,
        /// A state is taken for the beginning of all channels.
        ForgetAhead,
        /// A later start of a sender is believed to have sent what was taken.
        BelieveSender,
        /// States fit together whose numbers do.
        FitByNumbers,
    }
}
