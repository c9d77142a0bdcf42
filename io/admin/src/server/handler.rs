//! The node behind the server.

use std::sync::mpsc::Receiver;

use cells::{Refusal, Verdict};
use config::{NodeAddress, ProgramConfig};
use engine::{BenchError, BenchResult};
use job::{Assignment, Taken, Void};
use manager::cluster_state::{Answer, Command, Deployment};
use registry::{Ask as RegistryAsk, Epoch, Terms};
use store::backup::Backup;
use wire::ordered::Style;
use wire::{Duration, Member, NodeId, ViewNumber};

use crate::bench::{Ask, Progress};
use crate::cell::{CellStatus, HandlerCall, HandlerCallEnd, Neighbour};
use crate::deployments::{DeploymentsStatus, SeatStatus};
use crate::events::{Interest, Stamped};
use crate::growth::WelcomeAnswer;
use crate::jobs::JobsStatus;
use crate::message::KeyAsk;
use crate::poisoned::PoisonedCall;
use crate::registry::RegistryStatus;
use crate::server::audit::AuditEntry;
use crate::status::{ProgramStatus, Status};

/// A result, or why there is none and what to do.
pub type Done<T> = Result<T, String>;

/// The node, as the server asks it: each method on the thread of the connection that asks, and it
/// may block as long as an answer takes.
pub trait Handler: Send + Sync {
    /// The node, and which of its lives.
    fn me(&self) -> Member;

    /// A request has come in.
    fn count_request(&self);

    /// A request was none.
    fn count_malformed(&self);

    /// Somebody asked for a change, or for a state, and this became of it.
    fn audit(&self, entry: &AuditEntry);

    /// Returns the node's status.
    fn status(&self) -> Status;

    /// The state of this node's replica of a group.
    fn state(&self, group: &str) -> Done<Vec<u8>>;

    /// The calls that a group's services died of.
    fn poisoned(&self, group: &str) -> Done<Vec<PoisonedCall>>;

    /// The past events, and those from here on.
    fn subscribe(&self, interest: Interest) -> (Vec<Stamped>, Receiver<Stamped>);

    /// Makes the replica at node `to` the group's primary.
    fn move_primary(&self, group: &str, to: NodeId) -> Done<ViewNumber>;

    /// Gives the group another style.
    fn restyle(&self, group: &str, style: Style) -> Done<ViewNumber>;

    /// The group's state at one place of the order.
    fn save(&self, group: &str) -> Done<Backup>;

    /// Has a group begin with a state.
    fn restore(&self, backup: Backup, replace: bool) -> Done<ViewNumber>;

    /// Has a group begin without the state that it waits for.
    fn discard(&self, group: &str) -> Done<()>;

    /// Does something about the cluster's key; says which it is about.
    fn key(&self, ask: KeyAsk) -> Done<u8>;

    /// Reads the configuration again; returns what needs a restart.
    fn reload(&self) -> Done<Vec<String>>;

    /// Has the newest rules come into force; returns their level.
    fn finish_upgrade(&self) -> Done<u8>;

    /// The nodes and the cluster's key, for a node that is to come; `None`: a user of this host asks.
    fn welcome(&self, asks: Option<NodeId>) -> Done<WelcomeAnswer>;

    /// Has a node come.
    fn admit(&self, node: NodeAddress) -> Done<()>;

    /// Has a node go for good.
    fn retire(&self, node: NodeId) -> Done<()>;

    /// Gives up the coming or going that is under way.
    fn give_up_move(&self) -> Done<()>;

    /// Starts a program, and waits until it serves or has failed to.
    fn run_program(&self, program: ProgramConfig) -> Done<ProgramStatus>;

    /// Ends the program of a group, and waits until it has ended.
    fn stop_program(&self, group: &str) -> Done<()>;

    /// Returns the deployments and their places.
    fn deployments(&self) -> Done<DeploymentsStatus>;

    /// Where a deployment would go.
    fn preview(&self, deployment: Deployment) -> Done<Vec<SeatStatus>>;

    /// Says something to the manager's group, and waits for the answer.
    fn command(&self, command: Command) -> Done<Answer>;

    /// How a binding ends that is made without saying it.
    fn registry_terms(&self) -> Terms;

    /// The epoch of this node's replica of the registry.
    fn registry_epoch(&self) -> Done<Epoch>;

    /// Waits until the registry's epoch is another one than `since`, or for so long. True: it is
    /// not, and may be waited for once more.
    fn wait_for_registry(&self, since: Epoch, timeout: Duration) -> bool;

    /// Which bindings there are.
    fn look_up(&self, ask: &RegistryAsk) -> Done<RegistryStatus>;

    /// Says something to the registry, and waits for the answer.
    fn register(&self, command: registry::Command) -> Done<registry::Answer>;

    /// Returns the book of jobs, if it has another version than `since`.
    fn jobs(&self, since: Option<u64>) -> Done<JobsStatus>;

    /// Waits until the book of jobs has another version than `since`, or for so long. True: it has
    /// not, and may be waited for once more.
    fn wait_for_jobs(&self, since: u64, timeout: Duration) -> bool;

    /// The wishes of the book of jobs for this node.
    fn assignment(&self) -> Done<Assignment>;

    /// Says something to the book of jobs, and waits for the answer.
    fn tell_jobs(&self, command: job::Command) -> Done<Result<Taken, Void>>;

    /// Returns the book of the node's cell.
    fn cell(&self) -> Done<CellStatus>;

    /// Waits until the book has another version than `since`, or for so long. True: it has not, and
    /// may be waited for once more.
    fn wait_for_cell(&self, since: u64, timeout: Duration) -> bool;

    /// Says something to the cell's book, and waits for the answer.
    fn tell_cell(&self, command: cells::Command) -> Done<Result<Verdict, Refusal>>;

    /// Returns calls that handlers make of groups of other cells, beyond this number.
    fn handler_calls(&self, since: u64) -> Vec<HandlerCall>;

    /// Waits until there is one, or for so long. True: there is none, and may be waited for once
    /// more.
    fn wait_for_handler_calls(&self, since: u64, timeout: Duration) -> bool;

    /// One of them has ended.
    fn end_handler_call(&self, end: HandlerCallEnd) -> Done<()>;

    /// Keeps what the process beside the node has told of its links.
    fn keep_neighbours(&self, neighbours: Vec<Neighbour>);

    /// Begins a benchmark; its outcome comes in time, or nothing if the node ends before.
    fn bench(&self, ask: &Ask) -> Done<Receiver<Result<BenchResult, BenchError>>>;

    /// How far the benchmark under way is, if there is one.
    fn bench_progress(&self) -> Option<Progress>;

    /// The benchmark that was asked for here is not wanted any more.
    fn stop_bench(&self);

    /// Why nobody answers any more.
    fn why_stopped(&self) -> String;
}
