//! Records, snapshots and strands where the disk is full or busy, and where files have changed.

use steadfast_store::{
    AppendError, Config, ConfigError, FileName, Lane, Op, OpenError, Output, RecordId, Snapshot,
    SnapshotError, Store, Strand,
};
use wire::ordered::Place;
use wire::{Duration, GroupId};

use crate::disk::{Disk, GROUP, NOW, config, open, opened, record, run};

fn snapshot(strand: Strand, covers: RecordId) -> Snapshot {
    Snapshot { strand, covers, place: Place::default(), state: "state".into() }
}

fn segments(disk: &Disk) -> usize {
    disk.files.keys().filter(|file| matches!(file, FileName::Segment(_))).count()
}

#[test]
fn a_write_to_the_log_that_finds_the_disk_full_is_told() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    // As where what is written over is copied: the segment is there, and yet there is no room.
    disk.always = Some(|op| matches!(op, Op::Append { file: FileName::Segment(_), .. }));
    store.append(NOW, record(GROUP, 1, 3_000)).unwrap();
    let said = run(&mut store, &mut disk);
    assert!(matches!(&said[..], [Output::Full(_)]), "{said:?}");
    assert!(store.waits_for_room());
    let mut sequence = 2;
    let refusal = loop {
        match store.append(NOW, record(GROUP, sequence, 3_000)) {
            Ok(_) => sequence += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal, AppendError::Full, "nothing is there in a moment");
    store.handle_timeout(NOW + config().retry);
    assert_eq!(run(&mut store, &mut disk), [], "told once");
    disk.always = None;
    store.handle_timeout(NOW + config().retry + config().retry);
    let said = run(&mut store, &mut disk);
    assert!(said.contains(&Output::Room), "{said:?}");
    assert_eq!(store.persisted(), Some(RecordId(sequence - 1)));
    assert!(!store.waits_for_room());
}

#[test]
fn snapshots_are_asked_for_until_the_oldest_segment_goes() {
    let mut disk = Disk::default();
    let knobs = Config { segment: 64 * 4_096, batch: 40_000, reserve: 64 * 4_096, ..config() };
    let mut store = Store::open(knobs).unwrap();
    run(&mut store, &mut disk);
    let mut asked = 0;
    for round in 0..600 {
        for strand in 0..40 {
            store.append(NOW, record(Strand::Group(GroupId(1 + strand)), round, 200)).unwrap();
        }
        let mut said = run(&mut store, &mut disk);
        let covers = store.persisted().unwrap();
        while !said.is_empty() {
            for output in said {
                let Output::SnapshotWanted(strand) = output else { continue };
                asked += 1;
                store.snapshot(NOW, snapshot(strand, covers)).unwrap();
            }
            said = run(&mut store, &mut disk);
        }
    }
    assert!(asked >= 40 && segments(&disk) <= 6, "{asked} asked, {} segments", segments(&disk));
}

#[test]
fn a_snapshot_that_was_refused_is_asked_for_again() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    let other = Strand::Group(GroupId(6));
    let mut wanted = Vec::new();
    let mut sequence = 0;
    while wanted.is_empty() {
        for strand in [GROUP, other] {
            sequence += 1;
            store.append(NOW, record(strand, sequence, 3_000)).unwrap();
        }
        let said = run(&mut store, &mut disk).into_iter();
        wanted.extend(said.filter(|output| matches!(output, Output::SnapshotWanted(_))));
    }
    assert_eq!(wanted, [Output::SnapshotWanted(GROUP), Output::SnapshotWanted(other)]);
    // The first covers too little, and the second is refused while it is under way.
    store.snapshot(NOW, snapshot(GROUP, RecordId(0))).unwrap();
    let again = store.snapshot(NOW, snapshot(GROUP, RecordId(sequence)));
    assert_eq!(again, Err(SnapshotError::Busy));
    let said = run(&mut store, &mut disk);
    assert!(said.contains(&Output::SnapshotWanted(GROUP)), "{said:?}");
    assert!(!said.contains(&Output::SnapshotWanted(other)), "it has not answered yet: {said:?}");
}

#[test]
fn a_segment_that_nobody_needs_any_more_does_not_hold_up_the_log() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    store.append(NOW, record(GROUP, 1, 10)).unwrap();
    run(&mut store, &mut disk);
    // All of the only segment is covered: it is written to, so it stays, and is the oldest of the
    // next life.
    store.snapshot(NOW, snapshot(GROUP, RecordId(1))).unwrap();
    run(&mut store, &mut disk);
    store.close(NOW);
    run(&mut store, &mut disk);
    let (mut store, _) = open(&mut disk);
    let mut wanted = 0;
    for sequence in 2..=40 {
        store.append(NOW, record(GROUP, sequence, 3_000)).unwrap();
        let said = run(&mut store, &mut disk);
        if said.contains(&Output::SnapshotWanted(GROUP)) {
            wanted += 1;
            store.snapshot(NOW, snapshot(GROUP, RecordId(sequence))).unwrap();
            run(&mut store, &mut disk);
        }
    }
    assert!(wanted > 0 && segments(&disk) <= 4, "{wanted} wanted, {} segments", segments(&disk));
}

