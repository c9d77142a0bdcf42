//! Tables 1 and 2: the running time of applications without checkpoints and with them, in turn.

use harness::cluster::Plan;
use harness::figures::median_and_worst;
use harness::jobs::{Kind, Ran, Scene};
use harness::{Outcome, Run, ensure, name};
use job::{Log, Spec};
use serde_json::json;
use wire::rank::Every;

use super::applications::Application;
use super::orders::Orders;
use super::paper;
use super::setting::{Found, Setting};

/// The knobs of table 2.
#[derive(Debug, clap::Args)]
#[group(id = "table-knobs")]
#[command(next_help_heading = "Table 2")]
pub struct Knobs {
    /// Rows and columns of the matrix of gauss; the paper's were 1,024. 0: not this application.
    #[arg(long, default_value_t = 8_192)]
    gauss: usize,
    /// Rows and columns of the matrices; the paper's were 1,024. 0: not this application.
    #[arg(long, default_value_t = 12_288)]
    matmul: usize,
    /// Transforms of 32,768 points that each rank computes. 0: not this application.
    #[arg(long, default_value_t = 300_000)]
    fft: u64,
    /// Ranks of each application, each at a node of its own where there is room.
    #[arg(long, default_value_t = 2)]
    ranks: u32,
    /// Seconds between two checkpoints, as in the paper.
    #[arg(long, default_value_t = 120.0)]
    interval: f64,
    /// Runs without checkpoints, each with one of each way to save.
    #[arg(long, default_value_t = 3)]
    pairs: usize,
    /// Where messages are kept, beside the images: the paper had them on two disks. Runs without
    /// checkpoints have them in memory alone.
    #[arg(long, default_value_t = Log::Sender)]
    log: Log,
    /// Only this way to save; all by default.
    #[arg(long, value_enum, value_name = "WAY")]
    way: Vec<Kind>,
}

/// Copies of each image, as in the paper; and as many nodes.
const COPIES: u8 = 2;

/// An application of the table, and how its ranks are started.
struct Row {
    name: &'static str,
    paper: &'static paper::Application,
    /// Bytes that each rank saves, where it is known.
    saved: Option<u64>,
    command: Vec<String>,
}

/// Measures, and tells.
pub fn run(knobs: &Knobs, setting: &Setting, run: &Run, found: &mut Found) -> Outcome<()> {
    let nodes = u32::from(COPIES);
    let mut scene = Scene::start(Plan::of(nodes, nodes, &[]), &setting.storage)?;
    run.begin(&format!(
        "tables 1 and 2: {} ranks on {nodes} nodes of this machine, {COPIES} copies in {}, a \
         checkpoint each {} s; {} rounds of a run without checkpoints and one of each way, another one \
         first each time; s: median; overhead: median of the paired differences; safe: time in safe \
         points; agents: processor time of agents and their writers, both of the ranks' time; the ranks \
         of gauss talk, and its logs are in its images, and kept so: {}",
        knobs.ranks,
        setting.storage.display(),
        knobs.interval,
        knobs.pairs,
        knobs.log
    ));
    let table = run.table(
        "application:<12, way=kind:<12, saved KB=saved_kb:9.0, s=seconds:9.2, \
         overhead %=overhead_percent:11.2, worst=worst_percent:8.2, safe %=safe_percent:8.3, \
         agents %=agents_percent:9.3, sum %=accounted_percent:8.3, stop ms=stop_ms:8.2, \
         worst=stop_worst_ms:8.2, images:7, STAR s=star_s:8.0, %=star_percent:7.2, KB=star_kb:7",
    );
    for row in knobs.rows(setting)? {
        let runs = knobs.rounds(&mut scene, &row)?;
        for (way, of_way) in runs.iter().enumerate() {
            let kind = way.checked_sub(1).map(|place| Kind::ALL[place]);
            if of_way.is_empty() {
                continue;
            }
            let both = |figure: &dyn Fn(&Ran) -> Option<f64>| {
                median_and_worst(of_way.iter().filter_map(figure).collect())
            };
            let figure = |figure: &dyn Fn(&Ran) -> Option<f64>| both(figure).map(|it| it.0);
            let accounted = both(&Ran::accounted_percent);
            let pairs = of_way.iter().zip(&runs[0]).filter(|_| kind.is_some());
            let overhead = median_and_worst(
                pairs.map(|(with, bare)| (with.computed / bare.computed - 1.0) * 100.0).collect(),
            );
            let stops = of_way.iter().flat_map(|ran| ran.stops.clone()).collect();
            let stops = median_and_worst(stops);
            let star = way.checked_sub(1).map(|place| row.paper.saved[place]);
            let line = json!({
                "peer": "steadfast", "measure": "table", "application": row.name,
                "kind": kind.map_or("none".into(), name), "ranks": knobs.ranks,
                "log": kind.map(|_| knobs.log.to_string()),
                "gauss": knobs.gauss, "matmul": knobs.matmul, "fft": knobs.fft, "interval_s": knobs.interval,
                "runs": of_way.len(), "saved_kb": row.saved.map(|it| it as f64 / 1e3),
                "seconds": figure(&|ran| Some(ran.computed)),
                "longest_seconds": both(&|ran| Some(ran.computed)).map(|it| it.1),
                "overhead_percent": overhead.map(|it| it.0),
                "worst_percent": overhead.map(|it| it.1),
                "safe_percent": figure(&|ran| ran.safe_percent),
                "agents_percent": figure(&|ran| Some(ran.agents_percent)),
                "accounted_percent": accounted.map(|it| it.0),
                "accounted_worst_percent": accounted.map(|it| it.1),
                "stop_ms": stops.map(|it| it.0), "stop_worst_ms": stops.map(|it| it.1),
                "images": of_way.iter().map(|ran| ran.images).sum::<u64>(),
                "star_s": star.map_or(row.paper.running, |it| it.0),
                "star_percent": star.map(|it| it.1), "star_kb": row.paper.memory_kib,
            });
            table.row(&line);
            found.rows.push(line);
        }
    }
    Ok(())
}

