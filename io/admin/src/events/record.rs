//! The JSON form of events: one object, `time` and `event` first, the event's own fields after.

use engine::{Deviation, Suspicion};
use serde::{Deserialize, Serialize};
use wire::ordered::{GroupOptions, Style};
use wire::{ClientId, GroupId, Incarnation, Member, MethodId, NodeId, RingId, Share, ViewNumber};

use crate::status::ChargeStatus;

/// An event as tools read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Nanoseconds since the Unix epoch when it left the stack.
    pub time: u64,
    /// The node that tells it.
    pub node: NodeId,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened; the fields are those of [`engine::Event`] and [`ring::Event`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the engine's and the ring's events document the fields")]
pub enum EventKind {
    /// The ring is given up: no sign of the token.
    TokenLost { ring: RingId, silent_ns: u64, suspect: Option<Member> },
    /// A membership is being gathered.
    Gathering { proposed: Vec<Member>, failed: Vec<Member> },
    /// A node's process is gone, as its host says.
    Unreachable { member: Member },
    /// A node did not agree to the membership in time.
    Silent { member: Member },
    /// This node was held up.
    HeldUp { span_ns: u64 },
    /// A node is excluded because it did not keep up: it kept `by` from sending.
    TooSlow { member: Member, by: Member, charge: Option<ChargeStatus> },
    /// A node that was lost again may not come back before this has passed.
    HeldOff { member: Member, span_ns: u64 },
    /// A ring is installed.
    Installed { ring: RingId, took_ns: u64, recovered: u64 },
    /// Datagrams were sent again.
    Retransmitted { datagrams: u64 },
    /// A node is not reached by this link any more, but by another.
    LinkLost { peer: NodeId, link: usize },
    /// A link has proved itself and carries again.
    LinkBack { peer: NodeId, link: usize },
    /// A datagram was dropped.
    Malformed { reason: String },
    /// The ring delivered a regular configuration.
    Configuration { ring: RingId, members: Vec<Member> },
    /// The configuration has the quorum or not.
    Quorum { ring: RingId, quorate: bool, epoch: u64 },
    /// A view was installed.
    View { group: String, view: ViewNumber, replicas: Vec<ReplicaRecord>, primary: Option<Member> },
    /// This node's replica has other options than its group.
    JoinRefused { group: String, options: GroupOptions },
    /// A transfer of state to another replica begins.
    TransferStarted { group: GroupId, to: Member },
    /// A replica's state could not be taken or read.
    TransferFailed { group: GroupId, reason: String },
    /// What a passive group's primary has changed could not be told, or not be done here.
    UpdateFailed { group: GroupId, reason: String },
    /// This node's replica of a cold passive group is primary, and has executed its log.
    Promoted { group: String, requests: u64, restore_ns: u64, replay_ns: u64 },
    /// It is primary, and its service cannot read the checkpoint.
    PromotionFailed { group: GroupId, reason: String },
    /// A cold passive group's checkpoint is here.
    Checkpointed { group: GroupId, number: u64, bytes: usize },
    /// A cold passive group's primary could not take one.
    CheckpointFailed { group: GroupId, reason: String },
    /// This node's replica has the state.
    Transferred { group: GroupId, bytes: usize },
    /// A member is held to have failed.
    Suspected { member: Member, ring: RingId, cause: FaultCause, silent_ns: Option<u64> },
    /// A member of the last configuration is not in this one.
    Excluded {
        member: Member,
        ring: RingId,
        cause: Option<FaultCause>,
        silent_ns: Option<u64>,
        suspected_ns: Option<u64>,
    },
    /// A node is there that was there before in another life.
    Restarted { member: Member, before: Incarnation, ring: RingId },
    /// A group whose primary was lost is answered for by this node again.
    Resumed { group: String, view: ViewNumber, after_ns: u64 },
    /// A replica of a voting group is taken out, and is to be given the state anew.
    Deviated { group: String, member: Member, position: u64, cause: DeviationCause },
    /// The service of this node's replica is hung: so many deadlines in a row were missed. `alone`: no other has the state.
    Hung { group: String, member: Member, misses: u32, ran_ns: u64, alone: bool },
    /// A replica is out of its group because its service is hung; its node hosts it anew.
    Demoted { group: String, member: Member, was_primary: bool, asked: ViewNumber },
    /// No majority of a voting group's replicas has the same outcome of a call, or asks the same of another group.
    Split { group: String, position: u64, answers: usize },
    /// So many events were not taken in time by this subscriber, and are gone.
    Missed { events: u64 },
    /// The primary of a group has moved; the view with the new rank follows.
    Moved {
        group: String,
        ring: RingId,
        sequence: u64,
        from: Member,
        to: Member,
        asked: ViewNumber,
        view: ViewNumber,
    },
    /// A group has another style; the view that has it follows.
    Restyled {
        group: String,
        ring: RingId,
        sequence: u64,
        from: Style,
        to: Style,
        asked: ViewNumber,
        view: ViewNumber,
    },
    /// A group begins with a state that a node has; the view that has no replica with the state follows.
    Deposited { group: String, holder: Member, replaced: bool, view: ViewNumber },
    /// The last replica of a group has left it: nobody has its state any more.
    Ended { group: String, view: ViewNumber },
    /// The backups of a group are tried in another order; the view that has it follows.
    Ranked {
        group: String,
        ring: RingId,
        sequence: u64,
        order: Vec<Member>,
        asked: ViewNumber,
        view: ViewNumber,
    },
    /// A host uses more of its processors, in millionths of one, than the level at which it says so at once.
    Overloaded { member: Member, used: Share, capacity: Share },
    /// It uses less again.
    Relieved { member: Member, used: Share, capacity: Share },
    /// A deployment was said, or said anew.
    Deployed { group: String, replicas: u32 },
    /// Its replicas are to be on these nodes.
    Placed { group: String, on: Vec<NodeId> },
    /// The replica at this node is to run this program: the new one, or after it was taken back the former.
    Upgrading { group: String, at: NodeId, program: String },
    /// All replicas run it.
    Upgraded { group: String, program: String },
    /// The new program is taken back.
    TakenBack { group: String, at: NodeId, why: String },
    /// A deployment's program ends again and again at this node: it is tried elsewhere.
    Failing { group: String, at: NodeId },
    /// A deployment is forgotten, and its replicas end.
    Withdrawn { group: String },
    /// A node is to be emptied.
    DrainBegan { host: NodeId },
    /// A node may have replicas again.
    DrainEnded { host: NodeId },
    /// A host refuses calls less critical than `level` from here on; 0: none any more. It had refused so many since its start.
    Shedding { host: NodeId, level: u8, refused: u64 },
    /// A request was executed here.
    Executed { group: GroupId, client: ClientId, number: u64, position: u64 },
    /// Services died of a call at these nodes, and it is executed by nobody any more: which of the group's history, which of which client.
    Poisoned {
        group: GroupId,
        number: u64,
        client: ClientId,
        call: u64,
        method: MethodId,
        nodes: Vec<NodeId>,
    },
    /// A call came again, and was not executed again.
    Copy { group: GroupId, client: ClientId, number: u64 },
    /// A group's call of another has ended.
    NestedEnded { group: GroupId, by: Member },
    /// The end of a group's call of another came once more.
    NestedCopy { group: GroupId },
    /// A reply left for a client.
    Replied { group: GroupId, client: ClientId, number: u64 },
    /// A benchmark loads the ring.
    BenchBegan { by: Member, senders: Vec<NodeId>, size: u32 },
    /// It is over.
    BenchEnded { by: Member, whole: bool },
    /// The cluster's next key is offered.
    KeyOffered { key: u8, fingerprint: String },
    /// It seals from here on.
    KeySwitched { key: u8, fingerprint: String },
    /// The last key is forgotten.
    KeyRetired { key: u8, fingerprint: String },
    /// The change to this key was given up.
    KeyAborted { key: u8, fingerprint: String },
    /// The disk of this node's storage is full: what is left is used up soon.
    StorageFull { reason: String },
    /// It has room again.
    StorageRoom,
    /// Nothing can be kept any more: the node leaves.
    StorageFailed { reason: String },
    /// A program's process was started.
    ProgramStarted { group: String, pid: u32 },
    /// It serves its replica.
    ProgramAttached { group: String, pid: u32 },
    /// A program's process has ended.
    ProgramEnded { group: String, pid: u32, how: String },
    /// A program ends again and again: how often in a row, and how long its next start waits.
    ProgramCrashLoop { group: String, ends: u32, wait_ns: u64 },
    /// A program that was in a crash loop serves well again.
    ProgramRecovered { group: String },
    /// A program was stopped.
    ProgramStopped { group: String },
    /// This node has left the ring.
    Left,
}

/// By what a member was first held to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCause {
    /// There was no sign of the token, which it had.
    Silence,
    /// Its host says that its process is gone.
    Gone,
    /// It did not agree to a membership in time.
    NoAnswer,
    /// It did not keep up.
    TooSlow,
}

