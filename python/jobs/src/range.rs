//! Loops.

use pyo3::prelude::*;

use crate::process::{flush_repeated, this};

/// The turns of a loop, from the first one that is not done. Each begins with a safe point. When
/// the loop is left, it is dropped, and so ends also by `break`, `return` or an exception.
#[pyclass(module = "steadfast_jobs._native")]
pub(crate) struct Range {
    start: i64,
    step: i64,
    turns: u64,
    /// Called where a checkpoint is due.
    save: Py<PyAny>,
    at: At,
}

enum At {
    Begin,
    /// A loop of this depth and number, and its next turn.
    Turn(usize, u64, u64),
    End,
}

#[pymethods]
impl Range {
    #[new]
    fn new(start: i64, step: i64, turns: u64, save: Py<PyAny>) -> Range {
        Range { start, step, turns, save, at: At::Begin }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<i64>> {
        let (depth, number, turn) = match self.at {
            At::Begin => this()?.begin(self.turns),
            At::Turn(depth, number, turn) => (depth, number, turn),
            At::End => return Ok(None),
        };
        self.at = At::Turn(depth, number, turn);
        if turn >= self.turns {
            self.end();
            return Ok(None);
        }
        flush_repeated(py)?;
        // The lock is free again when Python saves.
        let due = this()?.turn(depth, number, turn)?;
        if due {
            self.save.call0(py)?;
        }
        self.at = At::Turn(depth, number, turn + 1);
        // It is within Python's range, whose ends are such numbers.
        Ok(Some(self.start.wrapping_add(self.step.wrapping_mul(turn as i64))))
    }
}

impl Range {
    fn end(&mut self) {
        if let At::Turn(depth, number, _) = std::mem::replace(&mut self.at, At::End)
            && let Ok(mut rank) = this()
        {
            rank.end(depth, number);
        }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.end();
    }
}
