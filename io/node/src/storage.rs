//! Stable storage on a real folder: the machine [`store::Store`], and the disk that does what it
//! asks for.

mod disk;
mod error;
mod folder;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use store::{
    AppendError, Broken, Config, Lane, Opened, Output, Owner, Record, RecordId, Snapshot,
    SnapshotError, Store, Strand,
};
use wire::Time;

use disk::{Answer, Disk};
pub use error::StorageError;
use os::clock::monotonic;
use wire::ordered::Place;

/// While a store is read, how far that is is told so often.
const PROGRESS: Duration = Duration::from_secs(5);

/// The default knobs of a store of this owner.
///
/// # Errors
/// If the system has no random numbers.
pub fn config(owner: Owner) -> io::Result<Config> {
    let mut seed = [0; 8];
    let mut filled = 0;
    while filled < seed.len() {
        filled += getrandom(&mut seed[filled..], GetRandomFlags::empty())?;
    }
    Ok(Config::new(owner, u64::from_le_bytes(seed)))
}

/// The recovered contents of a folder.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// How it was found.
    pub opened: Opened,
    /// One of each strand that has one.
    pub snapshots: Vec<Snapshot>,
    /// Those that no snapshot covers, in order.
    pub records: Vec<(RecordId, Record)>,
}

/// A store on a folder, for a thread that may wait for the disk.
#[derive(Debug)]
pub struct Storage {
    store: Store,
    disk: Disk,
    appended: RecordId,
    persisted: RecordId,
    syncs: u64,
    full: Option<String>,
    closed: Option<Result<(), Broken>>,
    /// When the write to the log began that is under way, and how long the last one took.
    writing: Option<Time>,
    last_sync: Duration,
    /// News for callers that do not wait.
    words: VecDeque<Word>,
}

/// A storage's news for callers that do not wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// All records up to this one are on the disk.
    Persisted(RecordId),
    /// This strand's snapshot is there.
    SnapshotStored(Strand, RecordId),
    /// This strand's snapshot found no room.
    SnapshotRefused(Strand),
    /// That this strand is forgotten, up to this record, is on the disk.
    Forgotten(Strand, RecordId),
    /// A snapshot of this strand would cut the log.
    SnapshotWanted(Strand),
    /// The disk is full: some records still have room.
    Full(String),
    /// It is not, any more.
    Room,
    /// The disk failed. The last word.
    Broken(String),
}

impl Storage {
    /// Opens the store in `folder`, or makes one there.
    ///
    /// # Errors
    /// [`StorageError`] says what is wrong, and what to do.
    pub fn open(folder: &Path, config: Config) -> Result<(Storage, Recovered), StorageError> {
        Storage::open_waking(folder, config, || {})
    }

