//! A store on a real folder: what is said to be on the disk survives the end of its process at any
//! moment.
//!
//! A killed process loses nothing that the system has taken, so this sees the driver and the order
//! of its steps; losses of power are simulated (`steadfast-sim --world stores`).

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use steadfast_node::storage::{self, Recovered, Storage, StorageError, Word};
use store::format::BLOCK;
use store::{Config, OpenError, Owner, Record, RecordId, Snapshot, Strand};
use wire::ordered::Place;
use wire::{ClusterId, GroupId, NodeId, Random};

const FOLDER: &str = "STEADFAST_TEST_STORE";
const LIVES: usize = 12;

fn owner(node: u32) -> Owner {
    Owner { cluster: ClusterId::of("test"), node: NodeId(node) }
}

/// Segments so small that they come and go.
fn config() -> Config {
    let mut config = storage::config(owner(1)).unwrap();
    (config.segment, config.batch) = (16 * BLOCK as u64, 20_000);
    (config.reserve, config.keep) = (config.segment, 2);
    config
}

/// The record of this number: what it holds follows from it.
fn record(id: u64) -> Record {
    let mut random = Random::new(id);
    let group = random.below(3);
    let strand = if group == 0 { Strand::Node } else { Strand::Group(GroupId(group)) };
    let bytes = (0..random.below(3_000)).map(|_| random.next_u64() as u8).collect();
    Record { strand, kind: 1, place: Place { sequence: id, ..Place::default() }, bytes }
}

fn state(strand: Strand, upto: u64) -> Bytes {
    let of = |id: &u64| record(*id).strand == strand;
    Bytes::from(format!("{strand:?}: {:?}", (1..=upto).filter(of).collect::<Vec<_>>()))
}

/// Demands all that should have come back, and gives the last record.
fn verify(recovered: &Recovered) -> u64 {
    let last = recovered.opened.next.0 - 1;
    let covers = |strand| {
        let of = recovered.snapshots.iter().find(|snapshot| snapshot.strand == strand);
        of.map_or(0, |snapshot| snapshot.covers.0)
    };
    for Snapshot { strand, covers, state: found, .. } in &recovered.snapshots {
        assert!(found.equals(&state(*strand, covers.0)));
    }
    let expected = (1..=last).map(|id| (RecordId(id), record(id)));
    let expected: Vec<_> = expected.filter(|(id, record)| id.0 > covers(record.strand)).collect();
    assert_eq!(recovered.records, expected);
    last
}

/// Not a test of its own: the process that is killed.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (mut storage, recovered) = Storage::open(Path::new(&folder), config()).unwrap();
    let mut id = verify(&recovered);
    eprintln!("persisted {id}");
    // Until the parent kills this process, or is gone itself: then nobody reads what is written.
    loop {
        for _ in 0..Random::new(id).below(8) + 1 {
            id += 1;
            assert_eq!(storage.append(record(id)).unwrap(), RecordId(id));
        }
        while let Some(strand) = storage.wanted() {
            let (covers, state) = (RecordId(id), state(strand, id));
            let place = Place::default();
            // One that is refused because the last one is under way is asked for again.
            let _ = storage.snapshot(Snapshot { strand, covers, place, state: state.into() });
        }
        storage.wait(RecordId(id)).unwrap();
        eprintln!("persisted {id}");
    }
}

/// Runs a life in this folder until it has said so much, kills it, and gives what it said last.
fn live_and_die(folder: &Path, lines: u64) -> u64 {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
    let number = |line: String| match line.strip_prefix("persisted ") {
        Some(number) => number.parse::<u64>().unwrap(),
        None => panic!("{line}"),
    };
    let mut last = 0;
    for _ in 0..lines {
        last = number(said.next().expect("it lives").unwrap());
    }
    process.kill().unwrap();
    process.wait().unwrap();
    // Output from before its death counts, too.
    last_but_one(said.map_while(Result::ok)).unwrap_or(last).max(last)
}

/// The number before the last one: death may have cut the last line anywhere.
fn last_but_one(said: impl Iterator<Item = String>) -> Option<u64> {
    let parse = |line: String| line.strip_prefix("persisted ").map(|number| number.parse().ok());
    let numbers: Vec<Option<u64>> = said.filter_map(parse).collect();
    numbers.iter().rev().nth(1).copied().flatten()
}

#[test]
fn the_last_line_may_have_been_cut_anywhere() {
    let said = |lines: &[&str]| last_but_one(lines.iter().map(|&line| line.into()));
    for cut in ["persisted 3", "persisted "] {
        assert_eq!(said(&["persisted 1", "persisted 2", cut]), Some(2), "{cut}");
    }
    assert_eq!(said(&["persisted 1", "persisted 2", "persi"]), Some(1));
    assert_eq!(said(&["persisted "]), None);
}

