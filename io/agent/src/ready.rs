//! A start is ready when its program is that of the job, and its state is read.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use job::Task;

use crate::images::{self, RestoreError, Restored};
use crate::program::Programs;

/// Why a start is not ready.
#[derive(Debug)]
pub(crate) enum Unready {
    /// The program is not that of the job.
    Program(String),
    /// The state cannot be read.
    State(RestoreError),
}

/// Checks the program, and reads the state if there is one: beside the process, which begins meanwhile.
pub(crate) fn prepare(
    programs: &Mutex<Programs>,
    task: &Task,
    folder: &Path,
) -> Result<Option<Restored>, Unready> {
    let mut known = programs.lock().unwrap_or_else(PoisonError::into_inner);
    known.check(&task.spec).map_err(Unready::Program)?;
    drop(known);
    let state = task.from.map(|(place, root)| images::restore(folder, place, root)).transpose();
    state.map_err(Unready::State)
}
