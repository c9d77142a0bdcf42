//! Recovery: what the folder holds, read and judged.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_MANIFEST, MAX_SEGMENT};

use crate::api::{
    Config, Done, Failure, FailureKind, Op, OpenError, Output, Record, RecordId, Snapshot, Strand,
};
use crate::bug::Bug;
use crate::format::{
    Batch, Entry, FileName, Identity, Link, Manifest, SnapshotHead, SnapshotReader,
};
use crate::maintenance::{Found, Held};
use crate::segment::{self, Contents, Rest};

/// Bytes of a snapshot's file that are read at a time.
const READ: usize = 1 << 20;

/// A segment's file is read whole. A life whose batches are small may have a segment made larger
/// for one of an earlier life.
const WHOLE: usize = 2 * MAX_SEGMENT as usize;

#[derive(Debug)]
enum Step {
    List,
    Manifest,
    Snapshot(Reading),
    /// Reads the segment of this place in the manifest's list.
    Segment(usize),
    /// Looks into a segment of this number, which the manifest does not name although it comes
    /// after those that it names.
    Unnamed(u64),
}

/// A strand's snapshot, read up to an offset.
#[derive(Debug)]
struct Reading {
    strand: Strand,
    entry: Entry,
    reader: SnapshotReader,
    offset: u64,
}

/// The store on its way to be open.
#[derive(Debug)]
pub(crate) struct Opening {
    step: Step,
    files: Vec<FileName>,
    manifest: Manifest,
    fresh: bool,
    segments: BTreeMap<u64, Held>,
    /// Behind the last batch.
    link: Link,
    /// The last batch, unless it is marked.
    last: Option<Batch>,
    torn: bool,
    /// Where the last segment's readable part ends.
    end: (FileName, u64),
    snapshots: usize,
    replayed: u64,
}

/// The next step after an answer of the disk.
pub(crate) enum Next {
    /// To the next question.
    Ask(Op),
    /// All is read.
    Read(Ready),
}

/// The result of reading.
pub(crate) struct Ready {
    pub found: Found,
    /// The link that the next batch follows.
    pub link: Link,
    /// The last batch's records, if it is not certain that it is on the disk.
    pub repeat: Option<Vec<Record>>,
    pub snapshots: usize,
    pub replayed: u64,
    pub torn: bool,
}

impl Opening {
    pub fn new(config: &Config) -> (Opening, Op) {
        let opening = Opening {
            step: Step::List,
            files: Vec::new(),
            manifest: Manifest::new(config.seed, config.owner),
            fresh: false,
            segments: BTreeMap::new(),
            link: Link::START,
            last: None,
            torn: false,
            end: (FileName::Segment(0), 0),
            snapshots: 0,
            replayed: 0,
        };
        (opening, Op::List)
    }

    /// Takes the answer to the last question.
    pub fn handle(
        &mut self,
        result: Result<Done, Failure>,
        config: &Config,
        outputs: &mut VecDeque<Output>,
    ) -> Result<Next, OpenError> {
        let done = match result {
            Ok(done) => done,
            Err(Failure { kind: FailureKind::Missing, .. }) => return Err(self.missing()),
            Err(failure) => return Err(OpenError::Disk(failure.text)),
        };
        match (done, core::mem::replace(&mut self.step, Step::List)) {
            (Done::Listed(files), Step::List) => self.listed(files),
            (Done::Read(bytes), Step::Manifest) => {
                self.manifest = Manifest::decode(&bytes)?;
                let (found, wanted) = (self.manifest.owner, config.owner);
                if found != wanted {
                    return Err(OpenError::Owner { found, wanted });
                }
                self.link = self.manifest.start;
                self.next_snapshot(None, config)
            }
            (Done::Read(bytes), Step::Snapshot(reading)) => {
                self.snapshot(reading, &bytes, config, outputs)
            }
            (Done::Read(bytes), Step::Segment(place)) => {
                self.segment(place, &bytes, config, outputs)?;
                self.next_segment(place + 1, config)
            }
            (Done::Read(bytes), Step::Unnamed(number)) => {
                let identity = Identity { store: self.manifest.store, segment: number };
                let Contents { batches, rest, .. } = segment::read(&bytes, identity);
                let file = FileName::Segment(number);
                // It was named when it was written to.
                if !batches.is_empty() || matches!(rest, Rest::Later { .. }) {
                    return Err(OpenError::OldManifest { file });
                }
                self.next_unnamed(number, config)
            }
            (done, step) => unreachable!("the disk answers what it is asked: {done:?}, {step:?}"),
        }
    }

