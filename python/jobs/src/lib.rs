//! The native half of `steadfast_jobs`: [`rank`] for Python. A process is one rank at most, so what
//! is here are functions, and the rank lives until the process ends.
#![deny(unsafe_code)]

mod buffer;
mod exit;
mod functions;
mod messages;
mod process;
mod range;

use pyo3::prelude::*;

/// The parts of `steadfast_jobs`; not for programs.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::buffer::Memory;
    #[pymodule_export]
    use super::functions::{
        array, connect, finish, flush, forget, fresh, get, leave, put, rank, ranks, result,
        safe_point, save, saved_by_agent, start, tracker,
    };
    #[pymodule_export]
    use super::messages::{number, probe, recv, recv_into, send};
    #[pymodule_export]
    use super::process::JobError;
    #[pymodule_export]
    use super::range::Range;
}