    /// The same, for a thread that does not wait: `wake` is called when there is something to
    /// [take](Storage::turn).
    ///
    /// # Errors
    /// As of [`Storage::open`].
    pub fn open_waking(
        folder: &Path,
        config: Config,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<(Storage, Recovered), StorageError> {
        let store = Store::open(config)?;
        Storage::open_on(Disk::start(folder, wake)?, store)
    }

    fn open_on(disk: Disk, store: Store) -> Result<(Storage, Recovered), StorageError> {
        let mut storage = Storage {
            store,
            disk,
            appended: RecordId(0),
            persisted: RecordId(0),
            syncs: 0,
            full: None,
            closed: None,
            writing: None,
            last_sync: Duration::ZERO,
            words: VecDeque::new(),
        };
        let mut told = monotonic();
        let (mut snapshots, mut records) = (Vec::new(), Vec::new());
        let opened = loop {
            match storage.store.poll_output() {
                Some(Output::Restored(snapshot)) => snapshots.push(snapshot),
                Some(Output::Replayed(id, record)) => {
                    records.push((id, record));
                    if monotonic().since(told) >= PROGRESS {
                        told = monotonic();
                        tracing::info!(records = records.len(), "reading the store");
                    }
                }
                Some(Output::Opened(opened)) => break opened,
                Some(Output::NotOpened(error)) => return Err(error.into()),
                Some(output) => storage.handle(output),
                None => storage.wait_for_disk(),
            }
        };
        storage.persisted = RecordId(opened.next.0 - 1);
        storage.appended = storage.persisted;
        storage.drain();
        storage.words.retain(|word| matches!(word, Word::SnapshotWanted(_) | Word::Full(_)));
        Ok((storage, Recovered { opened, snapshots, records }))
    }

    /// Hands a record in. If too much waits for the disk it waits, too.
    ///
    /// # Errors
    /// [`StorageError::Append`], or what became of the store.
    pub fn append(&mut self, record: Record) -> Result<RecordId, StorageError> {
        loop {
            self.catch_up();
            match self.try_append(&record) {
                Err(AppendError::Busy) => self.step(),
                id => return id.map_err(|error| self.reason(error.into())),
            }
        }
    }

    /// Hands a record in, if there is room for it now.
    ///
    /// # Errors
    /// [`AppendError`]: busy ends when the disk has done something.
    pub fn try_append(&mut self, record: &Record) -> Result<RecordId, AppendError> {
        let id = self.store.append(monotonic(), record.clone());
        self.appended = id.unwrap_or(self.appended);
        self.drain();
        id
    }

    /// Hands a strand's state in, if it is taken now.
    ///
    /// # Errors
    /// [`SnapshotError`]: busy ends when the disk has done something.
    pub fn try_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let taken = self.store.snapshot(monotonic(), snapshot.clone());
        self.drain();
        taken
    }

    /// Nothing that was kept of a strand is needed any more.
    ///
    /// # Errors
    /// [`SnapshotError`]: busy ends when the disk has done something.
    pub fn try_forget(&mut self, strand: Strand, place: Place) -> Result<(), SnapshotError> {
        let taken = self.store.forget(monotonic(), strand, place);
        self.drain();
        taken
    }

    /// Takes what the disk has done by now and what is due, without waiting, and tells what came of
    /// it.
    pub fn turn(&mut self) -> VecDeque<Word> {
        self.catch_up();
        std::mem::take(&mut self.words)
    }

    fn catch_up(&mut self) {
        while let Some(answer) = self.disk.next() {
            self.answered(answer);
            self.drain();
        }
        let now = monotonic();
        if self.store.next_timeout().is_some_and(|due| due <= now) {
            self.store.handle_timeout(now);
            self.drain();
        }
    }

    /// When [`Storage::turn`] is due, if the disk does nothing.
    pub fn next_timeout(&self) -> Option<Time> {
        self.store.next_timeout()
    }

    /// How long the last write to the log took, with its sync.
    pub fn last_sync(&self) -> Duration {
        self.last_sync
    }

    /// Hands a strand's state in.
    ///
    /// # Errors
    /// [`StorageError::Snapshot`], or what became of the store.
    pub fn snapshot(&mut self, snapshot: Snapshot) -> Result<(), StorageError> {
        self.catch_up();
        let taken = self.store.snapshot(monotonic(), snapshot);
        self.drain();
        taken.map_err(|error| self.reason(error.into()))
    }

    /// All records up to this one are on the disk, as far as is known here.
    pub fn persisted(&self) -> RecordId {
        self.persisted
    }

    /// Writes to the log that were made, each with one sync.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    /// The next strand of which a snapshot is wanted. If that is refused as busy, it is asked for
    /// once more.
    pub fn wanted(&mut self) -> Option<Strand> {
        let at = self.words.iter().position(|word| matches!(word, Word::SnapshotWanted(_)))?;
        match self.words.remove(at) {
            Some(Word::SnapshotWanted(strand)) => Some(strand),
            _ => None,
        }
    }

    /// The next snapshot that has come to the disk.
    pub fn stored(&mut self) -> Option<(Strand, RecordId)> {
        let at = self.words.iter().position(|word| matches!(word, Word::SnapshotStored(..)))?;
        match self.words.remove(at) {
            Some(Word::SnapshotStored(strand, covers)) => Some((strand, covers)),
            _ => None,
        }
    }