    /// A file that is named is not there.
    fn missing(&self) -> OpenError {
        match &self.step {
            Step::Snapshot(reading) => lost_snapshot(reading.strand, &reading.entry),
            Step::Segment(place) => {
                let file = FileName::Segment(self.manifest.segments[*place]);
                OpenError::Lost { file, lost: format!("all records from {} on", self.link.next) }
            }
            Step::Unnamed(number) => {
                OpenError::Disk(format!("{} is listed and not there", FileName::Segment(*number)))
            }
            Step::List | Step::Manifest => OpenError::Manifest,
        }
    }

    fn listed(&mut self, files: Vec<FileName>) -> Result<Next, OpenError> {
        self.files = files;
        if self.files.contains(&FileName::Manifest) {
            self.step = Step::Manifest;
            let (file, length) = (FileName::Manifest, MAX_MANIFEST + 1);
            return Ok(Next::Ask(Op::Read { file, offset: 0, length }));
        }
        let part = |file: &&FileName| matches!(file, FileName::Segment(_) | FileName::Snapshot(_));
        if let Some(&file) = self.files.iter().find(part) {
            return Err(OpenError::NoManifest { file });
        }
        self.fresh = true;
        Ok(self.ready())
    }

    /// Goes on with the snapshot of the strand that comes after this one.
    fn next_snapshot(&mut self, after: Option<Strand>, config: &Config) -> Result<Next, OpenError> {
        let later = |strand: Strand| after.is_none_or(|after| strand > after);
        let next = self.manifest.strands.iter().find_map(|(&strand, &entry)| {
            Some((strand, entry, entry.snapshot.filter(|_| later(strand))?))
        });
        let Some((strand, entry, (number, length))) = next else {
            return self.next_segment(0, config);
        };
        let head = SnapshotHead { store: self.manifest.store, number, length };
        let reader = SnapshotReader::new(head);
        self.step = Step::Snapshot(Reading { strand, entry, reader, offset: 0 });
        Ok(Next::Ask(Op::Read { file: FileName::Snapshot(number), offset: 0, length: READ }))
    }

    fn snapshot(
        &mut self,
        reading: Reading,
        bytes: &Bytes,
        config: &Config,
        outputs: &mut VecDeque<Output>,
    ) -> Result<Next, OpenError> {
        let Reading { strand, entry, mut reader, offset } = reading;
        reader.take(bytes).map_err(|_| lost_snapshot(strand, &entry))?;
        let (number, _) = entry.snapshot.expect("it has one");
        if bytes.len() == READ {
            let offset = offset + READ as u64;
            self.step = Step::Snapshot(Reading { strand, entry, reader, offset });
            return Ok(Next::Ask(Op::Read {
                file: FileName::Snapshot(number),
                offset,
                length: READ,
            }));
        }
        let state = reader.finish().map_err(|_| lost_snapshot(strand, &entry))?;
        let Entry { covers, place, .. } = entry;
        self.snapshots += 1;
        outputs.push_back(Output::Restored(Snapshot {
            strand,
            covers,
            place,
            state: state.into(),
        }));
        self.next_snapshot(Some(strand), config)
    }

    fn next_segment(&mut self, place: usize, config: &Config) -> Result<Next, OpenError> {
        let Some(&number) = self.manifest.segments.get(place) else {
            return self.next_unnamed(self.manifest.segments.last().copied().unwrap_or(0), config);
        };
        self.step = Step::Segment(place);
        Ok(Next::Ask(Op::Read { file: FileName::Segment(number), offset: 0, length: WHOLE }))
    }

    /// Goes on with the segment after this one that is there and not named. All named ones are
    /// read.
    fn next_unnamed(&mut self, after: u64, config: &Config) -> Result<Next, OpenError> {
        let later = |file: &FileName| match *file {
            FileName::Segment(number) if number > after => Some(number),
            _ => None,
        };
        if let Some(number) = self.files.iter().filter_map(later).min()
            && !config.planted.is(Bug::TrustOldManifest)
        {
            self.step = Step::Unnamed(number);
            let file = FileName::Segment(number);
            return Ok(Next::Ask(Op::Read { file, offset: 0, length: WHOLE }));
        }
        // A snapshot is taken when what it covers is on the disk: it knows how far the log went at
        // least.
        let covers = self.manifest.strands.values().map(|entry| entry.covers).max();
        if let Some(to) = covers.filter(|&covers| covers >= self.link.next) {
            let ((file, offset), from) = (self.end, self.link.next);
            return Err(OpenError::Damaged { file, offset, from, to, after: 0 });
        }
        Ok(self.ready())
    }

