//! Figure 5: from the death of a rank, or of its whole node, until it computes again.

use harness::chart::{Chart, Series};
use harness::cluster::Plan;
use harness::figures::median_and_worst;
use harness::jobs::{Scene, per_millisecond};
use harness::process::Role;
use harness::{Outcome, Run};
use job::{Recovery, Spec};
use serde_json::{Value, json};
use wire::rank::Every;

use super::setting::{Found, Setting};
use super::{checkpoints, paper};

/// The knobs of figure 5.
#[derive(Debug, clap::Args)]
#[group(id = "recovery-knobs")]
#[command(next_help_heading = "Figure 5")]
pub struct Knobs {
    /// Thousands of bytes of the rank's memory.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_150, 268_435])]
    recover: Vec<u64>,
    /// Kills of each kind.
    #[arg(long, default_value_t = 20)]
    kills: usize,
}

/// Nodes, and copies of each image.
const NODES: u32 = 3;
const COPIES: u8 = 2;

/// Between two checkpoints, in microseconds.
const EVERY: Every = Every::Micros(200_000);

/// Signals that the example in Python transforms: it does not come to an end.
const SIGNALS: &str = "1000000000";

/// The victim of a kill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Rank,
    Node,
}

/// Measures, and tells.
pub fn run(knobs: &Knobs, setting: &Setting, run: &Run, found: &mut Found) -> Outcome<()> {
    let mut scene = Scene::start(Plan::of(NODES, NODES, &[]), &setting.storage)?;
    run.begin(&format!(
        "figure 5: recovery of one rank on {NODES} nodes of this machine, {COPIES} copies in {}; {} \
         kills (-9) of each kind, of the rank's process or of its node with agent and rank; a \
         checkpoint each {EVERY:?}; medians in ms since the kill; a rank in Python is a fork of a \
         process with its imports, or, cold, starts its interpreter and numpy anew",
        setting.storage.display(),
        knobs.kills
    ));
    let table = run.table(
        "killed:<8, rank:<8, KB=kb:9, kills:6, seen=seen_ms:9.2, ordered=ordered_ms:9.2, \
         started=started_ms:9.2, restored=restored_ms:10.2, computing=computing_ms:11.2, \
         worst=worst_ms:9.2, STAR s=star_s:8.1",
    );
    let work = per_millisecond();
    let mut ranks = Vec::new();
    for kb in &knobs.recover {
        let memory = checkpoints::memory(kb * 1_000, 10, work);
        ranks.push(("native", Some(*kb), Role::Rank(memory).command()?, Vec::new()));
    }
    if let Some(python) = &setting.python {
        let command = setting.example(python, "fft.py", SIGNALS)?;
        let cold = vec![("STEADFAST_JOB_COLD".into(), "1".into())];
        ranks.push(("python", None, command.clone(), Vec::new()));
        ranks.push(("cold", None, command, cold));
    }
    for (rank, kb, command, environment) in ranks {
        for (victim, killed) in [(Victim::Rank, "process"), (Victim::Node, "node")] {
            let (command, environment) = (command.clone(), environment.clone());
            let spec = Spec { command, environment, ..Spec::default() };
            let moments = recover(&mut scene, victim, spec, knobs.kills)?;
            let [seen, ordered, started, restored, computing] =
                moments.map(|all| median_and_worst(all).unwrap_or_default());
            let row = json!({
                "peer": "steadfast", "measure": "recovery", "killed": killed, "rank": rank,
                "kb": kb, "kills": knobs.kills, "seen_ms": seen.0, "ordered_ms": ordered.0,
                "started_ms": started.0, "restored_ms": restored.0, "computing_ms": computing.0,
                "worst_ms": computing.1, "star_s": kb.and_then(paper::recovery),
            });
            table.row(&row);
            found.rows.push(row);
        }
    }
    found.charts.push(("figure-5.svg", chart(&found.rows)));
    Ok(())
}

/// Kills again and again, each time when the rank has saved. Milliseconds since each kill: it is
/// seen, the next start is ordered, begun, has its state, and computes.
fn recover(scene: &mut Scene, victim: Victim, spec: Spec, kills: usize) -> Outcome<[Vec<f64>; 5]> {
    let spec = Spec { ranks: 1, copies: COPIES, every: EVERY, ..spec };
    let job = scene.submit(spec)?;
    let mut moments: [Vec<f64>; 5] = Default::default();
    for _ in 0..kills {
        let (node, start) = scene.place(job)?;
        // It has come further than its last start, and another node could take it over.
        scene.wait("checkpoints", |jobs| {
            let images = &jobs.job(job)?.ranks[0].images;
            let of_this = images.generations().filter(|it| it.place.start == start).count();
            let newest = images.restorable().next()?;
            let held = newest.iter().all(|it| it.holders.len() >= COPIES.into());
            (of_this > 1 && held).then_some(())
        })?;
        let killed = match victim {
            Victim::Rank => scene.kill_rank(job)?,
            Victim::Node => scene.kill_node(node)?,
        };
        let recovery: Recovery = scene.wait("a recovery", |jobs| {
            let last = jobs.job(job)?.ranks[0].recoveries.back()?;
            (last.start == start && last.moments.is_some()).then(|| last.clone())
        })?;
        if let Some((ordered, then)) = recovery.ordered.zip(recovery.moments) {
            let times = [recovery.seen, ordered, then.begun, then.restored, then.computes];
            for (all, at) in moments.iter_mut().zip(times) {
                all.push(at.0.saturating_sub(killed) as f64 / 1e6);
            }
        }
        if victim == Victim::Node {
            scene.return_node(node)?;
        }
    }
    scene.end(job)?;
    Ok(moments)
}

/// The time until the rank computes, by size.
fn chart(rows: &[Value]) -> Chart {
    let lines = ["process", "node"].into_iter().enumerate().map(|(colour, killed)| {
        let of = rows.iter().filter(|row| row["killed"] == killed && row["rank"] == "native");
        let points =
            of.filter_map(|row| Some((row["kb"].as_f64()?, row["computing_ms"].as_f64()?)));
        Series::line(format!("its {killed} killed"), colour, points.collect()).marked()
    });
    let last = paper::SIZES[paper::SIZES.len() - 1] as f64;
    let chart = Chart::new("Until a killed rank computes", "memory, KB", "ms", lines.collect());
    Chart { x_to: Some(last), ..chart }
}
