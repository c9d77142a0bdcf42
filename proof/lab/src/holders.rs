//! A node that holds images is lost: until they are at as many nodes again as they are to be, and
//! what that costs the job meanwhile (`star.txt`, section 5).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use harness::cluster::{Plan, wall};
use harness::figures::median_and_worst;
use harness::jobs::{Changes, Kind, Memory, Said, Saving, Scene, per_millisecond};
use harness::{Experiment, Outcome, Run, bail};
use serde_json::{Value, json};

/// A node that holds images is lost: the time until all copies are there again, and its cost.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Mebibytes of the rank's memory.
    #[arg(long, default_value_t = 256)]
    mib: u64,
    /// Percent of the pages that change between two checkpoints.
    #[arg(long, default_value_t = 10)]
    dirty: u64,
    /// Checkpoints before the loss.
    #[arg(long, default_value_t = 3)]
    checkpoints: u32,
    /// Copies of each image.
    #[arg(long, default_value_t = 2)]
    copies: u8,
    /// Nodes: one more than copies at least.
    #[arg(long, default_value_t = 4)]
    nodes: u32,
    /// Milliseconds that a turn computes.
    #[arg(long, default_value_t = 5)]
    turn_ms: u64,
    /// Losses, each in a cluster of its own.
    #[arg(long, default_value_t = 5)]
    losses: usize,
    /// Seconds of undisturbed turns before and after, to compare.
    #[arg(long, default_value_t = 2.0)]
    quiet_s: f64,
    /// Folder of images.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
}

/// A loss that was repaired.
struct Seen {
    /// Seconds from the kill until the book knew, and until all copies were there.
    known: f64,
    whole: f64,
    /// Bytes of the images that were copied.
    bytes: u64,
    /// Millions of bytes a second that a bare write and sync takes.
    disk: f64,
    /// Milliseconds of a turn: before, meanwhile, after; and the longest meanwhile.
    turns: [f64; 3],
    longest: f64,
}

impl Experiment for Options {
    const NAME: &'static str = "holders";
    const SMOKE: &'static str = "--mib 4 --checkpoints 1 --losses 1 --nodes 3 --quiet-s 0.1";

    fn run(&self, run: &Run) -> Outcome<()> {
        if u32::from(self.copies) >= self.nodes || self.copies < 2 {
            bail!("--copies: two at least, and fewer than --nodes");
        }
        run.begin(&format!(
            "{} nodes on one disk ({}), one rank with {} MiB, {} checkpoints with {} % dirty, {} \
             copies; a holder beside the rank's own node is killed with its agent; {} times; disk: \
             the same bytes written and synced in one piece, the mean of before and after; turns \
             of {} ms of the rank, which saves nothing meanwhile",
            self.nodes,
            self.storage.display(),
            self.mib,
            self.checkpoints,
            self.dirty,
            self.copies,
            self.losses,
            self.turn_ms
        ));
        let seen = (0..self.losses).map(|_| self.lose()).collect::<Outcome<Vec<_>>>()?;
        let table = run.table(
            "figure:<8, known s=known_s:9.3, whole s=whole_s:9.3, MB=mb:9.1, MB/s=mb_s:9.1, \
             disk MB/s=disk_mb_s:10.1, turn ms=before_ms:9.2, meanwhile=meanwhile_ms:10.2, \
             after=after_ms:8.2, slower %=slower_percent:9.2, longest=longest_ms:9.2",
        );
        for (figure, worst) in [("median", false), ("worst", true)] {
            table.row(&self.figures(&seen, figure, worst));
        }
        Ok(())
    }
}