    fn segment(
        &mut self,
        place: usize,
        bytes: &Bytes,
        config: &Config,
        outputs: &mut VecDeque<Output>,
    ) -> Result<(), OpenError> {
        let number = self.manifest.segments[place];
        let file = FileName::Segment(number);
        let identity = Identity { store: self.manifest.store, segment: number };
        let Contents { batches, end, rest } = segment::read(bytes, identity);
        let many = batches.iter().map(|(batch, _)| batch.records.len() as u64).sum();
        let size = bytes.len() as u64;
        let mut held = Held { strands: BTreeMap::new(), end: None, size, used: end.min(size) };
        for (at, (batch, checksum)) in batches.into_iter().enumerate() {
            if at == 0 && !self.comes_next(&batch) {
                let (file, offset) = if place == 0 { (file, 0) } else { self.end };
                return Err(self.damaged(file, offset, batch.first, many));
            }
            self.take(batch, checksum, &mut held, outputs);
        }
        if held.end.is_some() || place == 0 {
            self.end = (file, end);
        }
        self.torn = rest == Rest::Torn;
        if let Rest::Later { at, first, records } = rest {
            if config.planted.is(Bug::AcceptPastGap) {
                let Contents { batches, .. } = segment::read(&bytes.slice(at as usize..), identity);
                batches.into_iter().for_each(|(b, c)| self.take(b, c, &mut held, outputs));
            } else if !config.planted.is(Bug::TruncateSilently) {
                return Err(self.damaged(file, end, first, records));
            }
        }
        if config.planted.is(Bug::TrustStale) && bytes.len() > end as usize + 32 {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[end as usize + 24..end as usize + 32]);
            let identity = Identity { segment: u64::from_le_bytes(word), ..identity };
            let Contents { batches, .. } = segment::read(&bytes.slice(end as usize..), identity);
            batches.into_iter().for_each(|(b, c)| self.take(b, c, &mut held, outputs));
        }
        self.segments.insert(number, held);
        Ok(())
    }

    /// The batch at a segment's beginning follows what was read before, or says the last of it
    /// again.
    fn comes_next(&self, batch: &Batch) -> bool {
        self.link.leads_to(batch) || self.link.is_said_again_by(batch)
    }

    fn take(
        &mut self,
        batch: Batch,
        checksum: u32,
        held: &mut Held,
        outputs: &mut VecDeque<Output>,
    ) {
        let known = self.link.is_said_again_by(&batch);
        for (place, record) in batch.records.iter().enumerate() {
            let id = RecordId(batch.first.0 + place as u64);
            let covers = self.manifest.strands.get(&record.strand).map(|entry| entry.covers);
            held.strands.insert(record.strand, id);
            if !known && covers.is_none_or(|covers| id > covers) {
                self.replayed += 1;
                // Copy the bytes: a kept record must not keep the whole segment in memory.
                let bytes = Bytes::copy_from_slice(&record.bytes);
                let record = Record { bytes, ..*record };
                outputs.push_back(Output::Replayed(id, record));
            }
        }
        self.link = Link::after(&batch, checksum);
        held.end = Some(self.link);
        self.last = Some(batch).filter(|batch| !batch.is_mark());
    }

    fn damaged(&self, file: FileName, offset: u64, first: RecordId, after: u64) -> OpenError {
        let from = self.link.next;
        let to = RecordId(first.0.saturating_sub(1).max(from.0));
        OpenError::Damaged { file, offset, from, to, after }
    }

    fn ready(&mut self) -> Next {
        let mut link = self.link;
        let repeat = self.last.take().map(|batch| {
            link = Link { number: batch.number - 1, checksum: batch.before, next: batch.first };
            batch.records
        });
        let found = Found {
            manifest: self.manifest.clone(),
            segments: core::mem::take(&mut self.segments),
            files: core::mem::take(&mut self.files),
            fresh: self.fresh,
        };
        let (snapshots, replayed, torn) = (self.snapshots, self.replayed, self.torn);
        Next::Read(Ready { found, link, repeat, snapshots, replayed, torn })
    }
}

fn lost_snapshot(strand: Strand, entry: &Entry) -> OpenError {
    let file = FileName::Snapshot(entry.snapshot.map_or(0, |(number, _)| number));
    let of: String = match strand {
        Strand::Node => "the node".into(),
        Strand::Group(group) => format!("group {group}"),
    };
    OpenError::Lost { file, lost: format!("the state of {of} up to record {}", entry.covers) }
}
