//! The gap that a client sees when the node of the primary goes.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use node::{EventKind, EventRecord};
use rustix::process::{Signal, kill_process};
use serde::Serialize;
use serde_json::json;
use steadfast::NodeId;

use harness::caller::Caller;
use harness::child::hosted;
use harness::cluster::{Cluster, Placement, Plan, Programs, Where, wall};
use harness::figures::{median_and_worst, quantile};
use harness::hog::{self, Under};
use harness::hosts::Way;
use harness::process::Role;
use harness::report::row;
use harness::styles::By;
use harness::{Experiment, Outcome, Run, laden, name};

/// The replies after a fault that count as those around it: 20 ms of them.
const AROUND: usize = 20;

/// The longest gap that a client at 1 kHz sees when the primary's node is killed or stopped.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How often the primary's node is struck.
    #[arg(long, default_value_t = 20)]
    kills: usize,
    /// The fault of its process.
    #[arg(long, value_enum, default_value_t = Fault::Kill)]
    fault: Fault,
    /// How the group is replicated.
    #[arg(long, value_enum, default_value_t = By::SemiActive)]
    style: By,
    /// Node processes.
    #[arg(long, default_value_t = 5)]
    nodes: u32,
    /// Replicas of the group.
    #[arg(long, default_value_t = 3)]
    replicas: u32,
    /// Where nodes keep a group on disk: a folder of its own is made there and removed.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
    /// The ring's token time-out, in milliseconds, if not that by default.
    #[arg(long, value_name = "MS")]
    token_timeout_ms: Option<u64>,
    /// Mebibytes that the process of each replica touches: the kernel frees them when it dies.
    #[arg(long, value_name = "N", default_value_t = 0)]
    state_mib: usize,
    /// Replicas are programs of their own beside the nodes, and one of these is killed.
    #[arg(long)]
    programs: bool,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    at: Where,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Fault {
    /// SIGKILL: the host lives and says that the process is gone.
    Kill,
    /// SIGSTOP: nothing is closed and nothing answers, as when a host dies.
    Stop,
    /// Nothing: the primary is moved to the next replica by `steadfast move`, and its node lives
    /// on.
    Move,
    /// All cables of its host are cut: the process runs on alone. Puts each node on a host of its
    /// own.
    Cut,
}

/// The events of a fail-over, in milliseconds after the fault.
#[derive(Serialize)]
struct Timeline {
    node: NodeId,
    /// The longest time between two good replies, from the fault until [`AROUND`] more under the
    /// new view.
    gap_ms: f64,
    /// From there until calls are steady: later effects of the fault, and delays that the machine
    /// causes without one.
    later_gap_ms: f64,
    /// The same while the node comes back and gets the state.
    return_gap_ms: f64,
    detected_ms: Option<f64>,
    ring_ms: Option<f64>,
    view_ms: Option<f64>,
    /// The first good reply under the new view.
    reply_ms: Option<f64>,
}

fn timeline(
    fault: u64,
    node: NodeId,
    caller: &Caller,
    events: &[EventRecord],
) -> Outcome<Timeline> {
    let after = |time: u64| time.saturating_sub(fault) as f64 / 1e6;
    let first = |wanted: &dyn Fn(&EventKind) -> bool| {
        let seen = events.iter().filter(|event| event.time >= fault && event.node != node);
        seen.filter(|event| wanted(&event.kind)).map(|event| event.time).min()
    };
    let view = first(&|kind| match kind {
        EventKind::View { primary, .. } => primary.is_some_and(|primary| primary.node != node),
        _ => false,
    });
    let detected =
        first(&|kind| matches!(kind, EventKind::Unreachable { .. } | EventKind::TokenLost { .. }));
    let ring = first(&|kind| matches!(kind, EventKind::Installed { .. }));
    let around = view.and_then(|view| caller.after(view, AROUND)).unwrap_or(u64::MAX);
    let none = "no replies around the fault";
    Ok(Timeline {
        node,
        detected_ms: detected.map(after),
        ring_ms: ring.map(after),
        view_ms: view.map(after),
        reply_ms: view.and_then(|view| caller.after(view, 0)).map(after),
        gap_ms: caller.gap(fault..=around).ok_or(none)?,
        later_gap_ms: caller.gap(around..).ok_or(none)?,
        return_gap_ms: 0.0,
    })
}

impl Options {
    /// The group that is called.
    fn group(&self) -> &'static str {
        static GROUP: OnceLock<&str> = OnceLock::new();
        GROUP.get_or_init(|| laden::group(self.style.echo()[0], self.state_mib))
    }
}

impl Experiment for Options {
    const NAME: &'static str = "failover";
    const SMOKE: &'static str = "--kills 1 --nodes 3 --state-mib 16";

