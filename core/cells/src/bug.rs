//! Mistakes planted on purpose, to prove that the tests find them.

wire::planted_bugs! {
    /// In the book.
    BOOK {
        /// A lease never ends.
        KeepForEver,
        /// The exports of a cell stay when it is gone.
        KeepExports,
        /// An older attachment renews a newer one's lease.
        RenewAny,
        /// A cell that has lost everything does not take its path from the former one.
        AttachTheFormer,
        /// An older answer replaces a newer one.
        LearnOlder,
        /// A report of an attachment that has ended counts.
        TakeStaleReport,
        /// A lease is renewed although it has ended.
        RenewEnded,
    }
    /// In the treatment of calls by one carrier.
    CALLS {
        /// A cell says of any call whose it is.
        BelieveOrigins,
        /// Calls of one caller to two groups are taken for one.
        KeyWithoutGroup,
    }
    /// In the carriers.
    CARRIERS {
        /// A cell speaks for cells that are not below it.
        BelievePaths,
        /// A lost link's calls are answered by nobody.
        ForgetLost,
        /// A call that was lost on its way is called not executed.
        CallLostUndone,
        /// A silent link is kept.
        KeepSilent,
        /// Answers are called new however long they travelled.
        HideAge,
        /// A cell whose parent is silent waits for it.
        WaitForParent,
        /// A shunned cell goes on with its old attachment.
        IgnoreShunning,
        /// A node goes on saying where a group was when it was asked first.
        KeepLocated,
        /// A call that goes another way gets another number.
        NumberAnew,
        /// A call that came from above goes up again.
        GoUpAgain,
    }
    /// In calls, as only real sessions show.
    SESSIONS {
        /// A call says that all before it have ended for its caller.
        GiveUpOlder,
    }
}
