//! The end of the log: what waits to be written, what is being written, and where.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;
use wire::Time;
use wire::limits::{MAX_STORE_QUEUE, MAX_STORE_QUEUE_BYTES};

use crate::api::{AppendError, Config, Op, Record, RecordId, Strand};
use crate::bug::Bug;
use crate::format::{BATCH_HEAD, BLOCK, Batch, FileName, Identity, Link, padded, size_of_record};

/// The segment that is written to.
#[derive(Clone, Copy, Debug)]
struct Current {
    number: u64,
    size: u64,
    /// Where the next batch begins.
    offset: u64,
}

/// A batch on its way to the disk.
#[derive(Debug)]
struct Flying {
    offset: u64,
    bytes: Bytes,
    /// Where the log stands when it is there.
    link: Link,
    strands: BTreeMap<Strand, RecordId>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Records,
    Repeat,
    Mark,
}

/// A batch that is on the disk.
#[derive(Debug)]
pub(crate) struct Written {
    /// The segment that holds it.
    pub segment: u64,
    /// Where the log stands now.
    pub link: Link,
    /// The last record of each strand in it.
    pub strands: BTreeMap<Strand, RecordId>,
    /// Records are on the disk that were not before.
    pub news: bool,
}

#[derive(Debug)]
pub(crate) struct Log {
    store: u64,
    queue: VecDeque<Record>,
    queue_bytes: usize,
    /// When the oldest in the queue came.
    since: Option<Time>,
    /// The number of the next record that is appended.
    next: RecordId,
    /// Behind the last batch on the disk.
    link: Link,
    current: Option<Current>,
    /// The segment that comes after it, with its size.
    ready: Option<(u64, u64)>,
    flying: Option<Flying>,
    /// The records of the last life's last batch, to be written again first of all.
    repeat: Option<Vec<Record>>,
    /// The last batch says that all before it is on the disk, or there is none.
    marked: bool,
    /// When it is to be marked.
    mark_at: Option<Time>,
    /// When a write that found the disk full is tried again.
    again: Option<Time>,
    /// The write under way has found the disk full, and is not done yet.
    put_off: bool,
    /// The last block of the last batch.
    #[cfg(feature = "planted-bugs")]
    last_block: Bytes,
}

impl Log {
    /// A log that goes on behind `link`; with `repeat`, a batch that is said again comes first.
    pub fn new(store: u64, link: Link, repeat: Option<Vec<Record>>) -> Log {
        let again = repeat.as_ref().map_or(0, |records| records.len() as u64);
        Log {
            store,
            queue: VecDeque::new(),
            queue_bytes: 0,
            since: None,
            next: RecordId(link.next.0 + again),
            link,
            current: None,
            ready: None,
            flying: None,
            marked: repeat.is_none(),
            repeat,
            mark_at: None,
            again: None,
            put_off: false,
            #[cfg(feature = "planted-bugs")]
            last_block: Bytes::new(),
        }
    }

    /// Bytes that the first batch takes, if one is to be said again.
    pub fn repeated(&self) -> usize {
        let sum = |records: &Vec<Record>| records.iter().map(size_of_record).sum();
        self.repeat.as_ref().map_or(0, sum)
    }

    pub fn append(
        &mut self,
        now: Time,
        record: Record,
        config: &Config,
        full: bool,
    ) -> Result<RecordId, AppendError> {
        let (length, longest) = (record.bytes.len(), config.longest_record());
        if length > longest {
            return Err(AppendError::TooLong { length, longest });
        }
        let size = size_of_record(&record);
        // Records that wait for room are written when there is some, however few they are.
        let busy = if self.put_off { AppendError::Full } else { AppendError::Busy };
        if self.queue.len() >= MAX_STORE_QUEUE || self.queue_bytes + size > MAX_STORE_QUEUE_BYTES {
            return Err(busy);
        }
        if !self.fits(size, config) {
            return Err(if full { AppendError::Full } else { busy });
        }
        let id = self.next;
        self.next.0 += 1;
        self.queue_bytes += size;
        self.queue.push_back(record);
        self.since.get_or_insert(now);
        self.mark_at = None;
        Ok(id)
    }

    /// All waiting records, and so many bytes more, fit into room that is there already, however
    /// they are cut into batches. Accepted records never wait for room: snapshots, which make some,
    /// may have to wait for it.
    fn fits(&self, more: usize, config: &Config) -> bool {
        let needed = config.space(self.queue_bytes + more) as u64;
        let flying = self.flying.as_ref().map_or(0, |flying| flying.bytes.len()) as u64;
        let left = self.current.map_or(0, |current| current.size - current.offset - flying);
        needed <= left || self.ready.is_some_and(|(_, size)| needed <= size)
    }

