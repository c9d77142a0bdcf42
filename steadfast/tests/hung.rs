//! Services that hang, on real nodes under a client's calls: no call is lost, the replica goes, and
//! comes anew.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fixture::cluster;
use steadfast::events::{EventKind, EventRecord, Stamped};
use steadfast::{
    BoxError, Call, Client, Context, HangRule, HostOptions, Invocation, MethodId, Node, NodeConfig,
    NodeId, ProgramConfig, Service, ServiceOutcome, attach,
};

const GROUP: &str = "sum";
const LONG: Duration = Duration::from_secs(60);

/// Adds one. The replica whose mark this is does nothing any more.
const ADD: MethodId = MethodId::of("add");

/// Whether a call with these arguments does not end.
type Hangs = Box<dyn Fn(&[u8]) -> bool + Send>;

/// A number that is counted, in a replica with a mark of its own.
struct Sum {
    sum: u64,
    hangs: Hangs,
}

impl Sum {
    fn new(hangs: impl Fn(&[u8]) -> bool + Send + 'static) -> Sum {
        Sum { sum: 0, hangs: Box::new(hangs) }
    }

    /// The service of a program: it hangs with a call that names its process.
    fn of_process() -> Sum {
        Sum::new(|body| body == std::process::id().to_le_bytes())
    }
}

impl Service for Sum {
    fn call(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        while (self.hangs)(call.body) {
            std::thread::park();
        }
        self.sum += 1;
        ServiceOutcome::Ok(Bytes::copy_from_slice(&self.sum.to_le_bytes()))
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.sum.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.sum = u64::from_le_bytes(state.try_into().map_err(|_| "no sum")?);
        Ok(())
    }
}

/// By hand it says what is missing. Started by a node it serves a replica: the other test has that
/// done.
#[test]
fn a_program_that_no_node_has_started_says_so() {
    if std::env::var_os("STEADFAST_ATTACH").is_some() {
        return attach(Sum::of_process).expect("it serves until the node is gone");
    }
    attach(Sum::of_process).expect_err("there is no node");
}

fn program() -> ProgramConfig {
    let program = std::env::current_exe().expect("this test").to_str().expect("text").to_owned();
    let test = "a_program_that_no_node_has_started_says_so".to_owned();
    let command = vec![program, test, "--exact".into(), "--nocapture".into()];
    ProgramConfig { group: GROUP.into(), command, ..ProgramConfig::default() }
}

/// Three nodes that wait three times 200 ms for a service.
fn start(folder: &tempfile::TempDir) -> Vec<Node> {
    let rings = steadfast::free_ring_addresses(3);
    let node = |id: u32| {
        let own = folder.path().join(id.to_string());
        fs::create_dir(&own).expect("a folder");
        let within = Duration::from_millis(200);
        let config = NodeConfig {
            admin: Some(own.join("node.sock")),
            hang: HangRule { within, misses: 3 },
            ..NodeConfig::member(NodeId(id), &rings)
        };
        Node::start(config).expect("free ports")
    };
    (1..=3).map(node).collect()
}

fn add(client: &Client, body: &[u8]) -> u64 {
    let body = Bytes::copy_from_slice(body);
    let reply = client.call(Invocation::new(GROUP, ADD).body(body).within(Duration::from_secs(2)));
    u64::from_le_bytes(reply.expect("no call is lost")[..].try_into().expect("a sum"))
}

/// Waits until this node is told of such an event.
fn told(node: &Node, events: &Receiver<Stamped>, is: impl Fn(&EventKind) -> bool) {
    let end = Instant::now() + LONG;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let (time, event) = events.recv_timeout(left).expect("it is told");
        if is(&EventRecord::new(time, node.id(), &event).kind) {
            return;
        }
    }
}

/// Makes calls, of which the first hangs the primary's service, until the group is whole again with
/// another primary. Returns the final count.
fn call_on(nodes: &[Node], client: &Client, mark: &[u8]) -> u64 {
    let mut counted = add(client, b"");
    let begun = Instant::now();
    for number in 1.. {
        let sum = add(client, if number == 1 { mark } else { b"" });
        assert_eq!(sum, counted + 1, "each is executed once");
        counted = sum;
        let group = nodes[1].status().groups.remove(0);
        let synced = group.replicas.iter().filter(|replica| replica.synced).count();
        let elsewhere = group.primary.is_some_and(|primary| primary.node != nodes[0].id());
        if elsewhere && synced == 3 {
            break;
        }
        assert!(begun.elapsed() < LONG, "{group:#?}");
    }
    counted
}

fn is_whole(nodes: &[Node], counted: u64) {
    let end = Instant::now() + LONG;
    let whole = |node: &Node| node.state(GROUP).is_ok_and(|state| state == counted.to_le_bytes());
    while !nodes.iter().all(whole) {
        assert!(Instant::now() < end, "all have the same");
    }
}

#[test]
fn a_program_that_hangs_is_ended_and_started_again_and_no_call_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let nodes = start(&folder);
    for (place, node) in nodes.iter().enumerate() {
        node.run(program()).expect("it serves");
        cluster::wait_for_replicas(&nodes[0], GROUP, place + 1);
    }
    let events = nodes[1].subscribe();
    let own = nodes[0].subscribe();
    let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
    let pid = nodes[0].status().programs[0].pid.expect("it runs");
    let counted = call_on(&nodes, &client, &pid.to_le_bytes());
    told(&nodes[0], &own, |event| matches!(event, EventKind::Hung { misses: 3, alone: false, .. }));
    told(
        &nodes[1],
        &events,
        |event| matches!(event, EventKind::Demoted { member, was_primary: true, .. } if member.node == NodeId(1)),
    );
    let status = nodes[0].status();
    assert_ne!(status.programs[0].pid, Some(pid), "it is another process");
    assert_eq!((status.programs[0].restarts, status.counters.replicas_hung), (1, 1));
    is_whole(&nodes, counted);
}

#[test]
fn a_thread_that_hangs_is_left_behind_and_another_takes_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let nodes = start(&folder);
    let first = Arc::new(AtomicBool::new(true));
    for (place, node) in nodes.iter().enumerate() {
        let first = first.clone();
        let make = move || {
            // The first service of the first node hangs with a call that says so.
            let hangs = first.swap(false, Ordering::SeqCst);
            Sum::new(move |body| hangs && body == b"hang")
        };
        node.host(GROUP, HostOptions::default(), make).expect("a new group");
        cluster::wait_for_replicas(&nodes[0], GROUP, place + 1);
    }
    let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
    let counted = call_on(&nodes, &client, b"hang");
    assert_eq!(nodes[0].status().counters.replicas_hung, 1);
    is_whole(&nodes, counted);
}
