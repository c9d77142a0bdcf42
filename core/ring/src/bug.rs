//! Mistakes that the simulator plants, to prove that its checkers would find them.

/// A realistic one-line mistake. Exists only under the feature `planted-bugs`.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
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
    /// What an earlier, interrupted recovery promised to deliver is forgotten.
    ForgetObligations,
    /// Messages after a gap are delivered whoever sent them, causes missing or not.
    DeliverWithoutCause,
    /// A safe message is delivered when its turn in the order comes, like an agreed one.
    SafeAtOnce,
    /// A safe message is delivered when a majority has it.
    SafeByMajority,
    /// A recovery delivers all that has no gap before it in the regular configuration, whether all
    /// members of that are known to have it or not.
    SafeUnknown,
    /// A recovery delivers in the regular configuration what this node knows to be stable, not what
    /// any of those does who go on with it.
    ForgetStability,
    /// A holder sends all it has before the token goes on, whoever else wants it.
    GreedyHolder,
    /// A message of which some parts were sent on the old ring goes on where it was.
    ResumeMessage,
    /// A member sends the pulse home, past all who come after it.
    ShortPulse,
    /// A copy of what was sent long ago is taken for a sign that the ring is not quiet any more.
    CopyIsNews,
    /// An idle ring shows itself as often as at first, however long it has been idle.
    NeverStretch,
    /// A resting token's heartbeat is a word to all that asks for no answer.
    UnansweredHeartbeat,
    /// Those who want the token pass it to and fro, past a member that does not answer.
    HideTheSilent,
    /// Whoever is heard is welcome, whether it hears this node or not.
    WelcomeOneWay,
    /// Who was lost again and again may come back at once, every time.
    NeverHoldOff,
    /// Nobody's account of stalls is kept.
    ForgiveTheSlow,
    /// A shut window is charged to the last member, whether the others are further or not.
    BlameTheLast,
    /// What is sent again goes by the link in use only, and raises no doubt about it.
    EveryByBestLink,
    /// The first link is used whatever became of it.
    KeepDeadLink,
    /// A round of questions is over before anybody has answered.
    ConfirmAlone,
    /// Whoever sent a datagram is taken to have all before it, too.
    BelieveAllComplete,
}

#[cfg(feature = "planted-bugs")]
impl Bug {
    /// Those that a swarm of seeds meets. `ForgetObligations` needs two crashes within a round
    /// trip of each other after a loss: it has a scenario of its own (`tests/cluster/promise.rs`).
    pub const ALL: [Bug; 13] = [
        Bug::AcceptOldToken,
        Bug::DeliverPastGap,
        Bug::SkipRetransmission,
        Bug::ReleaseBeforeStable,
        Bug::AckHighest,
        Bug::SkipRecovery,
        Bug::DeliverWithoutCause,
        Bug::SafeAtOnce,
        Bug::SafeByMajority,
        Bug::SafeUnknown,
        Bug::ForgetStability,
        Bug::ResumeMessage,
        Bug::BelieveAllComplete,
    ];

    /// Those that hide a dead member: found by the scenarios of `tests/detection.rs`.
    pub const OF_DETECTION: [Bug; 3] =
        [Bug::UnansweredHeartbeat, Bug::HideTheSilent, Bug::ShortPulse];

    /// Those that cost an idle ring more than it may: found by who counts its datagrams.
    pub const OF_IDLENESS: [Bug; 1] = [Bug::NeverStretch];

    /// Those that accuse who is well: found where old datagrams come late, as in `tests/detection.rs`, and where
    /// a window is shut that nobody holds shut, as in `tests/slow.rs`.
    pub const OF_SUSPICION: [Bug; 2] = [Bug::CopyIsNews, Bug::BlameTheLast];

    /// Those that let somebody wait too long: found by who looks at every token, as `tests/cluster/fairness.rs` does.
    pub const OF_WAITING: [Bug; 1] = [Bug::GreedyHolder];

    /// Those that let rings come and go without end where a network is bad: the simulator counts configurations.
    pub const OF_SHAPES: [Bug; 2] = [Bug::WelcomeOneWay, Bug::NeverHoldOff];

    /// Those that let a slow member hold up the others for ever: found where one is slow, as in `tests/slow.rs`.
    pub const OF_STALLS: [Bug; 1] = [Bug::ForgiveTheSlow];

    /// Those that only who reads without ordering sees.
    pub const OF_READS: [Bug; 1] = [Bug::ConfirmAlone];

    /// Those that show where nodes have several links.
    pub const OF_LINKS: [Bug; 2] = [Bug::EveryByBestLink, Bug::KeepDeadLink];
}

/// True when the mistake is planted in this configuration. Costs nothing without the feature.
macro_rules! planted {
    ($config:expr, $bug:ident) => {{
        #[cfg(feature = "planted-bugs")]
        let planted = $config.bug == Some($crate::Bug::$bug);
        #[cfg(not(feature = "planted-bugs"))]
        let planted = {
            let _ = &$config;
            false
        };
        planted
    }};
}
pub(crate) use planted;
