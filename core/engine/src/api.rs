//! The inputs and outputs of a [`Stack`](crate::Stack).

mod backup;
mod bench;
mod cause;
mod cold;
mod commands;
mod config;
mod deployment;
mod hang;
mod keys;
mod moves;
mod nested;
mod program;
mod restyle;
mod status;
mod storage;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use ring::Route;
use wire::client::{Frame, Outcome};
use wire::keys::KeyName;
use wire::limits::{MAX_GROUPS, MAX_NAME};
use wire::ordered::{GroupOptions, Place, Poison, Style};
use wire::{
    Caller, ClientId, Duration, GroupId, Incarnation, Malformed, Member, NodeId, NodeSet, RingId,
    Share, ViewNumber,
};

pub use crate::disk::Kept;
pub use backup::{DiscardError, Nodes, Restore, RestoreError, SaveError, Saved};
pub use bench::{BenchError, BenchProgress, BenchRequest, BenchResult};
pub use cause::{Deviation, Suspicion};
pub use cold::{Checkpoints, LogStatus};
pub use commands::{Command, Executed, ServiceOutcome, Ticket};
pub use config::{Config, Quorum};
pub use deployment::DeploymentNews;
pub use hang::HangRule;
pub use keys::{KeyChangeStatus, KeyCommand, KeyError, KeyStatus};
pub use moves::MoveError;
pub use nested::{NestedCall, NestedError, NestedStatus};
pub use program::{Begun, ProgramNews};
pub use restyle::RestyleError;
pub use status::{GroupStatus, JournalStatus, ReplicaStatus, RingStatus, Status};
pub use storage::StorageNews;

/// A request or a report to the owner. Outputs must be handled in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this datagram to each of these nodes.
    Send {
        /// The receivers, by place in the configured list of nodes; never this node itself.
        to: NodeSet,
        /// The bytes.
        datagram: Bytes,
        /// The link, if there are several.
        route: Route,
    },
    /// Write this frame to this client.
    Frame {
        /// The client's connection.
        caller: Caller,
        /// The frame.
        frame: Frame,
    },
    /// Write what is queued for this client, then close its connection.
    Close {
        /// The client's connection.
        caller: Caller,
    },
    /// A call of the node's internal client ([`Stack::call`](crate::Stack::call)) is over.
    Own {
        /// The call's number.
        number: u64,
        /// Its outcome.
        outcome: Outcome,
    },
    /// Give this command to the replica of this group, after all earlier commands.
    Run {
        /// The group.
        group: GroupId,
        /// The command.
        command: Command,
    },
    /// Resume the handler that waits for its call of another group. Ignore this if no handler waits
    /// for the call any more.
    Resume {
        /// The group whose replica runs the handler.
        group: GroupId,
        /// The command that is being executed.
        ticket: Ticket,
        /// The call's outcome.
        outcome: Result<Bytes, NestedError>,
    },
    /// Make sure that this node's process lives: a client could not reach it. A datagram to a
    /// closed port comes back as unreachable; report that to the stack.
    Probe(NodeId),
    /// The benchmark that this node was asked for is over.
    Bench(Box<Result<BenchResult, BenchError>>),
    /// A move of the primary that this node was asked for is over.
    Moved {
        /// The group.
        group: GroupId,
        /// The node that was to become primary.
        to: NodeId,
        /// The view, or the reason for the failure.
        outcome: Result<ViewNumber, MoveError>,
    },
    /// This node's replica has left the group because its service is hung. It executes nothing any
    /// more: end the service, and host the group again with a new one.
    Replace(GroupId),
    /// The program that served this node's replica of the group has died, and no other replica has
    /// the group's state. Start it again, and give it the commands that follow.
    Revive(GroupId),
    /// A change of style that this node was asked for is over.
    Restyled {
        /// The group.
        group: GroupId,
        /// The style that was asked for.
        style: Style,
        /// The view, or the reason for the failure.
        outcome: Result<ViewNumber, RestyleError>,
    },
    /// A save that this node was asked for is over.
    Saved {
        /// The group.
        group: GroupId,
        /// Its state, or the reason for the failure.
        outcome: Result<Saved, SaveError>,
    },
    /// A restore that this node was asked for is over, or was refused. If it succeeded, the state
    /// is at this node, and the group waits for it or has it already.
    Restored {
        /// The group.
        group: GroupId,
        /// The view, or the reason for the failure.
        outcome: Result<ViewNumber, RestoreError>,
    },
    /// Keep this: the next record of the store's log.
    /// [`Stack::handle_persisted`](crate::Stack::handle_persisted) is to report when it is on the
    /// disk.
    Persist(Kept),
    /// Keep this state of a strand, which stands for its records up to the `covers`-th that was
    /// given by [`Output::Persist`].
    /// [`Stack::handle_snapshot_stored`](crate::Stack::handle_snapshot_stored) is to report when it
    /// is stored.
    Snapshot {
        /// A group's, or the node's own.
        strand: Option<GroupId>,
        /// The number of records, of all strands, that had been given when it was taken.
        covers: u64,
        /// The place in the order at which it was taken.
        place: Place,
        /// The state.
        state: Bytes,
    },
    /// The kept records and snapshots of this group are not needed any more.
    Forget(GroupId),
    /// Do this with the keys that seal this node's datagrams.
    Key(KeyCommand),
    /// Something that logs, metrics and people want to know.
    Event(Event),
}

