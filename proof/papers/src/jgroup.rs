//! The experiments of `jgroup-arm.txt`, figures 2, 9 and 10. Clients call any of four servers. One
//! server after the other crashes and returns at an address that no client knew. The cost depends
//! on how clients learn of it.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use node::{EventKind, EventRecord, Node};
use rustix::process::Signal;
use steadfast::{NodeId, ViewNumber};

use harness::cluster::{Cluster, Plan, wall};
use harness::quota::ControlGroup;
use harness::{Experiment, Findings, Outcome, Run, child, machine, name, report};
use serde_json::Value;

mod callers;
mod charts;
mod findings;
mod way;

use callers::{Crowd, GROUP, Named};
use findings::{Course, Fault, Found, SERVERS, Span};
use way::Way;

/// So many of them crash and return, one after the other.
const CRASHES: u32 = SERVERS - 1;

/// The paper's period.
const PAPER_PERIOD: Duration = Duration::from_secs(15);

/// After anything that changes, until the next is measured.
const SETTLE: Duration = Duration::from_millis(300);

const EXAMPLES: &str = "\
Examples:
  steadfast-papers jgroup                                     all of it: some four minutes
  steadfast-papers jgroup --processor 0 --clients 7 --way view   where servers are not slowed down
  steadfast-papers jgroup --clients 56 --period-ms 15000      the paper's period
  steadfast-papers jgroup --out target/jgroup                 with jgroup.json and charts

Each server is a processor of its own: a quota of processor time, by control groups (root, as a
rule). Where they may not be made, servers share this machine's processors with the clients, and
it is said.";

/// Jgroup's experiments: 7 to 70 clients of four servers that crash and return, by how clients
/// learn of it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Clients, each with a connection to every server that it knows and one call under way;
    /// several: one run each.
    #[arg(long, value_delimiter = ',', default_values_t = [7, 14, 28, 42, 56, 70])]
    clients: Vec<usize>,
    /// Only this way to learn of returned servers; several: one after the other. All by default.
    #[arg(long, value_enum, value_name = "WAY")]
    way: Vec<Way>,
    /// Milliseconds between two periodic refreshes; the paper's were 15,000. The paper's figures
    /// for them are scaled by the same factor.
    #[arg(long, default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(1..))]
    period_ms: u64,
    /// Milliseconds for which throughput and response times are measured before the first crash and
    /// after each return.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    phase_ms: u64,
    /// Percent of one of this machine's processors that each server has; 0: servers and clients
    /// share all.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=100))]
    processor: u32,
    /// The span of the quota, in milliseconds: in each a server may use its part.
    #[arg(long, default_value_t = 10)]
    slice_ms: u64,
    /// A folder for jgroup.json and the charts; and for what the nodes told, if something goes
    /// wrong.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Options {
    fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms)
    }

    /// By how much the periodic refresh is quicker than the paper's.
    fn factor(&self) -> f64 {
        PAPER_PERIOD.as_secs_f64() / self.period().as_secs_f64()
    }
}

impl Experiment for Options {
    const NAME: &'static str = callers::EXPERIMENT;
    const SMOKE: &'static str = "--clients 7 --way push --period-ms 300 --phase-ms 200";

