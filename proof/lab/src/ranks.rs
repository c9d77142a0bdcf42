//! The cost of checkpoints of ranks that compute: by paired runs with and without checkpoints, and
//! by accounting (`star.txt`, table 2).

use std::path::PathBuf;

use harness::cluster::Plan;
use harness::figures::median_and_worst;
use harness::jobs::{Changes, Memory, Ran, Scene, per_millisecond};
use harness::process::Role;
use harness::{Experiment, Outcome, Run, bail};
use job::Spec;
use serde_json::{Value, json};
use wire::rank::Every;

/// The cost of checkpoints of ranks that compute, by paired runs and by accounting.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Mebibytes of a rank's memory.
    #[arg(long, default_value_t = 256)]
    mib: u64,
    /// Percent of the pages that a turn changes.
    #[arg(long, default_value_t = 1)]
    dirty: u64,
    /// Milliseconds that a turn computes.
    #[arg(long, default_value_t = 20)]
    turn_ms: u64,
    /// Seconds between two checkpoints.
    #[arg(long, value_delimiter = ',', default_values_t = [10.0, 1.0])]
    every: Vec<f64>,
    /// Seconds of each run.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Runs with and without checkpoints, in turn.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Ranks.
    #[arg(long, default_value_t = 1)]
    ranks: u32,
    /// Nodes.
    #[arg(long, default_value_t = 1)]
    nodes: u32,
    /// Copies of each image, on so many nodes.
    #[arg(long, default_value_t = 1)]
    copies: u8,
    /// Folder of images.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
}

impl Experiment for Options {
    const NAME: &'static str = "ranks";
    const SMOKE: &'static str = "--mib 4 --seconds 1 --pairs 1 --every 0.2 --turn-ms 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        let mut scene = Scene::start(Plan::of(self.nodes, self.nodes, &[]), &self.storage)?;
        run.begin(&format!(
            "{} ranks with {} MiB each, of which a turn of {} ms changes {} %, on {} nodes; {} copies \
             in {}; {} pairs of runs of {} s with and without checkpoints in turn; overhead: median of \
             the paired differences; safe: time in safe points; agents: processor time of agents and \
             their writers, both of the ranks' time",
            self.ranks,
            self.mib,
            self.turn_ms,
            self.dirty,
            self.nodes,
            self.copies,
            self.storage.display(),
            self.pairs,
            self.seconds
        ));
        let table = run.table(
            "every s=every_s:9.1, overhead %=overhead_percent:12.2, worst %=worst_percent:9.2, \
             safe %=safe_percent:9.3, agents %=agents_percent:10.3, sum %=accounted_percent:9.3, \
             worst %=accounted_worst_percent:9.3, stop ms=stop_ms:9.2, worst=stop_worst_ms:8.2, \
             on disk=disk_ms:9.1, images:8",
        );
        let memory = Memory {
            bytes: self.mib << 20,
            dirty: self.dirty,
            changes: Changes::EachTurn,
            work: per_millisecond() * self.turn_ms,
            pause_us: 0,
            turns: (self.seconds * 1_000 / self.turn_ms).max(1),
            trace: false,
        };
        for every in &self.every {
            table.row(&self.overhead(&mut scene, &memory, *every)?);
        }
        Ok(())
    }
}

impl Options {
    /// Runs with and without checkpoints in turn.
    fn overhead(&self, scene: &mut Scene, memory: &Memory, every: f64) -> Outcome<Value> {
        let micros = Every::Micros((every * 1e6) as u64);
        let command = Role::Rank(memory.clone()).command()?;
        let spec = Spec { command, ranks: self.ranks, copies: self.copies, ..Spec::default() };
        let (mut differences, mut with, mut without) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..self.pairs {
            // The first one alternates, so that what drifts falls on both.
            let kinds = if pair % 2 == 0 { [Every::Never, micros] } else { [micros, Every::Never] };
            for kind in kinds {
                let ran = Ran::run(scene, Spec { every: kind, ..spec.clone() })?;
                if kind == Every::Never { &mut without } else { &mut with }.push(ran);
            }
        }
        for (with, without) in with.iter().zip(&without) {
            differences.push((with.computed / without.computed - 1.0) * 100.0);
        }
        let of = |figure: &dyn Fn(&Ran) -> Option<f64>| {
            median_and_worst(with.iter().filter_map(figure).collect())
        };
        let Some((overhead, worst)) = median_and_worst(differences) else {
            bail!("no pair was run")
        };
        let accounted = of(&Ran::accounted_percent);
        let stops = median_and_worst(with.iter().flat_map(|ran| ran.stops.clone()).collect());
        Ok(json!({
            "peer": "steadfast", "measure": "ranks", "mib": self.mib, "dirty": self.dirty,
            "every_s": every, "ranks": self.ranks, "copies": self.copies, "pairs": self.pairs,
            "overhead_percent": overhead, "worst_percent": worst,
            "safe_percent": of(&|ran| ran.safe_percent).map(|it| it.0),
            "agents_percent": of(&|ran| Some(ran.agents_percent)).map(|it| it.0),
            "agents_idle_percent": median_and_worst(
                without.iter().map(|ran| ran.agents_percent).collect()
            ).map(|it| it.0),
            "accounted_percent": accounted.map(|it| it.0),
            "accounted_worst_percent": accounted.map(|it| it.1),
            "stop_ms": stops.map(|it| it.0), "stop_worst_ms": stops.map(|it| it.1),
            "disk_ms": of(&|ran| Some(ran.saved)).map(|it| it.0),
            "images": with.iter().map(|ran| ran.images).sum::<u64>(),
        }))
    }
}
