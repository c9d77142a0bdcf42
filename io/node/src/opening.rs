//! Opens what a node needs before it runs: its storage, its sockets, and the threads beside the
//! data plane.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender};

use admin::server::AuditLog;
use admin::status::StorageStatus;
use config::{Config, Problem};
use engine::ordering::Ring;
use engine::{Kept, Recovery, Stack};
use os::clock::monotonic;
use os::waker::Waker;
use seal::{Keys, Seal};
use store::{Owner, RecordId};
use supervisor::Programs;
use tls::Server;
use wire::roster::Roster;
use wire::versions::RULES;
use wire::{ClusterId, Member, NodeList, Time};

use crate::administration::Admin;
use crate::control::Control;
use crate::error::StartError;
use crate::incarnation::Life;
use crate::key_file_writer::{self, KeyFileWriter};
use crate::liveness::Liveness;
use crate::order::Order;
use crate::plane::{Keeping, Nodes, Sockets, group_of};
use crate::poller::Poller;
use crate::programs::Orders;
use crate::roster_file::RosterFile;
use crate::sockets::tcp::Callers;
use crate::storage::{self, Recovered, Storage};
use crate::streams::{Streams, ToPlane};
use crate::transport::{Addresses, Transport};

/// The least room, in bytes, that the kernel is asked to have for what one peer sends.
const LEAST_RECEIVE_ROOM: usize = 4 << 20;

/// Makes the machine that the data plane runs.
pub(crate) fn open_stack(
    config: &Config,
    (me, life): (Member, &Life),
    address: Option<SocketAddr>,
    keys: Option<&Keys>,
    (recovery, roster): (Option<Recovery>, Option<Roster>),
) -> Result<Stack, StartError> {
    let ring = config.ring_config(me);
    let mut stack = engine::Config::new(me, ring.nodes.clone(), config.cluster.clone());
    stack.quorum = config.quorum;
    stack.first_life = life.founding.is_some();
    stack.vote_timeout = config.vote_timeout;
    stack.settle = (!config.settle.is_zero()).then_some(config.settle);
    stack.hang = config.hang;
    stack.address = address;
    stack.sealing = keys.map(|keys| key_file_writer::name(keys.sealing()));
    stack.storage = recovery;
    stack.roster = roster;
    #[cfg(feature = "planted-bugs")]
    crate::plant::into(&mut stack);
    let ring = Ring::new(ring, monotonic()).map_err(Problem::Ring)?;
    Ok(Stack::new(stack, ring, monotonic()))
}

/// Opens the node's storage, and reads what earlier lives kept there.
pub(crate) fn open_storage(
    config: &Config,
    me: Member,
    waker: &Arc<Waker>,
) -> Result<Option<(Keeping, Recovery)>, StartError> {
    let Some(folder) = &config.storage else { return Ok(None) };
    let owner = Owner { cluster: ClusterId::of(&config.cluster), node: me.node };
    let knobs = storage::config(owner)
        .map_err(|source| StartError::System { what: "random numbers", source })?;
    let waker = waker.clone();
    let (storage, recovered) = Storage::open_waking(folder, knobs, move || waker.wake())?;
    let Recovered { opened, snapshots, records } = recovered;
    tracing::info!(
        records = opened.replayed,
        snapshots = opened.snapshots,
        torn = opened.torn,
        "the store is open"
    );
    let snapshots = snapshots.into_iter().map(|snapshot| Kept {
        strand: group_of(snapshot.strand),
        kind: None,
        place: snapshot.place,
        bytes: snapshot.state.whole(),
    });
    let records = records.into_iter().map(|(_, record)| Kept {
        strand: group_of(record.strand),
        kind: Some(record.kind),
        place: record.place,
        bytes: record.bytes,
    });
    let recovery = Recovery::read(snapshots.chain(records))
        .map_err(|malformed| StartError::Records { folder: folder.clone(), malformed })?;
    let level = recovery.level();
    if level != 0 && !RULES.contains(level) {
        return Err(StartError::Rules { folder: folder.clone(), level });
    }
    let status = StorageStatus {
        folder: folder.clone(),
        recovered: opened.replayed,
        ..StorageStatus::default()
    };
    let base = RecordId(opened.next.0 - 1);
    Ok(Some((Keeping::new(storage, base, status), recovery)))
}

/// Opens the node's sockets. The liveness listener comes first: the ring's UDP port is shared by
/// sockets of this process, so only the TCP port tells that another process has the number.
pub(crate) fn open_sockets(
    config: &Config,
    me: Member,
    seal: Option<Seal>,
    server: Option<&Server>,
    waker: &Arc<Waker>,
) -> Result<Sockets, StartError> {
    let listen = |what, address| move |source| StartError::Listen { what, address, source };
    let clients = |address| listen("clients (TCP)", address);
    let mine = config.ring_addresses();
    let first = *mine.first().ok_or(Problem::MeMissing(config.node))?;
    let liveness = Liveness::listen(mine)
        .map_err(|(address, error)| listen("liveness (TCP)", address)(error))?;
    let transport = bind_transport(config, me, seal).map_err(listen("the ring (UDP)", first))?;
    let callers = match (config.client, server) {
        (None, _) => None,
        (Some(address), None) => Some(Callers::listen(address).map_err(clients(address))?),
        (Some(address), Some(server)) => {
            let rights = config.rights.clone();
            let gated = Callers::listen_gated(address, server.clone(), rights, waker.clone());
            Some(gated.map_err(clients(address))?)
        }
    };
    let poller = Poller::new()
        .map_err(|error| StartError::System { what: "an epoll instance", source: error.into() })?;
    let mut sockets = Sockets { transport, callers, liveness, poller };
    let Sockets { transport, liveness, poller, .. } = &mut sockets;
    let list = NodeList::new(&config.node_ids());
    // The data plane tries again what fails here.
    let _ = transport.set_nodes(monotonic(), &list, &addresses(config), (liveness, poller));
    Ok(sockets)
}