/// The reason why a replica cannot be hosted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The name is empty or too long.
    #[error("a group's name has 1 to {MAX_NAME} bytes, this one {0}")]
    Name(usize),
    /// This node hosts a replica of the group already.
    #[error("this node hosts a replica of this group already: a node hosts at most one")]
    Twice,
    /// A stateless group has no state to keep.
    #[error(
        "a stateless group has no state that a disk could keep: leave durability out, or choose another style"
    )]
    DiskOfStateless,
    /// There is no storage.
    #[error(
        "a group with durability = \"disk\" needs storage at this node: name a folder in [storage] of its configuration \
         (Config::storage), or host the group elsewhere"
    )]
    NoStorage,
    /// Too many groups.
    #[error("this node hosts {MAX_GROUPS} replicas already, the limit")]
    TooMany,
}

/// An event, for logs, metrics, the demo's time line and replays of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Something inside the ring.
    Ring(ring::Event),
    /// A datagram was dropped. Its sender is not known for certain.
    Malformed(Malformed),
    /// The ring delivered a regular configuration.
    Configuration {
        /// The ring.
        ring: RingId,
        /// Its members.
        members: Vec<Member>,
    },
    /// The configuration's announcements are in. Either it lacks the quorum, or it is installed as
    /// a component.
    Quorum {
        /// The ring.
        ring: RingId,
        /// Groups may act in it.
        quorate: bool,
        /// The number of the quorate component, if it has the quorum.
        epoch: u64,
    },
    /// A view was installed.
    View {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The group's style.
        style: Style,
        /// The view's number.
        view: ViewNumber,
        /// The members in order of rank, and whether each has the state.
        replicas: Vec<(Member, bool)>,
        /// The primary, if any replica has the state.
        primary: Option<Member>,
    },
    /// This node's replica cannot be hosted: its options differ from the group's.
    JoinRefused {
        /// The group's name.
        name: String,
        /// The options with which the group was created.
        options: GroupOptions,
    },
    /// A transfer of state to another replica begins at this node.
    TransferStarted {
        /// The group.
        group: GroupId,
        /// The replica that receives the state.
        to: Member,
    },
    /// A replica's state could not be written or read. The reason is the service's.
    TransferFailed {
        /// The group.
        group: GroupId,
        /// Why.
        reason: String,
    },
    /// The primary of a passive group could not report its change, or this replica could not apply
    /// one. The reason is the service's.
    UpdateFailed {
        /// The group.
        group: GroupId,
        /// Why.
        reason: String,
    },
    /// This node's replica of a cold passive group is primary now, and its service has executed the
    /// log.
    Promoted {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// Requests that were in the log.
        requests: u64,
        /// The time until the service had the checkpoint, including the start of its program, if
        /// any.
        restore: Duration,
        /// The time after that until it had executed the log.
        replay: Duration,
    },
    /// This node's replica is primary, and its service cannot read the checkpoint. The reason is
    /// the service's. Another replica takes over, if one has the state.
    PromotionFailed {
        /// The group.
        group: GroupId,
        /// Why.
        reason: String,
    },
    /// A cold passive group's checkpoint is here. The requests that it contains are removed from
    /// the log.
    Checkpointed {
        /// The group.
        group: GroupId,
        /// The number of the last request that it contains.
        number: u64,
        /// Bytes of the state with its sessions.
        bytes: usize,
    },
    /// A cold passive group's primary could not take a checkpoint. The reason is the service's. The
    /// log grows until it can.
    CheckpointFailed {
        /// The group.
        group: GroupId,
        /// Why.
        reason: String,
    },
    /// This node's replica has the state and has caught up.
    Transferred {
        /// The group.
        group: GroupId,
        /// Bytes of the state with its sessions.
        bytes: usize,
    },
    /// A member is suspected to have failed.
    Suspected {
        /// The member.
        member: Member,
        /// The ring.
        ring: RingId,
        /// The first cause.
        cause: Suspicion,
    },
    /// A member of the last configuration is not in this one.
    Excluded {
        /// The member.
        member: Member,
        /// The new ring.
        ring: RingId,
        /// The cause, as far as this node knows. `None`: it left, or others detected its failure.
        cause: Option<Suspicion>,
        /// The time since it was suspected here.
        suspected: Option<Duration>,
    },
    /// A node of the configuration was in an earlier one in another life.
    Restarted {
        /// In its new life.
        member: Member,
        /// Its last life that was seen here.
        before: Incarnation,
        /// The ring.
        ring: RingId,
    },
    /// This node sends the first reply of a group since the group's primary was excluded.
    Resumed {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// Its view.
        view: ViewNumber,
        /// From the last sign of life of the old primary, as far as this node knows it, to the reply.
        after: Duration,
    },
    /// A replica of a voting group leaves it, and has to receive the state anew.
    Deviated {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The replica's member.
        member: Member,
        /// The position of the vote in the group's history. Votes are on outcomes and on the calls
        /// of handlers to other groups.
        position: u64,
        /// Why.
        cause: Deviation,
    },
    /// The service of this node's replica is hung: it has missed deadlines in a row.
    Hung {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The replica's member.
        member: Member,
        /// The number of missed deadlines.
        misses: u32,
        /// The time for which it has been executing the same command; 0: it has answered, too late.
        ran: Duration,
        /// No other replica has the state: this one stays.
        alone: bool,
    },
    /// A replica has left its group because its service is hung. Its node has to host it again,
    /// with a new service.
    Demoted {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The replica's member.
        member: Member,
        /// It was the primary. The next in rank takes over.
        was_primary: bool,
        /// The view that was changed.
        asked: ViewNumber,
    },
    /// No majority of a voting group's replicas has the same outcome of a call, or makes the same
    /// call to another group. The client, or the handlers, receive an error.
    Split {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The position of the vote in the group's history. Votes are on outcomes and on the calls
        /// of handlers to other groups.
        position: u64,
        /// The number of different votes.
        answers: usize,
    },
    /// So many events are lost because a subscriber did not take them in time.
    Missed(u64),
    /// The primary of a group has moved, as requested. The view with the new rank follows.
    Moved {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The ring that ordered it.
        ring: RingId,
        /// Its place there.
        sequence: u64,
        /// The old primary.
        from: Member,
        /// The new primary.
        to: Member,
        /// The view that was changed.
        asked: ViewNumber,
        /// The view from here on.
        view: ViewNumber,
    },
    /// A group has another style, as requested. The view with it follows.
    Restyled {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The ring that ordered it.
        ring: RingId,
        /// Its place there.
        sequence: u64,
        /// The style until here.
        from: Style,
        /// The style from here on.
        to: Style,
        /// The view that was changed.
        asked: ViewNumber,
        /// The view from here on.
        view: ViewNumber,
    },
    /// A group begins with a state that a node has, as requested. A view follows in which no
    /// replica has the state yet.
    Deposited {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The node that has the state.
        holder: Member,
        /// The group's executed requests are discarded for it.
        replaced: bool,
        /// The view from here on.
        view: ViewNumber,
    },
    /// The last replica of a group has left it: no node has its state any more.
    Ended {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// Its last view.
        view: ViewNumber,
    },
    /// From here on, the backups of a group are tried in another order. The view with it follows.
    Ranked {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The ring that ordered it.
        ring: RingId,
        /// Its place there.
        sequence: u64,
        /// All backups that have the state, in their new order.
        order: Vec<Member>,
        /// The view that was changed.
        asked: ViewNumber,
        /// The view from here on.
        view: ViewNumber,
    },
    /// A host's use of its processors has passed the level above which it reports this at once.
    Overloaded {
        /// The host.
        member: Member,
        /// The processors in use.
        used: Share,
        /// All its processors.
        capacity: Share,
    },
    /// The host's use has fallen below that level again.
    Relieved {
        /// The host.
        member: Member,
        /// The processors in use.
        used: Share,
        /// All its processors.
        capacity: Share,
    },
    /// From here on, a host refuses calls below this priority.
    Shedding {
        /// The host.
        node: NodeId,
        /// The least priority that it admits; 0: it admits all calls again.
        level: u8,
        /// Calls that it has refused since its start, as last reported.
        refused: u64,
    },
    /// A request was executed here. Checkers compare these events between replicas.
    Executed {
        /// The group.
        group: GroupId,
        /// The client.
        client: ClientId,
        /// Its call.
        number: u64,
        /// The request's position in this group's history at this replica, from 1, state transfers
        /// included.
        position: u64,
    },
    /// Services died of a call. No replica executes it any more, and its caller is refused.
    Poisoned {
        /// The group.
        group: GroupId,
        /// The call, and the nodes where services died.
        poison: Box<Poison>,
    },
    /// A call came here again, from another entry or by a retry, and was not executed again.
    Copy {
        /// The group.
        group: GroupId,
        /// The client.
        client: ClientId,
        /// Its call.
        number: u64,
    },
    /// The end of a nested call came again: two replicas of the callee have ordered it.
    NestedCopy {
        /// The callee.
        group: GroupId,
    },
    /// A nested call has ended, as its callee's replicas see it.
    NestedEnded {
        /// The callee.
        group: GroupId,
        /// The member that ordered the end.
        by: Member,
    },
    /// A reply left for a client.
    Replied {
        /// The group.
        group: GroupId,
        /// The client.
        client: ClientId,
        /// Its call.
        number: u64,
    },
    /// A benchmark loads the ring from here on.
    BenchBegan {
        /// The member at which it was requested.
        by: Member,
        /// The senders.
        senders: Vec<NodeId>,
        /// Bytes of each message.
        size: u32,
    },
    /// It is over.
    BenchEnded {
        /// The member at which it was requested.
        by: Member,
        /// It is complete; otherwise it was stopped, or the configuration changed.
        whole: bool,
    },
    /// Something happened to this node's storage.
    Storage(StorageNews),
    /// The cluster's next key is offered: every node has to keep it.
    KeyOffered(KeyName),
    /// Every awaited node has the key. It seals from here on; the last key still opens.
    KeySwitched(KeyName),
    /// No node seals with the last key any more: it is forgotten.
    KeyRetired(KeyName),
    /// The change to this key was given up.
    KeyAborted(KeyName),
    /// Something happened to a program that serves this node's replica of a group.
    Program {
        /// The group's name.
        group: String,
        /// The news.
        news: ProgramNews,
    },
    /// Something happened to a deployment, as this node's replica of the cluster state has it.
    Deployment {
        /// The group's name.
        group: String,
        /// The news.
        news: DeploymentNews,
    },
    /// A node is to be emptied, or may have replicas again.
    Drained {
        /// The node.
        node: NodeId,
        /// It is to be emptied.
        begins: bool,
    },
    /// This node has handed over its primaries and left the ring, as requested.
    Left,
}