    /// The last record that is on the disk.
    pub fn persisted(&self) -> RecordId {
        RecordId(self.link.next.0 - 1)
    }

    /// The last record that was appended.
    pub fn appended(&self) -> RecordId {
        RecordId(self.next.0 - 1)
    }

    /// The log goes on in this segment when the current one is full.
    pub fn take_segment(&mut self, number: u64, size: u64) {
        assert!(self.ready.is_none(), "one segment at a time is made ready");
        self.ready = Some((number, size));
    }

    /// No segment is ready for when the current one is full.
    pub fn wants_segment(&self) -> bool {
        self.ready.is_none()
    }

    /// The segment that is written to, or will be next: none from here on can go.
    pub fn first_needed(&self) -> u64 {
        let ready = self.ready.map(|(number, _)| number);
        self.current.map(|current| current.number).or(ready).unwrap_or(u64::MAX)
    }

    /// Nothing is on its way or waits, and the last batch is marked.
    pub fn is_at_rest(&self) -> bool {
        self.is_empty() && self.marked
    }

    /// Nothing is on its way or waits.
    pub fn is_empty(&self) -> bool {
        self.flying.is_none() && self.queue.is_empty() && self.repeat.is_none()
    }

    /// Nothing is on its way, and what waits finds no room.
    pub fn is_stuck(&self) -> bool {
        self.again.is_some() || self.flying.is_none() && !self.has_room()
    }

    /// It has a segment to write to. From here on, a full disk is no reason to end.
    pub fn has_begun(&self) -> bool {
        self.current.is_some() || self.ready.is_some()
    }

    /// The next operation of the disk, if it is idle. `at_once`: neither records nor the mark wait
    /// for anything.
    pub fn next_op(&mut self, now: Time, config: &Config, at_once: bool) -> Option<Op> {
        if self.flying.is_some() {
            return None;
        }
        let due = |since: Time| at_once || since + config.delay <= now;
        let kind = if self.repeat.is_some() {
            Kind::Repeat
        } else if self.since.is_some_and(due) {
            Kind::Records
        } else if self.queue.is_empty() && !self.marked && self.is_mark_due(now, at_once, config) {
            Kind::Mark
        } else {
            return None;
        };
        let records = match self.take(kind, config) {
            None if self.rotate() => self.take(kind, config),
            taken => taken,
        }?;
        Some(self.write(kind, records, config))
    }

    fn is_mark_due(&self, now: Time, at_once: bool, config: &Config) -> bool {
        !config.planted.is(Bug::ForgetMark) && (at_once || self.mark_at.is_some_and(|at| at <= now))
    }

    /// The records of the next batch, as many as fit; `None` if it does not fit into the current
    /// segment.
    fn take(&mut self, kind: Kind, config: &Config) -> Option<Vec<Record>> {
        let left = self.current.map_or(0, |current| current.size - current.offset) as usize;
        let room = left.checked_sub(BATCH_HEAD)?;
        match kind {
            Kind::Mark => Some(Vec::new()),
            Kind::Repeat if self.repeated() <= room => self.repeat.take(),
            Kind::Repeat => None,
            Kind::Records => {
                let mut records = Vec::new();
                let mut size = 0;
                while let Some(record) = self.queue.front() {
                    size += size_of_record(record);
                    if size > room.min(config.batch) {
                        break;
                    }
                    self.queue_bytes -= size_of_record(record);
                    records.extend(self.queue.pop_front());
                }
                (!records.is_empty()).then_some(records)
            }
        }
    }

    /// Goes on in the next segment, if it is ready.
    fn rotate(&mut self) -> bool {
        let Some((number, size)) = self.ready.take() else { return false };
        self.current = Some(Current { number, size, offset: 0 });
        #[cfg(feature = "planted-bugs")]
        self.last_block.clear();
        true
    }

