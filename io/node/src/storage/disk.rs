//! The disk's two hands: a thread each, so that what is slow for one does not hold up the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use os::durable::Lock;
use os::threads;
use store::{Done, Failure, FailureKind, Lane, Op};

use super::error::StorageError;
use super::folder::{Folder, lock};

/// The result of an operation that was begun.
pub(super) type Answer = (Lane, Result<Done, Failure>);

/// A disk at work. Operations under way are completed when it is dropped.
#[derive(Debug)]
pub(super) struct Disk {
    lanes: [Option<SyncSender<Op>>; 2],
    answers: Receiver<Answer>,
    threads: Vec<JoinHandle<()>>,
    _lock: Lock,
}

/// Does one operation after the other.
pub(super) type Hand = Box<dyn FnMut(Op) -> Result<Done, Failure> + Send>;

impl Disk {
    /// Puts the disk to work on a folder, which is made if need be. `wake` is called after each
    /// answer.
    pub fn start(
        folder: &Path,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Disk, StorageError> {
        let lock = lock(folder)?;
        Disk::with(lock, wake, || {
            let mut folder = Folder::new(folder);
            Box::new(move |op| folder.perform(op))
        })
    }

    /// A disk with these hands.
    pub fn with(
        lock: Lock,
        wake: impl Fn() + Send + Sync + 'static,
        hand: impl Fn() -> Hand,
    ) -> Result<Disk, StorageError> {
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        let (answered, answers) = channel();
        let mut disk = Disk { lanes: [None, None], answers, threads: Vec::new(), _lock: lock };
        for (lane, name) in [(Lane::Log, "steadfast log"), (Lane::Maintenance, "steadfast disk")] {
            // The store asks each lane for one thing at a time.
            let (asked, questions) = sync_channel(1);
            let (hand, answered, wake) = (hand(), answered.clone(), wake.clone());
            let work = move || serve(lane, hand, &questions, &answered, &*wake);
            let thread = threads::spawn(name, work);
            disk.threads.push(thread.map_err(StorageError::Thread)?);
            disk.lanes[lane as usize] = Some(asked);
        }
        Ok(disk)
    }

    /// Has something done. The answer comes by [`Disk::wait`].
    pub fn begin(&self, lane: Lane, op: Op) {
        let lane = self.lanes[lane as usize].as_ref().expect("they end with this");
        // The thread lives as long as its sender.
        lane.send(op).expect("the thread waits for this");
    }

    /// The next answer, if one is there.
    pub fn next(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }

    /// The next answer, if it comes in time.
    pub fn wait(&self, span: Duration) -> Result<Answer, RecvTimeoutError> {
        self.answers.recv_timeout(span)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.lanes = [None, None];
        // Another process may have the folder when nothing is written any more.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve(
    lane: Lane,
    mut hand: Hand,
    questions: &Receiver<Op>,
    answers: &Sender<Answer>,
    wake: &dyn Fn(),
) {
    while let Ok(op) = questions.recv() {
        // A caller that waits for an answer would wait for ever.
        let done = catch_unwind(AssertUnwindSafe(|| hand(op)));
        let answer = done.unwrap_or_else(|_| {
            let text = "the disk's thread panicked: what it did is not known".into();
            Err(Failure { kind: FailureKind::Unsynced, text })
        });
        if answers.send((lane, answer)).is_err() {
            return;
        }
        wake();
    }
}