    fn impossible(&self) -> Option<String> {
        hog::impossible(self.under.hogs)
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.programs && self.fault != Fault::Kill {
            return Err("--programs: a program is killed; leave --fault".into());
        }
        let group = self.group();
        let programs = || -> Outcome<_> {
            Ok(Programs::AtStart(hosted(group)?.group, Role::Echoes.command()?))
        };
        let placement = match (self.fault, self.at.placement()) {
            (Fault::Cut, Placement::Loopback) => Placement::Hosts { links: 1 },
            (_, placement) => placement,
        };
        let mut cluster = Cluster::start(Plan {
            placement,
            class: self.under.class(),
            token_timeout: self.token_timeout_ms.map(Duration::from_millis),
            storage: self.style.is_on_disk().then(|| self.storage.clone()),
            programs: self.programs.then(programs).transpose()?,
            ..Plan::of(self.nodes, self.replicas, &[group])
        })?;
        let caller = Caller::start_in(cluster.connect()?, group, self.under.class());
        caller.wait_steady(0)?;
        // This thread strikes and listens: it must not wait for the hogs either.
        hog::take(self.under.class())?;
        let _hogs = self.under.start()?;
        run.begin(&format!(
            "{:?} of the primary's {} of a {} group under 1,000 calls/s, {} MiB touched; times in ms",
            self.fault,
            if self.programs { "program" } else { "node" },
            self.style,
            self.state_mib,
        ));
        let table = run.table(
            "fault=number:6, node:7, detected=detected_ms:11.1, ring=ring_ms:8.1, \
             view=view_ms:8.1, reply=reply_ms:8.1, gap=gap_ms:9.1, later=later_gap_ms:9.1, \
             on return=return_gap_ms:13.1",
        );
        let mut timelines = Vec::new();
        for number in 1..=self.kills {
            let timeline = strike(self, &mut cluster, &caller)?;
            let of = json!({
                "peer": "steadfast", "measure": "fault", "fault": name(self.fault),
                "number": number,
            });
            table.row(&row(&timeline, of));
            timelines.push(timeline);
        }
        let failed = caller.failed();
        summarize(self, run, &timelines, &failed);
        if failed.is_empty() { Ok(()) } else { Err(format!("calls failed: {}", failed[0]).into()) }
    }
}

/// One fault, from a whole cluster to a whole cluster.
fn strike(options: &Options, cluster: &mut Cluster, caller: &Caller) -> Outcome<Timeline> {
    let (fault, group) = (options.fault, options.group());
    cluster.take_events();
    let node = cluster.view(group).primary.ok_or("the group has no primary")?;
    let view = cluster.view(group).number;
    let time = match fault {
        Fault::Kill if options.programs => {
            let program = cluster.programs_of(&[node])?;
            let time = wall();
            kill_process(*program.first().ok_or("the primary has no program")?, Signal::KILL)?;
            time
        }
        Fault::Kill => cluster.signal(node, Signal::KILL)?,
        Fault::Stop => cluster.signal(node, Signal::STOP)?,
        Fault::Cut => {
            let time = wall();
            cluster.hosts()?.isolate(node.0 as usize, Way::Both)?;
            time
        }
        Fault::Move => {
            // Asked of a bystander, as an administrator may.
            let next = NodeId(node.0 % options.replicas + 1);
            let time = wall();
            cluster.node(NodeId(options.nodes))?.move_primary(group, next)?;
            time
        }
    };
    cluster.wait("the next view", |cluster| cluster.view(group).number > view)?;
    caller.wait_steady(time)?;
    let mut timeline = timeline(time, node, caller, &cluster.take_events())?;
    let back = match fault {
        // Its node starts it again.
        Fault::Kill if options.programs => wall(),
        Fault::Kill => {
            let back = wall();
            cluster.start_node(node)?;
            back
        }
        Fault::Stop => cluster.signal(node, Signal::CONT)?,
        Fault::Move => wall(),
        Fault::Cut => {
            let back = wall();
            cluster.hosts()?.heal()?;
            back
        }
    };
    cluster.wait_until_whole()?;
    caller.wait_steady(wall())?;
    timeline.return_gap_ms = caller.gap(back..).ok_or("no replies around the return")?;
    Ok(timeline)
}

fn summarize(options: &Options, run: &Run, timelines: &[Timeline], failed: &[String]) {
    let middle = |figure: fn(&Timeline) -> Option<f64>| {
        median_and_worst(timelines.iter().filter_map(figure).collect())
    };
    let (gap, worst) = middle(|timeline| Some(timeline.gap_ms)).unwrap_or_default();
    let p99 = |figure: fn(&Timeline) -> f64| {
        quantile(timelines.iter().map(figure).collect(), 0.99).unwrap_or_default()
    };
    let (p99, later) = (p99(|timeline| timeline.gap_ms), p99(|timeline| timeline.later_gap_ms));
    let (_, worst_return) = middle(|timeline| Some(timeline.return_gap_ms)).unwrap_or_default();
    let median = |figure| middle(figure).map(|(median, _)| median);
    let (count, failed) = (timelines.len(), failed.len());
    let line = json!({
        "peer": "steadfast", "measure": "blackout", "style": name(options.style),
        "fault": name(options.fault), "state_mib": options.state_mib,
        "of": if options.programs { "program" } else { "node" }, "k": options.replicas, "nodes": options.nodes, "n": count,
        "gap_ms": gap, "p99_gap_ms": p99, "worst_gap_ms": worst, "p99_later_gap_ms": later,
        "worst_return_gap_ms": worst_return,
        "detected_ms": median(|timeline| timeline.detected_ms),
        "ring_ms": median(|timeline| timeline.ring_ms),
        "view_ms": median(|timeline| timeline.view_ms),
        "reply_ms": median(|timeline| timeline.reply_ms),
        "failed_calls": failed,
    });
    run.tell(&line, || {
        format!(
            "gap of the client over {count} faults: median {gap:.1} ms, p99 {p99:.1} ms, worst \
             {worst:.1} ms; later, without a fault, p99 {later:.1} ms; worst while a node returns \
             {worst_return:.1} ms; {failed} calls failed"
        )
    });
}
