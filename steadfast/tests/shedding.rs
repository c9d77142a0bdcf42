//! A host that has too much to do: the critical callers go on, the others are refused and told why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use steadfast::events::{Event, Interest};
use steadfast::{
    BytesCallError, Client, HostOptions, Invocation, Node, NodeConfig, Policy, Refusal,
};

#[steadfast::service]
trait Counter {
    fn add(&mut self, n: u64) -> u64;
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Total(u64);

impl Counter for Total {
    fn add(&mut self, n: u64) -> u64 {
        self.0 += n;
        self.0
    }
}

const LONG: Duration = Duration::from_secs(60);

/// Programs beside the node that want all processors of the host, until this is dropped.
struct Crowd(Arc<AtomicBool>);

impl Crowd {
    fn begin() -> Crowd {
        let runs = Arc::new(AtomicBool::new(true));
        let count = thread::available_parallelism().map_or(4, usize::from);
        for _ in 0..count {
            let runs = runs.clone();
            thread::spawn(move || {
                while runs.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Crowd(runs)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn client(node: &Node, priority: u8) -> Client {
    let address = node.client_address().expect("it takes clients");
    Client::builder()
        .policy(Policy::default().priority(priority))
        .connect([address])
        .expect("it runs")
}

/// Adds one, by hand: what the stub would say.
fn add(client: &Client) -> Result<Bytes, BytesCallError> {
    let arguments = Bytes::from_static(b"[1]");
    client.call(Invocation::new("counter", "add").json().body(arguments).within(LONG))
}

#[test]
fn the_critical_go_on_and_the_others_are_told_why_they_are_refused() {
    let mut config = NodeConfig::single();
    config.manager.on = true;
    config.manager.sample = Duration::from_millis(5);
    config.manager.window = Duration::from_millis(100);
    config.manager.period = Duration::from_millis(50);
    config.manager.settle = Duration::from_millis(150);
    let node = Node::start(config).expect("a node starts");
    node.host("counter", HostOptions::default(), || CounterService::new(Total(0)))
        .expect("it hosts");
    let events = node.subscribe_to(Interest::Membership);
    let (critical, other) = (client(&node, 200), client(&node, 0));
    let _crowd = Crowd::begin();
    let (mut answered, begun) = (0, Instant::now());
    let refused = loop {
        assert!(begun.elapsed() < LONG, "nothing is refused: {:#?}", node.status().hosts);
        add(&critical).expect("the critical go on");
        answered += 1;
        match add(&other) {
            Ok(_) => answered += 1,
            Err(error) => break error,
        }
    };
    let BytesCallError::Refused { refusal: Refusal::Shed, reason } = &refused else {
        panic!("{refused}");
    };
    assert!(reason.contains("priority 200") && reason.contains("has 0"), "{reason}");
    assert_eq!(refused.was_executed(), Some(false));
    // All calls that were answered were executed, and the one that was refused was not.
    let total = add(&critical).expect("the critical go on");
    assert_eq!(total, format!("{}", answered + 1).as_bytes());
    let told = |event: &Event| matches!(event, Event::Shedding { level: 200, .. });
    assert!(events.iter().any(|(_, event)| told(&event)), "it is told");
    assert_eq!((critical.stats().shed, other.stats().shed > 0), (0, true));
    // How many it has refused is told with the next report.
    while node.status().hosts[0].refused == 0 {
        assert!(begun.elapsed() < LONG, "{:#?}", node.status().hosts);
        add(&critical).expect("the critical go on");
    }
    node.stop().expect("it stops");
}
