//! The functions that Python calls.

use ::rank::Kind;
use pyo3::prelude::*;

use crate::buffer::Memory;
use crate::exit;
use crate::process::{self, JobError, flush_repeated, raised, this};

/// Finds the agent. The caller sees to it that this is done once.
#[pyfunction]
pub(crate) fn connect(py: Python<'_>) -> PyResult<()> {
    process::connect(py)
}

/// Which rank this is.
#[pyfunction]
pub(crate) fn rank() -> PyResult<u32> {
    Ok(this()?.job.rank())
}

/// Ranks of the job.
#[pyfunction]
pub(crate) fn ranks() -> PyResult<u32> {
    Ok(this()?.job.ranks())
}

/// Which start of the rank this is.
#[pyfunction]
pub(crate) fn start() -> PyResult<u64> {
    Ok(this()?.job.start())
}

/// It does not go on from a state.
#[pyfunction]
pub(crate) fn fresh() -> PyResult<bool> {
    Ok(!this()?.job.is_restored())
}

/// An agent saves what the rank has.
#[pyfunction]
pub(crate) fn saved_by_agent() -> PyResult<bool> {
    Ok(this()?.job.is_saved())
}

/// How changes are found, and why by no better way.
#[pyfunction]
pub(crate) fn tracker() -> PyResult<Option<(&'static str, Option<String>)>> {
    let rank = this()?;
    let named = |(kind, instead): (Kind, Option<&str>)| {
        let kind = if kind == Kind::Written { "written" } else { "compared" };
        (kind, instead.map(String::from))
    };
    Ok(rank.job.tracker().map(named))
}

/// The memory of an array, and whether it has what it had.
#[pyfunction]
pub(crate) fn array(name: &str, form: &str, length: u64) -> PyResult<(Memory, bool)> {
    let (number, restored) = this()?.job.array(name, form, length).map_err(raised)?;
    Ok((Memory::new(number), restored))
}

/// Keeps a small object with what is saved next.
#[pyfunction]
pub(crate) fn put(name: &str, bytes: &[u8]) -> PyResult<()> {
    this()?.job.put(name, bytes.to_vec()).map_err(raised)?;
    Ok(())
}

/// The small object of this name.
#[pyfunction]
pub(crate) fn get(name: &str) -> PyResult<Option<Vec<u8>>> {
    Ok(this()?.job.get(name).map(<[u8]>::to_vec))
}

/// Delivers a result with the job's end.
#[pyfunction]
pub(crate) fn result(name: &str, form: &str, bytes: &[u8]) -> PyResult<()> {
    let mut rank = this()?;
    if rank.finished {
        return Err(JobError::new_err("the job is finished: results come before that"));
    }
    rank.job.result(name, form, bytes.to_vec()).map_err(raised)?;
    Ok(())
}

/// Here the rank may be saved. True: a checkpoint is due.
#[pyfunction]
pub(crate) fn safe_point(py: Python<'_>) -> PyResult<bool> {
    flush_repeated(py)?;
    this()?.job.safe_point().map_err(raised)
}

/// Has what was printed go to where it is printed to.
#[pyfunction]
pub(crate) fn flush(py: Python<'_>) -> PyResult<()> {
    process::flush(py)
}

/// Saves what the rank has. No other Python code runs meanwhile: it might write what is copied.
#[pyfunction]
pub(crate) fn save(py: Python<'_>) -> PyResult<()> {
    process::flush(py)?;
    this()?.job.save().map_err(raised)
}

/// The work is done.
#[pyfunction]
pub(crate) fn finish(py: Python<'_>) -> PyResult<()> {
    process::flush(py)?;
    let mut rank = this()?;
    rank.job.finish().map_err(raised)?;
    rank.finished = true;
    Ok(())
}

/// Ends the process as one that has failed, at once.
#[pyfunction]
pub(crate) fn leave() {
    exit::now(exit::FAILED);
}

/// This process was forked off, and is no rank.
#[pyfunction]
pub(crate) fn forget() {
    process::forget();
}
