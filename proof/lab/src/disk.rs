//! What it costs to have something on the disk: a bare write and sync, and the store's append, on each folder in turns.
//!
//! Both write to files of written zeros, so that neither pays for the file system's own books.

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

use crate::figures::{Summary, Times};
use crate::{Outcome, machine};

/// Appends of one kind before it is the next one's turn.
const TURN: usize = 50;

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
    /// One JSON object a folder instead of a table.
    #[arg(long)]
    json: bool,
}

/// What was measured on one folder.
struct Figures {
    floor: Summary,
    store: Summary,
    /// Records a second, many under way.
    rate: f64,
    /// Records that a sync brought to the disk, on average.
    shared: f64,
}

pub fn run(options: &Options) -> Outcome<()> {
    let machine = machine::description();
    match options.json {
        true => eprintln!("on {machine}"),
        false => println!("on {machine}; {} bytes a record; times in µs", options.size),
    }
    let heads = ["floor p50", "p99", "store p50", "p99", "ratio"];
    if !options.json {
        println!(
            "{:24}{:>11}{:>9}{:>11}{:>9}{:>7}{:>13}{:>10}",
            "", heads[0], heads[1], heads[2], heads[3], heads[4], "records/s", "a sync"
        );
    }
    for folder in &options.folder {
        let figures = measure(options, folder)?;
        report(options, folder, &figures);
    }
    Ok(())
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
    // The first turn finds cold caches.
    for turn in 0..=options.rounds.div_ceil(TURN) {
        let mut cold = (Times::default(), Times::default());
        let times = match turn {
            0 => (&mut cold.0, &mut cold.1),
            _ => (&mut floor, &mut appended),
        };
        for _ in 0..TURN {
            let start = Instant::now();
            bare.write()?;
            times.0.push(start.elapsed());
        }
        for _ in 0..TURN {
            let start = Instant::now();
            let id = store.append(record.clone())?;
            store.wait(id)?;
            times.1.push(start.elapsed());
        }
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

fn report(options: &Options, folder: &Path, figures: &Figures) {
    let Figures { floor, store, rate, shared } = figures;
    let ratio = store.p50 / floor.p50;
    if options.json {
        let rounded = |figure: f64| (figure * 100.0).round() / 100.0;
        let of = |summary: &Summary, what: &str| {
            summary.json(&json!({ "measure": "disk", "what": what, "folder": folder }))
        };
        println!("{}", of(floor, "floor"));
        let mut line = of(store, "store");
        line["ratio_to_floor"] = json!(rounded(ratio));
        line["pipelined"] = json!(options.pipelined);
        line["records_per_second"] = json!(rate.round());
        line["records_per_sync"] = json!(rounded(*shared));
        println!("{line}");
    } else {
        println!(
            "{:24}{:11.1}{:9.1}{:11.1}{:9.1}{ratio:7.2}{rate:13.0}{shared:10.1}",
            folder.display(),
            floor.p50,
            floor.p99,
            store.p50,
            store.p99
        );
    }
}
