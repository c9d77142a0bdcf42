//! FLARe 4.4, figure 6a: a client calls, the server is killed in the middle, and what that call takes longer depends on the
//! client's strategy.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::process::Signal;
use serde_json::json;
use steadfast::{Client, NodeId, Strategy};

use super::Options;
use crate::cluster::{Cluster, Plan};
use crate::echo::ECHO;
use crate::figures::quantile;
use crate::{Outcome, machine};

/// Calls of a run, and the one in which the server is killed.
const CALLS: usize = 10_000;
const KILLED_IN: usize = 5_001;

/// Far longer than any fail-over.
const DEADLINE: Duration = Duration::from_secs(2);

/// What the paper's clients saw, in milliseconds: "10.2 milliseconds" for static and proactive (4.2); for reactive it has a plot alone, above them.
const PAPER_MS: f64 = 10.2;

/// The groups that are called: stateless, and semi-active.
const GROUPS: &[&str] = &["stateless", "thread"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    Static,
    Reactive,
    Proactive,
}

impl By {
    fn strategy(self) -> Strategy {
        match self {
            By::Static => Strategy::Static,
            By::Reactive => Strategy::Reactive,
            By::Proactive => Strategy::Proactive,
        }
    }

    fn name(self) -> &'static str {
        match self {
            By::Static => "static",
            By::Reactive => "reactive",
            By::Proactive => "proactive",
        }
    }
}

/// What the calls of one strategy to one group took, in milliseconds.
#[derive(Default)]
struct Times {
    /// The medians of the calls before, and after.
    before: Vec<f64>,
    after: Vec<f64>,
    /// The call in which the server was killed.
    struck: Vec<f64>,
    failed: Vec<String>,
}

/// Strikes as often as the options say for each strategy and group, in turns.
pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    let plan = Plan {
        nodes: options.nodes,
        replicas: options.replicas,
        groups: GROUPS,
        placement: options.at.placement(),
        ..Plan::default()
    };
    let mut cluster = Cluster::start(plan)?;
    let mut all: BTreeMap<(usize, usize), Times> = BTreeMap::new();
    for _ in 0..options.kills {
        for (number, group) in GROUPS.iter().enumerate() {
            for (place, by) in options.strategy.iter().enumerate() {
                let times = all.entry((number, place)).or_default();
                one(&mut cluster, group, *by, times)?;
            }
        }
    }
    tell(options, &machine, &all);
    match all.values().flat_map(|times| &times.failed).next() {
        Some(error) => Err(format!("calls failed: {error}").into()),
        None => Ok(()),
    }
}

/// One run: 10,000 calls of a new client, and the node that answers them killed in call 5,001.
fn one(cluster: &mut Cluster, group: &'static str, by: By, times: &mut Times) -> Outcome<()> {
    let client = Client::builder().strategy(by.strategy()).connect(cluster.clients())?;
    let body = Bytes::from_static(&[7; 64]);
    let mut halves = [Vec::new(), Vec::new()];
    let mut killed = None;
    for number in 1..=CALLS {
        if number == KILLED_IN {
            let node = first_target(cluster, &client)?;
            cluster.signal(node, Signal::KILL)?;
            killed = Some(node);
        }
        let begun = Instant::now();
        let reply = client.call(group, ECHO, false, body.clone(), DEADLINE);
        let took = begun.elapsed().as_secs_f64() * 1e3;
        match reply {
            Err(error) => times.failed.push(format!("call {number}, {}: {error}", by.name())),
            Ok(_) if number == KILLED_IN => times.struck.push(took),
            Ok(_) => halves[usize::from(number > KILLED_IN)].push(took),
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

fn tell(options: &Options, machine: &str, all: &BTreeMap<(usize, usize), Times>) {
    if options.json {
        eprintln!("on {machine}");
    } else {
        println!(
            "on {machine}; {CALLS} calls in a row of 64 bytes, the node that answers killed in call {KILLED_IN}, {} times each; ms; the paper (FLARe 4.2, 4.4): \
             {PAPER_MS} for static and proactive, more for reactive",
            options.kills
        );
        println!(
            "{:12}{:11}{:>9}{:>9}{:>12}{:>9}{:>9}{:>8}{:>8}",
            "group", "strategy", "before", "after", "call 5,001", "p99", "worst", "paper", "failed"
        );
    }
    for ((group, place), times) in all {
        let (group, by) = (GROUPS[*group], options.strategy[*place]);
        let group = if group == "thread" { "semi-active" } else { group };
        let at = |values: &[f64], share| quantile(values.to_vec(), share).unwrap_or_default();
        let (before, after) = (at(&times.before, 0.5), at(&times.after, 0.5));
        let (p50, p99, worst) =
            (at(&times.struck, 0.5), at(&times.struck, 0.99), at(&times.struck, 1.0));
        let failed = times.failed.len();
        if options.json {
            println!(
                "{}",
                json!({
                    "peer": "steadfast", "measure": "strategy", "group": group, "strategy": by.name(), "n": times.struck.len(),
                    "before_ms": before, "after_ms": after, "struck_p50_ms": p50, "struck_p99_ms": p99, "struck_worst_ms": worst,
                    "paper_ms": if by == By::Reactive { None } else { Some(PAPER_MS) }, "failed_calls": failed,
                })
            );
        } else {
            let paper = if by == By::Reactive { ">10.2" } else { "10.2" };
            println!(
                "{group:12}{:11}{before:9.3}{after:9.3}{p50:12.2}{p99:9.2}{worst:9.2}{paper:>8}{failed:8}",
                by.name()
            );
        }
    }
}
