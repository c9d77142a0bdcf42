//! `steadfast demo`: a light rail's passenger information on five nodes, two of which are killed.
//!
//! The process that the user starts is the [`conductor`]. It runs its own program again as nodes
//! ([`node`]), as the sensors of each line ([`sensors`]) and as the displays ([`displays`]), hits
//! nodes while events flow ([`faults`]), and in the end compares what the sensors wrote down
//! ([`record`]) with every replica's state ([`audit`]). `docs/demo.md` describes it for users.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

mod audit;
mod board;
mod child;
mod choice;
mod clients;
mod clock;
mod conductor;
mod deployment;
mod displays;
mod fault;
mod faults;
mod gaps;
mod journal;
mod message;
mod network;
mod node;
mod outcome;
mod paint;
mod plan;
mod plot;
mod process;
mod progress;
mod record;
mod replica;
mod report;
mod sensors;
mod service;
mod stage;
mod timeline;
mod traffic;
mod watch;

use self::child::{FAILED, say};
use self::fault::{Means, Role};
use self::plan::Plan;
use self::stage::Failure;

const EXAMPLES: &str = "\
Examples:
  steadfast demo                                  five nodes, a busy one, two kills, half a minute
  steadfast demo --fault stop --kill primary      the primary falls silent instead of dying
  steadfast demo --secure --seed 7                with TLS and sealed datagrams
  steadfast demo --json --seconds 10 | jq .faults

Exit codes:
  0  nothing acknowledged was lost or executed twice, and all replicas are equal
  1  it was not so, or the run could not be finished: the report says why
  2  the command line is wrong";

/// Runs a light rail's passenger information on a cluster on this machine, kills nodes while
/// events flow, and proves that nothing was lost or done twice.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Args {
    /// A part of the demo, in a process of its own.
    #[command(subcommand)]
    part: Option<Part>,
    /// How long events flow.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = seconds)]
    seconds: f64,
    /// Events a second, of all sensors together.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(5..=20_000))]
    rate: u32,
    /// Nodes of the cluster.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=9))]
    nodes: u32,
    /// Replicas of the service, each on a node of its own.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    replicas: u32,
    /// The role whose node is hit.
    #[arg(long, value_enum, default_value_t = Kill::Both)]
    kill: Kill,
    /// How it is hit.
    #[arg(long, value_enum, default_value_t = Hit::Kill)]
    fault: Hit,
    /// Decides which events are sent when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// With keys made for the run: clients talk TLS, and datagrams are sealed.
    #[arg(long)]
    secure: bool,
    /// The report as one JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Also draws the time line of each fault into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Keep the folder with the clients' records and the nodes' logs, and say where it is.
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kill {
    /// Nobody's.
    None,
    /// The primary's.
    Primary,
    /// Another replica's.
    Backup,
    /// First the primary's, later another replica's.
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Hit {
    /// Its process is killed (SIGKILL) and started again: its host tells the others at once.
    Kill,
    /// Its process is stopped (SIGSTOP) and continued: nobody tells, it is just silent.
    Stop,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Part {
    #[command(hide = true)]
    Node(node::Arguments),
    #[command(hide = true)]
    Replica,
    #[command(hide = true)]
    Sensors(sensors::Arguments),
    #[command(hide = true)]
    Displays(clients::Assignment),
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds, such as 20".to_owned())?;
    if (1.0..=3600.0).contains(&seconds) { Ok(seconds) } else { Err("from 1 to 3600".to_owned()) }
}

impl Args {
    /// Checks what the arguments mean together.
    fn plan(&self) -> Result<Plan, String> {
        let Args { seconds, rate, nodes, replicas, seed, secure, keep, .. } = *self;
        if replicas > nodes {
            return Err(format!(
                "{replicas} replicas need {replicas} nodes: give --nodes {replicas} or more"
            ));
        }
        let faults = match self.kill {
            Kill::None => vec![],
            Kill::Primary => vec![Role::Primary],
            Kill::Backup => vec![Role::Backup],
            Kill::Both => vec![Role::Primary, Role::Backup],
        };
        if !faults.is_empty() && nodes < 3 {
            return Err(
                "a majority of the nodes must live: give --nodes 3 or more, or --kill none"
                    .to_owned(),
            );
        }
        if !faults.is_empty() && replicas < 2 {
            return Err(
                "somebody must have the state when a replica is killed: give --replicas 2 \
                        or more, or --kill none"
                    .to_owned(),
            );
        }
        let needed = [1.0, 4.0, 8.0][faults.len()];
        if seconds < needed {
            return Err(format!(
                "events must flow while nodes are away and come back: give --seconds {needed} or \
                 more, or --kill none"
            ));
        }
        let means = match self.fault {
            Hit::Kill => Means::Kill,
            Hit::Stop => Means::Stop,
        };
        let rate = rate.into();
        Ok(Plan { seconds, rate, nodes, replicas, faults, means, seed, secure, keep })
    }
}

/// Runs the demo, or a part of it.
pub fn run(arguments: Args) -> ExitCode {
    match arguments.part {
        None => conduct(&arguments),
        Some(Part::Node(arguments)) => child::end(node::run(arguments)),
        Some(Part::Replica) => replica::run(),
        Some(Part::Sensors(arguments)) => child::end(sensors::run(arguments)),
        Some(Part::Displays(assignment)) => child::end(displays::run(assignment)),
    }
}

fn conduct(arguments: &Args) -> ExitCode {
    let plan = match arguments.plan() {
        Ok(plan) => plan,
        Err(remedy) => {
            say(&format!("error: {remedy}"));
            return ExitCode::from(2);
        }
    };
    let interrupt = Arc::new(AtomicUsize::new(0));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if let Err(error) =
            signal_hook::flag::register_usize(signal, interrupt.clone(), signal as usize)
        {
            say(&format!("error: signals cannot be caught: {error}"));
            return ExitCode::from(FAILED);
        }
    }
    match conductor::conduct(&plan, interrupt) {
        Ok(outcome) => {
            report::print(&outcome, arguments.json);
            if let Some(path) = &arguments.plot
                && let Err(error) = std::fs::write(path, plot::svg(&outcome.faults))
            {
                say(&format!("error: the plot cannot be written to {}: {error}", path.display()));
                return ExitCode::from(FAILED);
            }
            if outcome.passed { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
        }
        // As a shell says it.
        Err(Failure::Interrupted(signal)) => {
            say("interrupted: all processes are ended");
            ExitCode::from(128 + signal as u8)
        }
        Err(failure) => {
            say(&format!("error: {failure}"));
            ExitCode::from(FAILED)
        }
    }
}
