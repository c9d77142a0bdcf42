//! The memory of arrays, as Python sees it.
//!
//! This is sound because
//! - the memory of an array neither moves nor ends before the process does: the job is in a static,
//!   which is never dropped;
//! - references to it exist in Rust only while a method of the job runs. That is always in a call
//!   from Python that keeps the interpreter's lock, so Python writes nothing meanwhile. Code that
//!   writes without that lock, in another thread, must not do so at a safe point: the package says
//!   so to its users, as every owner of a buffer has to;
//! - a forked process, in which nothing is mapped there, gets no buffer.
#![allow(unsafe_code)]

use std::ffi::c_int;

use pyo3::prelude::*;
use pyo3::{PyErr, ffi};

use crate::process::this;

/// The memory of an array, for the buffer protocol: bytes that may be written.
#[pyclass(frozen, module = "steadfast_jobs._native")]
pub(crate) struct Memory {
    array: usize,
}

impl Memory {
    pub fn new(array: usize) -> Memory {
        Memory { array }
    }
}

#[pymethods]
impl Memory {
    /// # Safety
    /// The interpreter calls this, with a view to be filled.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let memory = this()?.job.pointer(slf.get().array);
        let length = memory.len() as ffi::Py_ssize_t;
        // SAFETY: the view is the interpreter's, `slf` is a live object, and the memory is as said
        // above.
        let failed =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), memory.cast(), length, 0, flags) };
        if failed == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