#[test]
fn what_was_said_to_be_persisted_survives_kills() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(u64::from(std::process::id()));
    for _ in 0..LIVES {
        let lines = 1 + random.below(60);
        let said = live_and_die(folder.path(), lines);
        let (storage, recovered) = Storage::open(folder.path(), config()).unwrap();
        let last = verify(&recovered);
        assert!(last >= said, "{said} were said to be on the disk, {last} are");
        storage.close().unwrap();
    }
    let (_, recovered) = Storage::open(folder.path(), config()).unwrap();
    assert!(!recovered.opened.fresh && verify(&recovered) > 0);
}

#[test]
fn segments_that_snapshots_cover_go() {
    let folder = tempfile::tempdir().unwrap();
    let (mut storage, recovered) = Storage::open(folder.path(), config()).unwrap();
    assert!(recovered.opened.fresh);
    let mut id = 0;
    let mut stored = 0;
    while stored < 30 {
        id += 1;
        storage.append(record(id)).unwrap();
        storage.wait(RecordId(id)).unwrap();
        while let Some(strand) = storage.wanted() {
            let (covers, state) = (RecordId(id), state(strand, id));
            storage
                .snapshot(Snapshot { strand, covers, place: Place::default(), state: state.into() })
                .unwrap();
        }
        stored += std::iter::from_fn(|| storage.stored()).count();
    }
    storage.close().unwrap();
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(files < 20, "{files} files");
    let (_, recovered) = Storage::open(folder.path(), config()).unwrap();
    assert_eq!(verify(&recovered), id);
    assert!(recovered.records.len() < id as usize / 2, "snapshots stand for the others");
}

#[test]
fn a_folder_is_for_one_process_and_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let (storage, _) = Storage::open(folder.path(), config()).unwrap();
    let second = Storage::open(folder.path(), config());
    assert!(matches!(second, Err(StorageError::Taken(_))), "one process at a time");
    storage.close().unwrap();
    let other = Config { owner: owner(2), ..config() };
    let error = Storage::open(folder.path(), other).unwrap_err();
    assert!(matches!(error, StorageError::Open(OpenError::Owner { .. })), "{error}");
    assert!(error.to_string().contains("data_dir"), "{error}");
}

#[test]
fn what_is_forgotten_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut storage, _) = Storage::open(folder.path(), config()).unwrap();
    for id in 1..=20 {
        storage.append(record(id)).unwrap();
    }
    let strand = record(20).strand;
    storage.try_forget(strand, Place::default()).unwrap();
    while !storage.turn().contains(&Word::Forgotten(strand, RecordId(20))) {
        storage.step();
    }
    drop(storage);
    let (_, recovered) = Storage::open(folder.path(), config()).unwrap();
    assert!(recovered.records.iter().all(|(_, record)| record.strand != strand));
    assert!(!recovered.records.is_empty(), "those of the others do");
}

#[test]
fn a_reserve_that_its_maker_did_not_fill_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("reserve"), "").unwrap();
    let size = || std::fs::metadata(folder.path().join("reserve")).unwrap().len();
    let (mut storage, _) = Storage::open(folder.path(), config()).unwrap();
    let mut id = 0;
    while size() < config().reserve {
        id += 1;
        storage.append(record(id)).unwrap();
        storage.wait(RecordId(id)).unwrap();
    }
    storage.close().unwrap();
    let larger = Config { reserve: 2 * config().reserve, ..config() };
    let (mut storage, _) = Storage::open(folder.path(), larger).unwrap();
    while size() < larger.reserve {
        id += 1;
        storage.append(record(id)).unwrap();
        storage.wait(RecordId(id)).unwrap();
    }
    assert_eq!(size(), larger.reserve);
}

#[test]
fn damage_is_told_and_not_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let (mut storage, _) = Storage::open(folder.path(), config()).unwrap();
    for id in 1..=5 {
        storage.append(record(id)).unwrap();
        storage.wait(RecordId(id)).unwrap();
    }
    storage.close().unwrap();
    let file = folder.path().join("log-0000000000000001");
    let whole = std::fs::read(&file).unwrap();
    let mut spoilt = whole.clone();
    // In the head of the second record's batch.
    spoilt[BLOCK + 20] ^= 1;
    std::fs::write(&file, &spoilt).unwrap();
    let error = Storage::open(folder.path(), config()).unwrap_err();
    let StorageError::Open(OpenError::Damaged { from, to, offset, .. }) = &error else {
        panic!("{error}");
    };
    assert_eq!((*from, *to, *offset), (RecordId(2), RecordId(2), BLOCK as u64), "{error}");
    // The remedy: a copy.
    std::fs::write(&file, &whole).unwrap();
    let (_, recovered) = Storage::open(folder.path(), config()).unwrap();
    assert_eq!(verify(&recovered), 5);
}