    fn write(&mut self, kind: Kind, records: Vec<Record>, config: &Config) -> Op {
        let current = self.current.expect("there is room in it");
        let mut strands = BTreeMap::new();
        for (place, record) in records.iter().enumerate() {
            strands.insert(record.strand, RecordId(self.link.next.0 + place as u64));
        }
        let batch = Batch {
            number: self.link.number + u64::from(kind != Kind::Mark),
            first: self.link.next,
            before: self.link.checksum,
            repeat: kind == Kind::Repeat,
            records,
        };
        let identity = Identity { store: self.store, segment: current.number };
        let (bytes, checksum) = batch.encode(identity);
        if self.queue.is_empty() {
            self.since = None;
        }
        let link = Link::after(&batch, checksum);
        self.flying = Some(Flying { offset: current.offset, bytes, link, strands, kind });
        self.op(config)
    }

    /// The disk operation of the write under way.
    fn op(&mut self, config: &Config) -> Op {
        let current = self.current.expect("something is written to it");
        let flying = self.flying.as_ref().expect("something is on its way");
        let (file, offset) = (FileName::Segment(current.number), flying.offset);
        #[cfg(feature = "planted-bugs")]
        if config.planted.is(Bug::RewriteLastBlock) && !self.last_block.is_empty() {
            let bytes = [&self.last_block[..], &flying.bytes].concat().into();
            return Op::Append { file, offset: offset - BLOCK as u64, bytes };
        }
        let _ = config;
        Op::Append { file, offset, bytes: flying.bytes.clone() }
    }

    /// The write under way is on the disk.
    pub fn done(&mut self, now: Time, config: &Config) -> Written {
        let Flying { offset, bytes, link, strands, kind } =
            self.flying.take().expect("the disk does what it is asked for");
        let current = self.current.as_mut().expect("something was written to it");
        current.offset = offset + padded(bytes.len()) as u64;
        #[cfg(feature = "planted-bugs")]
        {
            self.last_block = bytes.slice(bytes.len() - BLOCK..);
        }
        self.link = link;
        self.put_off = false;
        self.marked = kind == Kind::Mark;
        let rests = !self.marked && self.queue.is_empty() && !config.planted.is(Bug::ForgetMark);
        self.mark_at = rests.then(|| now + config.mark_after);
        Written { segment: current.number, link, strands, news: kind == Kind::Records }
    }

    /// Where the log will stand when what is on its way is there.
    pub fn flying_to(&self) -> Option<RecordId> {
        self.flying.as_ref().map(|flying| RecordId(flying.link.next.0 - 1))
    }

    /// The file that is written to.
    pub fn file(&self) -> Option<FileName> {
        self.current.map(|current| FileName::Segment(current.number))
    }

    /// The disk was full: the same is tried again later.
    pub fn put_off(&mut self, now: Time, config: &Config) {
        self.again = Some(now + config.retry);
        self.put_off = !config.planted.is(Bug::FullInSilence);
    }

    /// The write under way waits for room.
    pub fn is_put_off(&self) -> bool {
        self.put_off
    }

    /// A write that was put off and is due.
    pub fn try_again(&mut self, now: Time, config: &Config) -> Option<Op> {
        self.again.filter(|&at| at <= now)?;
        self.again = None;
        Some(self.op(config))
    }

    pub fn next_timeout(&self, config: &Config) -> Option<Time> {
        if self.flying.is_some() {
            return self.again;
        }
        let waiting = self.since.map(|since| since + config.delay);
        let mark = self.mark_at.filter(|_| self.queue.is_empty() && !self.marked);
        let due = waiting.into_iter().chain(mark).min()?;
        // Records without room wait for a segment, not for the clock.
        self.has_room().then_some(due)
    }

    /// The next record, or a mark, finds room.
    fn has_room(&self) -> bool {
        let left = self.current.map_or(0, |current| current.size - current.offset) as usize;
        let needed = BATCH_HEAD + self.queue.front().map_or(0, size_of_record);
        self.ready.is_some() || needed <= left
    }

    pub fn check_invariants(&self) {
        assert!(self.queue.len() <= MAX_STORE_QUEUE && self.queue_bytes <= MAX_STORE_QUEUE_BYTES);
        assert_eq!(self.queue_bytes, self.queue.iter().map(size_of_record).sum::<usize>());
        let flying = self.flying_to().unwrap_or(self.persisted());
        let waiting = self.queue.len() + self.repeat.as_ref().map_or(0, Vec::len);
        assert_eq!(flying.0 + waiting as u64, self.appended().0, "numbers without gaps");
        assert!(self.queue.is_empty() == self.since.is_none(), "who waits has a time");
        if let Some(current) = self.current {
            assert!(current.offset <= current.size && current.offset % BLOCK as u64 == 0);
        }
        assert!(self.flying.is_some() || self.again.is_none() && !self.put_off);
    }
}
