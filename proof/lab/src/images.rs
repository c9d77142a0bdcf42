//! Checkpoints of a rank's memory: how long the program stops, until when an image is on the disk,
//! and how long it takes to restore it (`star.txt`, section 3 and figure 3).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use agent::images::{Commit, Saver, restore};
use image::{Array, MAX_CHAIN, PAGE, Parent, Place};
use rank::{Arena, Kind, Staging, Tracker};
use serde_json::json;

use harness::figures::Times;
use harness::{Experiment, Outcome, Run, bail};

/// Checkpoints of a rank's memory: the stop, the time until it is on the disk, and the restart.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Mebibytes of the rank's memory.
    #[arg(long, default_value_t = 256)]
    mib: u64,
    /// Percent of the pages that change between two checkpoints.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    dirty: Vec<u64>,
    /// Checkpoints of each kind.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Compare pages with a copy, instead of asking the kernel which were written.
    #[arg(long)]
    compare: bool,
    /// Images are in a folder of its own here.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
}

/// Times of one kind of checkpoint.
#[derive(Default)]
struct Seen {
    stops: Times,
    saves: Times,
    restores: Times,
    bytes: u64,
}

impl Experiment for Options {
    const NAME: &'static str = "images";
    const SMOKE: &'static str = "--mib 4 --rounds 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        let folder = tempfile::tempdir_in(&self.storage)?;
        let length = self.mib << 20;
        let array = Array { name: "a".into(), form: format!("|u1 ({length},)"), length };
        let mut arena = Arena::new(vec![array])?;
        arena.bytes_mut(0).fill(1);
        let kind = if self.compare { Kind::Compared } else { Tracker::new(&arena).kind() };
        run.begin(&format!(
            "{} MiB of memory, pages found by {kind:?}, images in {}; medians in ms, and the worst; s/GiB: \
             the stop by what is dirty; full by: so many times as long takes \
             a full one to the disk; copied: the same \
             bytes copied in memory, written: and written to the disk in one piece; restored from the \
             page cache",
            self.mib,
            self.storage.display()
        ));
        let table = run.table(
            "image:<12, dirty %=dirty:8, MB=mb:9.2, stop=stop_ms:9.3, worst=stop_worst_ms:9.3, \
             s/GiB=stop_s_per_gib:8.3, copied=copied_ms:9.3, \
             on disk=disk_ms:9.2, worst=disk_worst_ms:9.2, full by=full_by:8.1, written=written_ms:9.2, \
             restored=restored_ms:9.2",
        );
        let increments = self.dirty.iter().map(|dirty| ("incremental", *dirty));
        let mut full = None;
        for (image, dirty) in [("full", 100)].into_iter().chain(increments) {
            let way = (dirty, image == "full");
            let seen = self.measure(&mut arena, (kind, folder.path()), way)?;
            let median = |times: &Times| times.summary().map(|all| all.p50 / 1e3);
            let worst = |times: &Times| times.summary().map(|all| all.max / 1e3);
            let gib = seen.bytes as f64 / f64::from(1 << 30);
            let (copied, written) = floors(seen.bytes, &folder.path().join("floor"), self.rounds)?;
            let disk = median(&seen.saves);
            let full = *full.get_or_insert(disk);
            table.row(&json!({
                "peer": "steadfast", "measure": "images", "image": image, "dirty": dirty,
                "tracker": format!("{kind:?}"), "mib": self.mib, "mb": seen.bytes as f64 / 1e6,
                "stop_ms": median(&seen.stops), "stop_worst_ms": worst(&seen.stops),
                "stop_s_per_gib": median(&seen.stops).map(|ms| ms / 1e3 / gib),
                "disk_ms": disk, "full_by": full.zip(disk).map(|(full, disk)| full / disk),
                "disk_worst_ms": worst(&seen.saves),
                "restored_ms": median(&seen.restores),
                "copied_ms": median(&copied), "written_ms": median(&written),
            }));
        }
        Ok(())
    }
}

impl Options {
    /// Checkpoints of an arena of which so many percent of the pages change in between.
    fn measure(
        &self,
        arena: &mut Arena,
        (kind, folder): (Kind, &Path),
        (dirty, full): (u64, bool),
    ) -> Outcome<Seen> {
        let (mut seen, mut staging) = (Seen::default(), Staging::new()?);
        let (saver, mut tracker) = (Saver::new(folder), Tracker::of(kind, arena)?);
        let mut chain: Vec<Commit> = Vec::new();
        for round in 0..=self.rounds {
            let pages = arena.bytes_mut(0).chunks_mut(PAGE as usize);
            for (number, page) in (0_u64..).zip(pages) {
                if number * dirty / 100 != (number + 1) * dirty / 100 {
                    page[7] = page[7].wrapping_add(1);
                }
            }
            // The first checkpoint is a full one, and warms the snapshot's memory. So is the first
            // of each chain.
            let anew = full || chain.is_empty() || chain.len() == MAX_CHAIN;
            let parent = chain.last().filter(|_| !anew);
            let parent = parent.map(|last| Parent { place: last.place, root: last.root });
            let generation = 1 + chain.last().map_or(0, |last| last.place.generation);
            let place = Place { job: 1, rank: 0, start: 1, generation };
            let begun = Instant::now();
            let changed = tracker.changed(arena)?;
            let changed = parent.is_some().then_some(&changed[..]);
            let snapshot = staging.take(arena, &[], generation, changed)?;
            let stop = begun.elapsed();
            let commit = saver.save((&snapshot, staging.file()), place, parent)?;
            tracker.saved();
            let save = begun.elapsed();
            let begun = Instant::now();
            let state = restore(folder, place, commit.root)?;
            let step = state.step;
            let restored = Arena::restored(state.file, state.arrays)?;
            let restart = begun.elapsed();
            if step != generation || restored.bytes(0) != arena.bytes(0) {
                bail!("what was restored is not what was saved");
            }
            if anew {
                for old in chain.drain(..) {
                    saver.remove(old.place)?;
                }
            }
            chain.push(commit);
            if round > 0 && anew == full {
                seen.stops.push(stop);
                seen.saves.push(save);
                seen.restores.push(restart);
                seen.bytes = commit.bytes;
            }
        }
        for old in chain {
            saver.remove(old.place)?;
        }
        Ok(seen)
    }
}

/// The same bytes copied in memory, and written to the disk in one piece.
fn floors(bytes: u64, file: &Path, rounds: usize) -> Outcome<(Times, Times)> {
    let (mut copied, mut written) = (Times::default(), Times::default());
    let (from, mut to) = (vec![1_u8; usize::try_from(bytes)?], vec![2_u8; usize::try_from(bytes)?]);
    for _ in 0..rounds {
        copied.measure(1, || {
            to.copy_from_slice(std::hint::black_box(&from));
            Ok(())
        })?;
        written.measure(1, || {
            let file = File::create(file)?;
            file.write_all_at(std::hint::black_box(&to), 0)?;
            Ok(file.sync_data()?)
        })?;
    }
    Ok((copied, written))
}
