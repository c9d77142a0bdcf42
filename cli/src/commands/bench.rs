//! `steadfast bench ring`: measures latency and throughput of a running cluster's ring.
//!
//! - this file: the command line, and the loop over the measures
//! - `bench/plan.rs`: from the command line to the list of measures
//! - `bench/table.rs`: the table of results

mod plan;
mod table;

use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;
use std::time::Duration;

use steadfast::admin::{AdminError, Client as AdminClient};
use steadfast::bench::{Ask, Level, Outcome, Until, own_cost};
use steadfast::status::Status;

use super::at::At;
use super::{Failure, finish, print};
use plan::Pace;

/// The commands below `bench`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, after_help = FIRST)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// Measures a running cluster.
#[derive(clap::Subcommand)]
enum What {
    Ring(Box<Ring>),
}

const FIRST: &str = "\
Examples:
  steadfast bench ring --config node.toml      the usual measures, in a minute
  steadfast bench ring --help                  what is measured, and how";

const ABOUT: &str = "\
Measures the ring of a running cluster: latency and throughput of ordered messages. Every node
verifies every message.

The nodes send and check the messages themselves:
  1. The node that this command connects to orders a plan.
  2. The senders send from their data planes.
  3. Every node checks content and order of every message, and reports.
Each sender measures by its own clock. Clocks of different hosts are never compared.

THE BENCHMARK LOADS THE RING. All guarantees hold meanwhile, but calls queue behind its messages,
above all with --pace full. It ends by itself, on Ctrl-C, or when a node joins or leaves the ring.";

const EXAMPLES: &str = "\
Examples:
  steadfast bench ring                                     the usual measures, in a minute
  steadfast bench ring --config node.toml --size 1024 --senders 1,2,3 --pace full
  steadfast bench ring --connect 10.0.0.1:7101 --tls plant/admin-ops   through another host
  steadfast bench ring --pace every=200 --seconds 20       sparse traffic: one message every 200 ms
  steadfast bench ring --latency echo --level safe         until the farthest node's ordered answer
  steadfast bench ring --json | jq 'select(.level == \"safe\") | .p99_us'

Columns, each a time in microseconds from the message's creation:
  latency    to the event that --latency names; with --pace full to the sender's own delivery
  send       to its sending, when the token and the flow control allow it (a part of latency)
  own        to its delivery at the sender
  all        to the moment when the sender knows that every node has it

Every combination of sizes, senders, levels and paces is one measure.

Exit codes:
  0  every measure is complete, and every message was verified
  1  a measure failed, or a message was lost, corrupt or in another order: see standard error
  2  the command line or the configuration is wrong";

/// Latency and throughput of the ring of a running cluster, verified at every node.
#[derive(clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
struct Ring {
    #[command(flatten)]
    at: At,
    /// Bytes of an ordered message, with its header of 16 bytes.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [64, 1024, 8192],
          value_parser = clap::value_parser!(u32).range(16..=MAX_MESSAGE))]
    size: Vec<u32>,
    /// Number of senders in a measure. The ring's first members send.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_values_t = [1])]
    senders: Vec<usize>,
    /// The nodes that send in every measure, instead of --senders.
    #[arg(long, value_name = "NODE", value_delimiter = ',', conflicts_with = "senders")]
    from: Vec<u32>,
    /// When a message is delivered: agreed (in order), held (in order, and the sender learns at
    /// once which nodes have it), safe (in order, and once every node has it).
    #[arg(long, value_delimiter = ',', value_parser = plan::level, default_value = "agreed,safe")]
    level: Vec<Level>,
    /// When a sender sends its next message: one (after the previous one is complete), full (as
    /// soon as the ring has room), window=N (while fewer than N are under way), rate=N (N times
    /// a second), every=MS (every MS milliseconds).
    #[arg(long, value_delimiter = ',', value_parser = plan::pace, default_value = "one,full")]
    pace: Vec<Pace>,
    /// The event that ends a message's latency: own (its delivery at the sender), all (the sender
    /// knows that every node has it), echo (the farthest node's ordered answer is delivered).
    #[arg(long, value_parser = plan::until, default_value = "all")]
    latency: Until,
    /// The longest time of one measure.
    #[arg(long, value_name = "SECONDS", value_parser = plan::seconds, default_value = "2")]
    seconds: Duration,
    /// The most messages of each sender in one measure.
    #[arg(long, value_name = "MESSAGES")]
    count: Option<u64>,
    /// Messages that each sender sends first, unmeasured. Default: 100; with pauses of 20 ms or
    /// more between messages, 1.
    #[arg(long, value_name = "MESSAGES")]
    warm: Option<u64>,
    /// Print one line of JSON for each measure, instead of a table.
    #[arg(long)]
    json: bool,
}

