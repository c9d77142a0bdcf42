//! What a crowd costs: a node that has thousands of groups and sessions.
//!
//! Three times the cluster is looked at while nobody calls: with one group and no session, with all groups, and when every client
//! has made its call and gone. A session outlives its connection, as it must: its client may come back with a retry.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;
use steadfast::{AsyncClient, NodeId};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::cluster::{Cluster, Plan};
use crate::echo::ECHO;
use crate::idle::{Usage, usage};
use crate::{Outcome, machine};

/// Clients that are connected at a time.
const AT_ONCE: usize = 64;
/// After the start, and after the calls: what belongs to them is over by then.
const SETTLE: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_secs(20);

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
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Outcome<()> {
    if options.json {
        eprintln!("on {}", machine::description());
    } else {
        println!(
            "on {}; {} nodes with a replica of every group, {} bytes each way; each watched for {} s; took: \
             until all replicas were there, or all calls answered",
            machine::description(),
            options.nodes,
            options.size,
            options.seconds
        );
        println!(
            "{:>8}{:>10}{:>6}{:>13}{:>16}{:>14}{:>8}",
            "groups", "sessions", "node", "memory MiB", "% of a core", "datagrams/s", "took s"
        );
    }
    let one = start(options, 1)?;
    watch(options, &one.0, &Crowd { groups: 1, sessions: 0, took: one.1 })?;
    drop(one);
    let (cluster, took) = start(options, options.groups)?;
    let crowd = Crowd { groups: options.groups, sessions: 0, took };
    let none = watch(options, &cluster, &crowd)?;
    let began = Instant::now();
    call_all(options, &cluster.clients())?;
    let crowd = Crowd { sessions: options.sessions, took: began.elapsed(), ..crowd };
    let some = watch(options, &cluster, &crowd)?;
    if !options.json {
        let more =
            |(before, after): (&Usage, &Usage)| after.memory_kib.saturating_sub(before.memory_kib);
        let most = none.iter().zip(&some).map(more).max().unwrap_or(0) << 10;
        println!("{} bytes a session at the most", most / options.sessions.max(1));
    }
    Ok(())
}

/// What there is while a cluster is watched.
struct Crowd {
    groups: u64,
    sessions: u64,
    /// Until all replicas were there, or all calls answered.
    took: Duration,
}

/// Names that a child knows how to host.
fn names(options: &Options, count: u64) -> &'static [&'static str] {
    let how = if options.threads { "thread" } else { "inline" };
    // Plans are made of names that live as long as the program; these are made once or twice in it.
    let names = (0..count).map(|number| &*format!("{how}-{number}").leak());
    names.collect::<Vec<&str>>().leak()
}

/// A cluster with so many groups, and how long it took until all had their replicas.
fn start(options: &Options, groups: u64) -> Outcome<(Cluster, Duration)> {
    let began = Instant::now();
    let cluster = Cluster::start(Plan {
        nodes: options.nodes,
        replicas: options.nodes,
        groups: names(options, groups),
        ..Plan::default()
    })?;
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
    let reply = client.call(group, ECHO, false, body, DEADLINE).await;
    reply.map(drop).map_err(|error| format!("{group}: {error}"))
}

/// Looks at all nodes for a while, tells what was seen, and returns what was used at the end.
fn watch(options: &Options, cluster: &Cluster, crowd: &Crowd) -> Outcome<Vec<Usage>> {
    thread::sleep(SETTLE);
    let ids: Vec<NodeId> = (1..=options.nodes).map(NodeId).collect();
    let all = || ids.iter().map(|id| usage(cluster, *id)).collect::<Outcome<Vec<Usage>>>();
    let (before, start) = (all()?, Instant::now());
    thread::sleep(Duration::from_secs(options.seconds));
    let (seconds, after) = (start.elapsed().as_secs_f64(), all()?);
    for ((id, before), after) in ids.iter().zip(&before).zip(&after) {
        let percent = (after.ran - before.ran) as f64 / 1e7 / seconds;
        let datagrams = (after.datagrams - before.datagrams) as f64 / seconds;
        let memory = after.memory_kib as f64 / 1024.0;
        let Crowd { groups, sessions, took } = crowd;
        if options.json {
            println!(
                "{}",
                json!({
                    "peer": "steadfast", "measure": "crowd", "node": id.0, "nodes": options.nodes, "groups": groups,
                    "sessions": sessions, "threads": options.threads, "size": options.size, "memory_mib": memory,
                    "cpu_pct": percent, "datagrams_s": datagrams, "took_s": took.as_secs_f64(),
                })
            );
        } else {
            println!(
                "{groups:8}{sessions:10}{:>6}{memory:13.1}{percent:16.3}{datagrams:14.1}{:8.2}",
                id.to_string(),
                took.as_secs_f64()
            );
        }
    }
    Ok(after)
}
