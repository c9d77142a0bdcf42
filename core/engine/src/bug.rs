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
        /// A replica that comes back counts as one with the state, whatever it has missed.
        TrustReturned,
        /// A replica that was not given its state does not ask for it again.
        AskOnce,
        /// A replica gives up acknowledged calls where two histories meet, and says nothing.
        DiscardQuietly,
        /// A history that was given up counts as merged as soon as its state is kept.
        ClaimMerged,
        /// A replica says that the state that it kept has what the one to come has.
        TrustFormer,
        /// A joining replica drops the requests that are ordered before its state is there.
        DropBacklog,
        /// Members without a replica count for the hold of a group's requests, instead of its
        /// replicas.
        CountBystanders,
        /// A move of the primary is obeyed although the view has changed since it was proposed.
        ObeyOldMove,
        /// A replica without the state is moved to the first rank.
        MoveToUnsynced,
        /// The former primary ignores its successor's hand-over.
        OldPrimaryStays,
        /// Calls under way at the primary that moves are dropped.
        DropMovedCalls,
        /// A node claims that a call that it gave to the ring was not executed.
        DeclineGiven,
        /// An active replica executes a client's call on arrival, instead of in the order.
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
        /// A read is executed on arrival, without a check that its node is still in the component.
        ReadAlone,
        /// A read is executed before all is delivered that its node was told of.
        ReadTooEarly,
        /// A read that may be stale is answered however old its state is.
        ForgetAge,
        /// A read that may be stale is not answered without a quorum.
        RefuseAlone,
        /// Clients that watch a group are not sent its newer views.
        TellNobody,
        /// A service is told of a view when that is installed, whatever calls before it are still to
        /// be executed.
        ViewTooEarly,
    }
    /// Those of comparisons of replicas.
    OF_COMPARISONS {
        /// Replicas are never compared.
        CompareNever,
        /// A replica's digest is of its state when the comparison is delivered, whatever calls before
        /// it are still to be executed.
        DigestTooEarly,
        /// A replica whose digest differs is not told of.
        KeepApartQuiet,
    }
    /// Those about what calls ask, and about keys that are used for long.
    OF_KEYS {
        /// A session knows a call by its number alone: a key that is used for another call answers
        /// with the result of the first.
        IgnoreWhatIsAsked,
        /// A state transfer does not carry what calls asked.
        TransferWithoutKeys,
        /// An update does not say what its calls asked.
        UpdateWithoutKeys,
        /// An answer goes to whoever waits under the call's number.
        AnswerWhoeverWaits,
        /// Nothing is known of sessions whose replies are forgotten.
        ForgetTheForgotten,
    }
    /// Those about programs of several versions.
    OF_VERSIONS {
        /// Newer rules come into force when the nodes that are heard of know them.
        ActivateBeforeAll,
        /// A node that restarts forgets the rules in force.
        LoseLevel,
    }
    /// Those about nodes that come and go.
    OF_GROWTH {
        /// A change of the nodes that comes while another is under way puts that in force at once.
        AdmitTwice,
        /// A retired node counts for the quorum.
        CountRetired,
        /// Only the nodes before a change count for the quorum, and for the change.
        QuorumOfOldListOnly,
        /// A node that restarts forgets how the nodes have changed.
        ForgetRoster,
    }
    /// Those of warm passive groups.
    OF_WARM_PASSIVE {
        /// A passive group's primary replies before what it executed is in an update.
        ReplyBeforeUpdate,
        /// An update counts although its sender is not the primary any more.
        TakeDeposed,
        /// An update carries no calls: backups cannot answer retries.
        ForgetCallsOfUpdates,
        /// A joining replica applies updates that its received state already contains.
        TakeTwice,
    }
    /// Those of groups that get another style.
    OF_RESTYLES {
        /// A change of style is obeyed although the view has changed since it was proposed.
        ObeyOldRestyle,
        /// A replica forgets its sessions when its group gets another style.
        ForgetSessionsOfStyle,
        /// Nodes without a replica ignore a change of style.
        BystandersKeepStyle,
        /// A replica that joins brings the style of its configuration along.
        StyleOfJoiner,
        /// A warm passive group gets another style wherever that is proposed, and not when its
        /// primary has ordered what it has executed.
        ChangeUnasked,
        /// A replica's service is not told that its group has become, or is no more, warm passive.
        ServiceKeepsStyle,
        /// The former primary of a warm passive group keeps its own ordered time, which retries
        /// have moved.
        KeepOwnTime,
        /// In a warm passive group only the primary takes the ends of nested calls, also of those
        /// from before it was one.
        EndsToPrimaryOnly,
        /// A replica whose group stops being cold passive goes on from its checkpoint without the
        /// log.
        LaunchWithoutLog,
        /// The first checkpoint of a group that becomes cold passive claims to contain the requests
        /// ordered while it was taken.
        BeginWithoutPlace,
        /// A replica whose group becomes cold passive ends its service before that has reported its
        /// state.
        EndBeforeCheckpoint,
        /// A replica whose group stops being cold passive executes new requests before those of its
        /// log.
        LaunchTooEarly,
        /// A handler that waits for a majority's vote when its group ceases to vote waits for ever.
        AwaitOldCallQuorum,
    }
    /// Those of groups whose backups are ranked.
    OF_RANKS {
        /// An order of backups is obeyed although the view has changed since it was proposed.
        ObeyOldRank,
        /// An order of backups changes the primary.
        RankPrimary,
        /// An order of backups affects replicas that do not have the state yet.
        RankJoining,
    }
    /// Those of cold passive groups.
    OF_COLD_PASSIVE {
        /// A cold passive replica that becomes primary leaves out the first request of its log.
        ReplayFromWrongPlace,
        /// A cold passive primary restores a checkpoint without its sessions.
        ForgetSessionsOfCheckpoint,
        /// A checkpoint cuts the log where it is delivered, not where it was taken.
        CutTooEarly,
        /// A checkpoint claims to contain the requests ordered while it was taken.
        CheckpointWithoutPlace,
        /// A replica that joins a cold passive group receives the checkpoint alone.
        TransferWithoutLog,
        /// A replica that becomes primary executes new requests before those of its log.
        NewBeforeLog,
        /// The log of a cold passive group lacks the ends of calls: a replica that replays it asks
        /// again.
        ForgetEndsOfLog,
    }
    /// Those of voting groups.
    OF_VOTING {
        /// A voting replica answers before a majority has voted the same.
        AnswerBeforeVotes,
        /// A voting replica answers with its own outcome, even when a majority has another.
        AnswerMinority,
        /// Each replica's vote counts for two.
        CountVotesTwice,
        /// A deviating replica stays in the group.
        KeepDeviant,
        /// A donor of a voting group sends its state before the calls in it are settled.
        GiveUnsettled,
        /// A replica whose votes are missing is waited for for ever.
        AwaitVotes,
        /// Votes of one component count in the next.
        KeepVotes,
        /// A nested call of one voting replica is ordered before a majority has made the same call.
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
        /// After the loss of all lives, any replica back with the table's last request has the
        /// state.
        TrustOldTable,
        /// If a disk has some of the requests of one place, they count as all of them.
        CountHalfPlace,
        /// A group that no present node has data of begins anew, although nodes are missing.
        BeginWithoutAll,
        /// The end of a handler's call is not in the log of a group on disk.
        EndNotLogged,
        /// A reply does not wait until the ends of its handler's calls are held and stored.
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
        /// A host that refuses calls refuses those of the highest priority, too.
        ShedWhoever,
    }
    /// Those of calls that kill, and of programs that die.
    OF_POISON {
        /// A follower executes a call when it is delivered, instead of after its leader.
        ExecuteEverywhere,
        /// A call is tried again however many services died of it.
        RetryPoison,
        /// A poisonous call is not kept for people.
        ForgetPoison,
        /// A call that another replica died of is answered before the order says that it was
        /// executed.
        AnswerTrialEarly,
        /// A replica that leaves, or beside which another tries its call, answers before the order
        /// says that the call was executed.
        AnswerTrialOnTheWayOut,
        /// A state or change that contains a tried call is sent before the order says that the call
        /// was executed.
        TellOfTrial,
        /// The death of a service with a call is not held against the call.
        ForgiveDeaths,
        /// A node keeps nothing for a program that dies.
        DropLogOfDeadProgram,
        /// Only the node that condemned a call knows that nobody executes it.
        CondemnAlone,
        /// A replica that goes on from a log executes the calls that the log condemns.
        ForgetVerdictsOfLog,
        /// The next program of a replica that alone has the state begins with the service's initial
        /// state.
        ReviveEmpty,
        /// It goes on from a state without its sessions.
        ReviveWithoutSessions,
        /// The last replica with the state leaves when its program dies.
        LastOneLeaves,
        /// A journal is never cut.
        NeverCutJournal,
        /// A journal does not record where the group's style changed.
        JournalWithoutStyle,
        /// A journal lacks the records recovered from the node's disk.
        JournalWithoutDisk,
        /// Callers of a dead program's calls without a place are not answered.
        AwaitDeadProgram,
    }
}
