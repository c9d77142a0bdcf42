//! The admin protocol, at a Unix socket and over TLS: one JSON request a line, one JSON answer a
//! line.
//!
//! ```text
//! {"status":{}}                                    -> Status
//! {"state":{"group":"x","bytes":true}}             -> StateAnswer; without bytes only the digest
//! {"poisoned":{"group":"x"}}                       -> PoisonedAnswer
//! {"events":{"follow":true,"calls":false}}         -> EventRecord, one a line
//! {"key":{"ask":"rotate"}}                       -> KeyAnswer; or force, abort
//! {"finish-upgrade":{}}                         -> LevelAnswer
//! {"welcome":{}}                                 -> WelcomeAnswer; to a node that is to come
//! {"admit":{"node":{"id":4,"ring":"..."}}}         -> {"done":true}; also {"retire":{"node":1}}, {"give-up-move":{}}
//! {"reload":{}}                                 -> ReloadAnswer
//! {"move":{"group":"x","to":2}}                   -> MoveAnswer
//! {"restyle":{"group":"x","style":"active"}}       -> RestyleAnswer
//! {"save":{"group":"x"}}                          -> SaveAnswer, and that many bytes of a file
//! {"restore":{"group":"x","bytes":7}}             the file's bytes follow -> RestoreAnswer
//! {"discard":{"group":"x"}}                       -> {"done":true}
//! {"run":{"group":"x","command":["./x"]}}          -> ProgramStatus, when it serves; at the Unix socket only
//! {"stop-program":{"group":"x"}}                   -> {"stopped":"x"}, when it has ended
//! {"deploy":{"deployment":{...},"dry":false}}      -> DeployAnswer; at the Unix socket only
//! {"withdraw":{"group":"x"}}                       -> {"done":true}; also {"drain":{"node":2}}, {"return":{"node":2}}
//! {"deployments":{}}                               -> DeploymentsStatus
//! {"registry":{"name":null,"since":7,"wait_ms":1000}} -> RegistryStatus, once there is another epoch than `since`, or after `wait_ms`
//! {"bind":{"name":"x","address":"..."}}          -> RegistryAnswer; also {"unbind":{...}}
//! {"jobs":{"since":7,"wait_ms":1000}}             -> JobsStatus, once the book has another version than `since`, or after `wait_ms`
//! {"assignment":{"since":7,"wait_ms":1000}}       -> AssignmentAnswer, as above; for the node's agent
//! {"tell-jobs":{"kill":{"job":1}}}                -> JobsAnswer; at the Unix socket only
//! {"cell":{"since":7,"wait_ms":1000}}             -> CellStatus, once it has another version than `since`, or after `wait_ms`
//! {"tell-cell":{"Export":"x"}}                     -> CellAnswer; over TLS only `Export`, `Unexport`, `Want` and `Promote`
//! {"bench":{"senders":[1],...}}                   -> {"progress":{...}} now and then, {"outcome":{...}}
//! anything else                                    -> {"error":"..."}
//! ```

use config::{NodeAddress, ProgramConfig};
use manager::cluster_state::Deployment;
use registry::{Address, Epoch, Terms};
use serde::{Deserialize, Serialize};
use wire::ordered::Style;
use wire::{NodeId, ViewNumber};

