//! Mistakes that the simulator plants, to prove that its checkers would find them.

wire::planted_bugs! {
    /// Those that a swarm of seeds meets.
    OF_SWARMS {
        /// A copy of the token is taken for the token: two holders give out the same numbers.
        AcceptOldToken,
        /// A message is delivered although one before it is missing.
        DeliverPastGap,
        /// A holder strikes out the request list without sending what it asks for.
        SkipRetransmission,
        /// Buffers are released when a majority has a message, not when everybody has it.
        ReleaseBeforeStable,
        /// An acknowledgement says "everything up to" the largest number seen, over gaps.
        AckHighest,
        /// A new ring is installed without the exchange of the old one's messages.
        SkipRecovery,
        /// Messages after a gap are delivered, whichever member sent them, and even if causes are
        /// missing.
        DeliverWithoutCause,
        /// A safe message is delivered when its turn in the order comes, like an agreed one.
        SafeAtOnce,
        /// A safe message is delivered when a majority has it.
        SafeByMajority,
        /// A recovery delivers all that has no gap before it in the regular configuration, whether
        /// all members of that are known to have it or not.
        SafeUnknown,
        /// A recovery delivers in the regular configuration what this node knows to be stable, not
        /// what any of those does who go on with it.
        ForgetStability,
        /// A message of which some parts were sent on the old ring goes on where it was.
        ResumeMessage,
        /// The sender of a datagram is taken to have all before it, too.
        BelieveAllComplete,
    }
    /// Those about versions: the simulator has nodes of two versions.
    OF_VERSIONS {
        /// A representative forms the ring in the greatest version that it speaks itself.
        SpeakNewerEarly,
    }
    /// Those that let a member wait too long: found by a check of every token, as in
    /// `tests/cluster/fairness.rs`.
    OF_WAITING {
        /// A holder sends all it has before the token goes on, even if others want it.
        GreedyHolder,
    }
    /// Those that hide a dead member: found by the scenarios of `tests/detection.rs`.
    OF_DETECTION {
        /// A resting token's heartbeat is a word to all that asks for no answer.
        UnansweredHeartbeat,
        /// Those who want the token pass it to and fro, past a member that does not answer.
        HideTheSilent,
        /// A member sends the pulse home, past all who come after it.
        ShortPulse,
    }
    /// Those that let rings come and go without end where a network is bad: the simulator counts
    /// configurations.
    OF_SHAPES {
        /// Every node that is heard is welcome, whether it hears this node or not.
        WelcomeOneWay,
        /// A member that was lost again and again may come back at once, every time.
        NeverHoldOff,
    }
    /// Those that let a slow member hold up the others for ever: found where one is slow, as in
    /// `tests/slow.rs`.
    OF_STALLS {
        /// Nobody's account of stalls is kept.
        ForgiveTheSlow,
    }
    /// Those that show where nodes have several links.
    OF_LINKS {
        /// A retransmission goes by the link in use only, and raises no doubt about it.
        EveryByBestLink,
        /// The first link is used whatever became of it.
        KeepDeadLink,
    }
    /// Those that cost an idle ring more than it may: found by counting its datagrams.
    OF_IDLENESS {
        /// An idle ring shows itself as often as at first, however long it has been idle.
        NeverStretch,
    }
    /// Those that only reads without ordering show.
    OF_READS {
        /// A round of questions is over before anybody has answered.
        ConfirmAlone,
    }
    /// Those that need two crashes within a round trip of each other after a loss: found by the
    /// scenario of `tests/cluster/promise.rs`.
    OF_RECOVERY {
        /// The promises of an earlier, interrupted recovery are forgotten.
        ForgetObligations,
    }
    /// Those that accuse a healthy member: found where old datagrams come late, as in
    /// `tests/detection.rs`. Also where a window is shut that nobody holds shut, as in
    /// `tests/slow.rs`.
    OF_SUSPICION {
        /// A copy of what was sent long ago is taken for a sign that the ring is not quiet any
        /// more.
        CopyIsNews,
        /// A shut window is charged to the last member, whether the others are further or not.
        BlameTheLast,
    }
}
