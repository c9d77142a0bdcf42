//! Large states come by streams beside the ring: from real nodes over real sockets.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use bytes::Bytes;
use steadfast_node::{
    BoxError, Call, Config, Context, HostOptions, Node, Service, ServiceOutcome,
    free_ring_addresses, key_file,
};
use support::{TIMEOUT, synced, wait_for};
use tempfile::TempDir;
use tls::Identity;
use tls::issue::Authority;
use wire::NodeId;

/// Bytes of a state, of which the last piece is short.
const LENGTH: usize = (12 << 20) + 8;

/// A service with a large state, another one at each node until it joins its group.
struct Large(Vec<u8>);

impl Large {
    fn at(node: u32) -> Large {
        let words = (0..LENGTH as u64 / 8).map(|word| u64::from(node) << 32 | word);
        Large(words.flat_map(u64::to_le_bytes).collect())
    }
}

impl Service for Large {
    fn call(&mut self, _: &Context, _: Call<'_>) -> ServiceOutcome {
        ServiceOutcome::Ok(Bytes::new())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.0.clone())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.0 = state.to_vec();
        Ok(())
    }
}

/// Where three nodes find their keys.
struct Place {
    rings: Vec<SocketAddr>,
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = TempDir::new().unwrap();
        key_file::create(&folder.path().join("cluster.key")).unwrap();
        let (authority, own) = Authority::new("test").unwrap();
        fs::write(folder.path().join("authority.pem"), own.certificate).unwrap();
        for id in 1..=3 {
            let identity = Identity::node("test", NodeId(id)).unwrap();
            let issued = authority.issue(&identity, &[Ipv4Addr::LOCALHOST.into()]).unwrap();
            fs::write(folder.path().join(format!("{id}.pem")), issued.certificate).unwrap();
            let mut key = fs::OpenOptions::new();
            let key = key.write(true).create_new(true).mode(0o600);
            let mut key = key.open(folder.path().join(format!("{id}.key"))).unwrap();
            key.write_all(issued.key.as_bytes()).unwrap();
        }
        Place { rings: free_ring_addresses(3), folder }
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.path().join(name))
    }

    fn plain(&self, id: u32) -> Config {
        Config { cluster: "test".into(), ..Config::member(NodeId(id), &self.rings) }
    }

    fn sealed(&self, id: u32) -> Config {
        let mut config = self.plain(id);
        config.security.cluster_key = self.file("cluster.key");
        config
    }

    fn certified(&self, id: u32) -> Config {
        let mut config = self.sealed(id);
        config.security.authority = self.file("authority.pem");
        config.security.certificate = self.file(&format!("{id}.pem"));
        config.security.key = self.file(&format!("{id}.key"));
        config
    }
}

/// Nodes that have one state. Returns how many states came by streams, and how many did not.
fn meet(configs: impl Iterator<Item = Config>) -> (u64, u64) {
    let start = |config: Config| {
        let id = config.node.0;
        let node = Node::start(config).unwrap();
        node.host("large", HostOptions::default(), move || Large::at(id)).unwrap();
        node
    };
    let nodes: Vec<Node> = configs.map(start).collect();
    let met = |node| wait_for(node, "all have the state", |status| synced(status, "large", 3));
    let counters: Vec<_> = nodes.iter().map(|node| met(node).counters).collect();
    let first = nodes[0].state("large").unwrap();
    assert_eq!(first.len(), LENGTH);
    assert!(nodes.iter().all(|node| node.state("large").unwrap() == first), "they differ");
    let fetched = counters.iter().map(|it| it.states_fetched).sum();
    (fetched, counters.iter().map(|it| it.fetches_failed).sum())
}

#[test]
fn a_large_state_comes_by_a_stream() {
    let place = Place::new();
    let (fetched, _) = meet((1..=3).map(|id| place.plain(id)));
    assert!(fetched >= 2, "{fetched}");
}

#[test]
fn nodes_with_certificates_send_states_by_tls() {
    let place = Place::new();
    let (fetched, _) = meet((1..=3).map(|id| place.certified(id)));
    assert!(fetched >= 2, "{fetched}");
}

#[test]
fn where_the_ring_is_sealed_and_nobody_has_a_certificate_states_come_by_the_ring() {
    let place = Place::new();
    let (fetched, failed) = meet((1..=3).map(|id| place.sealed(id)));
    assert_eq!(fetched, 0);
    assert!(failed >= 2, "{failed}");
}

#[test]
fn a_node_with_a_certificate_gives_nothing_to_one_without() {
    let place = Place::new();
    let configs = [place.certified(1), place.certified(2), place.sealed(3)];
    let (_, failed) = meet(configs.into_iter());
    assert!(failed >= 1, "{failed}");
}

#[test]
fn who_does_not_speak_tls_is_not_answered_where_nodes_have_certificates() {
    let place = Place::new();
    let node = Node::start(place.certified(1)).unwrap();
    let mut stream = TcpStream::connect(place.rings[0]).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(b"SFST\x01\0\0\0................\0\0\0\0................").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_ne!(answer, [0; 8], "a request without TLS was understood");
    node.stop().unwrap();
}

#[test]
fn who_asks_for_no_state_or_says_something_else_gets_nothing() {
    let place = Place::new();
    let node = Node::start(place.plain(1)).unwrap();
    let mut no_such = *b"SFST\x01\0\0\0................................";
    for ask in [&no_such[..], b"GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: */*\r\n\r\n"] {
        let mut stream = TcpStream::connect(place.rings[0]).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(ask).unwrap();
        let mut answer = Vec::new();
        // A reset is as good an end as any other.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.iter().all(|byte| *byte == 0) && answer.len() <= 8, "{answer:?}");
    }
    no_such[20..24].fill(0);
    let mut stream = TcpStream::connect(place.rings[0]).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(&no_such).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, [0; 8], "a node is told that it is not there");
    node.stop().unwrap();
}
