//! A cluster of one node grows while clients call, and its first node is retired.
//!
//! Clients' records are checked to be linearizable, as by `blackbox`, and no call may fail; the
//! longest wait of a client is told for each step. See docs/protocol/growth.md.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use steadfast::NodeId;

use harness::cluster::{Cluster, Plan, wall};
use harness::objects::clients::Habit;
use harness::objects::evidence::{self, Finding};
use harness::objects::{Subject, Trial};
use harness::styles::By;
use harness::{Experiment, Outcome, Run, bail, machine};

/// Calls that must be answered after each step before the next.
const AFTERWARDS: u64 = 100;

/// A cluster of one grows under load, and loses its first node, again and again.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Nodes in the end, the first one included.
    #[arg(long, default_value_t = 5)]
    nodes: u32,
    /// So many clusters, one after the other.
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// How the group is replicated.
    #[arg(long, value_enum, default_value_t = By::OnDisk)]
    style: By,
    /// Clients that call all the time.
    #[arg(long, default_value_t = 6)]
    clients: usize,
    /// No client may wait longer for the end of a call during a step, in milliseconds.
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
    const NAME: &'static str = "joining";
    const SMOKE: &'static str = "--nodes 2 --times 1 --clients 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.nodes < 2 {
            bail!("a cluster that grows has 2 nodes in the end, or more");
        }
        let seed = self.seed.unwrap_or_else(wall);
        eprintln!("on {}; seed {seed}", machine::description());
        let mut longest = 0.0_f64;
        for time in 0..self.times {
            longest = longest.max(self.once(run, seed.wrapping_add(time as u64))?);
        }
        let (times, nodes) = (self.times, self.nodes);
        let line = json!({
            "peer": "steadfast", "measure": "joining", "times": times, "nodes": nodes,
            "longest_wait_ms": longest,
        });
        run.tell(&line, || {
            format!(
                "{times} times from one node to {nodes}, and the first retired: linearizable, no call \
                 failed, the longest wait of a client {longest:.1} ms"
            )
        });
        Ok(())
    }
}

impl Options {
    /// One cluster. Returns the longest wait in milliseconds.
    fn once(&self, run: &Run, seed: u64) -> Outcome<f64> {
        let group = self.style.objects()[0];
        let plan = Plan {
            storage: Some(self.storage.clone()),
            keep_logs: true,
            ..Plan::of(1, 1, self.style.objects())
        };
        let alone = self.style.runs_at_the_primary_alone();
        let subject = Subject { group, replicas: self.nodes, alone };
        let mut trial = Trial::new(Cluster::start(plan)?, subject)?;
        trial.call(self.clients, Habit::patient(), seed)?;
        match self.grow(run, &mut trial) {
            Ok(longest) => Ok(longest),
            Err(finding) => {
                let place = format!("steadfast-joining-{seed}-{}", std::process::id());
                let folder = self.out.clone().unwrap_or_else(|| std::env::temp_dir().join(place));
                trial.leave(&folder, &finding)?;
                bail!("seed {seed}: {}; the evidence is in {}", finding.text, folder.display())
            }
        }
    }

    fn grow(&self, run: &Run, trial: &mut Trial) -> Result<f64, Finding> {
        let mut longest = 0.0_f64;
        for _ in 1..self.nodes {
            let wait = self.step(run, trial, "comes", |cluster| cluster.join(NodeId(1)))?;
            longest = longest.max(wait);
        }
        let wait = self.step(run, trial, "is retired", |cluster| {
            cluster.retire(NodeId(1), NodeId(2)).map(|()| NodeId(1))
        })?;
        let book = trial.finish()?;
        trial.judge(book, None)?;
        trial.subject.state(&trial.cluster)?;
        let (answered, failed, unknown) = trial.tally.ends;
        if failed + unknown > 0 {
            return Err(Finding::from(format!(
                "{answered} calls were answered, {failed} were not executed, of {unknown} nobody knows"
            )));
        }
        eprintln!("{answered} calls: {}", evidence::verdict(false));
        Ok(longest.max(wait))
    }

    fn step(
        &self,
        run: &Run,
        trial: &mut Trial,
        name: &str,
        change: impl FnOnce(&mut Cluster) -> Outcome<NodeId>,
    ) -> Result<f64, Finding> {
        trial.clients()?.forget_gap();
        let began = Instant::now();
        let id = change(&mut trial.cluster)?;
        let well = began.elapsed().as_secs_f64() * 1e3;
        trial.note(&format!("{id} {name}"));
        trial.wait_for_answers(AFTERWARDS)?;
        let wait = trial.clients()?.longest_wait();
        trial.cluster.take_events();
        let line = json!({
            "measure": "joining-step", "node": id.0, "step": name, "wait_ms": wait, "well_ms": well,
        });
        run.tell(&line, || {
            format!("{id} {name:<10} longest wait {wait:6.1} ms, well after {well:.0} ms")
        });
        match self.wait_ms.filter(|most| wait > *most) {
            Some(most) => Err(Finding::from(format!(
                "a client waited {wait:.1} ms while {id} {name}; {most} ms is the most permitted"
            ))),
            None => Ok(wait),
        }
    }
}