/// The most bytes of one ordered message.
const MAX_MESSAGE: i64 = wire::limits::MAX_BODY as i64;

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    let What::Ring(ring) = &args.what;
    finish(measure(ring))
}

fn measure(args: &Ring) -> Result<(), Failure> {
    let mut node = args.at.connect()?;
    let status = node.status().map_err(Failure::failed)?;
    if let Some(why) = status.ring.no_quorum() {
        return Err(Failure::Failed(why));
    }
    let asks = args.asks(&status)?;
    if !args.json {
        print(&table::head(&status, args.latency))?;
    }
    let mut wrong = Vec::new();
    let all = asks.len();
    for (number, ask) in (1..).zip(&asks) {
        let outcome = one(&mut node, ask, &format!("{number} of {all}"))?;
        show(args, &outcome)?;
        if !outcome.is_verified() {
            wrong.push(table::mistakes(&outcome));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "not every message was verified: this is a bug in Steadfast, or a memory error. Please \
         report it with the nodes' logs:\n{}",
        wrong.join("\n")
    )))
}

fn one(node: &mut AdminClient, ask: &Ask, which: &str) -> Result<Outcome, Failure> {
    let told = stderr().is_terminal();
    let outcome = node.bench(ask, |progress| {
        if told {
            let line = table::progress(which, ask, progress);
            // The line only shows progress: a failed write changes no result.
            let _ = write!(stderr(), "\r\x1b[K{line}");
        }
    });
    if told {
        let _ = write!(stderr(), "\r\x1b[K");
    }
    outcome.map_err(|error| match error {
        AdminError::Io(_) => Failure::Failed(format!("{error} The measures so far are valid")),
        _ => Failure::failed(error),
    })
}

fn show(args: &Ring, outcome: &Outcome) -> Result<(), Failure> {
    if !args.json {
        return print(&table::row(outcome));
    }
    let mut line = outcome.line();
    let (making, checking) = own_cost(outcome.ask.size);
    let nanoseconds = |span: Duration| serde_json::json!(span.as_nanos() as u64);
    line.insert("making_ns".into(), nanoseconds(making));
    line.insert("checking_ns".into(), nanoseconds(checking));
    let line = serde_json::to_string(&line).map_err(Failure::failed)?;
    print(&format!("{line}\n"))
}

impl Ring {
    /// Every combination of pace, size, senders and level, in this order.
    fn asks(&self, status: &Status) -> Result<Vec<Ask>, Failure> {
        let groups = plan::senders(&self.senders, &self.from, status)?;
        let mut asks = Vec::new();
        for pace in &self.pace {
            for size in &self.size {
                for senders in &groups {
                    for level in &self.level {
                        let mut ask = pace.ask(senders, *size, *level, self.latency, self.seconds);
                        ask.count = self.count.unwrap_or(ask.count);
                        ask.warm = self.warm.unwrap_or(ask.warm.min(ask.count / 2));
                        asks.push(ask);
                    }
                }
            }
        }
        Ok(asks)
    }
}