impl Options {
    fn figures(&self, seen: &[Seen], figure: &str, worst: bool) -> Value {
        let of = |figure: &dyn Fn(&Seen) -> f64| {
            let both = median_and_worst(seen.iter().map(figure).collect())?;
            Some(if worst { both.1 } else { both.0 })
        };
        // The worst bandwidth is the lowest.
        let sign = if worst { -1.0 } else { 1.0 };
        let rate = |it: &Seen| it.bytes as f64 / 1e6 / (it.whole - it.known).max(1e-9);
        json!({
            "peer": "steadfast", "measure": "holders", "figure": figure, "mib": self.mib,
            "copies": self.copies, "nodes": self.nodes, "losses": self.losses,
            "known_s": of(&|it| it.known), "whole_s": of(&|it| it.whole),
            "mb": of(&|it| it.bytes as f64 / 1e6),
            "mb_s": of(&|it| rate(it) * sign).map(|it| it * sign),
            "disk_mb_s": of(&|it| it.disk * sign).map(|it| it * sign),
            "before_ms": of(&|it| it.turns[0]), "meanwhile_ms": of(&|it| it.turns[1]),
            "after_ms": of(&|it| it.turns[2]),
            "slower_percent": of(&|it| (it.turns[1] / it.turns[0] - 1.0) * 100.0),
            "longest_ms": of(&|it| it.longest),
        })
    }

    fn lose(&self) -> Outcome<Seen> {
        let mut scene = Scene::start(Plan::of(self.nodes, self.nodes, &[]), &self.storage)?;
        let memory = Memory {
            bytes: self.mib << 20,
            dirty: self.dirty,
            changes: Changes::AfterSave,
            work: per_millisecond() * self.turn_ms,
            pause_us: 0,
            turns: u64::MAX / 2,
            trace: true,
        };
        let mut saving = Saving::start(&mut scene, &memory, Kind::Incremental, self.copies)?;
        for _ in 0..self.checkpoints {
            saving.next(&mut scene)?;
        }
        let job = saving.job();
        let (home, _) = scene.place(job)?;
        let (victim, bytes) = scene.wait("a holder", |jobs| {
            let images = &jobs.job(job)?.ranks[0].images;
            let mut others = images.generations().flat_map(|it| &it.holders);
            let victim = others.find(|it| it.node != home)?.node;
            let held =
                images.generations().filter(|it| it.holders.iter().any(|at| at.node == victim));
            Some((victim, held.map(|it| it.bytes).sum::<u64>()))
        })?;
        let before = bandwidth(&self.storage, bytes)?;
        let quiet = Duration::from_secs_f64(self.quiet_s);
        let begun = wall();
        thread::sleep(quiet);
        let killed = scene.kill_node(victim)?;
        let mut known = None;
        let whole = scene.wait("all copies", |jobs| {
            let images = &jobs.job(job)?.ranks[0].images;
            let gone = |it: &job::Generation| it.holders.iter().all(|at| at.node != victim);
            if !images.generations().all(gone) {
                return None;
            }
            let now = wall();
            known.get_or_insert(now);
            let copies = usize::from(self.copies);
            images.generations().all(|it| it.holders.len() >= copies).then_some(now)
        })?;
        thread::sleep(quiet);
        let ended = wall();
        let ends: Vec<u64> = scene
            .said(job, 0)
            .iter()
            .filter_map(|said| if let Said::Turned { at } = said { Some(*at) } else { None })
            .collect();
        saving.end(&mut scene)?;
        let disk = f64::midpoint(before, bandwidth(&self.storage, bytes)?);
        let since = |at: u64| at.saturating_sub(killed) as f64 / 1e9;
        let spans = [begun..killed, killed..whole, whole..ended];
        let turns = spans.map(|span| turns_within(&ends, span.start, span.end));
        Ok(Seen {
            known: since(known.unwrap_or(whole)),
            whole: since(whole),
            bytes,
            disk,
            longest: turns[1].1,
            turns: turns.map(|(mean, _)| mean),
        })
    }
}

/// The mean and the longest of the turns that were under way within a span, in milliseconds.
fn turns_within(ends: &[u64], from: u64, to: u64) -> (f64, f64) {
    let pairs = ends.windows(2).filter(|pair| pair[1] > from && pair[0] < to);
    let took: Vec<f64> = pairs.map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let mean = took.iter().sum::<f64>() / took.len().max(1) as f64;
    (mean, took.into_iter().fold(0.0, f64::max))
}

/// Millions of bytes a second that can be written and synced in one piece.
fn bandwidth(folder: &Path, bytes: u64) -> Outcome<f64> {
    let folder = tempfile::tempdir_in(folder)?;
    let data = vec![3_u8; usize::try_from(bytes)?];
    let begun = Instant::now();
    let file = File::create(folder.path().join("floor"))?;
    file.write_all_at(&data, 0)?;
    file.sync_data()?;
    Ok(bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())
}
