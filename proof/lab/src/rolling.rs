//! Nodes change to another build of the program, one after the other, while clients call: a former
//! release is upgraded, and one node taken back on the way. Clients and attached programs are of the
//! build that runs the experiment: a former one shows that users rebuild nothing.
//!
//! Clients' records are checked to be linearizable, as by `blackbox`; the longest wait of a client
//! is told for each node. See docs/protocol/versions.md.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use steadfast::NodeId;

use harness::child::hosted;
use harness::cluster::{Cluster, Plan, Programs, wall};
use harness::objects::clients::Habit;
use harness::objects::evidence::{self, Finding};
use harness::objects::{Subject, Trial};
use harness::styles::By;
use harness::{Experiment, Outcome, Run, bail, machine};

/// Calls that must be answered after a node has changed before the next does.
const AFTERWARDS: u64 = 200;

/// The wait for rules to come into force.
const IN_FORCE: Duration = Duration::from_secs(20);

/// Nodes change from one build of this program to another, while clients record what they see.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The build of this program that nodes begin with; this one by default.
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// The build that they change to; this one by default.
    #[arg(long, value_name = "PATH")]
    to: Option<PathBuf>,
    /// Programs of this build serve the group, attached to the nodes; by default the nodes do.
    #[arg(long)]
    programs: bool,
    /// How the group is replicated.
    #[arg(long, value_enum, default_value_t = By::OnDisk)]
    style: By,
    /// Clients that call all the time: together some 1,000 times a second by default.
    #[arg(long, default_value_t = 6)]
    clients: usize,
    /// Node processes.
    #[arg(long, default_value_t = 5)]
    nodes: u32,
    /// Replicas of the group.
    #[arg(long, default_value_t = 3)]
    replicas: u32,
    /// No client may wait longer for the end of a call while a node changes, in milliseconds.
    #[arg(long, value_name = "MS")]
    wait_ms: Option<f64>,
    /// Decides calls and pauses.
    #[arg(long)]
    seed: Option<u64>,
    /// Where nodes keep groups on disk: a folder of its own is made there and removed.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
    /// Where histories and logs are left if something is wrong.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Experiment for Options {
    const NAME: &'static str = "rolling";
    const SMOKE: &'static str = "--nodes 3 --replicas 2 --clients 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.nodes < 3 || self.replicas < 2 {
            bail!("with fewer than 3 nodes or 2 replicas none can be spared");
        }
        let seed = self.seed.unwrap_or_else(wall);
        let (from, to) = (named(self.from.as_deref()), named(self.to.as_deref()));
        eprintln!("on {}; seed {seed}; from {from} to {to}", machine::description());
        let group = self.style.objects()[0];
        let options = hosted(group)?.group;
        let plan = Plan {
            programs: self.programs.then_some(Programs::WhenTold(options)),
            storage: Some(self.storage.clone()),
            keep_logs: true,
            ..Plan::of(self.nodes, self.replicas, self.style.objects())
        };
        let cluster = Cluster::start_build(plan, self.from.as_deref())?;
        let alone = self.style.runs_at_the_primary_alone();
        if self.programs {
            cluster.run_programs()?;
        }
        let mut trial = Trial::new(cluster, Subject { group, replicas: self.replicas, alone })?;
        trial.call(self.clients, Habit::default(), seed)?;
        let found = self.roll(run, &mut trial).err();
        let ends = trial.tally.ends;
        run.tell(
            &json!({
                "peer": "steadfast", "measure": "rolling", "seed": seed, "nodes": self.nodes,
                "answered": ends.0, "failed": ends.1, "unknown": ends.2,
                "violation": found.is_some(),
            }),
            || {
                let verdict = evidence::verdict(found.is_some());
                let (answered, failed, unknown) = ends;
                format!("{answered} calls answered, {failed} not executed, {unknown} of unknown end: {verdict}")
            },
        );
        let Some(finding) = found else { return Ok(()) };
        let place = format!("steadfast-rolling-{seed}-{}", std::process::id());
        let folder = self.out.clone().unwrap_or_else(|| std::env::temp_dir().join(place));
        trial.leave(&folder, &finding)?;
        bail!("seed {seed}: {}; the evidence is in {}", finding.text, folder.display())
    }
}

impl Options {
    /// All nodes, the last first; the first one that changed goes back to the former build, and
    /// changes again.
    fn roll(&self, run: &Run, trial: &mut Trial) -> Result<(), Finding> {
        let mut steps: Vec<(u32, bool)> = (1..=self.nodes).rev().map(|id| (id, true)).collect();
        steps.splice(2..2, [(self.nodes, false), (self.nodes, true)]);
        for (id, newer) in steps {
            self.change(run, trial, NodeId(id), newer)?;
        }
        self.finish(trial)?;
        let book = trial.finish()?;
        trial.judge(book, None)?;
        trial.subject.state(&trial.cluster)?;
        Ok(())
    }

    /// One node leaves, and comes back with the other build.
    fn change(&self, run: &Run, trial: &mut Trial, id: NodeId, newer: bool) -> Result<(), Finding> {
        let build = if newer { &self.to } else { &self.from }.as_deref();
        trial.clients()?.forget_gap();
        trial.note(&format!("{id} changes to {}", named(build)));
        let began = Instant::now();
        trial.cluster.leave(id)?;
        trial.cluster.run_build(id, build);
        trial.cluster.start_node(id)?;
        if self.programs && id.0 <= self.replicas {
            trial.cluster.run_programs_at(&[id])?;
        }
        trial.cluster.wait_until_well()?;
        let well = began.elapsed().as_secs_f64() * 1e3;
        trial.wait_for_answers(AFTERWARDS)?;
        let wait = trial.clients()?.longest_wait();
        trial.cluster.take_events();
        let line = json!({
            "measure": "rolling-node", "node": id.0, "newer": newer, "wait_ms": wait, "well_ms": well,
        });
        run.tell(&line, || {
            let step = if newer { "changes" } else { "goes back" };
            format!("{id} {step:<9} longest wait {wait:6.1} ms, well after {well:.0} ms")
        });
        match self.wait_ms.filter(|most| wait > *most) {
            Some(most) => Err(Finding::from(format!(
                "a client waited {wait:.1} ms while {id} changed; {most} ms is the most permitted"
            ))),
            None => Ok(()),
        }
    }

    /// The newest rules come into force, if they are newer.
    fn finish(&self, trial: &Trial) -> Outcome<()> {
        let mut admin = trial.cluster.node(NodeId(1))?;
        let Some(next) = admin.status()?.versions.next else { return Ok(()) };
        admin.finish_upgrade()?;
        let deadline = Instant::now() + IN_FORCE;
        while admin.status()?.versions.level < next {
            if Instant::now() > deadline {
                bail!("rules of level {next} are not in force after {IN_FORCE:?}");
            }
        }
        Ok(())
    }
}

/// A build, in words.
fn named(build: Option<&Path>) -> String {
    build.map_or_else(|| "this build".into(), |path| path.display().to_string())
}
