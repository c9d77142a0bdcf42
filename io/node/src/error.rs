//! Errors of running a node, and their remedies.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use admin::server::ServeError;
use config::Problem;
use engine::GrowthError;
use wire::versions::RULES;
use wire::{Malformed, NodeId};

use crate::backups::BackupError;
use crate::storage::StorageError;

/// The configuration cannot be taken: the node goes on with the one before.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It cannot be read.
    #[error("the configuration cannot be read, and nothing has changed: {0}")]
    Source(String),
    /// It is not possible.
    #[error("the configuration is not possible, and nothing has changed: {0}")]
    Config(#[from] Problem),
    /// The certificate or its key cannot be used.
    #[error("[security] {0}; nothing has changed")]
    Tls(#[from] tls::CredentialsError),
    /// The list of denied certificates cannot be used.
    #[error(transparent)]
    Denied(#[from] tls::DeniedError),
    /// Another node, or the use of TLS, cannot be taken anew.
    #[error("{0} cannot change while the node runs: restart it")]
    Restart(&'static str),
    /// The node has stopped, or hangs.
    #[error(
        "certificates and the list of denied ones are new; rights and connections are not yet: {0}; \
         reload again"
    )]
    Half(Stopped),
}

/// A node cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is not possible.
    #[error("configuration: {0}")]
    Config(#[from] Problem),
    /// The certificate or its key cannot be used.
    #[error("[security] {0}")]
    Tls(#[from] tls::CredentialsError),
    /// The list of denied certificates cannot be used.
    #[error(transparent)]
    Denied(#[from] tls::DeniedError),
    /// An address cannot be listened on.
    #[error("cannot listen for {what} on {address}: {source}; {}", remedy(source))]
    Listen {
        /// The purpose of the address.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The cluster's keys cannot be used.
    #[error(transparent)]
    ClusterKey(#[from] config::key_file::KeyFileProblem),
    /// The data directory cannot be used.
    #[error(
        "data_dir {}: {source}; the node must be able to create and write files there", path.display()
    )]
    DataDir {
        /// The directory or file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Two nodes share a data directory.
    #[error("data_dir {} is in use by another node: give each node its own", .0.display())]
    DataDirTaken(PathBuf),
    /// This node's own name is not known now. It may be later.
    #[error("{0}")]
    Name(Problem),
    /// A node that knows of no other has an empty folder, and no mark of a new cluster.
    #[error(
        "data_dir {} is empty, and [[nodes]] has this node alone. If it begins a new cluster, start it once \
         with `--found` (`steadfast init` marks new clusters by itself). If it was in a cluster before, its \
         disk is lost: retire it there, and join with another number", .0.display()
    )]
    Unfounded(PathBuf),
    /// The kept incarnation cannot be read.
    #[error(
        "{} does not hold a number: restore the file from a backup, or remove it if the clock \
         of this host was not set back since the node last ran", .0.display()
    )]
    Incarnation(PathBuf),
    /// The kept roster cannot be read.
    #[error(
        "{} is damaged: restore the file from a backup, or retire this node, empty its data_dir, \
         and join with another number", .0.display()
    )]
    Roster(PathBuf),
    /// Something that the manager needs cannot be measured.
    #[error("[manager] {0}; without it, set on = false there")]
    Monitor(#[from] monitor::MonitorError),
    /// The store cannot be used.
    #[error("[storage] {0}")]
    Storage(#[from] StorageError),
    /// The kept records are not of this version.
    #[error(
        "[storage] folder {}: what was kept there cannot be read ({malformed}): use the program that wrote it; or move the          folder away and start the node: it gets its groups from the others, if enough of them have theirs",
        folder.display()
    )]
    Records {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        malformed: Malformed,
    },
    /// The cluster has rules that this program does not know.
    #[error(
        "[storage] folder {}: the cluster has rules of level {level}, this program knows {RULES}: {}",
        folder.display(),
        if *level > RULES.greatest {
            "run the newer program that the other nodes run"
        } else {
            "run the version between first, on all nodes, and `steadfast upgrade finish`"
        }
    )]
    Rules {
        /// The folder.
        folder: PathBuf,
        /// The level.
        level: u8,
    },
    /// The admin socket cannot be made.
    #[error(transparent)]
    Admin(#[from] ServeError),
    /// The system has no thread, event queue or the like left.
    #[error("the system refuses {what}: {source}; look at the limits of open files and threads")]
    System {
        /// The request to the system.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "another process has this port (is the node running already?): stop it, or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => {
            "no interface of this host has this address: correct it in the configuration"
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need the capability CAP_NET_BIND_SERVICE: choose a larger one"
        }
        _ => "correct the address in the configuration",
    }
}

