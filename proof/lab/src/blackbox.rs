//! Whether clients of real processes see one object that never fails, whatever faults strike the
//! processes.
//!
//! Clients call a group's registers and logs all the time and record the results. Faults strike,
//! one after the other, and after each one all must be well again in bounded time. The records are
//! checked to be linearizable round by round, with no look inside the nodes; at the end all
//! replicas must have the same state. See docs/linearizability.md.

use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use serde_json::json;
use wire::Random;

use harness::child::hosted;
use harness::cluster::{Cluster, Placement, Plan, Programs, Where, wall};
use harness::hosts;
use harness::objects::clients::Habit;
use harness::objects::evidence::{self, Finding, Tally};
use harness::objects::{Subject, Trial};
use harness::styles::By;
use harness::{Experiment, Outcome, Run, machine, name};

mod faults;

use faults::{Fault, Kind, Reach};

/// So many faults strike before the histories are checked and others begun.
const ROUND: usize = 10;

/// Calls that must be answered after a fault before the next strikes.
const AFTERWARDS: u64 = 20;

/// Faults strike real processes while clients record what they see: is it linearizable?
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The styles of the group, one after the other: each has a cluster of its own, and its share
    /// of the faults.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = By::ALL)]
    style: Vec<By>,
    /// How many faults strike.
    #[arg(long, default_value_t = 200)]
    faults: usize,
    /// No further fault strikes a cluster after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Which kinds; all that this machine permits if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Clients that call all the time.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Decides faults, calls and pauses; drawn and told if it is not given. The processes'
    /// schedules still differ between runs.
    #[arg(long)]
    seed: Option<u64>,
    /// Node processes.
    #[arg(long, default_value_t = 5)]
    nodes: u32,
    /// Replicas of the group.
    #[arg(long, default_value_t = 3)]
    replicas: u32,
    /// Where histories and logs are left if something is wrong.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where nodes keep groups on disk: a folder of its own is made there and removed.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
    #[command(flatten)]
    at: Where,
    /// A program that serves the replicas, and its arguments; without one the nodes do. It takes
    /// calls as python/client/tests/objects.py does.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// A run in its course.
struct Course<'a> {
    options: &'a Options,
    run: &'a Run,
    style: By,
    trial: Trial,
    struck: usize,
}

impl Experiment for Options {
    const NAME: &'static str = "blackbox";
    const SMOKE: &'static str = "--style semi-active --faults 2 --kinds kill,stop --clients 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.nodes < 3 || self.replicas < 2 {
            return Err("with fewer than 3 nodes or 2 replicas no fault leaves a majority".into());
        }
        if self.kinds.is_empty() && self.at.placement() == Placement::Loopback {
            let missing = hosts::missing();
            let why = missing
                .map_or("--hosts was not given".into(), |missing| format!("hosts need {missing}"));
            eprintln!("no cables are cut, only processes are struck: {why}");
        }
        let seed = self.seed.unwrap_or_else(wall);
        eprintln!("on {}; seed {seed}", machine::description());
        let (mut left, mut undecided) = (self.faults, Vec::new());
        for (number, style) in self.style.iter().enumerate() {
            let faults = left / (self.style.len() - number);
            left -= faults;
            let of_this = one(self, run, *style, faults, seed)?;
            undecided.extend(of_this.into_iter().map(|history| format!("{style}: {history}")));
        }
        evidence::undecided(&undecided).map_or(Ok(()), |why| Err(why.into()))
    }
}

/// A cluster and its faults. Returns the objects that cannot be judged.
fn one(options: &Options, run: &Run, style: By, faults: usize, seed: u64) -> Outcome<Vec<String>> {
    let kinds = kinds(options, style)?;
    let served = (!options.program.is_empty()).then(|| hosted(style.objects()[0])).transpose()?;
    let plan = Plan {
        programs: served.map(|hosted| Programs::AtStart(hosted.group, options.program.clone())),
        placement: options.at.placement(),
        storage: style.is_on_disk().then(|| options.storage.clone()),
        keep_logs: true,
        ..Plan::of(options.nodes, options.replicas.min(options.nodes), style.objects())
    };
    let cluster = Cluster::start(plan)?;
    let alone = style.runs_at_the_primary_alone();
    let replicas = options.replicas.min(options.nodes);
    let subject = Subject { group: style.objects()[0], replicas, alone };
    let mut trial = Trial::new(cluster, subject)?;
    trial.call(options.clients, Habit::default(), seed)?;
    let mut course = Course { options, run, style, trial, struck: 0 };
    let found = course.faults(faults, &kinds, seed).and_then(|()| course.finish()).err();
    course.summarize(seed, found.is_some());
    if let Some(finding) = found {
        return Err(course.report(seed, &finding)?.into());
    }
    Ok(course.trial.tally.undecided)
}

