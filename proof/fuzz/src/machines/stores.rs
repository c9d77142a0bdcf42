//! The store: segments, manifests and snapshots of any bytes, and a machine whose disk says
//! anything.

use bytes::Bytes;
use store::format::{Identity, Manifest, SnapshotHead, SnapshotReader};
use store::segment::{self, Rest};
use store::{
    Config, Done, Failure, FailureKind, FileName, Lane, Op, Output, Owner, Record, Store, Strand,
};
use wire::ordered::Place;
use wire::{ClusterId, GroupId, NodeId, Time};

use super::{STEPS, span};
use crate::Source;

const OWNER: Owner = Owner { cluster: ClusterId(0x0102_0304), node: NodeId(1) };

/// The seed that names the store, of which the corpus has a log.
const SEED: u64 = 0x0506_0708;

/// Reads bytes as everything that a folder may hold, then has a store run on a disk that is drawn
/// from them.
pub(crate) fn store(bytes: &[u8]) {
    let whole = Bytes::copy_from_slice(bytes);
    let contents = segment::read(&whole, Identity { store: SEED, segment: 1 });
    assert!(contents.end as usize <= bytes.len() + store::format::BLOCK);
    let ascending = contents.batches.windows(2).all(|pair| pair[0].0.next() == pair[1].0.first);
    assert!(ascending, "records have their numbers without gaps");
    if let Rest::Later { at, .. } = contents.rest {
        assert!(at >= contents.end, "what is later stands behind");
    }
    if let Ok(manifest) = Manifest::decode(bytes) {
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest.clone()));
        assert_eq!(manifest.encode(), bytes, "there is one way to write it");
    }
    let mut reader = SnapshotReader::new(SnapshotHead { store: SEED, number: 1, length: 9 });
    if bytes.chunks(5).all(|part| reader.take(part).is_ok())
        && let Ok(state) = reader.finish()
    {
        assert_eq!(state.len(), 9);
    }
    machine(bytes);
}

/// A store whose disk returns anything.
fn machine(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut now = Time(1_000_000);
    let mut config = Config::new(OWNER, SEED);
    (config.segment, config.batch, config.reserve) = (24_576, 2_000, 24_576);
    let mut machine = Store::open(config).expect("knobs are in range");
    let mut asked: Vec<(Lane, Op)> = Vec::new();
    let mut persisted = 0;
    let mut appended = 0;
    for _ in 0..STEPS {
        while let Some(output) = machine.poll_output() {
            match output {
                Output::Disk(lane, op) => asked.push((lane, op)),
                Output::Opened(opened) => {
                    persisted = opened.next.0 - 1;
                    appended = persisted;
                }
                Output::Persisted(upto) => {
                    assert!(persisted < upto.0 && upto.0 <= appended, "{upto} is news");
                    persisted = upto.0;
                }
                _ => {}
            }
        }
        machine.check_invariants();
        assert!(asked.len() <= 2, "one thing a lane");
        if source.is_empty() {
            return;
        }
        match source.below(4) {
            0 => now += span(&mut source),
            1 => {
                let strand = Strand::Group(GroupId(source.below(3) as u64));
                let bytes = Bytes::copy_from_slice(source.bytes(200));
                let record = Record { strand, kind: 1, place: Place::default(), bytes };
                appended += u64::from(machine.append(now, record).is_ok());
            }
            _ if !asked.is_empty() => {
                let (lane, op) = asked.remove(source.below(asked.len()));
                machine.handle_done(now, lane, answer(&mut source, &op));
            }
            _ => {}
        }
        machine.handle_timeout(now);
    }
}

fn answer(source: &mut Source<'_>, op: &Op) -> Result<Done, Failure> {
    let kinds = [FailureKind::Full, FailureKind::Missing, FailureKind::Unsynced];
    if source.below(16) == 0 {
        let kind = kinds[source.below(kinds.len())];
        return Err(Failure { kind, text: String::new() });
    }
    Ok(match op {
        Op::List => {
            let files = [FileName::Manifest, FileName::Segment(1), FileName::Snapshot(1)];
            Done::Listed(files[..source.below(files.len() + 1)].to_vec())
        }
        // A manifest that fits, now and then: else nothing else would ever be read.
        Op::Read { file: FileName::Manifest, .. } if source.below(4) > 0 => {
            let mut manifest = Manifest::new(SEED, OWNER);
            manifest.segments = (1..=source.below(3) as u64).collect();
            Done::Read(manifest.encode())
        }
        Op::Read { .. } => Done::Read(Bytes::copy_from_slice(source.bytes(255))),
        _ => Done::Well,
    })
}
