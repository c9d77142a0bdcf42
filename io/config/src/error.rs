//! The errors of a configuration, and their remedies.

use std::net::SocketAddr;

use engine::HangRule;
use os::realtime::{MAX_PERIOD, MAX_PRIORITY, MAX_SPIN, MAX_WAKE_WITHIN, MIN_PERIOD};
use wire::limits::{MAX_GROUPS, MAX_LOG, MAX_LOG_BYTES, MAX_NAME, MAX_PROGRAMS, MAX_RING_LINKS};
use wire::{Duration, NodeId};

use crate::system::SystemProblem;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not TOML, an unknown key, or a value of the wrong type. The text shows the line.
    #[error("{source}{}the knobs and their meaning: steadfast node --print-config --all", remedy(.source))]
    Syntax {
        /// The parser's words.
        #[from]
        source: toml::de::Error,
    },
    /// A value that is not possible.
    #[error("{}{problem}", at(*.line))]
    Value {
        /// The line, if the key stands in the file.
        line: Option<usize>,
        /// The problem.
        problem: Problem,
    },
}

fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// Adds what the parser's message leaves open.
fn remedy(error: &toml::de::Error) -> &'static str {
    if error.message().contains("socket address") {
        "give an IP address and a port, such as 127.0.0.1:7100: names are not looked up\n"
    } else {
        ""
    }
}

