//! The machine on a disk that does what it is asked for, and says no when a test wants it to.
#![allow(missing_docs)]

mod disk;
mod trouble;

use bytes::Bytes;
use steadfast_store::format::{BLOCK, Identity};
use steadfast_store::segment::{self, Rest};
use steadfast_store::{
    AppendError, FailureKind, FileName, Lane, Op, OpenError, Output, Record, RecordId, Snapshot,
    Strand,
};
use wire::GroupId;
use wire::ordered::Place;

use disk::{Disk, GROUP, NOW, Which, config, open, opened, record, run};

/// As in the corpus of the fuzz target, which another program wrote, from the document.
const LOG: &[u8] = include_bytes!("../../../../proof/fuzz/corpus/store/log");
const MANIFEST: &[u8] = include_bytes!("../../../../proof/fuzz/corpus/store/manifest");
const SNAPSHOT: &[u8] = include_bytes!("../../../../proof/fuzz/corpus/store/snapshot");

#[test]
fn what_another_program_wrote_from_the_document_is_read() {
    let mut disk = Disk::default();
    disk.files.insert(FileName::Manifest, MANIFEST.to_vec());
    disk.files.insert(FileName::Segment(1), LOG.to_vec());
    disk.files.insert(FileName::Snapshot(1), SNAPSHOT.to_vec());
    let (_, said) = open(&mut disk);
    let [Output::Restored(snapshot), first, second, Output::Opened(opened), ..] = &said[..] else {
        panic!("{said:?}");
    };
    assert_eq!((snapshot.covers, &snapshot.state.head[..]), (RecordId(3), &b"the state"[..]));
    let node =
        Record { kind: 1, bytes: Bytes::from_static(b"hello"), ..record(Strand::Node, 1, 0) };
    let other = Strand::Group(GroupId(0x1122_3344_5566_7788));
    assert_eq!(*first, Output::Replayed(RecordId(1), node));
    assert_eq!(*second, Output::Replayed(RecordId(2), Record { kind: 2, ..record(other, 2, 0) }));
    assert_eq!((opened.next, opened.replayed, opened.torn), (RecordId(4), 2, false));
}

#[test]
fn records_that_come_while_the_disk_is_busy_share_a_sync() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    disk.done.clear();
    for sequence in 1..=20 {
        let id = store.append(NOW, record(GROUP, sequence, 10)).unwrap();
        assert_eq!(id, RecordId(sequence));
    }
    let said = run(&mut store, &mut disk);
    let persisted = |upto| Output::Persisted(RecordId(upto));
    assert_eq!(said, [persisted(1), persisted(20)]);
    assert_eq!(disk.writes_to_the_log(), 2, "{:?}", disk.done);
}

#[test]
fn a_write_that_was_cut_short_is_the_end_and_rot_before_it_is_not() {
    let identity = Identity { store: 0x0506_0708, segment: 1 };
    let read = |bytes: Vec<u8>| segment::read(&bytes.into(), identity);
    let whole = read(LOG.to_vec());
    assert_eq!((whole.batches.len(), whole.rest), (3, Rest::Nothing));
    // The second batch is two records in one block; behind it is only its mark.
    let torn = read(LOG[..BLOCK + 130].to_vec());
    assert_eq!((torn.batches.len(), torn.rest), (1, Rest::Torn));
    for at in [0, 10, 20, 63, 64, 70, 120, 200] {
        let mut rotten = LOG.to_vec();
        rotten[BLOCK + at] ^= 4;
        let rotten = read(rotten);
        let rest = Rest::Later { at: 2 * BLOCK as u64, first: RecordId(4), records: 0 };
        assert_eq!((rotten.batches.len(), rotten.end), (1, BLOCK as u64), "byte {at}");
        assert_eq!(rotten.rest, rest, "byte {at}");
    }
    let other = Identity { segment: 2, ..identity };
    assert_eq!(segment::read(&Bytes::from_static(LOG), other).batches, [], "stale bytes");
}

#[test]
fn a_sync_that_fails_closes_the_store() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    disk.refuses = Some((|op| matches!(op, Op::Append { .. }), FailureKind::Unsynced));
    store.append(NOW, record(GROUP, 1, 10)).unwrap();
    disk.done.clear();
    let said = run(&mut store, &mut disk);
    assert!(matches!(&said[..], [Output::Closed(Err(_))]), "{said:?}");
    assert_eq!(disk.writes_to_the_log(), 0, "nothing is synced a second time");
    assert_eq!(store.append(NOW, record(GROUP, 2, 10)), Err(AppendError::NotOpen));
}

#[test]
fn the_last_batch_is_said_again_unless_it_is_marked() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    store.append(NOW, record(GROUP, 1, 10)).unwrap();
    run(&mut store, &mut disk);
    // The process dies: the second life writes the batch and a mark to its own segment.
    for appends in [2, 0] {
        disk.done.clear();
        let (_, said) = open(&mut disk);
        assert!(matches!(said[..2], [Output::Replayed(..), Output::Opened(_)]), "{said:?}");
        assert_eq!(disk.writes_to_the_log(), appends, "{:?}", disk.done);
    }
    let segments = disk.files.keys().filter(|file| matches!(file, FileName::Segment(_)));
    assert!(
        segments.count() <= 4,
        "lives that write nothing leave nothing: {:?}",
        disk.files.keys()
    );
}