use crate::bench::{Ask, Outcome, Progress};
use crate::cell::{HandlerCallEnd, Neighbour};
use crate::deployments::SeatStatus;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Return the node's status.
    Status {},
    /// Return the state of the node's replica of this group.
    State {
        /// The group's name.
        group: String,
        /// The state itself is wanted, not only its digest.
        #[serde(default = "yes")]
        bytes: bool,
    },
    /// Which calls did the group's services die of?
    Poisoned {
        /// The group's name.
        group: String,
    },
    /// Return the last events; then the connection ends, or goes on with the events that follow.
    Events {
        /// Go on.
        #[serde(default)]
        follow: bool,
        /// Those of every call (`executed`, `replied`) too.
        #[serde(default)]
        calls: bool,
    },
    /// Make the replica at this node the primary of the group.
    Move {
        /// The group's name.
        group: String,
        /// The node.
        to: NodeId,
    },
    /// Give the group this style.
    Restyle {
        /// The group's name.
        group: String,
        /// The style.
        style: Style,
    },
    /// Return the state of the group, with its sessions, at one place of the order.
    Save {
        /// The group's name.
        group: String,
    },
    /// Have the group begin with the state in the file that follows this line.
    Restore {
        /// The group's name.
        group: String,
        /// Bytes of the file.
        bytes: usize,
        /// Discard what the group has executed.
        #[serde(default)]
        replace: bool,
    },
    /// Have the group begin without the state that it waits for.
    Discard {
        /// The group's name.
        group: String,
    },
    /// Do this with the cluster's key.
    Key {
        /// The operation.
        ask: KeyAsk,
    },
    /// Read the node's configuration again.
    Reload {},
    /// Have the newest rules come into force that every configured node knows.
    FinishUpgrade {},
    /// Return what a node needs that is to come: at the Unix socket, or to a certificate of a node.
    Welcome {},
    /// A node is to come. A node's certificate may ask for that node alone.
    Admit {
        /// The node, and where it is.
        node: NodeAddress,
    },
    /// A node is to go for good.
    Retire {
        /// The node.
        node: NodeId,
    },
    /// Give up the coming or going that is under way.
    GiveUpMove {},
    /// Run this program, which is to serve a replica in a process of its own. Only at the Unix
    /// socket: this permits all that the node's user can do on its host.
    Run(ProgramConfig),
    /// End the program that serves this group here.
    StopProgram {
        /// The group's name.
        group: String,
    },
    /// Have this service run on some nodes. Only at the Unix socket: this permits all that the
    /// nodes' users can do on their hosts.
    Deploy {
        /// The deployment.
        deployment: Box<Deployment>,
        /// Only tell where it would go.
        #[serde(default)]
        dry: bool,
    },
    /// End a deployment.
    Withdraw {
        /// The group's name.
        group: String,
    },
    /// Empty this node.
    Drain {
        /// The node.
        node: NodeId,
    },
    /// It may have replicas again.
    Return {
        /// The node.
        node: NodeId,
    },
    /// Return the deployments and their places.
    Deployments {},
    /// Return the names and their bindings.
    Registry {
        /// The bindings of this name; of all names if none is said.
        #[serde(default)]
        name: Option<String>,
        /// Only if the epoch is another one than this.
        #[serde(default)]
        since: Option<Epoch>,
        /// Milliseconds to wait for that, at most a minute.
        #[serde(default)]
        wait_ms: u32,
    },
    /// This name has this address, too, as long as this node lives.
    Bind {
        /// The name.
        name: String,
        /// The address.
        address: String,
        /// How it ends; as the node's configuration says if nothing is said.
        #[serde(default)]
        terms: Option<Terms>,
    },
    /// It has it no more.
    Unbind {
        /// The name.
        name: String,
        /// The address.
        address: Address,
    },
    /// Return the book of jobs.
    Jobs {
        /// Only if the book's version is another one than this.
        #[serde(default)]
        since: Option<u64>,
        /// Milliseconds to wait for that, at most a minute.
        #[serde(default)]
        wait_ms: u32,
    },
    /// Return what the book of jobs wants of this node.
    Assignment {
        /// Only if the book's version is another one than this.
        #[serde(default)]
        since: Option<u64>,
        /// Milliseconds to wait for that, at most a minute.
        #[serde(default)]
        wait_ms: u32,
    },
    /// Say something to the book of jobs. Only at the Unix socket: this permits all that the nodes'
    /// users can do on their hosts.
    TellJobs(Box<job::Command>),
    /// Return the book of the node's cell.
    Cell {
        /// Only once its version is another one than this.
        #[serde(default)]
        since: Option<u64>,
        /// Milliseconds to wait for that, at most a minute.
        #[serde(default)]
        wait_ms: u32,
    },
    /// Say something to the book of the node's cell. Over TLS only what people say: the rest comes
    /// from the process beside the node.
    TellCell(Box<cells::Command>),
    /// Return the calls that handlers at the node make of groups of other cells, once there is one
    /// beyond the number `since`, or after a while. Only at the Unix socket.
    HandlerCalls {
        /// The last that is known; 0: none.
        #[serde(default)]
        since: u64,
        /// Milliseconds to wait, at most a minute.
        #[serde(default)]
        wait_ms: u32,
    },
    /// One of those has ended. Only at the Unix socket.
    EndHandlerCall(HandlerCallEnd),
    /// The process beside the node has these links. Only at the Unix socket.
    TellNeighbours(Vec<Neighbour>),
    /// How quick is the ring? Loads it meanwhile; ends when the connection does.
    Bench(Ask),
}

fn yes() -> bool {
    true
}

/// The operations on the cluster's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyAsk {
    /// Make a new one, and change to it.
    Rotate,
    /// Let the change that is under way wait for nobody who is away.
    Force,
    /// Give it up.
    Abort,
}

/// The answer to [`Request::Reload`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// Tables of the configuration whose new values wait for a restart.
    pub needs_restart: Vec<String>,
}

/// The answer to [`Request::FinishUpgrade`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelAnswer {
    /// The level that comes into force.
    pub level: u8,
}

/// The answer to [`Request::Key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyAnswer {
    /// The number of the key that the change is about.
    pub key: u8,
}

/// The answer to [`Request::Move`]: it is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveAnswer {
    /// The group.
    pub group: String,
    /// The node of its primary.
    pub primary: NodeId,
    /// The view in which it is.
    pub view: ViewNumber,
}

/// The answer to [`Request::Restyle`]: it is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestyleAnswer {
    /// The group.
    pub group: String,
    /// Its style.
    pub style: Style,
    /// The view that has it.
    pub view: ViewNumber,
}

/// The answer to [`Request::Save`]: so many bytes of a file follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveAnswer {
    /// The node.
    pub node: NodeId,
    /// The group.
    pub group: String,
    /// Bytes of the file.
    pub bytes: usize,
}

/// The answer to [`Request::Restore`]: the group begins with the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreAnswer {
    /// The node, which has the state until a replica has.
    pub node: NodeId,
    /// The group.
    pub group: String,
    /// The view that says so.
    pub view: ViewNumber,
}

/// The answer to [`Request::State`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateAnswer {
    /// The node.
    pub node: NodeId,
    /// The group.
    pub group: String,
    /// Bytes of the state.
    pub bytes: usize,
    /// SHA-256 of the state, in hexadecimal digits.
    pub digest: String,
    /// The state, in hexadecimal digits, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_hex: Option<String>,
}

/// The answer to [`Request::StopProgram`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAnswer {
    /// The group's name.
    pub stopped: String,
}

/// The answer to [`Request::Deploy`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeployAnswer {
    /// The group.
    pub group: String,
    /// Every node, as a place for it: where it would go, by what the node knew when it was asked.
    pub seats: Vec<SeatStatus>,
}

/// The answer to what has nothing to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneAnswer {
    /// It is so. False: it was so already.
    pub done: bool,
}

/// One line of the answer to [`Request::Bench`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BenchLine {
    /// It goes on.
    Progress(Progress),
    /// It is over.
    Outcome(Box<Outcome>),
}

/// The answer to what cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub error: String,
}