/// An impossible value, with the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// A name is empty or too long.
    #[error("{key} has {length} bytes: give it 1 to {MAX_NAME}")]
    Name {
        /// The knob.
        key: &'static str,
        /// Its length.
        length: usize,
    },
    /// A time is out of range.
    #[error("ring.{key} = {millis} is not possible: give it 0.01 to 60000 milliseconds")]
    Millis {
        /// The knob.
        key: &'static str,
        /// Its value.
        millis: f64,
    },
    /// The timeout with missing votes is out of range.
    #[error("voting.timeout_ms is {} ms: give it 1 to 60000 milliseconds", .0.as_millis())]
    VoteTimeout(Duration),
    /// Newer rules would settle for too long.
    #[error(
        "upgrade.settle_ms is {} ms: give it at most a month (2678400000), or 0 for `steadfast upgrade finish` alone",
        .0.as_millis()
    )]
    Settle(Duration),
    /// A rule lacks something.
    #[error("rights.rule lacks its {key}: give a rule name, groups and clients")]
    RightLacks {
        /// Its place.
        index: usize,
        /// The key that it lacks.
        key: &'static str,
    },
    /// A rule's name does not fit into refusals.
    #[error("rights.rule number {}: a name has at most {most} bytes", index + 1)]
    RightNameLong {
        /// The rule's place.
        index: usize,
        /// The limit.
        most: usize,
    },
    /// Two rules of one name.
    #[error("rights.rule \"{name}\" is there twice: refusals tell a rule by its name")]
    RightTwice {
        /// The place of the second one.
        index: usize,
        /// The name.
        name: String,
    },
    /// Clients have no names.
    #[error(
        "[rights] tells clients by their certificates, and this node has none: give [security] \
         authority, certificate and key (`steadfast init` makes them)"
    )]
    RightsWithoutTls,
    /// When a service is hung.
    #[error(
        "hung.within_ms = {} and hung.misses = {} are not possible: give it 10 to 3600000 milliseconds, and at most 1000 misses (0: never)",
        .0.within.as_millis(), .0.misses
    )]
    Hung(HangRule),
    /// A knob of the registry is out of range.
    #[error("in [registry], {0}")]
    Registry(String),
    /// An agent cannot reach the node.
    #[error(
        "[jobs] needs admin: the agent that runs ranks talks with its node at the admin socket"
    )]
    JobsWithoutAdmin,
    /// Images would be given to anybody.
    #[error(
        "jobs.listen needs a certificate ([security] authority, certificate and key; `steadfast init` makes them): images go to nodes alone"
    )]
    CopiesWithoutTls,
    /// The cell's place in its system cannot be.
    #[error("[system] {0}")]
    System(SystemProblem),
    /// A label cannot be.
    #[error("in [labels], {0}")]
    Labels(String),
    /// A knob of the manager is out of range.
    #[error("manager.{key} is not possible: give it {range}")]
    Manager {
        /// The knob.
        key: &'static str,
        /// The allowed range.
        range: &'static str,
    },
    /// The node is not in its own list.
    #[error(
        "node = {}, but no [[nodes]] entry has this id: add this node to the list, \
         or correct its id", .0.0
    )]
    MeMissing(NodeId),
    /// Two nodes with the same id.
    #[error("[[nodes]] lists id {} twice: give each node its own id", .id.0)]
    NodeTwice {
        /// Place in the list.
        index: usize,
        /// The id.
        id: NodeId,
    },
    /// Two nodes with the same address.
    #[error("[[nodes]] lists ring address {address} twice: give each node its own address")]
    RingAddressTwice {
        /// Place in the list.
        index: usize,
        /// The address.
        address: SocketAddr,
    },
    /// This node's own name is not known.
    #[error(
        "[[nodes]] ring = {name}: {why}; give the address, or have the name known on this host"
    )]
    RingName {
        /// Place in the list.
        index: usize,
        /// The name.
        name: String,
        /// Why.
        why: String,
    },
    /// No address, or more than there are links.
    #[error("a node with {links} ring addresses: give it 1 to {MAX_RING_LINKS}, one for each link")]
    RingLinks {
        /// Place in the list.
        index: usize,
        /// How many.
        links: usize,
    },
    /// Nodes with different numbers of links.
    #[error(
        "a node with {links} ring addresses, this one has {mine}: give every node one for each \
         link, in the same order of networks"
    )]
    RingLinksDiffer {
        /// Place in the list.
        index: usize,
        /// How many it has.
        links: usize,
        /// How many this node has.
        mine: usize,
    },
    /// Two links to the same address of a host.
    #[error(
        "ring address {address} is on the same network as an earlier one of this node: they would \
         fail together; give the second link an address of another network"
    )]
    RingHostTwice {
        /// Place in the list.
        index: usize,
        /// The address.
        address: SocketAddr,
    },
    /// An address that other nodes cannot send to.
    #[error(
        "ring = \"{address}\" is no address that other nodes can send to: \
         give the host's own unicast address"
    )]
    RingAddressUnusable {
        /// Place in the list.
        index: usize,
        /// The address.
        address: SocketAddr,
    },
    /// Port 0 in a cluster of several.
    #[error("a ring port of 0 (any) is for a cluster of one node: others must know the port")]
    RingPortZero {
        /// Place in the list.
        index: usize,
    },
    /// Nodes that cannot reach each other.
    #[error(
        "ring address {address} and this node's {mine} cannot reach each other: use IPv4 \
         for all or IPv6 for all, and loopback for all or for none"
    )]
    Mixed {
        /// Place in the list.
        index: usize,
        /// The address.
        address: SocketAddr,
        /// This node's.
        mine: SocketAddr,
    },
    /// Something to tell clients, but no clients.
    #[error("listen.advertise without listen.client: set listen.client, or remove it")]
    AdvertiseWithoutClient,
    /// An address that clients cannot use.
    #[error("listen.advertise = \"{0}\" is no address that a client can connect to")]
    Advertise(SocketAddr),
    /// Clients and the ring want the same TCP port.
    #[error(
        "listen.client = \"{0}\" is this node's ring address too, which needs that port on TCP \
         as well as on UDP: give clients another port"
    )]
    ClientIsRing(SocketAddr),
    /// Clients would be taken from other hosts.
    #[error(
        "listen.client = \"{address}\" can be reached from other hosts, but [security] lacks \
         {missing}: `steadfast init` makes all keys; or listen on 127.0.0.1; or, on a network \
         whose every host you trust, set insecure = true"
    )]
    InsecureClient {
        /// The address.
        address: SocketAddr,
        /// The keys that `[security]` lacks.
        missing: String,
    },
    /// The admin protocol would be open to other hosts.
    #[error(
        "listen.admin = \"{address}\" can be reached from other hosts, but [security] lacks \
         {missing}: `steadfast init` makes all keys; or listen on 127.0.0.1"
    )]
    InsecureAdmin {
        /// The address.
        address: SocketAddr,
        /// The keys that `[security]` lacks.
        missing: String,
    },
    /// The admin protocol without TLS.
    #[error(
        "listen.admin = \"{0}\" speaks TLS only, and [security] names no authority, certificate \
         and key: `steadfast init` makes them; or use the Unix socket alone (admin = \"PATH\")"
    )]
    AdminWithoutTls(SocketAddr),
    /// The admin protocol on a port that has another use.
    #[error(
        "listen.admin = \"{0}\" has the port of listen.client or of the ring (which needs its \
         number on TCP too): give it another"
    )]
    AdminPortTaken(SocketAddr),
    /// The gateway is a client of its node.
    #[error(
        "listen.grpc = \"{0}\" needs listen.client, with a port of its own, by which the gateway calls: set it"
    )]
    GrpcWithoutClient(SocketAddr),
    /// The gateway on a port that has another use, or on none that callers know.
    #[error(
        "listen.grpc = \"{0}\" needs a port of its own: not 0, and not that of listen.client, \
         listen.admin or the ring"
    )]
    GrpcPort(SocketAddr),
    /// Callers would be taken from other hosts.
    #[error(
        "listen.grpc = \"{address}\" can be reached from other hosts, but [security] lacks \
         {missing}: `steadfast init` makes all keys; or listen on 127.0.0.1; or, on a network \
         whose every host you trust, set insecure = true"
    )]
    InsecureGrpc {
        /// The address.
        address: SocketAddr,
        /// The keys that `[security]` lacks.
        missing: String,
    },
    /// Some files of TLS, but not all.
    #[error(
        "[security] lacks `{0}`: TLS needs authority, certificate and key together; \
         `steadfast init` makes them"
    )]
    TlsIncomplete(&'static str),
    /// The ring would be open to other hosts.
    #[error(
        "ring = \"{address}\" can be reached from other hosts, but [security] lacks {missing}: \
         `steadfast init` makes all keys; or use loopback addresses; or, on a network whose every \
         host you trust, set insecure = true"
    )]
    InsecureRing {
        /// Place in the list.
        index: usize,
        /// The address.
        address: SocketAddr,
        /// The keys that `[security]` lacks.
        missing: String,
    },
    /// More replicas than a cluster has groups.
    #[error("{0} [[replica]] entries, a cluster has at most {MAX_GROUPS} groups")]
    TooManyReplicas(usize),
    /// A group's name is empty or too long.
    #[error("the group's name has {length} bytes: give it 1 to {MAX_NAME}")]
    GroupName {
        /// Place in the list.
        index: usize,
        /// Its length.
        length: usize,
    },
    /// Two replicas of one group.
    #[error("[[replica]] names group \"{group}\" twice: a node hosts at most one of a group")]
    ReplicaTwice {
        /// Place in the list.
        index: usize,
        /// The group.
        group: String,
    },
    /// More than a log may have would be in no checkpoint, or nothing.
    #[error(
        "[checkpoints] is not possible: give requests 1 to {}, bytes 1 to {}, and interval_ms at least 1",
        MAX_LOG / 2,
        MAX_LOG_BYTES / 2
    )]
    Checkpoints,
    /// Nothing is ordered in a stateless group, so there is nothing to hold.
    #[error("a stateless group orders no calls: leave `ack` out, or choose another style")]
    AckOfStateless {
        /// Place in the list of replicas.
        index: usize,
    },
    /// A stateless group has nothing that could be kept.
    #[error(
        "a stateless group has no state that a disk could keep: leave durability out, or choose another style"
    )]
    DiskOfStateless {
        /// Place in the list of replicas.
        index: usize,
    },
    /// Ordered calls have one order.
    #[error(
        "execution = \"lanes\" is for stateless groups: in others every call has its place in one order. Set style = \"stateless\", \
         or leave execution out"
    )]
    LanesOfOrdered {
        /// Place in the list of replicas.
        index: usize,
    },
    /// A group on disk, but no folder for it.
    #[error(
        "durability = \"disk\" needs a folder: set [storage] folder = \"PATH\", on a disk that keeps what it \
         acknowledges"
    )]
    NoStorage {
        /// `replica` or `program`.
        table: &'static str,
        /// Place in the list.
        index: usize,
    },
    /// Storage, but nothing that tells this life of the node from the last.
    #[error(
        "[storage] needs data_dir: what is kept there is tied to the node's lives, which are numbered in it"
    )]
    StorageWithoutDataDir,
    /// Programs, but no place for their socket.
    #[error(
        "[[program]] needs `admin = \"PATH\"`: the programs' socket is in a folder beside the admin socket"
    )]
    ProgramsWithoutAdmin,
    /// More programs than a node runs.
    #[error("{0} [[program]] entries, a node runs at most {MAX_PROGRAMS}")]
    TooManyPrograms(usize),
    /// A program that cannot be run.
    #[error("[[program]]: {problem}")]
    Program {
        /// Place in the list.
        index: usize,
        /// The problem.
        problem: String,
    },
    /// Two replicas of one group.
    #[error(
        "[[program]] names group \"{group}\", which another entry has: a node hosts at most one replica of a group"
    )]
    ProgramTwice {
        /// Place in the list.
        index: usize,
        /// The group.
        group: String,
    },
    /// A priority that Linux does not have.
    #[error("realtime.{key} = {value} is not possible: give it 1 to {MAX_PRIORITY}, or 0 for none")]
    Priority {
        /// The knob.
        key: &'static str,
        /// Its value.
        value: u8,
    },
    /// A spin that would burn a processor for nothing.
    #[error(
        "realtime.spin_us = {} is too long: give it at most {}, or 0 for none",
        .0.as_micros(),
        MAX_SPIN.as_micros()
    )]
    Spin(Duration),
    /// A request that means nothing.
    #[error(
        "realtime.wake_within_us = {} asks for nothing: give it at most {}, 0 for no sleep at all, or \
         leave it out",
        .0.as_micros(),
        MAX_WAKE_WITHIN.as_micros()
    )]
    WakeWithin(Duration),
    /// A reservation that no kernel takes.
    #[error(
        "[realtime] runtime_us = {} of period_us = {} is out of range: a period of {} to {}, and at most \
         95 % of it",
        runtime.as_micros(), period.as_micros(), MIN_PERIOD.as_micros(), MAX_PERIOD.as_micros()
    )]
    Reserve {
        /// The time in each period.
        runtime: Duration,
        /// The period.
        period: Duration,
    },
    /// A reservation is for all processors.
    #[error(
        "[realtime] runtime_us and cpus exclude each other: Linux grants reserved time only to threads \
         that may run on all processors; leave cpus empty"
    )]
    ReservePinned,
    /// No interface is so quick.
    #[error("[realtime] network_mb_s = {0} is out of range: give 0 to 100000 megabytes a second")]
    Network(u64),
    /// A reservation cannot grow to less than it is.
    #[error(
        "[realtime] runtime_most_us = {} is out of range: give runtime_us to 95 % of period_us, and runtime_us \
         above 0; or 0: the reservation stays as it is", .0.as_micros()
    )]
    ReserveMost(Duration),
    /// Only the host's daemon shares out networks.
    #[error(
        "[realtime] network_mb_s needs the host's daemon: set daemon to its socket, and start it with \
         --network (steadfast qos serve --help)"
    )]
    NetworkWithoutDaemon,
    /// A knob of the ring.
    #[error("[ring] {0}")]
    Ring(ring::ConfigError),
}