/// Binds the ring's sockets, and warns where the kernel keeps less than a window needs.
fn bind_transport(config: &Config, me: Member, seal: Option<Seal>) -> std::io::Result<Transport> {
    let room = config.ring.receive_room().max(LEAST_RECEIVE_ROOM);
    let (links, mine) = (config.links_config(me), config.ring_addresses());
    let transport = Transport::bind(links, mine, room, seal, monotonic())?;
    let granted = transport.sockets().receive_buffer;
    if granted < room {
        tracing::warn!(
            granted,
            wanted = room,
            "the kernel keeps too little of what arrives for a full window: datagrams will be lost \
             and repeated under load; raise net.core.rmem_max, or lower window or datagram in [ring]"
        );
    }
    Ok(transport)
}

/// The nodes' addresses, as configured.
fn addresses(config: &Config) -> Addresses {
    config.nodes.iter().map(|node| (node.id, node.ring.to_vec())).collect()
}

/// The nodes as configured, and as the roster of an earlier life says, and what keeps them.
pub(crate) fn open_nodes(
    config: &Config,
    roster: Option<&Roster>,
    control: &Control,
    running: &Sender<()>,
) -> Result<Nodes, StartError> {
    let file = |folder: &PathBuf| {
        let (orders, waker) = (control.orders.clone(), control.waker.clone());
        RosterFile::start(folder, orders, waker, running.clone())
            .map_err(|source| StartError::System { what: "a thread", source })
    };
    let mut nodes = Nodes {
        said: addresses(config).into_iter().filter(|it| !it.1.is_empty()).map(|it| it.0).collect(),
        addresses: addresses(config),
        list: NodeList::new(&config.node_ids()),
        // The data plane begins with a try.
        retry_at: Time::ZERO,
        file: config.data_dir.as_ref().map(file).transpose()?,
    };
    roster.into_iter().for_each(|roster| nodes.learn(roster));
    Ok(nodes)
}

/// Makes what moves large states between nodes.
pub(crate) fn open_streams(config: &Config, control: &Control) -> Result<Streams, StartError> {
    let (orders, waker) = (control.orders.clone(), control.waker.clone());
    let plane = ToPlane { orders, waker };
    let mine = config.ring_addresses().to_vec();
    let mut streams = Streams::start(plane, control.renewal.states.clone(), mine)
        .map_err(|source| StartError::System { what: "a thread", source })?;
    streams.set_ways(&addresses(config));
    Ok(streams)
}

/// Opens the log of what administrators do, where the node keeps anything.
pub(crate) fn open_audit_log(config: &Config) -> Result<Option<AuditLog>, StartError> {
    let Some(folder) = &config.data_dir else { return Ok(None) };
    let open = AuditLog::open(&folder.join("audit.log"));
    open.map(Some).map_err(|source| StartError::DataDir { path: folder.clone(), source })
}

/// Starts what runs this node's programs, where there is an admin socket beside which they attach.
pub(crate) fn start_programs(
    config: &Config,
    me: Member,
    orders: &SyncSender<Order>,
    waker: &Arc<Waker>,
) -> Result<Option<Programs>, StartError> {
    let Some(admin) = &config.admin else { return Ok(None) };
    let top = config.realtime.executor_priority;
    let plane = Orders { orders: orders.clone(), waker: waker.clone() };
    let daemon = config.realtime.daemon.clone();
    Programs::start(admin, (me, &config.cluster), (top, daemon), Box::new(plane))
        .map(Some)
        .map_err(|source| StartError::System { what: "a thread", source })
}

/// Lets administrators in.
pub(crate) fn start_admin(config: &Config, control: &Arc<Control>) -> Result<Admin, StartError> {
    let port = config.admin_tls.zip(control.renewal.administrators.clone());
    Admin::start(config.admin.as_deref(), port, control.clone())
}

/// Starts what keeps the cluster's keys, if there are any.
pub(crate) fn start_key_file_writer(
    config: &Config,
    keys: Option<Keys>,
    control: &Control,
    running: &Sender<()>,
) -> Result<Option<KeyFileWriter>, StartError> {
    let (Some(path), Some(keys)) = (config.security.cluster_key.clone(), keys) else {
        return Ok(None);
    };
    let (orders, waker) = (control.orders.clone(), control.waker.clone());
    KeyFileWriter::start(path, keys, orders, waker, running.clone())
        .map(Some)
        .map_err(|source| StartError::System { what: "a thread", source })
}

/// Clients cannot connect to "any address": they are told the ring's host instead.
pub(crate) fn told(bound: SocketAddr, ring: SocketAddr) -> SocketAddr {
    if bound.ip().is_unspecified() { SocketAddr::new(ring.ip(), bound.port()) } else { bound }
}