impl From<Suspicion> for FaultCause {
    fn from(suspicion: Suspicion) -> Self {
        match suspicion {
            Suspicion::Silence(_) => FaultCause::Silence,
            Suspicion::Gone => FaultCause::Gone,
            Suspicion::NoAnswer => FaultCause::NoAnswer,
            Suspicion::TooSlow => FaultCause::TooSlow,
        }
    }
}

/// Why a replica of a voting group is taken out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviationCause {
    /// It has another outcome of a call than a majority, or asks another group for something else. Digests stand for the two.
    Outcome {
        /// Its own.
        told: String,
        /// The majority's.
        agreed: String,
        /// Replicas that had the state.
        voters: usize,
    },
    /// It has not told its outcome, or what it asks, in time.
    Silent,
    /// It is too far behind.
    Behind,
}

impl From<Deviation> for DeviationCause {
    fn from(deviation: Deviation) -> Self {
        match deviation {
            Deviation::Outcome { told, agreed, voters } => DeviationCause::Outcome {
                told: format!("{told:016x}"),
                agreed: format!("{agreed:016x}"),
                voters,
            },
            Deviation::Silent => DeviationCause::Silent,
            Deviation::Behind => DeviationCause::Behind,
        }
    }
}

/// One replica of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Where it is.
    pub member: Member,
    /// It has the state.
    pub synced: bool,
}
