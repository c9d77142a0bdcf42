//! The events of a [`Stack`](crate::Stack), for logs, tools and checkers.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use wire::keys::KeyName;
use wire::ordered::{About, GroupOptions, Place, Poison, Style};
use wire::{
    ClientId, Duration, GroupId, Incarnation, Malformed, Member, NodeId, RingId, Share, ViewNumber,
};

use super::{
    DeploymentNews, Deviation, ProgramNews, ReserveNews, RosterNews, StorageNews, Suspicion,
};

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
    /// A replica cannot do this with its group's state, or can again.
    StateNote {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The replica's member.
        member: Member,
        /// The thing that it cannot do.
        about: About,
        /// The reason, in the words of its service, or the fields; `None`: it is so no more.
        text: Option<String>,
    },
    /// Two histories met, and the other one stayed: this node's replica gave up calls that were
    /// acknowledged.
    Discarded {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The calls that this node's replica had executed since the two histories parted.
        calls: u64,
    },
    /// The state of the history that this node's replica gave up is part of the group's state: nothing
    /// that it acknowledged is lost, as far as its service merges.
    Merged {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The calls that this node's replica had executed since the two histories parted.
        calls: u64,
    },
    /// A group goes on from a state that may lack answered calls: its replicas with more are gone for
    /// good, and nobody else has them.
    WentBack {
        /// The group.
        group: GroupId,
        /// Its name.
        name: String,
        /// The replica whose state that is.
        member: Member,
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
    /// A node comes or goes.
    Roster {
        /// How far it is with that.
        news: RosterNews,
        /// The roster's place from here on.
        stamp: Place,
    },
    /// Something happened to a program that serves this node's replica of a group.
    Program {
        /// The group's name.
        group: String,
        /// The news.
        news: ProgramNews,
    },
    /// Time, memory or disks are reserved at this node's host, or not.
    Reserve {
        /// The place in the host's tree.
        path: String,
        /// The news.
        news: ReserveNews,
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
    /// Rules of this level are in force from here on: all nodes know them.
    Level(u8),
    /// This node has handed over its primaries and left the ring, as requested.
    Left,
}
