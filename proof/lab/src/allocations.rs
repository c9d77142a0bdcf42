//! The memory that a call, and a message of the ring, request from every process on their way, in
//! steady state.
//!
//! The processes are this program, whose allocator counts. The requests of an idle cluster are
//! measured first, and subtracted.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use node::bench::{Ask, Level, Pace, Until};
use serde_json::json;
use steadfast::{Client, Invocation, NodeId};

use harness::allocator::{Allocated, allocated};
use harness::cluster::{Cluster, Plan};
use harness::echo::ECHO;
use harness::{Experiment, Outcome, Run, Table, ensure};

const DEADLINE: Duration = Duration::from_secs(5);
/// Time after the start, and between measures, until earlier effects are over.
const SETTLE: Duration = Duration::from_millis(500);
/// How long the idle cluster is watched.
const IDLE: Duration = Duration::from_secs(2);

/// Memory that a call and a message ask for, in every process on their way.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Calls of each kind.
    #[arg(long, default_value_t = 5_000)]
    calls: u32,
    /// Messages of the ring.
    #[arg(long, default_value_t = 20_000)]
    messages: u64,
    /// Bytes of request, reply and message.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Node processes.
    #[arg(long, default_value_t = 4)]
    nodes: u32,
    /// Replicas of each group.
    #[arg(long, default_value_t = 3)]
    replicas: u32,
}

/// The requests of each process up to a moment: this one first, then the nodes.
struct Snapshot {
    at: Instant,
    processes: Vec<Allocated>,
}

impl Snapshot {
    fn take(cluster: &mut Cluster) -> Outcome<Snapshot> {
        let nodes = cluster.allocated()?;
        // This process last: the requests for asking the nodes do not count in the next
        // measurement.
        let processes = [vec![allocated()], nodes].concat();
        Ok(Snapshot { at: Instant::now(), processes })
    }
}

/// The requests of each second while nobody calls: by process, count and bytes.
type Idle = Vec<(f64, f64)>;

impl Experiment for Options {
    const NAME: &'static str = "allocations";
    const SMOKE: &'static str = "--calls 50 --messages 50 --nodes 3";

    fn run(&self, run: &Run) -> Outcome<()> {
        let mut cluster =
            Cluster::start(Plan::of(self.nodes, self.replicas, &["agreed", "inline", "thread"]))?;
        let client = cluster.connect()?;
        run.begin(&format!(
            "{} nodes, {} replicas, {} bytes each way; allocations and bytes for each call or \
             message, less what an idle cluster asks for; node 0 is the client",
            self.nodes, self.replicas, self.size
        ));
        let table = run.table("=kind:<20, node:6, allocations=count:13.2, bytes:10.0");
        let (settle, watched) = run.sized((SETTLE, IDLE), (SETTLE / 10, IDLE / 10));
        let body = Bytes::from(vec![7; self.size]);
        let idle = idle(&mut cluster, settle, watched)?;
        for (title, group) in KINDS {
            // Caches, buffers and connections find their size.
            call(&client, group, &body, self.calls / 10 + 1)?;
            thread::sleep(settle);
            let before = Snapshot::take(&mut cluster)?;
            call(&client, group, &body, self.calls)?;
            let after = Snapshot::take(&mut cluster)?;
            self.tell(&table, title, &idle, (&before, &after), self.calls.into());
        }
        for (title, pace) in
            [("message, lone", Pace::Window(1)), ("message, full pace", Pace::Full)]
        {
            bench(&cluster, self, pace, self.messages / 10 + 1)?;
            thread::sleep(settle);
            let before = Snapshot::take(&mut cluster)?;
            let messages = bench(&cluster, self, pace, self.messages)?;
            let after = Snapshot::take(&mut cluster)?;
            self.tell(&table, title, &idle, (&before, &after), messages);
        }
        Ok(())
    }
}

impl Options {
    fn tell(
        &self,
        table: &Table,
        title: &str,
        idle: &Idle,
        (before, after): (&Snapshot, &Snapshot),
        times: u64,
    ) {
        let seconds = (after.at - before.at).as_secs_f64();
        let pairs = after.processes.iter().zip(&before.processes).zip(idle);
        for (node, ((after, before), (count, bytes))) in pairs.enumerate() {
            let more = *after - *before;
            let less = |all: u64, idle: f64| (all as f64 - idle * seconds).max(0.0) / times as f64;
            let (count, bytes) = (less(more.count, *count), less(more.bytes, *bytes));
            table.row(&json!({
                "peer": "steadfast", "measure": "allocations", "kind": title, "node": node,
                "size": self.size, "count": (count * 100.0).round() / 100.0, "bytes": bytes.round(),
            }));
        }
    }
}

/// The calls: title, group.
const KINDS: [(&str, &str); 3] =
    [("call, agreed", "agreed"), ("call, majority", "inline"), ("on a thread", "thread")];

fn idle(cluster: &mut Cluster, settle: Duration, watched: Duration) -> Outcome<Idle> {
    thread::sleep(settle);
    let before = Snapshot::take(cluster)?;
    thread::sleep(watched);
    let after = Snapshot::take(cluster)?;
    let seconds = (after.at - before.at).as_secs_f64();
    let rate = |(after, before): (&Allocated, &Allocated)| {
        let more = *after - *before;
        (more.count as f64 / seconds, more.bytes as f64 / seconds)
    };
    Ok(after.processes.iter().zip(&before.processes).map(rate).collect())
}

fn call(client: &Client, group: &str, body: &Bytes, calls: u32) -> Outcome<()> {
    for _ in 0..calls {
        client.call(Invocation::new(group, ECHO).body(body.clone()).within(DEADLINE))?;
    }
    Ok(())
}

/// One sender; returns how many messages it sent.
fn bench(cluster: &Cluster, options: &Options, pace: Pace, count: u64) -> Outcome<u64> {
    let ask = Ask {
        senders: vec![NodeId(1)],
        size: options.size as u32,
        count,
        warm: 1,
        span_ms: 60_000,
        level: Level::Agreed,
        pace,
        until: Until::All,
    };
    let mut node = cluster.node(NodeId(1))?;
    node.set_timeout(Some(Duration::from_secs(90)))?;
    let outcome = node.bench(&ask, |_| {})?;
    ensure!(outcome.is_verified(), "lost, corrupt or in another order: {outcome:?}");
    Ok(count)
}