#[test]
fn a_mark_is_written_after_a_rest_and_at_the_end() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    store.append(NOW, record(GROUP, 1, 10)).unwrap();
    run(&mut store, &mut disk);
    assert_eq!(store.next_timeout(), Some(NOW + config().mark_after));
    disk.done.clear();
    store.handle_timeout(NOW + config().mark_after);
    assert_eq!(run(&mut store, &mut disk), []);
    assert_eq!(disk.done.len(), 1);
    assert_eq!(store.next_timeout(), None, "an idle store does nothing");
    store.append(NOW, record(GROUP, 2, 10)).unwrap();
    store.close(NOW);
    let said = run(&mut store, &mut disk);
    assert_eq!(said, [Output::Persisted(RecordId(2)), Output::Closed(Ok(()))]);
    assert_eq!(disk.done.len(), 3);
}

#[test]
fn a_full_disk_refuses_and_snapshots_make_room() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    let mut sequence = 0;
    let (mut wanted, mut refused) = (0, false);
    while !refused {
        // Every new segment is refused once there are some.
        let is_segment: Which = |op| matches!(op, Op::Create { file: FileName::Segment(_), .. });
        disk.refuses = (sequence > 12).then_some((is_segment, FailureKind::Full));
        sequence += 1;
        refused = match store.append(NOW, record(GROUP, sequence, 3_000)) {
            Ok(_) => false,
            Err(error) => error == AppendError::Full,
        };
        for output in run(&mut store, &mut disk) {
            wanted += usize::from(matches!(output, Output::SnapshotWanted(_)));
        }
        assert!(sequence < 50, "it is never full");
    }
    assert!(wanted > 0, "a snapshot is asked for");
    sequence -= 1;
    assert_eq!(store.persisted(), Some(RecordId(sequence)), "what was taken has room");
    let state = Bytes::from_static(b"all of it");
    let (covers, place) = (RecordId(sequence), Place::default());
    store.snapshot(NOW, Snapshot { strand: GROUP, covers, place, state: state.into() }).unwrap();
    let said = run(&mut store, &mut disk);
    assert!(said.contains(&Output::SnapshotStored(GROUP, covers)), "{said:?}");
    assert!(said.contains(&Output::Room), "the old segment is used again: {said:?}");
    store.append(NOW, record(GROUP, sequence + 1, 3_000)).unwrap();
    store.close(NOW);
    run(&mut store, &mut disk);
    let (_, said) = open(&mut disk);
    let restored = said.iter().filter(|output| matches!(output, Output::Restored(_))).count();
    let replayed = said.iter().filter(|output| matches!(output, Output::Replayed(..))).count();
    assert_eq!((restored, replayed), (1, 1), "{said:?}");
}

#[test]
fn a_store_without_its_manifest_is_not_taken_for_new() {
    let mut disk = Disk::default();
    let (mut store, said) = open(&mut disk);
    assert!(opened(&said));
    store.close(NOW);
    run(&mut store, &mut disk);
    let manifest = disk.files.remove(&FileName::Manifest).unwrap();
    let (_, said) = open(&mut disk);
    assert!(matches!(&said[..], [Output::NotOpened(OpenError::NoManifest { .. })]), "{said:?}");
    for at in 0..manifest.len() {
        let mut rotten = manifest.clone();
        rotten[at] ^= 1;
        disk.files.insert(FileName::Manifest, rotten);
        let (_, said) = open(&mut disk);
        assert!(matches!(&said[..], [Output::NotOpened(_)]), "byte {at}: {said:?}");
    }
    disk.files.insert(FileName::Manifest, manifest);
    assert!(opened(&open(&mut disk).1));
}

#[test]
fn each_lane_is_asked_for_one_thing_at_a_time() {
    let mut disk = Disk::default();
    let (mut store, _) = open(&mut disk);
    for sequence in 1..=3 {
        store.append(NOW, record(GROUP, sequence, 1_000)).unwrap();
    }
    let asked: Vec<Lane> = std::iter::from_fn(|| store.poll_output())
        .filter_map(|output| match output {
            Output::Disk(lane, _) => Some(lane),
            _ => None,
        })
        .collect();
    // The first write takes the segment that was ready: another one is made.
    assert_eq!(asked, [Lane::Log, Lane::Maintenance]);
}

/// The simulator's seed 857 of the world of interruptions: a node that died again and again soon
/// after its start used its disk up, for each life has a segment of its own.
#[test]
fn lives_that_end_soon_leave_no_more_than_they_wrote() {
    let mut disk = Disk::default();
    for sequence in 1..=20 {
        let (mut store, _) = open(&mut disk);
        store.append(NOW, record(GROUP, sequence, 10)).unwrap();
        run(&mut store, &mut disk);
    }
    let segment = |(file, bytes): (&FileName, &Vec<u8>)| {
        matches!(file, FileName::Segment(_)).then_some(bytes.len() as u64)
    };
    let sizes: Vec<u64> = disk.files.iter().filter_map(segment).collect();
    let whole = sizes.iter().filter(|size| **size == config().segment).count();
    assert!(sizes.len() >= 20 && whole <= 2, "{sizes:?}");
    assert_eq!(
        open(&mut disk).1.iter().filter(|it| matches!(it, Output::Replayed(..))).count(),
        20
    );
}
