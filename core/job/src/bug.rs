//! Mistakes planted on purpose, to prove that the tests find them.

wire::planted_bugs! {
    /// Every bug.
    ALL {
        /// An image counts that a start has saved which is over.
        CommitOldStart,
        /// An image goes on which a kept one builds.
        CollectTooEarly,
        /// A holder that is gone still counts.
        ForgetHolder,
        /// A node counts as a holder by what it said in a life that is over.
        BelieveTheDead,
        /// Images that a start could not restore count again when their holder is back.
        MixPasts,
        /// A rank that runs is started a second time under the same number.
        StartTwice,
        /// An image is to be restored although one below it is lost.
        RestoreWithoutParent,
        /// An agent removes what an older version of the book does not have.
        RemoveByOldList,
        /// A rank leaves its node before another one has its state.
        MoveTooEarly,
        /// An agent leaves a start alone that the book wants no more.
        LeaveOldStart,
    }
}
