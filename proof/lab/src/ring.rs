//! The ring itself, without clients or services: `steadfast bench ring` over a matrix of sizes,
//! senders, levels and paces, with a token that parks and with one that always circulates as in the
//! paper.
//!
//! One cluster runs at a time: an idle classic ring alone keeps a processor busy. The floor, a UDP
//! round trip between two processors, is measured before, between and after.

use std::time::Duration;

use node::bench::{Ask, Level, Pace, Until};
use serde_json::{Value, json};
use steadfast::NodeId;

use harness::cluster::{Cluster, Plan, Where};
use harness::echo::{Transport, Waits};
use harness::figures::Times;
use harness::floor::EchoProcess;
use harness::protect::Protect;
use harness::{Experiment, Outcome, Run, Table, bail, ensure, machine};

/// Rounds of the floor, each time.
const ROUNDS: usize = 3_000;

/// A node answers, or tells how far it is, well within this time.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The ring itself: latency and throughput by size, senders, level and pace, parked and classic.
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
    /// The protected parts of the cluster.
    #[arg(long, value_enum, default_value_t)]
    protect: Protect,
    #[command(flatten)]
    at: Where,
}

/// Whether the token always circulates, or parks when nobody wants it.
const VARIANTS: [(&str, bool); 2] = [("parked", false), ("classic", true)];

impl Experiment for Options {
    const NAME: &'static str = "ring";
    const SMOKE: &'static str = "--nodes 3 --senders 1 --size 64 --seconds 0.1";

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.senders.iter().any(|senders| *senders == 0 || *senders > self.nodes) {
            bail!("--senders: 1 to {} of the nodes can send", self.nodes);
        }
        run.begin(&format!(
            "{} node processes, placed by the scheduler; times in µs; latency until all have it \
             (pace one), until own delivery (full); send: waited to leave",
            self.nodes
        ));
        let table = run.table(
            "ring:<8, pace:12, size:7, senders:9, level:8, msgs/s=msgs_s:10.0, n:9, \
             lat p50=p50_us:9, lat p99=p99_us:9, max=max_us:9, send p50=send_p50_us:9, verified:10",
        );
        floor(self, &table)?;
        for variant in VARIANTS {
            measure(self, variant, &table)?;
            floor(self, &table)?;
        }
        Ok(())
    }
}

fn floor(options: &Options, table: &Table) -> Outcome<()> {
    let Some((own, other)) = machine::two_cores()? else { return Ok(()) };
    for size in &options.size {
        let size = *size as usize;
        let mut echo = EchoProcess::start(Transport::Udp, size, Some(other), Waits::Asleep)?;
        let mut round = echo.rounds(size);
        let mut times = Times::default();
        machine::while_on(own, || {
            times.measure_if(false, ROUNDS / 10, &mut round)?;
            times.measure(ROUNDS, &mut round)
        })??;
        table.row(&times.summary().ok_or("nothing was measured")?.json(&json!({
            "peer": "floor", "measure": "echo", "transport": "udp", "cores": "two", "size": size,
            "ring": "floor", "pace": "UDP echo",
        })));
    }
    Ok(())
}

fn measure(options: &Options, (name, classic): (&str, bool), table: &Table) -> Outcome<()> {
    let plan = Plan {
        protect: options.protect,
        placement: options.at.placement(),
        classic,
        ..Plan::of(options.nodes, options.nodes, &["inline"])
    };
    let cluster = Cluster::start(plan)?;
    let mut node = cluster.node(NodeId(1))?;
    node.set_timeout(Some(TIMEOUT))?;
    for ask in asks(options) {
        let outcome = node.bench(&ask, |_| {})?;
        ensure!(outcome.is_verified(), "lost, corrupt or in another order: {outcome:?}");
        let mut line = outcome.line();
        line.insert("ring".into(), json!(name));
        table.row(&Value::Object(line));
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