    fn run(&self, run: &Run) -> Outcome<()> {
        let machine = machine::description();
        if self.clients.contains(&0) {
            return Err("--clients: at least one".into());
        }
        let why = ControlGroup::impossible().filter(|_| self.processor > 0);
        let processor = match (self.processor, &why) {
            (0, _) | (_, Some(_)) => None,
            (percent, None) => Some((percent, Duration::from_millis(self.slice_ms))),
        };
        if let Some(why) = why {
            eprintln!("servers have no processor of their own here: {why}");
        }
        if let Some(out) = &self.out {
            fs::create_dir_all(out)?;
        }
        let mut cluster = Cluster::start(Plan {
            processor,
            keep_logs: self.out.is_some(),
            ..Plan::of(SERVERS, SERVERS, &[GROUP])
        })?;
        let ways = if self.way.is_empty() { &Way::ALL[..] } else { &self.way };
        let mut courses = Vec::new();
        for way in ways {
            for clients in &self.clients {
                eprintln!("{}: {clients} clients ...", name(*way));
                let course = play(self, &mut cluster, *way, *clients);
                if let (Err(_), Some(out)) = (&course, &self.out) {
                    cluster.copy_logs(out)?;
                }
                courses.push(course?);
            }
        }
        let found = Found {
            machine,
            processor: processor.map(|(percent, _)| percent),
            period: self.period(),
            factor: self.factor(),
            courses,
        };
        if let Some(out) = &self.out {
            report::write(out, "jgroup.json", &found.json(), charts::all(&found.courses))?;
        }
        run.found(&found);
        match found.failed() {
            Some(error) => Err(format!("calls failed: {error}").into()),
            None => Ok(()),
        }
    }

    fn host(node: &Node, group: &str) -> Outcome<bool> {
        if group != GROUP {
            return Ok(false);
        }
        let id = node.id();
        node.host(group, child::hosted(group)?, move || Named(id))?;
        Ok(true)
    }

    fn live(orders: Value) -> Outcome<()> {
        callers::live(&serde_json::from_value(orders)?)
    }
}

/// One run: new clients, which know all servers; then one server after the other crashes and
/// returns.
fn play(options: &Options, cluster: &mut Cluster, way: Way, clients: usize) -> Outcome<Course> {
    let began = wall();
    let crowd = Crowd::start(&cluster.clients(), way, clients, options.period(), began)?;
    let now = || wall().saturating_sub(began) / 1_000;
    let measure = || {
        thread::sleep(SETTLE);
        let from = now();
        thread::sleep(Duration::from_millis(options.phase_ms));
        Span { from, to: now() }
    };
    let mut phases = vec![measure()];
    let mut faults = Vec::new();
    for victim in (1..=CRASHES).map(NodeId) {
        faults.push(crash_and_return(cluster, victim, began)?);
        if way == Way::Periodic {
            // Until then the last client learns of it.
            thread::sleep(options.period());
        }
        phases.push(measure());
    }
    Ok(Course { way, clients, phases, faults, seen: crowd.finish()? })
}

/// A server is killed, and started again once the others have a view without it, at an address that
/// nobody knew.
fn crash_and_return(cluster: &mut Cluster, victim: NodeId, began: u64) -> Outcome<Fault> {
    let since = |time: u64| time.saturating_sub(began) / 1_000;
    let address = cluster.client(victim).ok_or("this node takes no clients")?;
    cluster.take_events();
    let before = cluster.view(GROUP).number;
    let crashed = cluster.signal(victim, Signal::KILL)?;
    cluster.wait("the view without the one that crashed", |it| it.view(GROUP).number > before)?;
    let without = cluster.view(GROUP).number;
    thread::sleep(SETTLE);
    cluster.start_node_elsewhere(victim)?;
    cluster.wait_until_whole()?;
    let events = cluster.take_events();
    let (view, whole) = first_view(&events, |view, synced| view > without && synced == SERVERS)
        .ok_or("no view with all servers")?;
    let (_, shrunk) = first_view(&events, |view, _| view > before).ok_or("no view without it")?;
    Ok(Fault {
        victim,
        address,
        crashed: since(crashed),
        shrunk: since(shrunk),
        view: view.0,
        returned: since(whole),
    })
}

/// The first view of this kind, and when the first node had it.
fn first_view(
    events: &[EventRecord],
    wanted: impl Fn(ViewNumber, u32) -> bool,
) -> Option<(ViewNumber, u64)> {
    let views = events.iter().filter_map(|event| match &event.kind {
        EventKind::View { group, view, replicas, .. } if group == GROUP => {
            let synced = replicas.iter().filter(|it| it.synced).count() as u32;
            wanted(*view, synced).then_some((*view, event.time))
        }
        _ => None,
    });
    views.min()
}