/// The kinds of fault that are drawn from for a group of this style.
fn kinds(options: &Options, style: By) -> Outcome<Vec<Kind>> {
    let mut permitted = Kind::OF_PROCESSES.to_vec();
    permitted.extend(style.is_on_disk().then_some(Kind::Everybody));
    if options.at.placement() != Placement::Loopback {
        permitted.extend(Kind::OF_HOSTS);
    }
    if options.kinds.is_empty() {
        return Ok(permitted);
    }
    match options.kinds.iter().find(|kind| !permitted.contains(kind)) {
        Some(Kind::Everybody) => Err(format!(
            "`everybody` is more than a {style} group in memory bears: add --style on-disk"
        )
        .into()),
        Some(kind) => Err(format!("`{}` needs --hosts", name(*kind)).into()),
        None => Ok(options.kinds.clone()),
    }
}

impl Course<'_> {
    /// All faults, with a verdict on the records every [`ROUND`].
    fn faults(&mut self, faults: usize, kinds: &[Kind], seed: u64) -> Result<(), Finding> {
        let Options { seconds, nodes, .. } = *self.options;
        let reach = Reach { nodes, replicas: self.trial.subject.replicas };
        let mut random = Random::new(seed);
        for number in 1..=faults {
            if seconds.is_some_and(|most| self.trial.took() > Duration::from_secs(most)) {
                break;
            }
            self.strike(number, reach.draw(kinds, &mut random))?;
            if number % ROUND == 0 {
                let cluster_state = self.trial.close_round()?;
                self.trial.judge(cluster_state, None)?;
            }
        }
        Ok(())
    }

    /// One fault, until all is well again.
    fn strike(&mut self, number: usize, fault: Fault) -> Result<(), Finding> {
        self.trial.clients()?.forget_gap();
        self.trial.note(&format!("{fault:?}"));
        self.struck += 1;
        let began = Instant::now();
        fault.strike(&mut self.trial.cluster)?;
        self.trial.cluster.wait_until_well()?;
        let well = began.elapsed();
        self.trial.wait_for_answers(AFTERWARDS)?;
        let gap = self.trial.clients()?.gap();
        self.trial.cluster.take_events();
        let nodes: Vec<u32> = fault.nodes.iter().map(|node| node.0).collect();
        let (kind, well) = (name(fault.kind), well.as_secs_f64() * 1e3);
        self.trial.tally.gap(&kind, gap);
        let line = json!({
            "measure": "blackbox-fault", "number": number, "fault": kind, "nodes": nodes,
            "span_ms": fault.span.as_millis() as u64, "gap_ms": gap, "well_ms": well,
        });
        self.run.tell(&line, || {
            format!("{number:5} {kind:<10} {nodes:?} gap {gap:.1} ms, well after {well:.0} ms")
        });
        Ok(())
    }

    /// The last round, and whether all replicas are alike.
    fn finish(&mut self) -> Result<(), Finding> {
        let cluster_state = self.trial.finish()?;
        self.trial.judge(cluster_state, None)?;
        self.trial.subject.state(&self.trial.cluster)?;
        Ok(())
    }

    fn summarize(&self, seed: u64, broken: bool) {
        let took = self.trial.took();
        let Tally { ends: (answered, failed, unknown), keys, ref undecided, .. } = self.trial.tally;
        let (style, struck) = (self.style, self.struck);
        let line = json!({
            "peer": "steadfast", "measure": "blackbox", "style": name(style), "seed": seed,
            "faults": struck, "seconds": took.as_secs_f64(), "answered": answered,
            "failed": failed, "unknown": unknown, "objects": keys, "undecided": undecided.len(),
            "violation": broken, "kinds": self.trial.tally.json(),
        });
        self.run.tell(&line, || {
            let verdict = evidence::verdict(broken);
            format!(
                "{}{style}, {struck} faults in {took:.0?}: {answered} calls answered, {failed} \
                 not executed, {unknown} of unknown end; {keys} objects: {verdict}",
                self.trial.tally.table(),
            )
        });
    }

    /// Leaves the evidence of a finding, and returns its place.
    fn report(&self, seed: u64, finding: &Finding) -> Outcome<String> {
        let place = format!("steadfast-blackbox-{}-{seed}-{}", self.style, process::id());
        let folder = self.options.out.clone().unwrap_or_else(|| std::env::temp_dir().join(place));
        self.trial.leave(&folder, finding)?;
        let text = &finding.text;
        Ok(format!(
            "after {} faults of seed {seed} in a {} group:\n{text}\
             histories, faults and what the nodes told are in {}; docs/linearizability.md says \
             how to read them",
            self.struck,
            self.style,
            folder.display()
        ))
    }
}
