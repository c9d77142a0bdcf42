//! FLARe 4.4, figure 6a: a client calls, the server is killed in the middle, and what that call
//! takes longer depends on the client's strategy.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::process::Signal;
use serde_json::json;
use steadfast::{Client, Invocation, NodeId, Policy, Strategy};

use harness::cluster::{Cluster, Plan, Where};
use harness::echo::ECHO;
use harness::figures::quantile;
use harness::{Experiment, Outcome, Run, name};

/// Calls of a run, and the one in which the server is killed.
const CALLS: usize = 10_000;
const KILLED_IN: usize = 5_001;

/// Far longer than any fail-over.
const DEADLINE: Duration = Duration::from_secs(2);

/// The result of the paper's clients, in milliseconds: "10.2 milliseconds" for static and proactive
/// (4.2). For reactive it has a plot alone, above them.
const PAPER_MS: f64 = 10.2;

/// The groups that are called: stateless, and semi-active.
const GROUPS: &[&str] = &["stateless", "thread"];

/// FLARe 4.4: what the call in which the server dies takes longer, by the client's strategy.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only this strategy; several: in turns. All by default.
    #[arg(long, value_enum, value_name = "STRATEGY", default_values_t = By::ALL)]
    strategy: Vec<By>,
    /// How often the node that answers is killed, by each strategy in each group.
    #[arg(long, default_value_t = 20)]
    kills: usize,
    /// Node processes.
    #[arg(long, default_value_t = 5)]
    nodes: u32,
    /// Replicas of the group.
    #[arg(long, default_value_t = 3)]
    replicas: u32,
    #[command(flatten)]
    at: Where,
}

/// How a client comes by its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Static,
    Reactive,
    Proactive,
}

impl By {
    const ALL: [By; 3] = [By::Static, By::Reactive, By::Proactive];

    fn strategy(self) -> Strategy {
        match self {
            By::Static => Strategy::Static,
            By::Reactive => Strategy::Reactive,
            By::Proactive => Strategy::Proactive,
        }
    }
}

/// The times of the calls of one strategy to one group, in milliseconds.
#[derive(Default)]
struct Times {
    /// The medians of the calls before, and after.
    before: Vec<f64>,
    after: Vec<f64>,
    /// The call in which the server was killed.
    struck: Vec<f64>,
    failed: Vec<String>,
}

impl Experiment for Options {
    const NAME: &'static str = "strategies";
    const SMOKE: &'static str = "--kills 1 --nodes 3 --strategy proactive";

    fn run(&self, run: &Run) -> Outcome<()> {
        let mut cluster = Cluster::start(Plan {
            placement: self.at.placement(),
            ..Plan::of(self.nodes, self.replicas, GROUPS)
        })?;
        let plan = run.sized((CALLS, KILLED_IN), (CALLS / 50, KILLED_IN / 50));
        let mut all: BTreeMap<(usize, usize), Times> = BTreeMap::new();
        for _ in 0..self.kills {
            for (number, group) in GROUPS.iter().enumerate() {
                for (place, by) in self.strategy.iter().enumerate() {
                    let times = all.entry((number, place)).or_default();
                    one(&mut cluster, group, *by, plan, times)?;
                }
            }
        }
        self.tell(run, plan, &all);
        match all.values().flat_map(|times| &times.failed).next() {
            Some(error) => Err(format!("calls failed: {error}").into()),
            None => Ok(()),
        }
    }
}

impl Options {
    fn tell(
        &self,
        run: &Run,
        (calls, killed): (usize, usize),
        all: &BTreeMap<(usize, usize), Times>,
    ) {
        run.begin(&format!(
            "{calls} calls in a row of 64 bytes, the node that answers killed in call {killed}, \
             {} times each; ms; the paper (FLARe 4.2, 4.4): {PAPER_MS} for static and proactive, \
             more for reactive",
            self.kills
        ));
        let table = run.table(
            "group:<12, strategy:<11, before=before_ms:9.3, after=after_ms:9.3, \
             that call=struck_p50_ms:12.2, p99=struck_p99_ms:9.2, worst=struck_worst_ms:9.2, \
             paper=paper_ms:8.1, failed=failed_calls:8",
        );
        for ((group, place), times) in all {
            let (group, by) = (GROUPS[*group], self.strategy[*place]);
            let at = |values: &[f64], share| quantile(values.to_vec(), share).unwrap_or_default();
            let struck = |share| at(&times.struck, share);
            table.row(&json!({
                "peer": "steadfast", "measure": "strategy", "strategy": name(by),
                "n": times.struck.len(),
                "group": if group == "thread" { "semi-active" } else { group },
                "before_ms": at(&times.before, 0.5), "after_ms": at(&times.after, 0.5),
                "struck_p50_ms": struck(0.5), "struck_p99_ms": struck(0.99),
                "struck_worst_ms": struck(1.0),
                "paper_ms": (by != By::Reactive).then_some(PAPER_MS),
                "failed_calls": times.failed.len(),
            }));
        }
    }
}

/// One run: so many calls of a new client, and the node that answers them killed in one of them.
fn one(
    cluster: &mut Cluster,
    group: &'static str,
    by: By,
    (calls, killed_in): (usize, usize),
    times: &mut Times,
) -> Outcome<()> {
    let policy = Policy::default().strategy(by.strategy());
    let client = Client::builder().policy(policy).connect(cluster.clients())?;
    let body = Bytes::from_static(&[7; 64]);
    let mut halves = [Vec::new(), Vec::new()];
    let mut killed = None;
    for number in 1..=calls {
        if number == killed_in {
            let node = first_target(cluster, &client)?;
            cluster.signal(node, Signal::KILL)?;
            killed = Some(node);
        }
        let begun = Instant::now();
        let reply = client.call(Invocation::new(group, ECHO).body(body.clone()).within(DEADLINE));
        let took = begun.elapsed().as_secs_f64() * 1e3;
        match reply {
            Err(error) => times.failed.push(format!("call {number}, {}: {error}", name(by))),
            Ok(_) if number == killed_in => times.struck.push(took),
            Ok(_) => halves[usize::from(number > killed_in)].push(took),
        }
    }
    let median = |half: &[f64]| quantile(half.to_vec(), 0.5).unwrap_or_default();
    times.before.push(median(&halves[0]));
    times.after.push(median(&halves[1]));
    cluster.start_node(killed.ok_or("nobody was killed")?)?;
    cluster.wait_until_whole()
}

/// The node to which the client's calls go.
fn first_target(cluster: &Cluster, client: &Client) -> Outcome<NodeId> {
    let events = client.take_events();
    let first = events.iter().rev().find_map(|(_, event)| match event {
        steadfast::events::ClientEvent::View { first, .. } => *first,
        _ => None,
    });
    let first: SocketAddr = first.ok_or("the client knows no target")?;
    let place = cluster.clients().iter().position(|address| *address == first);
    Ok(NodeId(place.ok_or("the first target is no node of the cluster")? as u32 + 1))
}
