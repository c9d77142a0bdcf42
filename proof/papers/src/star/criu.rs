//! The same memory under CRIU, in turn with ours: how long the process stands still, and until its
//! image is on the disk.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use harness::cluster::Plan;
use harness::figures::median_and_worst;
use harness::jobs::{Checkpoint, Kind, Memory, Saving, Scene};
use harness::process::Process;
use harness::{Outcome, Run, bail};
use serde_json::{Value, json};

use super::arena::Arena;
use super::checkpoints;
use super::orders::Orders;
use super::setting::{Found, Setting};

/// The knobs beside CRIU.
#[derive(Debug, clap::Args)]
#[group(id = "criu-knobs")]
#[command(next_help_heading = "CRIU")]
pub struct Knobs {
    /// The program; without it that of the path, if there is one.
    #[arg(long, value_name = "PATH")]
    criu: Option<PathBuf>,
    /// Mebibytes of memory.
    #[arg(long, default_value_t = 256)]
    mib: u64,
    /// Percent of the pages that change between two checkpoints.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    percent: Vec<u64>,
    /// Checkpoints, and dumps, of each kind.
    #[arg(long, default_value_t = 10)]
    dumps: usize,
}

/// A dump that has worked.
struct Dump {
    frozen: Duration,
    durable: Duration,
    bytes: u64,
}

/// The program.
struct Criu {
    program: PathBuf,
    /// It can dump what has changed alone.
    tracks: bool,
}

/// Measures, and tells.
pub fn run(knobs: &Knobs, setting: &Setting, run: &Run, found: &mut Found) -> Outcome<()> {
    let rounds = knobs.dumps;
    let mut scene = Scene::start(Plan::of(1, 1, &[]), &setting.storage)?;
    let (criu, words) = match Criu::find(knobs.criu.as_deref()) {
        Ok((criu, words)) => (Some(criu), words),
        Err(why) => (None, format!("CRIU is not measured: {why}")),
    };
    run.begin(&format!(
        "{} MiB in a rank that sleeps, and in a process that CRIU dumps, {rounds} times in turn; in {}; \
         stop: the process stands still, by its own clock and by CRIU's; durable: all is synced; \
         medians and the worst, in ms; {words}",
        knobs.mib,
        setting.storage.display()
    ));
    if run.json && criu.is_none() {
        eprintln!("{words}");
    }
    let table = run.table(
        "by=peer:<10, image=kind:<12, dirty %=dirty:8, MB=mb:9.2, stop=stop_ms:9.3, \
         worst=stop_worst_ms:9.3, durable=durable_ms:9.2, worst=durable_worst_ms:9.2",
    );
    for dirty in &knobs.percent {
        for row in compare((knobs, setting), &mut scene, criu.as_ref(), *dirty)? {
            table.row(&row);
            found.rows.push(row);
        }
    }
    Ok(())
}

/// Checkpoints and dumps in turn.
fn compare(
    (knobs, setting): (&Knobs, &Setting),
    scene: &mut Scene,
    criu: Option<&Criu>,
    dirty: u64,
) -> Outcome<Vec<Value>> {
    let (bytes, rounds) = (knobs.mib << 20, knobs.dumps);
    // It sleeps: what it computes would only delay CRIU.
    let memory = Memory { pause_us: 1_000, ..checkpoints::memory(bytes, dirty, 0) };
    let mut ours = Saving::start(scene, &memory, Kind::Incremental, 1)?;
    let folder = tempfile::tempdir_in(&setting.storage)?;
    let mut arena = Process::start(&Orders::Hold(Arena { bytes, dirty }).role()?)?;
    arena.line()?;
    let (mut saved, mut dumps) = (Vec::<Checkpoint>::new(), Vec::new());
    for round in 0..=rounds {
        let mut checkpoint = ours.next(scene)?;
        while checkpoint.full {
            // It begins a chain; what is compared are increments.
            checkpoint = ours.next(scene)?;
        }
        arena.tell("change")?;
        arena.line()?;
        let dump = criu.map(|criu| criu.dump(arena.id(), folder.path(), round)).transpose()?;
        // The first ones find cold memory, and CRIU's nothing to build on.
        if round > 0 {
            saved.push(checkpoint);
            dumps.extend(dump);
        }
    }
    ours.end(scene)?;
    let fields = json!({
        "measure": "criu", "kind": "incremental", "dirty": dirty, "mib": knobs.mib,
        "mb": saved.last().map(|it| it.bytes as f64 / 1e6),
    });
    let mut rows = vec![checkpoints::row(&saved, fields)];
    if let Some(criu) = criu {
        let of =
            |figure: &dyn Fn(&Dump) -> f64| median_and_worst(dumps.iter().map(figure).collect());
        let stop = of(&|it| it.frozen.as_secs_f64() * 1e3);
        let durable = of(&|it| it.durable.as_secs_f64() * 1e3);
        rows.push(json!({
            "peer": "criu", "measure": "criu", "n": dumps.len(),
            "kind": if criu.tracks { "incremental" } else { "full" }, "dirty": dirty,
            "mib": knobs.mib, "mb": of(&|it| it.bytes as f64 / 1e6).map(|it| it.0),
            "stop_ms": stop.map(|it| it.0), "stop_worst_ms": stop.map(|it| it.1),
            "durable_ms": durable.map(|it| it.0), "durable_worst_ms": durable.map(|it| it.1),
        }));
    }
    Ok(rows)
}