/// The node does not run any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Its data plane has ended.
    #[error("the node has stopped: start another")]
    Stopped,
    /// Its data plane panicked: a bug in Steadfast.
    #[error(
        "the node's data plane panicked: {0}; this is a bug in Steadfast, please report it; start the node anew"
    )]
    Panicked(String),
    /// The operating system failed it.
    #[error("the node's data plane failed: {0}; start the node anew")]
    Failed(String),
    /// It was retired: nobody counts on it any more.
    #[error(
        "this node was retired: the cluster does not count on it any more, and its number is never used \
         again; stop its service for good, or have this host in the cluster again with another number \
         and an empty data_dir: `steadfast init --add`, `steadfast join`"
    )]
    Retired,
    /// It does not answer, or did not end in time.
    #[error("the node does not answer in time: is a handler of one of its services stuck?")]
    Hung,
}

/// A group's replicas were waited for in vain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    #[error(
        "{synced} of {replicas} replicas of `{group}` have the state after {within:?}: see the status for \
         which nodes are in the ring"
    )]
    Late {
        /// The group's name.
        group: String,
        /// Replicas with the state.
        synced: usize,
        /// As many were waited for.
        replicas: usize,
        /// For so long.
        within: Duration,
    },
    /// The node does not run any more.
    #[error("the node has stopped: start another")]
    Stopped,
}

/// A group's primary cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// The cluster refuses, or the other node did not take over.
    #[error(transparent)]
    Engine(#[from] engine::MoveError),
    /// The node does not run any more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A group does not get another style.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestyleError {
    /// The cluster refuses, or it was not ordered in time.
    #[error(transparent)]
    Engine(#[from] engine::RestyleError),
    /// The node does not run any more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A group's state is not saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// The cluster refuses, or it was not taken in time.
    #[error(transparent)]
    Engine(#[from] engine::SaveError),
    /// The replica's bytes are no state.
    #[error(transparent)]
    State(#[from] BackupError),
    /// The node does not run any more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A group's state is not restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The cluster refuses, or it was not ordered in time.
    #[error(transparent)]
    Engine(#[from] engine::RestoreError),
    /// It is none.
    #[error(transparent)]
    State(#[from] BackupError),
    /// The node does not run any more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A restore is not given up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscardError {
    /// The cluster refuses.
    #[error(transparent)]
    Engine(#[from] engine::DiscardError),
    /// The node does not run any more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A replica cannot be hosted, taken away or looked at.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The engine refuses it.
    #[error(transparent)]
    Engine(#[from] engine::HostError),
    /// No thread for the replica.
    #[error("the system refuses a thread for the replica: {0}; look at the limit of threads")]
    Thread(io::Error),
    /// Ordered calls have one order.
    #[error(
        "Execution::Lanes is for stateless groups, and \"{0}\" orders its calls: host it with style(Style::Stateless), or with Execution::Thread"
    )]
    Lanes(String),
    /// The name is the system's own.
    #[error(
        "groups whose names begin with \"steadfast.\" are the system's own: give \"{0}\" another name"
    )]
    System(String),
    /// There is no replica of this group here.
    #[error("this node hosts no replica of group \"{0}\"")]
    NotHosted(String),
    /// The state that the service begins with would not arrive whole at another replica.
    #[error("the service's state cannot be kept: {0}")]
    State(String),
    /// The service cannot give its state.
    #[error("the service cannot give its state: {0}")]
    Snapshot(String),
    /// The node does not run any more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A node does not come or go so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GrowthRefused {
    /// The cluster refuses.
    #[error("{0}")]
    Refused(#[from] GrowthError),
    /// This node does not answer.
    #[error("{0}")]
    Stopped(#[from] Stopped),
    /// It was not ordered.
    #[error(
        "the change was not ordered in time: another one came first, or there is no quorum; look at \
         `steadfast status`, and try again"
    )]
    Unordered,
    /// It cannot be where it says.
    #[error("{0}")]
    Impossible(Problem),
    /// This node forgets all when it stops, and with it which nodes count.
    #[error(
        "nodes without a data_dir forget the cluster's nodes when they start again: give each node one, and \
         start them again"
    )]
    NoDataDir,
    /// Another node is there.
    #[error("{0} has that address already: give each node its own")]
    Address(NodeId),
}
