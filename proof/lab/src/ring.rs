//! The ring itself, without clients or services: `steadfast bench ring` over a matrix of sizes, senders,
//! levels and paces, with a token that parks and with one that always circulates as in the paper.
//!
//! One cluster runs at a time: an idle classic ring alone keeps a processor busy. The floor, a UDP round trip
//! between two processors, is measured before, between and after.

use std::time::{Duration, Instant};

use node::admin::Client as Admin;
use node::bench::{Ask, Level, Outcome as Measured, Pace, Until};
use serde_json::{Value, json};
use steadfast::NodeId;

use crate::cluster::{Cluster, Plan, Where};
use crate::echo::{EchoProcess, Transport, Waits};
use crate::figures::Times;
use crate::protect::Protect;
use crate::{Outcome, machine};

/// Rounds of the floor, each time.
const ROUNDS: usize = 3_000;

/// A node answers, or tells how far it is, well within this time.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Node processes.
    #[arg(long, default_value_t = 4)]
    nodes: u32,
    /// How many of them send at a time.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3])]
    senders: Vec<u32>,
    /// Bytes of an ordered message.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1024, 8192])]
    size: Vec<u32>,
    /// Seconds of each measure.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Messages of sparse traffic, one every 200 ms, from one sender: 0 leaves that out.
    #[arg(long, default_value_t = 0)]
    sparse: u64,
    /// What of the cluster is protected.
    #[arg(long, value_enum, default_value_t)]
    protect: Protect,
    #[command(flatten)]
    at: Where,
}

/// Which way the token goes when nobody wants it.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    parking: bool,
}

const VARIANTS: [Variant; 2] =
    [Variant { name: "parked", parking: true }, Variant { name: "classic", parking: false }];

pub fn run(options: &Options) -> Outcome<()> {
    if options.senders.iter().any(|senders| *senders == 0 || *senders > options.nodes) {
        return Err(format!("--senders: 1 to {} of the nodes can send", options.nodes).into());
    }
    eprintln!("on {}", machine::description());
    eprintln!("{} node processes on loopback, placed by the scheduler; times in µs", options.nodes);
    eprintln!(
        "lat: until all have it (pace one), until own delivery (full); send: waited to leave"
    );
    eprintln!(
        "{:8}{:>12}{:>7}{:>9}{:>8}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}",
        "ring",
        "pace",
        "size",
        "senders",
        "level",
        "msgs/s",
        "n",
        "lat p50",
        "lat p99",
        "max",
        "send p50",
        "verified"
    );
    floor(options)?;
    for variant in VARIANTS {
        measure(options, variant)?;
        floor(options)?;
    }
    Ok(())
}

fn floor(options: &Options) -> Outcome<()> {
    let Some((own, other)) = machine::two_cores()? else { return Ok(()) };
    for size in &options.size {
        let size = *size as usize;
        let mut echo = EchoProcess::start(Transport::Udp, size, Some(other), Waits::Asleep)?;
        let mut round = echo.rounds(size);
        let mut times = Times::default();
        machine::while_on(own, || -> Outcome<()> {
            for i in 0..ROUNDS + ROUNDS / 10 {
                let start = Instant::now();
                round()?;
                if i >= ROUNDS / 10 {
                    times.push(start.elapsed());
                }
            }
            Ok(())
        })??;
        let summary = times.summary().ok_or("nothing was measured")?;
        let names = json!({"peer": "floor", "measure": "echo", "transport": "udp", "cores": "two", "size": size});
        println!("{}", summary.json(&names));
        eprintln!(
            "{:8}{:>12}{size:>7}{:>9}{:>8}{:>10}{:>9}{:>9.1}{:>9.1}{:>9.0}",
            "floor", "UDP echo", "-", "-", "-", summary.n, summary.p50, summary.p99, summary.max
        );
    }
    Ok(())
}

fn measure(options: &Options, variant: Variant) -> Outcome<()> {
    let plan = Plan {
        nodes: options.nodes,
        replicas: options.nodes,
        groups: &["inline"],
        protect: options.protect,
        placement: options.at.placement(),
        parking: variant.parking,
        ..Plan::default()
    };
    let cluster = Cluster::start(plan)?;
    let mut node = Admin::connect(cluster.admin(NodeId(1)))?;
    node.set_timeout(Some(PATIENCE))?;
    for ask in asks(options) {
        let outcome = node.bench(&ask, |_| {})?;
        if !outcome.is_verified() {
            return Err(format!("lost, corrupt or in another order: {outcome:?}").into());
        }
        show(variant, &outcome);
    }
    Ok(())
}

fn asks(options: &Options) -> Vec<Ask> {
    let span_ms = (options.seconds * 1_000.0) as u64;
    let ask = |senders: u32, size, level| Ask {
        senders: (1..=senders).map(NodeId).collect(),
        size,
        count: 100_000_000,
        warm: 100,
        span_ms,
        level,
        pace: Pace::Window(1),
        until: Until::All,
    };
    let mut asks = Vec::new();
    for level in [Level::Agreed, Level::Safe] {
        for size in &options.size {
            for senders in &options.senders {
                let one = ask(*senders, *size, level);
                asks.push(Ask { pace: Pace::Full, until: Until::Own, ..one.clone() });
                asks.push(one);
            }
            if options.sparse > 0 {
                let (count, span_ms) = (options.sparse + 1, (options.sparse + 5) * 200);
                let pace = Pace::EveryUs(200_000);
                asks.push(Ask { count, warm: 1, span_ms, pace, ..ask(1, *size, level) });
            }
        }
    }
    asks
}

fn show(variant: Variant, outcome: &Measured) {
    let mut line = outcome.line();
    line.insert("ring".into(), json!(variant.name));
    // A measure that was too short for its first messages to be over has none.
    let figure = |name: &str| line.get(name).map_or("-".into(), Value::to_string);
    let ask = &outcome.ask;
    eprintln!(
        "{:8}{:>12}{:>7}{:>9}{:>8}{:>10.0}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}",
        variant.name,
        ask.pace.to_string(),
        ask.size,
        ask.senders.len(),
        format!("{:?}", ask.level).to_lowercase(),
        outcome.msgs_s,
        figure("n"),
        figure("p50_us"),
        figure("p99_us"),
        figure("max_us"),
        figure("send_p50_us"),
        outcome.is_verified(),
    );
    println!("{}", Value::Object(line));
}
