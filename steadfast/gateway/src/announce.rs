//! The gateways of a cluster know each other by its registry: each binds its address there.

use std::collections::BTreeSet;
use std::time::Duration;

use client::AsyncClient;
use steadfast::registry::{Address, AsyncRegistry, Binding, Lease, RegistryError, Terms};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use wire::NodeId;

use crate::options::Place;
use crate::xds::Peer;

/// The name of all gateways. Each address is `NODE IP:PORT IP:PORT`: where callers connect, and
/// where the node's clients do.
const NAME: &str = "steadfast.gateways";

/// Names of the system's own groups begin so.
const SYSTEM: &str = "steadfast.";

/// A gateway that has ended is forgotten after this time.
const LEASE_MS: u32 = 3_000;
const REFRESH: Duration = Duration::from_secs(1);

/// How often the others are looked up. It costs the ring nothing.
const LOOK: Duration = Duration::from_millis(500);

/// If no registry answers for this long, a gateway tells of itself alone, and asks again so often.
const WITHOUT: Duration = Duration::from_secs(5);

/// A cluster, as its registry has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Its gateways, by node.
    pub(crate) peers: Vec<Peer>,
    /// Its groups, by name, without those of the system.
    pub(crate) groups: BTreeSet<String>,
}

/// The cluster as it is known; at first nothing is. A client that was told of one gateway alone
/// would wait for that one when it dies.
pub(crate) fn channel() -> (watch::Sender<Cluster>, watch::Receiver<Cluster>) {
    watch::channel(Cluster::default())
}

fn own(place: Place) -> Peer {
    Peer { node: place.node, address: place.address, client: place.client }
}

fn entry(place: Place) -> String {
    format!("{} {} {}", place.node.0, place.address, place.client)
}

/// Keeps this gateway bound, and what is known up to date. It never ends.
pub(crate) async fn keep(client: AsyncClient, place: Option<Place>, told: watch::Sender<Cluster>) {
    let mut registry = AsyncRegistry::new(&client);
    let mut binding = place.map(|place| Kept { place, lease: None, due: Instant::now() });
    let mut heard = Instant::now();
    loop {
        if let Some(binding) = &mut binding
            && binding.due <= Instant::now()
        {
            binding.renew(&mut registry).await;
        }
        let found = registry.list().await;
        let is_silent = heard.elapsed() >= WITHOUT;
        let cluster = match found {
            Ok(found) => {
                heard = Instant::now();
                Some(read(&found.bindings, place))
            }
            Err(error) if is_silent && told.borrow().peers.is_empty() => {
                tracing::warn!("other gateways are not known: {error}");
                Some(read(&[], place))
            }
            Err(_) => None,
        };
        told.send_if_modified(|before| {
            let is_news = cluster.as_ref().is_some_and(|cluster| before != cluster);
            cluster.into_iter().for_each(|cluster| *before = cluster);
            is_news
        });
        sleep(if is_silent { WITHOUT } else { LOOK }).await;
    }
}

fn read(bindings: &[Binding], place: Option<Place>) -> Cluster {
    let mut peers: Vec<Peer> = bindings.iter().filter_map(peer).collect();
    let me = place.map(own);
    peers.retain(|peer| me.is_none_or(|me| me.node != peer.node));
    peers.extend(me);
    peers.sort_unstable();
    peers.dedup_by_key(|peer| peer.node);
    let is_group = |binding: &&Binding| {
        matches!(binding.address, Address::Replica(_)) && !binding.name.starts_with(SYSTEM)
    };
    let groups = bindings.iter().filter(is_group).map(|binding| binding.name.clone()).collect();
    Cluster { peers, groups }
}

/// Ends this gateway's binding.
pub(crate) async fn end(client: &AsyncClient, place: Option<Place>) {
    let Some(place) = place else { return };
    let mut registry = AsyncRegistry::new(client);
    let Ok(found) = registry.look_up(NAME).await else { return };
    let mine = found.bindings.into_iter().find(|it| text(&it.address) == Some(&*entry(place)));
    if let Some(Binding { name, address, epoch, .. }) = mine {
        // It ends by its lease else.
        let _ = registry.unbind(&Lease { name, address, epoch }).await;
    }
}

/// This gateway's binding.
struct Kept {
    place: Place,
    lease: Option<Lease>,
    due: Instant,
}

impl Kept {
    async fn renew(&mut self, registry: &mut AsyncRegistry) {
        let renewed = match &self.lease {
            Some(lease) => registry.refresh(lease).await,
            None => Err(RegistryError::Fenced(Default::default())),
        };
        if let Err(RegistryError::Fenced(_)) = renewed {
            let terms = Terms::lease(LEASE_MS, 1_000);
            self.lease = registry.bind(NAME, &entry(self.place), terms).await.ok();
        }
        self.due = Instant::now() + REFRESH;
    }
}

fn text(address: &Address) -> Option<&str> {
    match address {
        Address::At(text) => Some(text),
        Address::Replica(_) => None,
    }
}

/// Reads an [`entry`]. A newer gateway's may have more words.
fn peer(binding: &Binding) -> Option<Peer> {
    let here = text(&binding.address).filter(|_| binding.name == NAME)?;
    let mut words = here.split(' ');
    Some(Peer {
        node: NodeId(words.next()?.parse().ok()?),
        address: words.next()?.parse().ok()?,
        client: words.next()?.parse().ok()?,
    })
}
