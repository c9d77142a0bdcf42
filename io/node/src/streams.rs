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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use engine::Transfer;
use os::threads;
use wire::{GroupId, NodeId};

use crate::order::Order;
use crate::transport::Addresses;

mod fetcher;
mod giver;
mod plane;
mod secure;
mod words;

use fetcher::Fetcher;
pub(crate) use plane::ToPlane;
pub(crate) use secure::Security;

/// States that are fetched at a time. Others wait: together they would not come sooner.
const FETCHED: usize = 2;

/// States that are given at a time, to all other nodes together. More are not answered, and go by
/// the ring.
const MAX_GIVEN: usize = 16;

/// The room of the data plane that moves states by streams, in threads of its own. They end with it.
pub(crate) struct Streams {
    plane: ToPlane,
    security: Security,
    /// This node's address on each link.
    mine: Vec<SocketAddr>,
    /// The ring's addresses of the nodes, one for each link, with this node's own.
    ways: BTreeMap<NodeId, Vec<(SocketAddr, SocketAddr)>>,
    /// To the threads that fetch.
    queue: Sender<Fetcher>,
    /// The last fetch for each group. It is needless once this says so.
    fetches: BTreeMap<GroupId, (Transfer, Arc<AtomicBool>)>,
    given: Arc<AtomicUsize>,
    /// The node stops: no thread goes on.
    over: Arc<AtomicBool>,
}

impl Streams {
    /// Moves states from these addresses of this node.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(plane: ToPlane, security: Security, mine: Vec<SocketAddr>) -> io::Result<Streams> {
        let (queue, fetches) = channel();
        let fetches = Arc::new(Mutex::new(fetches));
        for _ in 0..FETCHED {
            let (fetches, plane) = (fetches.clone(), plane.clone());
            spawn("steadfast fetch", move || fetch_all(&fetches, &plane))?;
        }
        let (given, over) = (Arc::default(), Arc::default());
        let (ways, fetches) = (BTreeMap::new(), BTreeMap::new());
        Ok(Streams { plane, security, mine, ways, queue, fetches, given, over })
    }

    /// Nodes are reached at these addresses from now on.
    pub fn set_ways(&mut self, addresses: &Addresses) {
        let ways = |ring: &Vec<SocketAddr>| {
            ring.iter().copied().zip(self.mine.iter().copied().cycle()).collect()
        };
        self.ways = addresses.iter().map(|(node, ring)| (*node, ways(ring))).collect();
    }

    /// Begins to fetch a state; [`Order::Fetched`] tells how it ended. An earlier fetch for the
    /// group is given up.
    pub fn fetch(&mut self, transfer: Transfer, from: NodeId, bytes: u64) {
        let needless = Arc::new(AtomicBool::new(false));
        let former = self.fetches.insert(transfer.group, (transfer, needless.clone()));
        if let Some((_, former)) = former {
            former.store(true, Ordering::Relaxed);
        }
        let (security, ways) = (self.security.clone(), self.ways.get(&from));
        let ways = ways.cloned().unwrap_or_default();
        // The threads end with this room alone.
        let _ = self.queue.send(Fetcher { security, from, ways, transfer, bytes, needless });
    }

    /// A fetch has ended.
    pub fn ended(&mut self, ended: Transfer) {
        if self.fetches.get(&ended.group).is_some_and(|(transfer, _)| *transfer == ended) {
            self.fetches.remove(&ended.group);
        }
    }

    /// Another node asks for a state on this connection.
    pub fn give(&self, stream: TcpStream) {
        let Some(place) = Place::take(&self.given) else { return };
        let (plane, security) = (self.plane.clone(), self.security.clone());
        let over = self.over.clone();
        let spawned = spawn("steadfast give", move || {
            let _place = place;
            let goes_on = || !over.load(Ordering::Relaxed);
            if let Err(error) = giver::give(stream, &security, &plane, goes_on) {
                tracing::info!(%error, "a state was not given by a stream");
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for a state's stream: the state goes by the ring");
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.fetches.values().for_each(|(_, needless)| needless.store(true, Ordering::Relaxed));
    }
}

/// One of the states that are given at a time.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(given: &Arc<AtomicUsize>) -> Option<Place> {
        let place = Place(given.clone());
        (place.0.fetch_add(1, Ordering::Relaxed) < MAX_GIVEN).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Fetches one after the other.
fn fetch_all(fetches: &Mutex<Receiver<Fetcher>>, plane: &ToPlane) {
    loop {
        // Held while it waits: the other one waits for it, then.
        let next = fetches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(fetcher) = next else { return };
        let (transfer, state) = (fetcher.transfer, fetcher.run());
        if plane.send(Order::Fetched { transfer, state }).is_err() {
            return;
        }
    }
}

/// Behind all others: a service's calls go first.
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    threads::spawn_behind(name, body).map(drop)
}
