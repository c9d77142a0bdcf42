//! A durable queue: `cargo run -p steadfast --example queue`
//!
//! A group on disk keeps jobs. A worker takes a job with a lease, and says when it is done. All
//! nodes stop and start again while jobs wait and one is at work: no acknowledged job is lost, and
//! each is done once.
use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use steadfast::{Client, Context, HostOptions, Node, NodeConfig, NodeId, Time};

const LEASE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(20);
/// The example fails if anything takes longer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A job that was given to a worker. The `attempt` tells this worker from a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    id: u64,
    attempt: u32,
    text: String,
}

#[steadfast::service]
trait Queue {
    /// Adds a job; returns its number.
    fn push(&mut self, text: String) -> u64;
    /// Gives the oldest job that nobody has, for the time of a lease.
    fn take(&mut self, context: &Context) -> Option<Taken>;
    /// Removes a job; `false` if its lease has ended and another worker has it, or it is done.
    fn done(&mut self, id: u64, attempt: u32) -> bool;
    /// How many jobs are not done.
    fn left(&self) -> usize;
}

#[derive(Serialize, Deserialize)]
struct Job {
    text: String,
    attempt: u32,
    /// Until then a worker has it, by ordered time.
    leased_until: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Jobs {
    pushed: u64,
    waiting: BTreeMap<u64, Job>,
}

impl Queue for Jobs {
    fn push(&mut self, text: String) -> u64 {
        self.pushed += 1;
        self.waiting.insert(self.pushed, Job { text, attempt: 0, leased_until: 0 });
        self.pushed
    }

    fn take(&mut self, context: &Context) -> Option<Taken> {
        let now = context.now();
        let (&id, job) = self.waiting.iter_mut().find(|(_, job)| Time(job.leased_until) <= now)?;
        job.attempt += 1;
        job.leased_until = (now + LEASE).0;
        Some(Taken { id, attempt: job.attempt, text: job.text.clone() })
    }

    fn done(&mut self, id: u64, attempt: u32) -> bool {
        let holds = self.waiting.get(&id).is_some_and(|job| job.attempt == attempt);
        if holds {
            self.waiting.remove(&id);
        }
        holds
    }

    fn left(&self) -> usize {
        self.waiting.len()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let rings = steadfast::free_ring_addresses(3);

    let nodes = start(folder.path(), &rings)?;
    let queue = connect(&nodes)?;
    let mut pushed = Vec::new();
    for number in 1..=20 {
        pushed.push(queue.push(format!("job {number}"))?);
    }
    let mut done = Vec::new();
    for _ in 0..7 {
        let job = queue.take()?.ok_or("a job waits")?;
        assert!(queue.done(job.id, job.attempt)?, "the worker holds the job");
        done.push(job.id);
    }
    let abandoned = queue.take()?.ok_or("a job waits")?;
    println!("20 jobs are pushed, 7 are done, {} is at work; all nodes stop", abandoned.text);
    for node in nodes {
        node.stop()?;
    }

    let nodes = start(folder.path(), &rings)?;
    let queue = connect(&nodes)?;
    println!("the nodes are back, {} jobs are left", queue.left()?);
    pushed.push(queue.push("job 21".into())?);
    let deadline = Instant::now() + TIMEOUT;
    while queue.left()? > 0 {
        assert!(Instant::now() < deadline, "jobs do not come");
        let Some(job) = queue.take()? else {
            thread::sleep(PAUSE); // the last job is still leased
            continue;
        };
        if queue.done(job.id, job.attempt)? {
            done.push(job.id);
        }
    }
    assert!(!queue.done(abandoned.id, abandoned.attempt)?, "its first worker is too late");

    done.sort_unstable();
    assert_eq!(done, pushed, "each job was done once, and none is lost");
    println!("{} jobs are done, each once", done.len());
    Ok(())
}

/// Starts three nodes, each with its folders, and a replica of the queue on disk at each.
fn start(folder: &Path, rings: &[SocketAddr]) -> Result<Vec<Node>, Box<dyn Error>> {
    let options = HostOptions::default().on_disk();
    let mut nodes = Vec::new();
    for id in 1..=3 {
        let mut config = NodeConfig::member(NodeId(id), rings);
        config.data_dir = Some(folder.join(format!("node-{id}/data")));
        config.storage = Some(folder.join(format!("node-{id}/store")));
        let node = Node::start(config)?;
        node.host("queue", options, || QueueService::new(Jobs::default()))?;
        nodes.push(node);
    }
    Ok(nodes)
}

fn connect(nodes: &[Node]) -> Result<QueueClient, Box<dyn Error>> {
    let client =
        Client::connect(nodes.iter().filter_map(Node::client_address).collect::<Vec<_>>())?;
    Ok(QueueClient::new(&client, "queue").within(TIMEOUT))
}
