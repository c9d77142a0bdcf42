//! Certificates of nodes are renewed while clients call, and one client's is denied.
//!
//! Clients' records are checked to be linearizable, as by `blackbox`, and no call of theirs may fail.
//! The client that is denied calls all the time: it is told how long it was answered after the first
//! node was told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use steadfast::{Client, Invocation, NodeId, Reading};

use harness::cluster::{Cluster, Plan, wall};
use harness::figures::median_and_worst;
use harness::objects::clients::Habit;
use harness::objects::evidence::Finding;
use harness::objects::{Ask, LOOK, Subject, Trial};
use harness::protect::Protect;
use harness::{Experiment, Outcome, Run, bail, machine};

const GROUP: &str = "thread-objects";

/// Calls that must be answered after each step before the next.
const AFTERWARDS: u64 = 100;

/// The denied client is out within this, or something is wrong.
const OUT_WITHIN: Duration = Duration::from_secs(10);

/// Certificates are renewed, and one client is denied, while others call.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Node processes, each with a replica.
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// Clients that call all the time.
    #[arg(long, default_value_t = 6)]
    clients: usize,
    /// So often all nodes get new certificates, and another client is denied.
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Decides calls and pauses.
    #[arg(long)]
    seed: Option<u64>,
}

impl Experiment for Options {
    const NAME: &'static str = "renewing";
    const SMOKE: &'static str = "--times 1 --clients 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        let seed = self.seed.unwrap_or_else(wall);
        eprintln!("on {}; seed {seed}", machine::description());
        let plan = Plan { protect: Protect::All, ..Plan::of(self.nodes, self.nodes, &[GROUP]) };
        let subject = Subject { group: GROUP, replicas: self.nodes, alone: false };
        let mut trial = Trial::new(Cluster::start(plan)?, subject)?;
        trial.call(self.clients, Habit::patient(), seed)?;
        let done = self.renew_and_deny(&mut trial);
        let (waits, outs) = match done {
            Ok(figures) => figures,
            Err(finding) => bail!("seed {seed}: {}", finding.text),
        };
        let (wait, out) = median_and_worst(waits).zip(median_and_worst(outs)).ok_or("no turns")?;
        let line = json!({
            "peer": "steadfast", "measure": "renewing", "nodes": self.nodes, "times": self.times,
            "wait_ms": wait.0, "worst_wait_ms": wait.1, "out_ms": out.0, "worst_out_ms": out.1,
            "answered": trial.tally.ends.0,
        });
        run.tell(&line, || {
            format!(
                "{} times: all nodes' certificates renewed, a client waits {:.1} ms at most (worst {:.1}); a denied \
                 client is out after {:.1} ms (worst {:.1}); {} calls of the others answered, none failed: linearizable",
                self.times, wait.0, wait.1, out.0, out.1, trial.tally.ends.0
            )
        });
        Ok(())
    }
}

impl Options {
    /// The longest waits at renewals, and how long denied clients were answered, in milliseconds.
    fn renew_and_deny(&self, trial: &mut Trial) -> Result<(Vec<f64>, Vec<f64>), Finding> {
        let (mut waits, mut outs) = (Vec::new(), Vec::new());
        let nodes: Vec<NodeId> = (1..=self.nodes).map(NodeId).collect();
        for time in 0..self.times {
            trial.clients()?.forget_gap();
            for id in &nodes {
                trial.cluster.renew(*id)?;
                trial.cluster.node(*id)?.reload().map_err(|error| error.to_string())?;
            }
            trial.wait_for_answers(AFTERWARDS)?;
            waits.push(trial.clients()?.longest_wait());

            let name = format!("stolen-{time}");
            let stolen = Stolen::start(trial.cluster.connect_as(&name)?);
            trial.cluster.deny(&format!("client-{name}"))?;
            let told = Instant::now();
            for id in &nodes {
                trial.cluster.node(*id)?.reload().map_err(|error| error.to_string())?;
            }
            outs.push(stolen.last_answer()?.saturating_duration_since(told).as_secs_f64() * 1e3);
            trial.wait_for_answers(AFTERWARDS)?;
        }
        let book = trial.finish()?;
        trial.judge(book, None)?;
        trial.subject.state(&trial.cluster)?;
        let (answered, failed, unknown) = trial.tally.ends;
        if failed + unknown > 0 {
            return Err(Finding::from(format!(
                "{answered} calls were answered, {failed} were not executed, of {unknown} nobody knows"
            )));
        }
        Ok((waits, outs))
    }
}

/// A client whose certificate was stolen: it calls until it is refused for good.
struct Stolen {
    calls: JoinHandle<Result<Instant, String>>,
    answered: Arc<AtomicBool>,
}

impl Stolen {
    fn start(client: Client) -> Stolen {
        let answered = Arc::new(AtomicBool::new(false));
        let tells = answered.clone();
        let calls = thread::spawn(move || {
            let mut last = None;
            loop {
                let look = Invocation::new(GROUP, LOOK).body(Ask::Read { key: 0 }.body());
                let look = look.reading(Reading::Linearizable);
                match client.call(look.within(OUT_WITHIN)) {
                    Ok(_) => last = Some(Instant::now()),
                    Err(error) => return last.ok_or_else(|| error.to_string()),
                }
                tells.store(true, Ordering::Relaxed);
            }
        });
        let stolen = Stolen { calls, answered };
        while !stolen.answered.load(Ordering::Relaxed) && !stolen.calls.is_finished() {
            thread::yield_now();
        }
        stolen
    }

    /// When it was answered last, once it is refused.
    fn last_answer(self) -> Outcome<Instant> {
        let last = self.calls.join().map_err(|_| "the denied client panicked")?;
        Ok(last?)
    }
}
