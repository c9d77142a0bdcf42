//! `steadfast bench ring`: how quick the ring of a running cluster is.
//!
//! - here: the command, and one measure after the other
//! - `bench/plan.rs`: which measures
//! - `bench/table.rs`: how they are shown to people

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
Measures the ring of a running cluster: latency and throughput of ordered messages, each verified at every node.

The nodes do it themselves: the node that is asked orders a plan, the senders send from within their data
planes, every node checks content and order of every message, and reports. Clocks of different hosts
are never compared: each sender measures by its own.

IT LOADS THE RING. Calls go on and keep all their promises, but wait among the messages of the benchmark, most of
all with --pace full. A benchmark ends by itself, with Ctrl-C, or when a node comes or goes.";

const EXAMPLES: &str = "\
Examples:
  steadfast bench ring                                     the usual measures, in a minute
  steadfast bench ring --config node.toml --size 1024 --senders 1,2,3 --pace full
  steadfast bench ring --connect 10.0.0.1:7101 --tls plant/admin-ops      asked of another host
  steadfast bench ring --pace every=200 --seconds 20       sparse traffic: one message every 200 ms
  steadfast bench ring --latency echo --level safe         until the farthest node's ordered answer
  steadfast bench ring --json | jq 'select(.level == \"safe\") | .p99_us'

What the columns say, in microseconds:
  latency    until what --latency names has happened; with --pace full until the sender's own delivery
  send       of that, until the token and the flow control let the message leave
  own        until it was delivered at its sender
  all        until its sender knew that every node has it

Every combination of sizes, senders, levels and paces is one measure.

Exit codes:
  0  all was measured, and every message was verified
  1  it failed, or a message was lost, corrupt or in another order: standard error says what
  2  the command line or the configuration is wrong";

/// Latency and throughput of the ring of a running cluster, verified at every node.
#[derive(clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
struct Ring {
    #[command(flatten)]
    at: At,
    /// Bytes of an ordered message, 16 of them its header.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [64, 1024, 8192],
          value_parser = clap::value_parser!(u32).range(16..=MAX_MESSAGE))]
    size: Vec<u32>,
    /// How many nodes send at a time: the first ones of the ring.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_values_t = [1])]
    senders: Vec<usize>,
    /// Which nodes send, instead of how many: one group of senders.
    #[arg(long, value_name = "NODE", value_delimiter = ',', conflicts_with = "senders")]
    from: Vec<u32>,
    /// When a message is delivered: agreed (in order), held (the same, and who holds it is asked for at once), safe (when all have it, too).
    #[arg(long, value_delimiter = ',', value_parser = plan::level, default_value = "agreed,safe")]
    level: Vec<Level>,
    /// When a sender sends its next message: one (when the one before is done), full (as many
    /// under way as fill the ring), window=N (as many), rate=N (so many a second), every=MS.
    #[arg(long, value_delimiter = ',', value_parser = plan::pace, default_value = "one,full")]
    pace: Vec<Pace>,
    /// What a message's latency ends with: own (its delivery at the sender), all (the sender
    /// knows that every node has it), echo (the farthest node's ordered answer is delivered).
    #[arg(long, value_parser = plan::until, default_value = "all")]
    latency: Until,
    /// The longest time of one measure.
    #[arg(long, value_name = "SECONDS", value_parser = plan::seconds, default_value = "2")]
    seconds: Duration,
    /// The most messages of each sender in one measure.
    #[arg(long, value_name = "MESSAGES")]
    count: Option<u64>,
    /// The first messages of each sender, not measured: 100, or 1 where they are sparse.
    #[arg(long, value_name = "MESSAGES")]
    warm: Option<u64>,
    /// One JSON object a line for each measure, instead of a table.
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
        "not every message was verified; this is a bug in Steadfast, or memory that errs, please \
         report it with the nodes' logs:\n{}",
        wrong.join("\n")
    )))
}

fn one(node: &mut AdminClient, ask: &Ask, which: &str) -> Result<Outcome, Failure> {
    let told = stderr().is_terminal();
    let outcome = node.bench(ask, |progress| {
        if told {
            let line = table::progress(which, ask, progress);
            // Who looks at it does not mind a lost line.
            let _ = write!(stderr(), "\r\x1b[K{line}");
        }
    });
    if told {
        let _ = write!(stderr(), "\r\x1b[K");
    }
    outcome.map_err(|error| match error {
        AdminError::Io(_) => Failure::Failed(format!("{error} What was measured so far counts")),
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
    /// Every combination, one after the other.
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
