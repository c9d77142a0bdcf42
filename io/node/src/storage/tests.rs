//! A disk whose room comes and goes, and one whose hand panics.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use store::{Done, Failure, FailureKind, FileName, Op};
use wire::{ClusterId, GroupId, NodeId};

use super::folder::{Folder, lock};
use super::*;

const ROOM: u8 = 0;
/// No room for a further segment, and for none of what takes room beside the log.
const NO_SEGMENT: u8 = 1;
/// As where what is written over is copied.
const NO_WRITE: u8 = 2;
const PANIC: u8 = 3;

const GROUP: Strand = Strand::Group(GroupId(1));

fn knobs() -> Config {
    let mut config = config(Owner { cluster: ClusterId::of("test"), node: NodeId(1) }).unwrap();
    (config.segment, config.batch) = (8 * 4_096, 4_000);
    (config.reserve, config.keep) = (config.segment, 2);
    config.retry = wire::Duration::from_millis(1);
    config
}

fn open(path: &Path, trouble: &Arc<AtomicU8>) -> Storage {
    let disk = Disk::with(
        lock(path).unwrap(),
        || {},
        || {
            let (trouble, mut folder) = (trouble.clone(), Folder::new(path));
            Box::new(move |op| troubled(trouble.load(Ordering::SeqCst), &mut folder, op))
        },
    );
    Storage::open_on(disk.unwrap(), Store::open(knobs()).unwrap()).unwrap().0
}

fn troubled(trouble: u8, folder: &mut Folder, op: Op) -> Result<Done, Failure> {
    let to_log = matches!(op, Op::Append { file: FileName::Segment(_), .. });
    let takes_room =
        matches!(op, Op::Create { file: FileName::Segment(_), .. } | Op::Allocate { .. });
    match trouble {
        NO_SEGMENT if takes_room => {}
        NO_WRITE if to_log => {}
        PANIC => panic!("as planted"),
        _ => return folder.perform(op),
    }
    Err(Failure { kind: FailureKind::Full, text: "no space".into() })
}

fn record() -> Record {
    Record { strand: GROUP, kind: 1, place: Place::default(), bytes: vec![7; 3_000].into() }
}

#[test]
fn a_full_disk_is_told_as_long_as_it_is_full_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let trouble = Arc::new(AtomicU8::new(ROOM));
    let mut storage = open(folder.path(), &trouble);
    trouble.store(NO_SEGMENT, Ordering::SeqCst);
    // Accepted records have their room: wait for them, although a further segment has none.
    let refused = loop {
        match storage.append(record()) {
            Ok(id) => storage.wait(id).unwrap(),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StorageError::Append(AppendError::Full)), "{refused}");
    assert!(storage.turn().iter().any(|word| matches!(word, Word::Full(_))));
    let last = storage.persisted();
    // Nobody but who appends looks after the disk, and yet room is seen.
    trouble.store(ROOM, Ordering::SeqCst);
    let id = loop {
        match storage.append(record()) {
            Ok(id) => break id,
            Err(error) => assert!(matches!(error, StorageError::Append(AppendError::Full))),
        }
    };
    assert_eq!(id, RecordId(last.0 + 1));
    storage.wait(id).unwrap();
    assert!(storage.turn().contains(&Word::Room));
    storage.close().unwrap();
}

#[test]
fn who_waits_for_what_waits_for_room_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let trouble = Arc::new(AtomicU8::new(ROOM));
    let mut storage = open(folder.path(), &trouble);
    trouble.store(NO_WRITE, Ordering::SeqCst);
    let id = storage.append(record()).unwrap();
    assert!(matches!(storage.wait(id), Err(StorageError::Full(_))));
    let refused = loop {
        match storage.append(record()) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StorageError::Append(AppendError::Full)), "{refused}");
    trouble.store(ROOM, Ordering::SeqCst);
    while let Err(error) = storage.wait(id) {
        assert!(matches!(error, StorageError::Full(_)), "{error}");
    }
    storage.close().unwrap();
}

#[test]
fn nobody_waits_for_a_hand_that_panicked_or_for_what_never_was() {
    let folder = tempfile::tempdir().unwrap();
    let trouble = Arc::new(AtomicU8::new(ROOM));
    let mut storage = open(folder.path(), &trouble);
    let unknown = storage.wait(RecordId(1)).unwrap_err();
    assert!(matches!(unknown, StorageError::Unknown(RecordId(1))), "{unknown}");
    trouble.store(PANIC, Ordering::SeqCst);
    let id = storage.append(record()).unwrap();
    let broken = storage.wait(id).unwrap_err();
    assert!(matches!(broken, StorageError::Broken(_)), "{broken}");
}