    /// Waits until all records up to this one are on the disk.
    ///
    /// # Errors
    /// [`StorageError::Full`] if these wait for room, once the disk has reported it: call again;
    /// [`StorageError::Broken`]; [`StorageError::Unknown`].
    pub fn wait(&mut self, upto: RecordId) -> Result<(), StorageError> {
        if upto > self.appended {
            return Err(StorageError::Unknown(upto));
        }
        self.catch_up();
        while self.persisted < upto {
            match &self.closed {
                Some(Err(broken)) => return Err(broken.clone().into()),
                Some(Ok(())) => return Err(AppendError::NotOpen.into()),
                None => self.step(),
            }
            // Accepted records have their room, unless the disk takes room for rewriting.
            if self.persisted < upto && self.store.waits_for_room() {
                return Err(StorageError::Full(self.full.clone().unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Waits until the disk has done something, or something is due.
    pub fn step(&mut self) {
        self.wait_for_disk();
        self.drain();
    }

    /// Writes what waits, and ends.
    ///
    /// # Errors
    /// [`StorageError::Broken`] if not all of it is there.
    pub fn close(mut self) -> Result<(), StorageError> {
        self.store.close(monotonic());
        self.drain();
        loop {
            match self.closed.take() {
                Some(result) => return Ok(result?),
                None => self.step(),
            }
        }
    }

    /// Why something was refused: a store that is closed has a better reason than that it is not
    /// open.
    fn reason(&self, error: StorageError) -> StorageError {
        match &self.closed {
            Some(Err(broken)) => broken.clone().into(),
            _ => error,
        }
    }

    fn wait_for_disk(&mut self) {
        let now = monotonic();
        let due = self.store.next_timeout().unwrap_or(Time::FAR);
        // A thread that waits for ever does so in pieces that the system can count.
        let span = due.since(now).min(Duration::from_secs(3_600));
        match self.disk.wait(span) {
            Ok(answer) => self.answered(answer),
            Err(RecvTimeoutError::Timeout) => self.store.handle_timeout(monotonic()),
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("the disk's threads end after their other end")
            }
        }
    }

    fn answered(&mut self, (lane, result): Answer) {
        let now = monotonic();
        if lane == Lane::Log {
            self.syncs += 1;
            self.last_sync = self.writing.take().map_or(Duration::ZERO, |begun| now.since(begun));
        }
        self.store.handle_done(now, lane, result);
    }

    fn drain(&mut self) {
        while let Some(output) = self.store.poll_output() {
            self.handle(output);
        }
    }

    fn handle(&mut self, output: Output) {
        match output {
            Output::Disk(lane, op) => {
                if lane == Lane::Log {
                    self.writing = Some(monotonic());
                }
                self.disk.begin(lane, op);
            }
            Output::Persisted(upto) => {
                self.persisted = upto;
                // Each says what the one before said.
                self.words.retain(|word| !matches!(word, Word::Persisted(_)));
                self.words.push_back(Word::Persisted(upto));
            }
            Output::SnapshotStored(strand, covers) => {
                self.words.push_back(Word::SnapshotStored(strand, covers));
            }
            Output::Forgotten(strand, upto) => self.words.push_back(Word::Forgotten(strand, upto)),
            Output::SnapshotWanted(strand) => self.words.push_back(Word::SnapshotWanted(strand)),
            Output::SnapshotRefused(strand) => {
                tracing::warn!(?strand, "the disk has no room for a snapshot");
                self.words.push_back(Word::SnapshotRefused(strand));
            }
            Output::Full(text) => {
                self.words.push_back(Word::Full(text.clone()));
                self.full = Some(text);
            }
            Output::Room => {
                self.words.push_back(Word::Room);
                self.full = None;
            }
            Output::Closed(result) => {
                let broken = result.as_ref().err();
                self.words.extend(broken.map(|broken| Word::Broken(broken.0.clone())));
                self.closed = Some(result);
            }
            Output::Restored(_)
            | Output::Replayed(..)
            | Output::Opened(_)
            | Output::NotOpened(_) => unreachable!("it is open"),
        }
    }
}
