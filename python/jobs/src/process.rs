//! This process as a rank.

use std::sync::{Mutex, MutexGuard, OnceLock};

use ::rank::{Job, JobError as Error};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::exit;

create_exception!(
    steadfast_jobs,
    JobError,
    PyException,
    "Why a rank cannot do what its program asks for; the message has the remedy."
);

/// Never dropped: Python's arrays lie in its memory, and may be there to the end of the process.
///
/// Nobody who holds the lock runs Python or waits for the interpreter, so it is always free soon.
static RANK: OnceLock<Mutex<Rank>> = OnceLock::new();

/// A job, and what Python makes of it.
pub(crate) struct Rank {
    pub job: Job,
    /// The loops that run now, the outermost first, each by a number of its own.
    loops: Vec<u64>,
    last: u64,
    pub finished: bool,
    /// This process was forked off the rank's, and has none of its memory.
    forked: bool,
}

impl Rank {
    /// A loop begins, or goes on: its depth, its number, and its next turn.
    pub fn begin(&mut self, turns: u64) -> (usize, u64, u64) {
        let (depth, next) = self.job.begin_loop(turns);
        self.last += 1;
        self.loops.truncate(depth);
        self.loops.push(self.last);
        (depth, self.last, next)
    }

    /// A turn is about to begin. True: a checkpoint is due.
    pub fn turn(&mut self, depth: usize, number: u64, turn: u64) -> PyResult<bool> {
        if self.loops.get(depth) != Some(&number) {
            let why = "this loop is over: a loop around it has gone on, or one within was kept";
            return Err(JobError::new_err(why));
        }
        self.loops.truncate(depth + 1);
        self.job.turn(depth, turn).map_err(raised)
    }

    /// A loop is over, if it was not already by the end of one around it.
    pub fn end(&mut self, depth: usize, number: u64) {
        if self.loops.get(depth) == Some(&number) {
            self.loops.truncate(depth);
            self.job.end_loop(depth);
        }
    }
}

/// The rank.
pub(crate) fn this() -> PyResult<MutexGuard<'static, Rank>> {
    let rank = RANK.get().ok_or_else(|| JobError::new_err("the job is not connected"))?;
    let rank =
        rank.lock().map_err(|_| JobError::new_err("the job is broken by an earlier error"))?;
    if rank.forked {
        let why = "a forked process is no rank, and has no arrays: start processes by `spawn`";
        return Err(JobError::new_err(why));
    }
    Ok(rank)
}

/// An error for Python. A start that is over ends here: whatever its program would do next, another
/// start does already.
pub(crate) fn raised(error: Error) -> PyErr {
    match error {
        Error::Over(_) | Error::Alone(_) => {
            exit::say(&error);
            exit::now(exit::OVER)
        }
        error => JobError::new_err(error.to_string()),
    }
}

/// Has what Python and C code have printed go to where it is printed to. The standard output may be
/// closed, or be something else: that is nothing to fail for.
pub(crate) fn flush(py: Python<'_>) -> PyResult<()> {
    let sys = py.import("sys")?;
    for name in ["stdout", "__stdout__"] {
        let flushed = sys.getattr(name).and_then(|file| file.call_method0("flush"));
        // An interrupt is another matter.
        flushed.map(drop).or_else(|error| {
            if error.is_instance_of::<PyException>(py) { Ok(()) } else { Err(error) }
        })?;
    }
    exit::flush();
    Ok(())
}

/// The same, where the rank's standard output may be about to go elsewhere.
pub(crate) fn flush_repeated(py: Python<'_>) -> PyResult<()> {
    let repeats = this()?.job.repeats_output();
    if repeats { flush(py) } else { Ok(()) }
}

/// Finds the agent. The caller sees to it that this is done once.
pub(crate) fn connect(py: Python<'_>) -> PyResult<()> {
    flush(py)?;
    // The agent may have to read a large state first: other threads go on.
    let job = py.detach(Job::connect).map_err(raised)?;
    let rank = Rank { job, loops: Vec::new(), last: 0, finished: false, forked: false };
    if RANK.set(Mutex::new(rank)).is_err() {
        return Err(JobError::new_err("the job is connected already"));
    }
    exit::at_exit(finish_at_exit);
    Ok(())
}

/// The process ends by itself: a status of 0 says that the work is done. The status that it is to
/// have.
fn finish_at_exit(status: i32) -> i32 {
    // Python is gone by now, so an error has nobody else to go to.
    let finished = match RANK.get().map(Mutex::lock) {
        Some(Ok(rank)) if status != 0 || rank.forked || rank.finished => return status,
        Some(Ok(mut rank)) => {
            exit::flush();
            rank.job.finish()
        }
        _ => return exit::FAILED,
    };
    match finished {
        Ok(()) => status,
        Err(error) => {
            exit::say(&error);
            if let Error::Over(_) | Error::Alone(_) = error { exit::OVER } else { exit::FAILED }
        }
    }
}

/// This process was forked off, and is no rank.
pub(crate) fn forget() {
    if let Some(Ok(mut rank)) = RANK.get().map(Mutex::lock) {
        rank.forked = true;
    }
}
