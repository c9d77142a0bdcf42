//! A system of cells: how soon nodes and cells join it, how long calls to other cells stop when a
//! part of it is lost, and what links cost.
//!
//! The tree is that of the paper, with real processes of the program `steadfast` on hosts at
//! several sites, and a delay between them. See docs/protocol/cells.md.

use std::time::Duration;

use serde_json::{Value, json};

use harness::figures::quantile;
use harness::sites::Site;
use harness::system::{Place, Plan, System, TREE};
use harness::{Experiment, Outcome, Run, name};

mod carried;
mod finding;
mod idle;
mod joins;
mod lost;
mod seats;

/// A cell of the third level, the one above it, and the root.
const LEAF: &str = "a.a.porto";
const INNER: &str = "a.porto";
const ROOT: &str = "porto";

/// The tree of the smallest size.
const SMALL: [(&str, usize); 4] = [(ROOT, 3), (INNER, 3), ("b.porto", 3), (LEAF, 3)];

/// A cluster of no system, to compare with.
const ALONE: (&str, usize) = ("alone.porto", 3);

/// Joins, faults, calls and cost of a system of cells.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The parts of the experiment; all if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// One way between two cells, in milliseconds.
    #[arg(long, default_value_t = 10.0)]
    delay_ms: f64,
    /// How often each node and cell joins, and each fault strikes.
    #[arg(long, default_value_t = 30)]
    times: usize,
    /// Calls, one at a time, to each cell.
    #[arg(long, default_value_t = 500)]
    calls: usize,
    /// How long an idle system is watched.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    #[command(flatten)]
    place: Place,
}

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// A node, and a whole cell of the third level, from the start of its processes.
    Join,
    /// The seat of a cell is killed, or silent.
    Seat,
    /// All nodes of an inner cell are silent.
    Lost,
    /// One call at a time, by the number of links on its way.
    Carried,
    /// A name is found in another cell.
    Find,
    /// Nobody calls.
    Idle,
}

impl Experiment for Options {
    const NAME: &'static str = "cells";
    const SMOKE: &'static str = "--times 1 --calls 5 --seconds 1 --delay-ms 2";

    fn impossible(&self) -> Option<String> {
        self.place.impossible()
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let tree: &[_] = run.sized(&TREE, &SMALL);
        let cells = [tree, &[ALONE]].concat();
        let plan = Plan { alone: true, ..self.place.plan(&cells, self.delay()) };
        let mut system = System::start(&plan)?;
        let (nodes, delay) = (tree.iter().map(|(_, nodes)| nodes).sum::<usize>(), self.delay_ms);
        run.begin(&format!(
            "{} cells with {nodes} nodes, {delay} ms one way between cells; {}; times in ms",
            tree.len(),
            self.place.build()
        ));
        let has = |part| self.part.is_empty() || self.part.contains(&part);
        if has(Part::Idle) {
            idle::measure(self, run, &system)?;
        }
        if has(Part::Find) {
            finding::measure(self, run, &system)?;
        }
        if has(Part::Carried) {
            carried::measure(self, run, &system)?;
        }
        if has(Part::Join) {
            joins::measure(self, run, &mut system)?;
        }
        if has(Part::Seat) {
            seats::measure(self, run, &mut system)?;
        }
        if has(Part::Lost) {
            lost::measure(self, run, &mut system)?;
        }
        Ok(())
    }
}

impl Options {
    fn delay(&self) -> Duration {
        Duration::from_secs_f64(self.delay_ms / 1e3)
    }
}

/// Cells to call from the leaf, with the links on the way to each.
fn targets(system: &System) -> Vec<(usize, Site)> {
    let all = [(0, LEAF), (1, INNER), (2, ROOT), (3, "b.porto"), (4, "a.b.porto")];
    all.into_iter().filter_map(|(hops, path)| Some((hops, system.site(path).ok()?))).collect()
}

/// Milliseconds.
fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Tells the median, the 99th percentile and the worst of times in milliseconds.
fn tell(run: &Run, measure: &str, what: &str, of: Value, times: Vec<f64>) {
    let at = |share| quantile(times.clone(), share).unwrap_or_default();
    let (n, p50, p99, worst) = (times.len(), at(0.5), at(0.99), at(1.0));
    let mut line = json!({ "peer": "steadfast", "measure": measure });
    let figures = json!({ "n": n, "p50_ms": p50, "p99_ms": p99, "worst_ms": worst });
    for fields in [of, figures] {
        if let (Value::Object(fields), Some(line)) = (fields, line.as_object_mut()) {
            line.extend(fields);
        }
    }
    run.tell(&line, || {
        format!("{what:<58} p50 {p50:8.1}  p99 {p99:8.1}  worst {worst:8.1}  ({n})")
    });
}

/// A part's name in figures.
fn spelt(part: impl clap::ValueEnum) -> Value {
    name(part).into()
}
