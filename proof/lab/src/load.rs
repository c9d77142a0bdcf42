//! How many calls a second a group answers when many clients call at once.
//!
//! All clients are tasks of one thread of this process, as a server that calls on behalf of many
//! users would be. Each keeps `depth` calls under way and asks anew as soon as one is answered.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::builder::PossibleValuesParser;
use serde_json::json;
use steadfast::{AsyncClient, Invocation};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};

use harness::cluster::{Cluster, Plan, Where};
use harness::echo::ECHO;
use harness::figures::{Summary, Times};
use harness::{Experiment, Outcome, Run, bail};

/// Before anything is counted: connections are made and caches warm by then.
const WARM: Duration = Duration::from_millis(500);
const DEADLINE: Duration = Duration::from_secs(10);
/// The called groups: title, group. The last one needs a folder.
const GROUPS: [(&str, &str); 7] = [
    ("stateless", "stateless"),
    ("active", "active"),
    ("agreed", "agreed"),
    ("held by majority", "inline"),
    ("safe", "safe"),
    ("majority, on a thread", "thread"),
    ("majority, on disk", "disk"),
];

/// How many calls a second a group answers when many clients call at once.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Clients, each with a connection and a session of its own.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Calls that each client keeps under way, 1 to 64; several: one measurement each.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16],
          value_parser = clap::value_parser!(u64).range(1..=wire::limits::MAX_SESSION_WINDOW))]
    depth: Vec<u64>,
    /// Only these groups, by name; all if none is named.
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(GROUPS.map(|it| it.1)))]
    group: Vec<String>,
    /// Bytes of request and reply.
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// How long each is measured, in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How often all are measured, in turns.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Node processes.
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// Replicas of the group.
    #[arg(long, default_value_t = 3)]
    replicas: u32,
    /// Measures a group on disk too, whose nodes keep it here: a folder of its own is made there
    /// and removed.
    #[arg(long, value_name = "FOLDER")]
    storage: Option<PathBuf>,
    #[command(flatten)]
    at: Where,
}

/// The state that all clients share.
struct Meter {
    group: &'static str,
    body: Bytes,
    /// Calls that begin and end between these are counted.
    from: Instant,
    until: Instant,
    times: RefCell<Times>,
}

impl Experiment for Options {
    const NAME: &'static str = "load";
    const SMOKE: &'static str = "--clients 4 --depth 4 --seconds 1 --group inline,stateless";

    fn run(&self, run: &Run) -> Outcome<()> {
        let names = GROUPS.map(|(_, group)| group);
        let kept = names.len() - usize::from(self.storage.is_none());
        let unkept = |group: &&String| !names[..kept].contains(&group.as_str());
        if let Some(group) = self.group.iter().find(unkept) {
            bail!("the group `{group}` is kept in a folder: say in which, with --storage");
        }
        let cluster = Cluster::start(Plan {
            placement: self.at.placement(),
            storage: self.storage.clone(),
            ..Plan::of(self.nodes, self.replicas, &names[..kept])
        })?;
        run.begin(&format!(
            "{} nodes, {} replicas, {} clients in one thread, {} bytes each way, {} s each; times \
             in µs",
            self.nodes, self.replicas, self.clients, self.size, self.seconds
        ));
        let table = run.table(
            "=title:<24, depth:7, calls/s=calls_s:12.0, p50=p50_us:9.1, p99=p99_us:9.1, \
             p99.9=p999_us:9.1, max=max_us:9.0",
        );
        for _ in 0..self.rounds {
            for &depth in &self.depth {
                let wanted =
                    |group: &str| self.group.is_empty() || self.group.iter().any(|it| it == group);
                let groups = GROUPS.into_iter().take(kept);
                for (title, group) in groups.filter(|(_, group)| wanted(group)) {
                    let summary = measure(self, cluster.clients(), group, depth)?;
                    table.row(&summary.json(&json!({
                        "peer": "steadfast", "measure": "load", "title": title, "group": group,
                        "k": self.replicas, "nodes": self.nodes, "clients": self.clients,
                        "depth": depth, "size": self.size,
                        "calls_s": (summary.n as f64 / self.seconds as f64).round(),
                    })));
                }
            }
        }
        Ok(())
    }
}

fn measure(
    options: &Options,
    nodes: Vec<SocketAddr>,
    group: &'static str,
    depth: u64,
) -> Outcome<Summary> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let count = options.clients;
    let body = Bytes::from(vec![7; options.size]);
    let span = Duration::from_secs(options.seconds);
    let times = LocalSet::new().block_on(&runtime, async move {
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(AsyncClient::connect(nodes.clone()).await?);
        }
        let from = Instant::now() + WARM;
        let meter =
            Rc::new(Meter { group, body, from, until: from + span, times: RefCell::default() });
        let mut callers = JoinSet::new();
        for client in clients {
            for _ in 0..depth {
                callers.spawn_local(call(client.clone(), meter.clone()));
            }
        }
        while let Some(ended) = callers.join_next().await {
            ended??;
        }
        Outcome::Ok(meter.times.take())
    })?;
    Ok(times.summary().ok_or("no call was answered")?)
}

/// Calls until the time is over. One that fails ends the experiment: nothing here gives a reason
/// to.
async fn call(client: AsyncClient, meter: Rc<Meter>) -> Outcome<()> {
    loop {
        let start = Instant::now();
        if start >= meter.until {
            return Ok(());
        }
        let reply = client
            .call(Invocation::new(meter.group, ECHO).body(meter.body.clone()).within(DEADLINE))
            .await?;
        if reply != meter.body {
            return Err("the echo is another".into());
        }
        if start >= meter.from && Instant::now() < meter.until {
            meter.times.borrow_mut().push(start.elapsed());
        }
    }
}
