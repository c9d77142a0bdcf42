//! Large states go from node to node by streams beside the ring (`docs/protocol/group.md`, "State
//! transfer"): a connection to the ring's TCP port, on which the liveness connections say nothing,
//! begins to speak.
//!
//! ```text
//! ask       0      4         5     8      16         20    24      32     40
//!          +------+---------+-----+------+----------+-----+-------+------+
//!          | SFST | version |0 0 0| ring | its      |0 0 0| group | view |
//!          |      |         |     |      | represen-|  0  |       |      |
//!          |      |         |     |      | tative   |     |       |      |
//!          +------+---------+-----+------+----------+-----+-------+------+
//! answer   | length 8 | pieces: bytes, at most PIECE; check 4 |     length 0: it is not here
//! check    CRC-32C of the bytes, begun with the check of the piece before
//! ```
//!
//! All numbers are little-endian. A node with a certificate gives and takes states by TLS alone,
//! and one whose ring is sealed but that has no certificate by the ring alone.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use engine::Transfer;
use wire::{GroupId, NodeId};

use crate::order::Order;

mod fetcher;
mod giver;
mod plane;
mod secure;
mod words;

use fetcher::Fetcher;
pub(crate) use plane::ToPlane;
pub(crate) use secure::Security;

/// States that are given at a time. Others are refused, and go by the ring.
const MAX_GIVEN: usize = 4;

/// The room of the data plane that moves states by streams, in threads of its own.
pub(crate) struct Streams {
    plane: ToPlane,
    security: Security,
    /// The ring's addresses of the other nodes, one for each link, with this node's own.
    ways: BTreeMap<NodeId, Vec<(SocketAddr, SocketAddr)>>,
    given: Arc<AtomicUsize>,
    /// The fetch under way for a group is needless once this says so.
    fetches: BTreeMap<GroupId, Arc<AtomicBool>>,
}

impl Streams {
    /// Moves states by these ways.
    pub fn new(
        plane: ToPlane,
        security: Security,
        ways: BTreeMap<NodeId, Vec<(SocketAddr, SocketAddr)>>,
    ) -> Streams {
        Streams { plane, security, ways, given: Arc::default(), fetches: BTreeMap::new() }
    }

    /// Begins to fetch a state; [`Order::Fetched`] tells how it ended. An earlier fetch for the
    /// group is given up.
    pub fn fetch(&mut self, transfer: Transfer, from: NodeId, bytes: u64) {
        let needless = Arc::new(AtomicBool::new(false));
        if let Some(former) = self.fetches.insert(transfer.group, needless.clone()) {
            former.store(true, Ordering::Relaxed);
        }
        let fetcher = Fetcher {
            security: self.security.clone(),
            ways: self.ways.get(&from).cloned().unwrap_or_default(),
            transfer,
            bytes,
            needless,
        };
        let plane = self.plane.clone();
        let spawned = spawn("steadfast fetch", move || {
            let state = fetcher.run();
            // A node that has stopped needs it no more.
            let _ = plane.send(Order::Fetched { transfer, state });
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for a state's stream: the state comes by the ring");
            self.plane.send_at_once(Order::Fetched { transfer, state: None });
        }
    }

    /// A fetch has ended.
    pub fn ended(&mut self, transfer: Transfer) {
        self.fetches.remove(&transfer.group);
    }

    /// Another node asks for a state on this connection.
    pub fn give(&self, stream: TcpStream) {
        if self.given.fetch_add(1, Ordering::Relaxed) >= MAX_GIVEN {
            self.given.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let (plane, security, given) =
            (self.plane.clone(), self.security.clone(), self.given.clone());
        let spawned = spawn("steadfast give", move || {
            let begun = giver::give(stream, &security, &plane);
            if let Err(error) = begun {
                tracing::info!(%error, "a state was not given by a stream");
            }
            given.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = spawned {
            self.given.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(%error, "no thread for a state's stream");
        }
    }
}

/// Behind all others: a service's calls go first.
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let behind = move || {
        os::sched::yield_to_others();
        body();
    };
    thread::Builder::new().name(name.into()).spawn(behind).map(drop)
}
