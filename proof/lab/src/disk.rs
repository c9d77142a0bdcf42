//! The cost of data on the disk: a bare write and sync, and the store's append, on each folder in
//! turns.
//!
//! Both write to files of written zeros, so that neither pays for the file system's metadata.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use node::storage::{self, Storage};
use serde_json::json;
use store::format::BLOCK;
use store::{Owner, Record, RecordId, Strand};
use wire::ordered::Place;
use wire::{ClusterId, GroupId, NodeId};

use harness::figures::{Summary, Times};
use harness::{Experiment, Outcome, Run, Table};

/// Appends of one kind before it is the next one's turn.
const TURN: usize = 50;

/// A record on the disk: the store's append beside a bare write and sync, lone and many at a time.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Where to write; a folder of its own is made there and removed. May be given several times.
    #[arg(long, default_values = [".", "/dev/shm"])]
    folder: Vec<PathBuf>,
    /// Bytes of a record.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Appends of each kind that wait for the disk one by one.
    #[arg(long, default_value_t = 1_000)]
    rounds: usize,
    /// Records under way at a time, where many are.
    #[arg(long, default_value_t = 64)]
    pipelined: u64,
    /// How long many are under way.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

/// The measurements on one folder.
struct Figures {
    floor: Summary,
    store: Summary,
    /// Records a second, many under way.
    rate: f64,
    /// Records that a sync brought to the disk, on average.
    shared: f64,
}

impl Experiment for Options {
    const NAME: &'static str = "disk";
    const SMOKE: &'static str = "--rounds 50 --seconds 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        run.begin(&format!("{} bytes a record; times in µs", self.size));
        let table = run.table(
            "=folder:<20, =what:<6, p50=p50_us:9.1, p99=p99_us:9.1, ratio=ratio_to_floor:7.2, \
             records/s=records_per_second:13.0, a sync=records_per_sync:10.1",
        );
        // In the smallest size the first folder says enough.
        for folder in &self.folder[..run.sized(self.folder.len(), 1)] {
            report(self, folder, &measure(self, folder)?, &table);
        }
        Ok(())
    }
}

fn measure(options: &Options, folder: &Path) -> Outcome<Figures> {
    let within = tempfile::Builder::new().prefix("steadfast-disk-").tempdir_in(folder)?;
    let mut bare = Bare::new(&within.path().join("bare"), options)?;
    let owner = Owner { cluster: ClusterId::of("lab"), node: NodeId(1) };
    let (mut store, _) = Storage::open(&within.path().join("store"), storage::config(owner)?)?;
    let record = Record {
        strand: Strand::Group(GroupId::of("lab")),
        kind: 1,
        place: Place::default(),
        bytes: Bytes::from(vec![0x5a; options.size]),
    };
    let (mut floor, mut appended) = (Times::default(), Times::default());
    for turn in 0..=options.rounds.div_ceil(TURN) {
        floor.measure_if(turn > 0, TURN, || bare.write())?;
        appended.measure_if(turn > 0, TURN, || {
            let id = store.append(record.clone())?;
            Ok(store.wait(id)?)
        })?;
    }
    let (rate, shared) = pipelined(options, &mut store, &record)?;
    store.close()?;
    let none = "nothing was measured";
    let (floor, store) = (floor.summary().ok_or(none)?, appended.summary().ok_or(none)?);
    Ok(Figures { floor, store, rate, shared })
}

/// Many records under way: records a second, and records a sync.
fn pipelined(options: &Options, store: &mut Storage, record: &Record) -> Outcome<(f64, f64)> {
    let (from, syncs, start) = (store.persisted(), store.syncs(), Instant::now());
    let mut last = from;
    while start.elapsed() < Duration::from_secs(options.seconds) {
        while last.0 - store.persisted().0 < options.pipelined {
            last = store.append(record.clone())?;
        }
        // Until one of them is there.
        store.wait(RecordId(store.persisted().0 + 1))?;
    }
    store.wait(last)?;
    let many = (last.0 - from.0) as f64;
    let syncs = (store.syncs() - syncs).max(1) as f64;
    Ok((many / start.elapsed().as_secs_f64(), many / syncs))
}

/// The floor: a record in a block of its own, written and synced by the thread that waits for it.
struct Bare {
    file: File,
    bytes: Vec<u8>,
    at: u64,
}

impl Bare {
    fn new(path: &Path, options: &Options) -> Outcome<Bare> {
        let bytes = vec![0x5a; options.size];
        let file = File::create(path)?;
        let length = bytes.len().next_multiple_of(BLOCK) * (options.rounds + 2 * TURN);
        file.write_all_at(&vec![0; length], 0)?;
        file.sync_all()?;
        Ok(Bare { file, bytes, at: 0 })
    }

    fn write(&mut self) -> Outcome<()> {
        self.file.write_all_at(&self.bytes, self.at)?;
        self.file.sync_data()?;
        self.at += self.bytes.len().next_multiple_of(BLOCK) as u64;
        Ok(())
    }
}

fn report(options: &Options, folder: &Path, figures: &Figures, table: &Table) {
    let Figures { floor, store, rate, shared } = figures;
    let rounded = |figure: f64| (figure * 100.0).round() / 100.0;
    let of = |summary: &Summary, what: &str| {
        summary.json(&json!({ "measure": "disk", "what": what, "folder": folder }))
    };
    table.row(&of(floor, "floor"));
    let mut line = of(store, "store");
    line["ratio_to_floor"] = json!(rounded(store.p50 / floor.p50));
    line["pipelined"] = json!(options.pipelined);
    line["records_per_second"] = json!(rate.round());
    line["records_per_sync"] = json!(rounded(*shared));
    table.row(&line);
}
