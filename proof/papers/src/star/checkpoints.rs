//! Figures 3 and 4: what a checkpoint costs, by the way to save, by size and by copies.

use harness::chart::{Chart, Series};
use harness::cluster::Plan;
use harness::figures::median_and_worst;
use harness::jobs::{Changes, Checkpoint, Kind, Memory, Saving, Scene, per_millisecond};
use harness::{Outcome, Run, name};
use serde_json::{Value, json};

use super::paper;
use super::setting::{Found, Setting};

/// The knobs of figures 3 and 4.
#[derive(Debug, clap::Args)]
#[group(id = "checkpoints-knobs")]
#[command(next_help_heading = "Figures 3 and 4")]
pub struct Knobs {
    /// Thousands of bytes of the rank's memory.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 250, 500, 750, 1_150])]
    sizes: Vec<u64>,
    /// Copies of each image, each at a node of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4],
          value_parser = clap::value_parser!(u8).range(1..=4))]
    copies: Vec<u8>,
    /// Checkpoints of each kind.
    #[arg(long, default_value_t = 20)]
    pub rounds: usize,
    /// Percent of the pages that change between two of them.
    #[arg(long, default_value_t = 10)]
    dirty: u64,
}

/// Milliseconds that a turn computes: a safe point is never far.
const TURN_MS: u64 = 1;

/// Measures, and tells.
pub fn run(knobs: &Knobs, setting: &Setting, run: &Run, found: &mut Found) -> Outcome<()> {
    let nodes = knobs.copies.iter().copied().max().unwrap_or(1).into();
    let mut scene = Scene::start(Plan::of(nodes, nodes, &[]), &setting.storage)?;
    run.begin(&format!(
        "figures 3 and 4: checkpoints of one rank that computes, with {} % of its pages changed in \
         between; {nodes} nodes with an agent each, images in {}; medians of {} checkpoints and the \
         worst, in ms; stop: the program does not go on; first: until it is on the first disk and in \
         the book; all: until as many nodes hold it as there are copies; as this program sees the \
         book, through an admin socket",
        knobs.dirty,
        setting.storage.display(),
        knobs.rounds
    ));
    let table = run.table(
        "way=kind:<12, KB=kb:8, copies:8, image KB=image_kb:10.0, stop=stop_ms:9.3, \
         worst=stop_worst_ms:9.3, first=durable_ms:9.2, all=copied_ms:9.2, \
         worst=copied_worst_ms:9.2, STAR=star:<0",
    );
    let work = per_millisecond() * TURN_MS;
    for kb in &knobs.sizes {
        for copies in &knobs.copies {
            for kind in Kind::ALL {
                let memory = memory(kb * 1_000, knobs.dirty, work);
                let saving = Saving::start(&mut scene, &memory, kind, *copies)?;
                let seen = measure(&mut scene, saving, kind, knobs.rounds)?;
                let row = row(
                    &seen,
                    json!({
                        "measure": "checkpoints", "kind": name(kind), "kb": kb, "copies": copies,
                        "dirty": knobs.dirty, "star": paper::checkpoint(kind, *kb, *copies),
                    }),
                );
                table.row(&row);
                found.rows.push(row);
            }
        }
    }
    let charts = [("figure-3.svg", Kind::Blocking), ("figure-4.svg", Kind::Incremental)];
    let charts = charts.map(|(file, kind)| (file, chart(&found.rows, kind)));
    found.charts.extend(charts);
    Ok(())
}

/// A rank of so many bytes.
pub fn memory(bytes: u64, dirty: u64, work: u64) -> Memory {
    let (turns, changes) = (u64::MAX / 2, Changes::AfterSave);
    Memory { bytes, dirty, changes, work, pause_us: 0, turns, trace: false }
}

/// So many checkpoints of a kind. Where increments are measured, the whole image that begins each
/// chain of them is none.
fn measure(
    scene: &mut Scene,
    mut saving: Saving,
    kind: Kind,
    rounds: usize,
) -> Outcome<Vec<Checkpoint>> {
    let mut seen = Vec::new();
    while seen.len() < rounds {
        let checkpoint = saving.next(scene)?;
        if checkpoint.full != (kind == Kind::Incremental) {
            seen.push(checkpoint);
        }
    }
    saving.end(scene)?;
    Ok(seen)
}

/// A row of these checkpoints.
pub fn row(seen: &[Checkpoint], fields: Value) -> Value {
    let of =
        |figure: &dyn Fn(&Checkpoint) -> f64| median_and_worst(seen.iter().map(figure).collect());
    let stop = of(&|it| it.stop.as_secs_f64() * 1e3);
    let durable = of(&|it| it.durable.as_secs_f64() * 1e3);
    let copied = of(&|it| it.copied.as_secs_f64() * 1e3);
    let more = json!({
        "peer": "steadfast", "n": seen.len(),
        "image_kb": of(&|it| it.bytes as f64 / 1e3).map(|it| it.0),
        "stop_ms": stop.map(|it| it.0), "stop_worst_ms": stop.map(|it| it.1),
        "durable_ms": durable.map(|it| it.0), "durable_worst_ms": durable.map(|it| it.1),
        "copied_ms": copied.map(|it| it.0), "copied_worst_ms": copied.map(|it| it.1),
    });
    harness::report::row(fields, more)
}

/// The time until all copies are there, by size: one line for each number of copies.
fn chart(rows: &[Value], kind: Kind) -> Chart {
    let rows: Vec<&Value> = rows.iter().filter(|row| row["kind"] == name(kind)).collect();
    let lines = (1..=4_u8).map(|copies| {
        let of = rows.iter().filter(|row| row["copies"] == copies);
        let points = of.filter_map(|row| Some((row["kb"].as_f64()?, row["copied_ms"].as_f64()?)));
        Series::line(format!("{copies} copies"), copies.into(), points.collect()).marked()
    });
    let title = format!("{}: until all copies are there", name(kind));
    Chart::new(title, "memory, KB", "ms", lines.collect())
}
