//! Benchmarks of the ring over real sockets, asked for at the admin socket.

mod support;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use steadfast_node::admin::{AdminError, Client};
use steadfast_node::bench::{Ask, Level, Outcome, Pace, Until};
use steadfast_node::{Config, Node, free_ring_addresses};
use support::{TIMEOUT, wait_for};
use wire::NodeId;

fn start(id: u32, rings: &[SocketAddr], folder: &Path) -> Node {
    let admin = Some(socket(id, folder));
    let mut config = Config { admin, ..Config::member(NodeId(id), rings) };
    // However busy the machine is, nobody is taken for dead, which would end a benchmark.
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    Node::start(config).expect("it starts")
}

fn socket(id: u32, folder: &Path) -> PathBuf {
    folder.join(format!("{id}.sock"))
}

fn whole(node: &Node, size: usize) {
    wait_for(node, "all nodes are there", |status| {
        status.ring.members.len() == size && status.ring.quorate == Some(true)
    });
}

fn ask(senders: &[u32], pace: Pace, until: Until) -> Ask {
    Ask {
        senders: senders.iter().copied().map(NodeId).collect(),
        size: 200,
        count: 300,
        warm: 20,
        span_ms: 10_000,
        level: Level::Agreed,
        pace,
        until,
    }
}

/// The admin socket answers once the cluster has formed. A node that has not heard of the end of
/// another's benchmark yet refuses the next one.
fn bench(path: &Path, ask: &Ask) -> Outcome {
    let end = Instant::now() + TIMEOUT;
    loop {
        let mut node = Client::connect(path).expect("the node runs");
        node.set_timeout(Some(TIMEOUT)).expect("a time");
        match node.bench(ask, |_| {}) {
            Err(AdminError::Refused(why)) if why.contains("under way") && Instant::now() < end => {}
            outcome => return outcome.expect("nothing disturbs it"),
        }
    }
}

#[test]
fn three_nodes_measure_their_ring_and_verify_every_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let rings = free_ring_addresses(3);
    let nodes: Vec<Node> = (1..=3).map(|id| start(id, &rings, folder.path())).collect();
    nodes.iter().for_each(|node| whole(node, 3));
    for (asked, senders) in [(1, &[1][..]), (2, &[1, 3]), (3, &[1, 2, 3])] {
        for pace in [Pace::Window(1), Pace::Full, Pace::EveryUs(200)] {
            for until in [Until::Own, Until::All, Until::Echo] {
                let ask = ask(senders, pace, until);
                let outcome = bench(&socket(asked, folder.path()), &ask);
                assert!(outcome.is_verified(), "{outcome:?}");
                assert_eq!(outcome.sent, vec![300; senders.len()]);
                let latency = outcome.latency().expect("it was measured");
                assert_eq!(latency.n, 280 * senders.len() as u64);
                assert!(latency.min_us <= latency.p50_us && latency.p50_us <= latency.max_us);
                let (own, all) = (outcome.times.own.unwrap(), outcome.times.all.unwrap());
                assert!(own.p50_us <= all.p50_us, "nobody hears of itself last");
                assert!(all.p50_us > 0.0, "the others are processes away");
                assert!(outcome.msgs_s > 0.0);
            }
        }
    }
}

#[test]
fn what_waits_for_the_flow_control_has_not_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let rings = free_ring_addresses(4);
    let nodes: Vec<Node> = (1..=4).map(|id| start(id, &rings, folder.path())).collect();
    nodes.iter().for_each(|node| whole(node, 4));
    let many = Ask { size: 1_024, count: 4_000, ..ask(&[1], Pace::Window(800), Until::Own) };
    let outcome = bench(&socket(1, folder.path()), &many);
    let (send, own) = (outcome.times.send.unwrap(), outcome.times.own.unwrap());
    assert!(send.p50_us > 0.0, "{outcome:?}");
    assert!(send.p50_us <= own.p50_us && send.max_us <= own.max_us, "{outcome:?}");
}

#[test]
fn a_node_that_stops_in_the_middle_ends_the_benchmark_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let rings = free_ring_addresses(3);
    let mut nodes: Vec<Node> = (1..=3).map(|id| start(id, &rings, folder.path())).collect();
    nodes.iter().for_each(|node| whole(node, 3));
    let mut client = Client::connect(socket(1, folder.path())).expect("the node runs");
    client.set_timeout(Some(TIMEOUT)).expect("a time");
    let endless = Ask {
        count: 1_000_000,
        span_ms: 600_000,
        ..ask(&[1, 2], Pace::EveryUs(1_000), Until::Own)
    };
    let mut last = nodes.pop();
    let ended = client.bench(&endless, |progress| {
        assert!(progress.delivered <= progress.expected);
        if let Some(node) = last.take() {
            node.stop().expect("a clean stop");
        }
    });
    let Err(AdminError::Refused(reason)) = ended else { panic!("{ended:?}") };
    assert!(reason.contains("the configuration changed"), "{reason}");
    // The rest can be measured again.
    whole(&nodes[0], 2);
    whole(&nodes[1], 2);
    assert!(bench(&socket(2, folder.path()), &ask(&[1], Pace::Full, Until::All)).is_verified());
}

#[test]
fn who_asked_and_went_away_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let rings = free_ring_addresses(2);
    let nodes: Vec<Node> = (1..=2).map(|id| start(id, &rings, folder.path())).collect();
    nodes.iter().for_each(|node| whole(node, 2));
    let endless =
        Ask { count: 1_000_000, span_ms: 600_000, ..ask(&[1], Pace::EveryUs(1_000), Until::Own) };
    let gone = std::panic::AssertUnwindSafe(|| {
        let mut client = Client::connect(socket(1, folder.path())).expect("the node runs");
        client.bench(&endless, |_| std::panic::resume_unwind(Box::new("enough")))
    });
    assert!(std::panic::catch_unwind(gone).is_err(), "its user had enough");
    let ended = |event: &steadfast_node::Event| {
        matches!(event, steadfast_node::Event::BenchEnded { whole: false, .. })
    };
    let events = nodes[1].subscribe();
    let past = Client::connect(socket(2, folder.path())).expect("the node runs");
    let past = past.events(false, false).expect("they are told");
    let already = past.map_while(Result::ok).any(|event| {
        matches!(event.kind, steadfast_node::EventKind::BenchEnded { whole: false, .. })
    });
    let next = || events.recv_timeout(TIMEOUT).expect("the load ends with whoever wanted it");
    while !already && !ended(&next().1) {}
    assert!(bench(&socket(2, folder.path()), &ask(&[1], Pace::Full, Until::Own)).is_verified());
}

#[test]
fn a_node_without_a_quorum_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let rings = free_ring_addresses(3);
    let _node = start(1, &rings, folder.path());
    let mut client = Client::connect(socket(1, folder.path())).expect("the node runs");
    let refused = client.bench(&ask(&[1], Pace::Full, Until::Own), |_| {});
    let Err(AdminError::Refused(reason)) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("no quorum"), "{reason}");
}
