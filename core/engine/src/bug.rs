//! Mistakes planted on purpose, to prove that the simulator's checkers find them.

wire::planted_bugs! {
    /// Those that show in a group of any style.
    OF_ANY_STYLE {
        /// A state transfer carries no sessions.
        ForgetSessions,
        /// A retry is executed again although its reply is kept.
        ExecuteRetries,
        /// A reply leaves before its request is held by a majority.
        ReplyBeforeHeld,
        /// Every configuration acts as if it had the quorum.
        IgnoreQuorum,
        /// A joining replica begins with the service's initial state instead of waiting for the
        /// group's.
        BeginWithoutState,
        /// A donor goes on executing while its snapshot is on the way.
        SnapshotTooLate,
        /// A handler's random numbers come from the replica instead of the order.
        OwnRandom,
        /// A replica that missed a component keeps what it had.
        KeepStaleReplica,
        /// A joining replica drops the requests that are ordered before its state is there.
        DropBacklog,
        /// Members without a replica count for the hold of a group's requests, instead of its
        /// replicas.
        CountBystanders,
        /// A move of the primary is obeyed although the view has changed since it was proposed.
        ObeyOldMove,
        /// A replica without the state is moved to the first rank.
        MoveToUnsynced,
        /// Who was primary takes no notice of its successor's hand-over.
        OldPrimaryStays,
        /// Calls under way at the primary that moves are dropped.
        DropMovedCalls,
        /// A node says of a call that it gave to the ring that it was not executed.
        DeclineGiven,
        /// An active replica executes a client's call where it comes, instead of in the order.
        ActiveAtOnce,
        /// Calls that are not ordered need a quorum all the same.
        QuorumForAll,
        /// A replica of a stateless group serves although it is not in the view.
        ServeAsStranger,
        /// The answer to a stateless call goes to the call that came last.
        MixAnswers,
        /// A handler's calls are counted by its replica instead of being derived from its own call.
        OwnNestedNumber,
        /// A nested call that was ordered is not ordered again in another component, or for another
        /// primary.
        NestedNotRepeated,
        /// A nested call is given up by each replica for itself.
        NestedGivenUpAlone,
        /// The kept reply of a nested call is not given again.
        NestedReplyNotRepeated,
        /// A read is executed where it comes, without asking whether its node is still in the
        /// component.
        ReadAlone,
        /// A read is executed before all is delivered that its node was told of.
        ReadTooEarly,
        /// A read that may be stale is answered however old that is.
        ForgetAge,
        /// Clients that watch a group are not told of its newer views.
        TellNobody,
    }
    /// Those of warm passive groups.
    OF_WARM_PASSIVE {
        /// A passive group's primary replies before what it executed is in an update.
        ReplyBeforeUpdate,
        /// An update counts although its sender is not the primary any more.
        TakeDeposed,
        /// An update carries no calls: backups cannot answer retries.
        ForgetCallsOfUpdates,
        /// A joining replica takes the updates that the state it was given has in it.
        TakeTwice,
    }
    /// Those of groups that get another style.
    OF_RESTYLES {
        /// A change of style is obeyed although the view has changed since it was proposed.
        ObeyOldRestyle,
        /// A replica forgets its sessions when its group gets another style.
        ForgetSessionsOfStyle,
        /// Nodes without a replica take no notice of a change of style.
        BystandersKeepStyle,
        /// A replica that joins brings the style of its configuration along.
        StyleOfJoiner,
        /// A warm passive group gets another style wherever that is proposed, and not when its
        /// primary has ordered what it has executed.
        ChangeUnasked,
        /// A replica's service is not told that its group has become, or is no more, warm passive.
        ServiceKeepsStyle,
        /// Who was a warm passive group's primary keeps its own ordered time, which moved by
        /// retries.
        KeepOwnTime,
        /// In a warm passive group only the primary takes the ends of nested calls, also of those
        /// from before it was one.
        EndsToPrimaryOnly,
        /// A replica whose group is cold passive no more goes on from its checkpoint, and leaves
        /// out what the log has.
        LaunchWithoutLog,
        /// The first checkpoint of a group that becomes cold passive is said to have in it what was
        /// ordered while it was taken.
        BeginWithoutPlace,
        /// A replica whose group becomes cold passive ends its service before that has said what
        /// its state is.
        EndBeforeCheckpoint,
        /// A replica whose group is cold passive no more executes what is delivered before what is
        /// in its log.
        LaunchTooEarly,
        /// A handler that waits for a majority's vote when its group ceases to vote waits for ever.
        AwaitOldCallQuorum,
    }
    /// Those of groups whose backups are ranked.
    OF_RANKS {
        /// An order of backups is obeyed although the view has changed since it was proposed.
        ObeyOldRank,
        /// An order of backups has an effect on who is primary.
        RankPrimary,
        /// An order of backups has an effect on replicas that have not got the state yet.
        RankJoining,
    }
    /// Those of cold passive groups.
    OF_COLD_PASSIVE {
        /// A cold passive replica that becomes primary leaves out the first request of its log.
        ReplayFromWrongPlace,
        /// It takes up a checkpoint without its sessions.
        ForgetSessionsOfCheckpoint,
        /// A checkpoint cuts the log where it is delivered, not where it was taken.
        CutTooEarly,
        /// A checkpoint is said to have in it what was ordered while it was taken.
        CheckpointWithoutPlace,
        /// A replica that joins a cold passive group is given the checkpoint alone.
        TransferWithoutLog,
        /// A replica that becomes primary executes what is delivered before what is in its log.
        NewBeforeLog,
        /// The log of a cold passive group has no ends of calls: who executes it again asks again.
        ForgetEndsOfLog,
    }
    /// Those of voting groups.
    OF_VOTING {
        /// A voting replica answers before a majority has told the same.
        AnswerBeforeVotes,
        /// A voting replica answers what it has, also when a majority has something else.
        AnswerMinority,
        /// Each replica's vote counts for two.
        CountVotesTwice,
        /// Who deviates stays in the group.
        KeepDeviant,
        /// A donor of a voting group gives its state before what led to it is settled.
        GiveUnsettled,
        /// A replica whose votes are missing is waited for for ever.
        AwaitVotes,
        /// What replicas have told in one component counts in the next.
        KeepVotes,
        /// What one replica of a voting group asks of another group is ordered before a majority
        /// has told the same.
        FirstAskWins,
        /// A replica's state does not say how many asks were voted on.
        ForgetAsksOfState,
    }
    /// Those that show where nodes have disks.
    OF_DISKS {
        /// A reply of a group on disk leaves before its request is on any.
        AnswerBeforeStored,
        /// A replica says that it has the state before its disk has it.
        SyncedBeforeStored,
        /// A replica is brought back from its disk without its sessions.
        ForgetLoggedSessions,
        /// After the loss of all lives whoever is back with the last request that the table names
        /// has the state.
        TrustOldTable,
        /// Of several requests of one place, those that are on a disk count as all of them.
        CountHalfPlace,
        /// A group of which nobody here has anything begins anew, although not all nodes are here.
        BeginWithoutAll,
        /// What a handler's call ended with does not come to the log of a group on disk.
        EndNotLogged,
        /// The reply to a call does not wait until what its handler's calls ended with is held, and
        /// stored.
        ReplyBeforeEndsStored,
    }
    /// Those of services that hang.
    OF_HUNG {
        /// Deadlines that a service misses are not counted.
        CountNoMisses,
        /// A call that is executed in time does not end the row of missed deadlines.
        KeepMisses,
        /// A replica whose service is hung is taken out although no other has the state.
        DemoteLast,
    }
    /// Those of hosts that refuse calls.
    OF_SHEDDING {
        /// A host that refuses calls refuses the most critical, too.
        ShedWhoever,
    }
    /// Those of calls that kill, and of programs that die.
    OF_POISON {
        /// A follower executes a call when it is delivered, instead of after its leader.
        ExecuteEverywhere,
        /// A call is tried again whoever has died of it.
        RetryPoison,
        /// A poisonous call is not kept for people.
        ForgetPoison,
        /// What another died of is answered before the order has it that it was executed.
        AnswerTrialEarly,
        /// What has a call in it that is tried is told before the order has it that it was
        /// executed.
        TellOfTrial,
        /// That a service died with a call is not held against the call.
        ForgiveDeaths,
        /// A node keeps nothing for a program that dies.
        DropLogOfDeadProgram,
        /// That nobody executes a call is known where that was decided, and nowhere else.
        CondemnAlone,
        /// Whoever goes on from a log executes what that says to be executed by nobody.
        ForgetVerdictsOfLog,
        /// The next program of a replica that alone has the state begins with the service's initial
        /// state.
        ReviveEmpty,
        /// It goes on from a state without its sessions.
        ReviveWithoutSessions,
        /// The last replica with the state leaves when its program dies.
        LastOneLeaves,
        /// What is kept for a program that dies is never cut.
        NeverCutJournal,
        /// It does not say where the group's style changed.
        JournalWithoutStyle,
        /// It does not have what the node's disk gave back.
        JournalWithoutDisk,
        /// Who waits for what a dead program was given without a place is not told.
        AwaitDeadProgram,
    }
}
