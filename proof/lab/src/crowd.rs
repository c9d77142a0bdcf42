//! The cost of a crowd: a node that has thousands of groups and sessions.
//!
//! Three times the cluster is looked at while nobody calls: with one group and no session, with all
//! groups, and when every client has made its call and gone. A session outlives its connection, as
//! it must: its client may come back with a retry.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;
use steadfast::{AsyncClient, Invocation};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use harness::cluster::{Cluster, Plan};
use harness::echo::ECHO;
use harness::report::row;
use harness::usage::{self, Used};
use harness::{Experiment, Outcome, Run, Table};

/// Clients that are connected at a time.
const AT_ONCE: usize = 64;
/// Time after the start, and after the calls, until their effects are over.
const SETTLE: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_secs(20);

/// The cost of thousands of sessions and groups for a node: memory, and CPU while nobody calls.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Groups, each with a replica at every node.
    #[arg(long, default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(1..=wire::limits::MAX_GROUPS as u64))]
    groups: u64,
    /// Sessions: clients that call once, over all groups in turn.
    #[arg(long, default_value_t = 10_000)]
    sessions: u64,
    /// Bytes of request and reply. The last reply of a session is kept.
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Node processes.
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// Every replica on a thread of its own, else on the data plane's.
    #[arg(long)]
    threads: bool,
    /// How long to watch each time, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

impl Experiment for Options {
    const NAME: &'static str = "crowd";
    const SMOKE: &'static str = "--groups 20 --sessions 50 --seconds 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        run.begin(&format!(
            "{} nodes with a replica of every group, {} bytes each way; each watched for {} s; \
             took: until all replicas were there, or all calls answered",
            self.nodes, self.size, self.seconds
        ));
        let table = run.table(
            "groups:8, sessions:10, node:6, memory MiB=memory_mib:13.1, % of a core=cpu_pct:16.3, \
             datagrams/s=datagrams_s:14.1, took s=took_s:8.2",
        );
        let settle = run.sized(SETTLE, Duration::ZERO);
        let watch = |cluster: &Cluster, crowd: &Crowd| {
            thread::sleep(settle);
            watch(self, cluster, crowd, &table)
        };
        let one = start(self, 1)?;
        watch(&one.0, &Crowd { groups: 1, sessions: 0, took: one.1 })?;
        drop(one);
        let (cluster, took) = start(self, self.groups)?;
        let crowd = Crowd { groups: self.groups, sessions: 0, took };
        let none = watch(&cluster, &crowd)?;
        let began = Instant::now();
        call_all(self, &cluster.clients())?;
        let crowd = Crowd { sessions: self.sessions, took: began.elapsed(), ..crowd };
        let some = watch(&cluster, &crowd)?;
        let more =
            |(before, after): (&Used, &Used)| after.memory_kib.saturating_sub(before.memory_kib);
        let most = none.iter().zip(&some).map(more).max().unwrap_or(0) << 10;
        let bytes = most / self.sessions.max(1);
        let line = json!({ "measure": "crowd-session", "bytes": bytes });
        run.tell(&line, || format!("{bytes} bytes a session at the most"));
        Ok(())
    }
}

/// The groups and sessions of a cluster that is watched.
struct Crowd {
    groups: u64,
    sessions: u64,
    /// Until all replicas were there, or all calls answered.
    took: Duration,
}

/// Names that a child knows how to host.
fn names(options: &Options, count: u64) -> Vec<&'static str> {
    let how = if options.threads { "thread" } else { "inline" };
    // A plan's names live as long as the program; these are made once or twice in it.
    (0..count).map(|number| &*format!("{how}-{number}").leak()).collect()
}

/// A cluster with so many groups, and how long it took until all had their replicas.
fn start(options: &Options, groups: u64) -> Outcome<(Cluster, Duration)> {
    let began = Instant::now();
    let cluster = Cluster::start(Plan::of(options.nodes, options.nodes, &names(options, groups)))?;
    Ok((cluster, began.elapsed()))
}

/// Every client calls once, and goes.
fn call_all(options: &Options, nodes: &[SocketAddr]) -> Outcome<()> {
    let groups = names(options, options.groups);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let body = Bytes::from(vec![7; options.size]);
    runtime.block_on(async {
        let mut callers = JoinSet::new();
        for number in 0..options.sessions {
            if callers.len() == AT_ONCE
                && let Some(ended) = callers.join_next().await
            {
                ended??;
            }
            let group = groups[number as usize % groups.len()];
            callers.spawn(call(nodes.to_vec(), group, body.clone()));
        }
        while let Some(ended) = callers.join_next().await {
            ended??;
        }
        Ok(())
    })
}

async fn call(nodes: Vec<SocketAddr>, group: &str, body: Bytes) -> Result<(), String> {
    let client = AsyncClient::connect(nodes).await.map_err(|error| error.to_string())?;
    let reply = client.call(Invocation::new(group, ECHO).body(body).within(DEADLINE)).await;
    reply.map(drop).map_err(|error| format!("{group}: {error}"))
}

/// Watches all nodes for a while, prints the results, and returns them.
fn watch(options: &Options, cluster: &Cluster, crowd: &Crowd, table: &Table) -> Outcome<Vec<Used>> {
    let all = usage::watch(cluster, options.nodes, Duration::from_secs(options.seconds))?;
    for used in &all {
        table.row(&row(
            used.json(),
            json!({
                "measure": "crowd", "nodes": options.nodes, "groups": crowd.groups,
                "sessions": crowd.sessions, "threads": options.threads, "size": options.size,
                "took_s": crowd.took.as_secs_f64(),
            }),
        ));
    }
    Ok(all)
}
