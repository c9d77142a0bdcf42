//! Orders from the node's other threads to the data plane, and its answers.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender};

use admin::cell::Ranks;
use admin::events::{Interest, Stamped};
use admin::status::Status;
use admin::{KeyAsk, PoisonedCall};
use bytes::Bytes;
use cells::{Refusal, Verdict};
use config::NodeAddress;
use engine::{
    AwayWait, BenchError, BenchProgress, BenchRequest, BenchResult, Event, GrowthError, Restore,
    Saved, Transfer, UpgradeError,
};
use job::{Taken, Void};
use manager::Proposal;
use manager::cluster_state::{Answer, Command};
use seal::ClusterKey;
use wire::keys::KeyName;
use wire::ordered::{End, GroupOptions, Place, Style, Usage};
use wire::roster::Motion;
use wire::{GroupId, NodeId, Payload, ViewNumber};

use crate::directing::View as JobsView;
use crate::error::{DiscardError, HostError, MoveError, RestoreError, RestyleError, SaveError};
use crate::executor::{Executor, StateReply};
use crate::managing::View;
use crate::registering::View as Sighted;
use crate::renewal::Renewed;

/// The result of a benchmark.
pub(crate) type BenchOutcome = Result<BenchResult, BenchError>;

/// An order from the node's other threads to the data plane.
pub(crate) enum Order {
    Host {
        name: String,
        options: GroupOptions,
        executor: Executor,
        reply: SyncSender<Result<(), HostError>>,
    },
    /// A program that has shown its token serves a replica from here on.
    Attach {
        name: String,
        options: GroupOptions,
        executor: Executor,
    },
    /// This start of a program is over, or its replica is to leave.
    Part {
        group: GroupId,
        run: u64,
        lost: bool,
    },
    /// Something has happened elsewhere in the node.
    Tell(Event),
    Unhost {
        name: String,
        reply: SyncSender<Result<(), HostError>>,
    },
    State {
        name: String,
        reply: StateReply,
    },
    Poisoned {
        name: String,
        reply: SyncSender<Result<Vec<PoisonedCall>, HostError>>,
    },
    Status {
        reply: SyncSender<Status>,
    },
    Bench {
        request: BenchRequest,
        reply: SyncSender<BenchOutcome>,
    },
    BenchProgress {
        reply: SyncSender<Option<BenchProgress>>,
    },
    StopBench,
    Subscribe {
        interest: Interest,
        reply: SyncSender<(Vec<Stamped>, Receiver<Stamped>)>,
    },
    /// A group's primary is to be at this node; the view in which it is.
    Move {
        name: String,
        to: NodeId,
        reply: SyncSender<Result<ViewNumber, MoveError>>,
    },
    /// A group is to have this style; the view that has it.
    Restyle {
        name: String,
        style: Style,
        reply: SyncSender<Result<ViewNumber, RestyleError>>,
    },
    /// All nodes are to know what this host has to do; whether the ring takes it.
    Usage {
        usage: Usage,
        reply: SyncSender<bool>,
    },
    /// Return the manager's view.
    View {
        reply: SyncSender<View>,
    },
    /// This is said to the cluster state; the answer, if anybody waits for it.
    Command {
        command: Command,
        reply: Option<CommandReply>,
    },
    /// Return the registry's view; `None` where there is no majority, or not the state.
    Sight {
        reply: SyncSender<Option<Sighted>>,
    },
    /// This is said to the registry; the answer, if anybody waits for it.
    Register {
        command: registry::Command,
        reply: Option<RegistryReply>,
    },
    /// Return the view for the book of jobs; `None` where there is no majority, or not the state.
    JobsView {
        reply: SyncSender<Option<JobsView>>,
    },
    /// This is said to the book of jobs; the answer, if anybody waits for it.
    Jobs {
        command: job::Command,
        reply: Option<JobsReply>,
    },
    /// Return the ranks of the cell's nodes; `None` where there is no majority, or not the state.
    CellRanks {
        reply: SyncSender<Option<Ranks>>,
    },
    /// This is said to the cell's book.
    Cell {
        command: cells::Command,
        reply: CellReply,
    },
    /// A call of a handler here to another cell has ended.
    AwayEnded(AwayWait, End),
    /// A proposal of the manager.
    Proposal(Proposal),
    /// How critical calls are whose clients do not say it, by group.
    Criticalities(BTreeMap<GroupId, u8>),
    /// A request of the administrator about the cluster's key; the answer is the key's number.
    Key {
        ask: KeyAsk,
        reply: SyncSender<Result<u8, String>>,
    },
    /// The configuration was taken anew.
    Renew {
        renewed: Box<Renewed>,
        reply: SyncSender<()>,
    },
    /// The newest rules are to come into force; the answer is their level.
    FinishUpgrade {
        reply: SyncSender<Result<u8, UpgradeError>>,
    },
    /// A group's state is wanted, as people keep it.
    Save {
        name: String,
        reply: SyncSender<Result<Saved, SaveError>>,
    },
    /// A group is to begin with a state.
    Restore {
        restore: Restore,
        reply: SyncSender<Result<ViewNumber, RestoreError>>,
    },
    /// A group is to begin without the state that it waits for.
    Discard {
        name: String,
        reply: SyncSender<Result<(), DiscardError>>,
    },
    /// Another node asks for the state of this transfer.
    StateWanted {
        transfer: Transfer,
        reply: SyncSender<Option<Payload>>,
    },
    /// A fetch has ended: with the state, or without.
    Fetched {
        transfer: Transfer,
        state: Option<Bytes>,
    },
    /// The key file has this.
    KeyKept(Kept),
    /// The disk has the roster of this stamp.
    RosterKept(Place),
    /// Return the nodes that count, and where they are reached.
    Nodes {
        reply: SyncSender<Vec<NodeAddress>>,
    },
    /// These nodes are at these addresses now.
    Addresses(Vec<NodeAddress>),
    /// A node is to come or to go.
    MoveNode {
        motion: Motion,
        reply: SyncSender<Result<(), GrowthError>>,
    },
    /// Return the change of the nodes that is under way.
    Moving {
        reply: SyncSender<Option<Motion>>,
    },
    /// The change of the nodes that is under way is given up.
    WithdrawMove {
        reply: SyncSender<Result<(), GrowthError>>,
    },
    Stop,
}

/// Where a thread waits for the cluster state's answer.
pub(crate) type CommandReply = SyncSender<Result<Answer, String>>;

/// Where a thread waits for the registry's answer.
pub(crate) type RegistryReply = SyncSender<Result<registry::Answer, String>>;

/// Where a thread waits for the answer of the book of jobs.
pub(crate) type JobsReply = SyncSender<Result<Result<Taken, Void>, String>>;

/// Where a thread waits for the answer of the cell's book.
pub(crate) type CellReply = SyncSender<Result<Result<Verdict, Refusal>, String>>;

/// The file's new contents, for the data plane to follow.
#[derive(Debug)]
pub(crate) enum Kept {
    Stored(ClusterKey),
    Sealing(KeyName),
    Only,
    Forgotten(KeyName),
}
