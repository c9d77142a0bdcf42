//! A killed process is seen by its closed port, long before any timer.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use steadfast_node::{Config, Event, HostOptions, Interest, Node, free_ring_addresses};
use support::{Journal, TIMEOUT, synced, wait_for};
use wire::NodeId;

const RINGS: &str = "STEADFAST_TEST_RINGS";

fn config(id: u32, rings: &[SocketAddr]) -> Config {
    let mut config = Config::member(NodeId(id), rings);
    // No timer may see the death: within the test's timeout only the refusal can.
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.consensus_timeout = Duration::from_secs(1);
    config
}

fn start(id: u32, rings: &[SocketAddr]) -> Node {
    let node = Node::start(config(id, rings)).unwrap();
    node.host("journal", HostOptions::default(), Journal::default).unwrap();
    node
}

/// Not a test of its own: the process that is killed.
#[test]
fn child() {
    let Ok(rings) = std::env::var(RINGS) else { return };
    let rings: Vec<SocketAddr> = rings.split(' ').map(|ring| ring.parse().unwrap()).collect();
    let node = start(3, &rings);
    wait_for(&node, "all replicas synced", |status| synced(status, "journal", 3));
    eprintln!("ready");
    // Until the parent kills this process, or is gone itself.
    let _ = std::io::stdin().read(&mut [0]);
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn_child(rings: &[SocketAddr]) -> Killed {
    let rings: Vec<String> = rings.iter().map(SocketAddr::to_string).collect();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(RINGS, rings.join(" "))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Killed(child);
    let lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "the child is not ready");
    child
}

#[test]
fn a_killed_process_is_seen_by_its_closed_port() {
    let rings = free_ring_addresses(3);
    let nodes = [start(1, &rings), start(2, &rings)];
    let mut child = spawn_child(&rings);
    for node in &nodes {
        wait_for(node, "all replicas synced", |status| synced(status, "journal", 3));
    }
    let events = nodes[0].subscribe_to(Interest::Membership);
    let killed = Instant::now();
    child.0.kill().unwrap();
    let mut excluded = false;
    while let Ok((_, event)) = events.recv_timeout(TIMEOUT) {
        excluded |= matches!(&event, Event::Excluded { member, .. } if member.node == NodeId(3));
        assert!(!matches!(event, Event::Ring(ring::Event::TokenLost { .. })));
        // The view of all three may be told just after the status that shows it.
        if let Event::View { replicas, .. } = event
            && replicas.len() < 3
        {
            assert_eq!(replicas.len(), 2);
            assert!(excluded, "told before the view that follows");
            // Some milliseconds; a bound here would only measure the machine that runs the test.
            eprintln!("next view after {:?}", killed.elapsed());
            return;
        }
    }
    panic!("no view without the killed node");
}