#[test]
fn what_is_forgotten_while_maintenance_is_busy_stays_forgotten() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    store.append(NOW, record(GROUP, 1, 10)).unwrap();
    run(&mut store, &mut disk);
    store.close(NOW);
    run(&mut store, &mut disk);
    let mut store = Store::open(config()).unwrap();
    let (mut ready, mut said) = (false, Vec::new());
    let mut lanes = [None, None];
    loop {
        while let Some(output) = store.poll_output() {
            match output {
                Output::Disk(lane, op) => lanes[usize::from(lane == Lane::Maintenance)] = Some(op),
                Output::Opened(_) => ready = true,
                other => said.push(other),
            }
        }
        if lanes[0].is_none() && lanes[1].is_some() && core::mem::take(&mut ready) {
            store.forget(NOW, GROUP, Place::default()).unwrap();
            store.close(NOW);
        }
        let lane = if lanes[0].is_some() { Lane::Log } else { Lane::Maintenance };
        let Some(op) = lanes[usize::from(lane == Lane::Maintenance)].take() else { break };
        store.handle_done(NOW, lane, disk.perform(&op));
    }
    let end = [Output::Forgotten(GROUP, RecordId(1)), Output::Closed(Ok(()))];
    assert_eq!(said[said.len() - 2..], end, "{said:?}");
    let (_, said) = open(&mut disk);
    assert!(!said.iter().any(|output| matches!(output, Output::Replayed(..))), "{said:?}");
}

#[test]
fn what_a_close_has_no_room_for_is_refused_aloud() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    store.append(NOW, record(GROUP, 1, 10)).unwrap();
    run(&mut store, &mut disk);
    disk.always = Some(|op| matches!(op, Op::Create { .. } | Op::Allocate { .. }));
    store.forget(NOW, GROUP, Place::default()).unwrap();
    store.close(NOW);
    let said = run(&mut store, &mut disk);
    assert!(said.contains(&Output::SnapshotRefused(GROUP)), "{said:?}");
    assert_eq!(said.last(), Some(&Output::Closed(Ok(()))), "the log is whole");
}

#[test]
fn an_old_manifest_is_refused_and_nothing_is_removed() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    let old = disk.files[&FileName::Manifest].clone();
    for sequence in 1..=8 {
        store.append(NOW, record(GROUP, sequence, 3_000)).unwrap();
        run(&mut store, &mut disk);
    }
    let new = disk.files.insert(FileName::Manifest, old).unwrap();
    let files = disk.files.clone();
    let (_, said) = open(&mut disk);
    let Some(Output::NotOpened(error @ OpenError::OldManifest { .. })) = said.last() else {
        panic!("{said:?}");
    };
    let error = error.to_string();
    assert!(error.contains("log-0000000000000002") && error.contains("whole folder"), "{error}");
    assert_eq!(disk.files, files);
    disk.files.insert(FileName::Manifest, new);
    let (store, said) = open(&mut disk);
    assert!(opened(&said));
    assert_eq!(store.persisted(), Some(RecordId(8)));
}

#[test]
fn a_reserve_that_is_not_whole_is_made_whole() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    store.close(NOW);
    run(&mut store, &mut disk);
    disk.files.insert(FileName::Reserve, Vec::new());
    // It is still what a full disk gives up, to begin with.
    let (mut store, said) = open(&mut disk);
    assert!(opened(&said), "{said:?}");
    assert_eq!(disk.files[&FileName::Reserve].len() as u64, config().reserve);
    store.close(NOW);
    run(&mut store, &mut disk);
    disk.files.get_mut(&FileName::Reserve).unwrap().truncate(4_096);
    disk.always = Some(|op| matches!(op, Op::Allocate { .. }));
    let (_, said) = open(&mut disk);
    assert!(opened(&said), "{said:?}");
    assert!(disk.files.contains_key(&FileName::Reserve), "a small one is better than none");
}

#[test]
fn a_full_disk_that_lets_no_name_go_does_not_close_the_store() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    let mut sequence = 0;
    let covers = loop {
        sequence += 1;
        store.append(NOW, record(GROUP, sequence, 3_000)).unwrap();
        let said = run(&mut store, &mut disk);
        if said.contains(&Output::SnapshotWanted(GROUP)) {
            break store.persisted().unwrap();
        }
    };
    disk.always =
        Some(|op| matches!(op, Op::Rename { to: FileName::Spare, .. } | Op::Remove { .. }));
    store.snapshot(NOW, snapshot(GROUP, covers)).unwrap();
    let said = run(&mut store, &mut disk);
    assert!(matches!(said.last(), Some(Output::Full(_))), "{said:?}");
    let before = segments(&disk);
    disk.always = None;
    store.handle_timeout(NOW + config().retry);
    run(&mut store, &mut disk);
    assert!(segments(&disk) <= before, "{:?}", disk.files.keys());
    store.append(NOW, record(GROUP, sequence + 1, 3_000)).unwrap();
    store.close(NOW);
    assert_eq!(run(&mut store, &mut disk).last(), Some(&Output::Closed(Ok(()))));
}

#[test]
fn knobs_that_cannot_be_are_refused() {
    let hot = Config { retry: Duration::ZERO, ..config() };
    assert_eq!(Store::open(hot).err(), Some(ConfigError::Retry));
    let small = Config { batch: 7, ..config() };
    assert_eq!(small.longest_record(), 0);
    assert_eq!(Store::open(small).err(), Some(ConfigError::Batch));
}
