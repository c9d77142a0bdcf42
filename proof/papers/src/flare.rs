//! The experiments of `flare.txt`, sections 4.2 and 4.3: processors with backups fail, and clients
//! go where there is room, or where a list written beforehand sends them.
//!
//! Each of the paper's processors is a node process with a quota of processor time of its own.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use node::{EventKind, EventRecord, Node};
use rustix::process::Signal;
use steadfast::{ManagerKnobs, NodeId};

use harness::cluster::{Cluster, Plan, wall};
use harness::echo::Counted;
use harness::quota::ControlGroup;
use harness::{Experiment, Findings, Outcome, Run, name, report};

mod customer;
mod findings;
mod scene;
mod server;

use customer::{Customer, Seen};
use findings::{Course, Found};
use scene::{ALONE, Scene, Strategy, TOGETHER};
use server::Taker;

/// How often it is looked what processors have used.
const LOOK: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  steadfast-papers flare                              section 4.2: static beside proactive
  steadfast-papers flare --scene together             section 4.3: two fail at once
  steadfast-papers flare --seconds 300 --out target/flare   as long as in the paper, with charts

Needs control groups that set quotas of processor time (root, as a rule).";

/// FLARe's experiments: processors fail, and clients go where there is room, or where a list
/// written beforehand sends them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Which experiment.
    #[arg(long, value_enum, default_value_t = Which::Alone)]
    scene: Which,
    /// Seconds of each run; the paper's were 300. The fault strikes in the middle.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Percent of one of this machine's processors that each of the experiment's is.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100))]
    processor: u32,
    /// The span of the quota, in milliseconds: in each a processor may use its part.
    #[arg(long, default_value_t = 10)]
    slice_ms: u64,
    /// Only this strategy; else one after the other.
    #[arg(long, value_enum)]
    strategy: Option<Strategy>,
    /// A folder for flare.json and the charts.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Which experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    /// Section 4.2: one processor fails; two of its backups' hosts are busy since a while.
    Alone,
    /// Section 4.3: two processors fail at once, whose first targets are one host.
    Together,
}

impl Experiment for Options {
    const NAME: &'static str = "flare";
    const SMOKE: &'static str = "--seconds 4 --strategy proactive";

    fn impossible(&self) -> Option<String> {
        let why = ControlGroup::impossible()?;
        Some(format!("processors are quotas of processor time, and {why}"))
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.seconds < 20.0 && !run.smoke {
            return Err("--seconds: the monitors need some to see what is used: 20 or more".into());
        }
        let scene = match self.scene {
            Which::Alone => &ALONE,
            Which::Together => &TOGETHER,
        };
        let wanted = match (self.strategy, self.scene) {
            (Some(only), _) => vec![only],
            (None, Which::Alone) => vec![Strategy::Static, Strategy::Proactive],
            (None, Which::Together) => vec![Strategy::Paper, Strategy::Proactive],
        };
        let courses = wanted.into_iter().map(|strategy| play(self, scene, strategy));
        let courses = courses.collect::<Outcome<_>>()?;
        let found = Found { scene, seconds: self.seconds, processor: self.processor, courses };
        if let Some(out) = &self.out {
            report::write(out, "flare.json", &found.json(), found.charts())?;
        }
        run.begin("");
        run.found(&found);
        Ok(())
    }

    fn host(node: &Node, group: &str) -> Outcome<bool> {
        let Some(options) = server::hosted(group) else { return Ok(false) };
        node.host(group, options, Counted::<Taker>::default)?;
        Ok(true)
    }
}

/// One run.
fn play(options: &Options, scene: &'static Scene, strategy: Strategy) -> Outcome<Course> {
    let length = Duration::from_secs_f64(options.seconds);
    let plan = Plan {
        nodes: u32::try_from(scene.processors.len())?,
        placed: scene.servers.iter().map(|it| (it.group, it.on)).collect(),
        processor: Some((options.processor, Duration::from_millis(options.slice_ms))),
        manager: match strategy {
            Strategy::Static => None,
            Strategy::Paper | Strategy::Proactive => Some(knobs(strategy)),
        },
        ..Plan::default()
    };
    let mut cluster = Cluster::start(plan)?;
    eprintln!("{}: {} s ...", name(strategy), options.seconds);
    let begin = Instant::now();
    let began = wall();
    let mut customers = Vec::new();
    for server in scene.servers {
        // Each client is a process of its own in the paper: it shares no connection with others.
        let customer =
            Customer::start(cluster.connect()?, server, options.processor, (begin, length));
        customers.push((server, customer));
    }
    let mut used = Vec::new();
    let mut before = (Instant::now(), cluster.used()?);
    let mut failed = None;
    // As in the paper a call meets the fault: those who are struck call at whole seconds.
    let fault = begin + Duration::from_secs((length / 2).as_secs()) + Duration::from_micros(1_500);
    while begin.elapsed() < length {
        let next = before.0 + LOOK;
        if failed.is_none() && fault < next {
            thread::sleep(fault.saturating_duration_since(Instant::now()));
            let faults = scene.fail.iter().map(|node| cluster.signal(NodeId(*node), Signal::KILL));
            failed = faults.collect::<Outcome<Vec<u64>>>()?.first().copied();
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let now = (Instant::now(), cluster.used()?);
        let part = f64::from(options.processor) / 100.0 * (now.0 - before.0).as_secs_f64();
        let at = begin.elapsed().as_secs_f64();
        for (node, total) in &now.1 {
            let grown = before.1.get(node).map(|before| total.saturating_sub(*before));
            used.extend(grown.map(|grown| (at, *node, 100.0 * grown.as_secs_f64() / part)));
        }
        before = now;
    }
    let seen: Vec<(&str, Seen)> =
        customers.into_iter().map(|(server, it)| (server.client, it.finish())).collect();
    let failed = failed.ok_or("no fault struck")?;
    let events: Vec<EventRecord> = cluster.take_events();
    let since = |time: u64| (time as f64 - began as f64) / 1e9;
    let mut told: Vec<(f64, String)> = Vec::new();
    for event in &events {
        let Some(what) = self::told(&event.kind) else { continue };
        let at = since(event.time);
        // Every node reports ordered events.
        if !told.iter().any(|(before, same)| *same == what && (at - before).abs() < 0.4) {
            told.push((at, what));
        }
    }
    told.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(Course { strategy, seen, used, failed: since(failed), told })
}

/// Quick enough that a busy host shows within a second, and slow enough for calls that come once a
/// second.
fn knobs(strategy: Strategy) -> ManagerKnobs {
    let ms = wire::Duration::from_millis;
    ManagerKnobs {
        on: true,
        window: ms(1_000),
        period: ms(500),
        // The bound of two tasks: at its crossing it is told.
        level: 82,
        settle: ms(2_000),
        look_ahead: strategy == Strategy::Proactive,
        ..ManagerKnobs::default()
    }
}

/// An action or observation of a manager, in words.
fn told(event: &EventKind) -> Option<String> {
    match event {
        EventKind::Ranked { group, order, .. } => {
            let order: Vec<String> = order.iter().map(|it| it.node.to_string()).collect();
            Some(format!("{group}: targets {}", order.join(", ")))
        }
        EventKind::Moved { group, from, to, .. } => {
            Some(format!("{group}: primary from {} to {}", from.node, to.node))
        }
        EventKind::Overloaded { member, .. } => Some(format!("{} overloaded", member.node)),
        EventKind::Relieved { member, .. } => Some(format!("{} relieved", member.node)),
        _ => None,
    }
}