impl Criu {
    /// The program, if it works here, and what is to be said of it; else why it does not.
    fn find(path: Option<&Path>) -> Result<(Criu, String), String> {
        let program = path.unwrap_or(Path::new("criu")).to_owned();
        let run = |arguments: &[&str]| {
            let output = Command::new(&program).args(arguments).output();
            output.map_err(|error| format!("{}: {error}", program.display()))
        };
        let version = run(&["--version"])?;
        let version = String::from_utf8_lossy(&version.stdout).trim().replace('\n', " ");
        let check = run(&["check"])?;
        if !check.status.success() {
            return Err(format!("{version} does not work here: {}", why(&check)));
        }
        let tracks = run(&["check", "--feature", "mem_dirty_track"])?.status.success();
        let kind = if tracks {
            "it dumps what has changed"
        } else {
            "it dumps all each time: this kernel does not tell it what has changed"
        };
        Ok((Criu { program, tracks }, format!("CRIU {version}: {kind}")))
    }

    /// Dumps a process, which goes on; the images of the last dump but one go.
    fn dump(&self, process: u32, folder: &Path, round: usize) -> Outcome<Dump> {
        let images = folder.join(format!("{round}"));
        fs::create_dir(&images)?;
        let begun = Instant::now();
        let mut command = Command::new(&self.program);
        command.args(["dump", "--leave-running", "--shell-job", "--display-stats", "-t"]);
        command.arg(process.to_string()).arg("-D").arg(&images);
        if self.tracks {
            command.arg("--track-mem");
            if let Some(before) = round.checked_sub(1) {
                command.arg("--prev-images-dir").arg(format!("../{before}"));
            }
        }
        let output = command.output()?;
        if !output.status.success() {
            bail!("CRIU cannot dump: {}", why(&output));
        }
        let mut bytes = 0;
        for entry in fs::read_dir(&images)? {
            let file = File::open(entry?.path())?;
            file.sync_all()?;
            let data = file.metadata()?;
            bytes += if data.is_file() { data.len() } else { 0 };
        }
        File::open(&images)?.sync_all()?;
        let durable = begun.elapsed();
        if !self.tracks
            && let Some(before) = round.checked_sub(1)
        {
            fs::remove_dir_all(folder.join(format!("{before}")))?;
        }
        let frozen = frozen(&output).ok_or("CRIU does not say how long the process was frozen")?;
        Ok(Dump { frozen, durable, bytes })
    }
}

/// All that CRIU has printed.
fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
}

/// The first error that it names.
fn why(output: &Output) -> String {
    let text = text(output);
    let line = text.lines().find(|line| line.contains("rror"));
    line.or(text.lines().last()).map_or_else(|| output.status.to_string(), |it| it.trim().into())
}

/// From when the process is stopped until it goes on, as CRIU counts it.
fn frozen(output: &Output) -> Option<Duration> {
    let text = text(output);
    let (_, rest) = text.split_once("Frozen time:")?;
    Some(Duration::from_micros(rest.split_whitespace().next()?.parse().ok()?))
}