impl Knobs {
    fn rows(&self, setting: &Setting) -> Outcome<Vec<Row>> {
        let Knobs { gauss, matmul, fft, ranks, .. } = *self;
        let mut rows = Vec::new();
        for (application, names, paper, size) in [
            (Application::Gauss(gauss), ["gauss", "gauss.py"], &paper::GAUSS, gauss as u64),
            (Application::Matmul(matmul), ["matmul", "matmul.py"], &paper::MATMUL, matmul as u64),
            (Application::Fft(fft), ["fft", "fft.py"], &paper::FFT, fft),
        ] {
            if size == 0 {
                continue;
            }
            let (command, saved) =
                (Orders::Run(application).role()?.command()?, Some(application.saved(ranks)));
            rows.push(Row { name: names[0], paper, saved, command });
            if let Some(python) = &setting.python {
                let command = setting.example(python, names[1], &size.to_string())?;
                rows.push(Row { name: names[1], paper, saved: None, command });
            }
        }
        Ok(rows)
    }

    /// Runs without checkpoints, and with those of each way.
    fn rounds(&self, scene: &mut Scene, row: &Row) -> Outcome<[Vec<Ran>; 4]> {
        let spec = Spec {
            command: row.command.clone(),
            ranks: self.ranks,
            copies: COPIES,
            ..Spec::default()
        };
        let wanted = |kind: &Kind| self.way.is_empty() || self.way.contains(kind);
        let kinds = Kind::ALL.iter().enumerate().filter(|(_, kind)| wanted(kind));
        let ways: Vec<(usize, Option<Kind>)> = std::iter::once((0, None))
            .chain(kinds.map(|(place, kind)| (place + 1, Some(*kind))))
            .collect();
        let mut runs: [Vec<Ran>; 4] = Default::default();
        for round in 0..self.pairs {
            for turn in 0..ways.len() {
                let (place, kind) = ways[(turn + round) % ways.len()];
                let spec = match kind {
                    None => Spec { every: Every::Never, ..spec.clone() },
                    Some(kind) => {
                        let every = Every::Micros((self.interval * 1e6) as u64);
                        kind.of(Spec { every, log: self.log, ..spec.clone() })
                    }
                };
                eprintln!("{}: {} ...", row.name, kind.map_or("none".into(), name));
                runs[place].push(Ran::run(scene, spec)?);
            }
        }
        let sums = || runs.iter().flatten().map(|ran| ran.sum.to_bits());
        let same = sums().all(|sum| Some(sum) == sums().next());
        ensure!(same, "{}: runs have different results", row.name);
        Ok(runs)
    }
}
