//! Messages as Python sends and receives them.
//!
//! A message has a head of Python's own, which says what it is, and data:
//!
//! ```text
//!  0            4      n, a multiple of 8
//! +------------+------+------
//! | head bytes | head | data
//! +------------+------+------
//! ```
//!
//! Reading and writing the data of Python's objects is sound because the interpreter's lock is held
//! meanwhile, and the view keeps their memory where it is.
#![allow(unsafe_code)]

use std::slice;
use std::time::Duration;

use ::rank::Message;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::process::{JobError, raised, this};

/// How long a rank waits before Python may look whether it was interrupted.
const SLICE: Duration = Duration::from_millis(100);

/// A head is shorter than this.
const MAX_HEAD: usize = 64 << 10;

/// Sends a message to a rank.
#[pyfunction]
pub(crate) fn send(
    py: Python<'_>,
    to: u32,
    tag: u32,
    head: &[u8],
    data: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if head.len() >= MAX_HEAD {
        return Err(PyValueError::new_err("the head of a message is too long"));
    }
    let view = PyUntypedBuffer::get(data)?;
    let (begin, length) = bytes(&view)?;
    let mut first = Vec::with_capacity(head.len() + 12);
    first.extend_from_slice(&(head.len() as u32).to_le_bytes());
    first.extend_from_slice(head);
    first.resize(first.len().next_multiple_of(8), 0);
    if to >= this()?.job.ranks() {
        let why = format!("there is no rank {to} in this job of {} ranks", this()?.job.ranks());
        return Err(PyValueError::new_err(why));
    }
    loop {
        // SAFETY: the view has so many bytes, and as said above.
        let data: &[u8] = unsafe { slice::from_raw_parts(begin, length) };
        if this()?.job.try_send(to, tag, [&first, data]).map_err(raised)? {
            return Ok(());
        }
        py.check_signals()?;
        py.detach(|| this()?.job.await_room(to, SLICE).map_err(raised))?;
    }
}

/// The memory of a view, and its bytes.
fn bytes(view: &PyUntypedBuffer) -> PyResult<(*mut u8, usize)> {
    if !view.is_c_contiguous() {
        return Err(PyBufferError::new_err("the data of a message lie in one piece, row by row"));
    }
    let length = view.len_bytes();
    let begin = if length == 0 { std::ptr::dangling_mut() } else { view.buf_ptr().cast() };
    Ok((begin, length))
}

/// A message that was taken, by its parts.
struct Parts {
    message: Message,
    head: Vec<u8>,
    /// Where its data begin.
    at: usize,
}

impl Parts {
    fn of(message: Message) -> PyResult<Parts> {
        let other =
            || JobError::new_err("a message is none of Python's: its sender is another program");
        let mut length = [0; 4];
        message.read(0, &mut length).map_err(raised)?;
        let length = u32::from_le_bytes(length) as usize;
        let at = (4 + length).next_multiple_of(8);
        if length >= MAX_HEAD || at > message.length() {
            return Err(other());
        }
        let mut head = vec![0; 4 + length];
        message.read(0, &mut head).map_err(raised)?;
        head.drain(..4);
        Ok(Parts { message, head, at })
    }

    fn length(&self) -> usize {
        self.message.length() - self.at
    }
}

/// Waits for a message; others may run Python code meanwhile.
fn wait(py: Python<'_>, source: i64, tag: i64) -> PyResult<Parts> {
    let (source, tag) = (named(source, "rank")?, named(tag, "tag")?);
    let at_once = this()?.job.receive(source, tag, Duration::ZERO).map_err(raised)?;
    if let Some(message) = at_once {
        return Parts::of(message);
    }
    loop {
        py.check_signals()?;
        let message = py.detach(|| this()?.job.receive(source, tag, SLICE).map_err(raised))?;
        if let Some(message) = message {
            return Parts::of(message);
        }
    }
}

/// -1 is any.
fn named(number: i64, what: &str) -> PyResult<Option<u32>> {
    match number {
        -1 => Ok(None),
        number => match u32::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(PyValueError::new_err(format!("there is no {what} {number}"))),
        },
    }
}

/// The next message of a rank, or any, and of this tag, or any: sender, tag, head and data.
#[pyfunction]
pub(crate) fn recv(
    py: Python<'_>,
    source: i64,
    tag: i64,
) -> PyResult<(u32, u32, Bound<'_, PyBytes>, Bound<'_, PyByteArray>)> {
    let parts = wait(py, source, tag)?;
    let read = |data: &mut [u8]| parts.message.read(parts.at, data).map_err(raised);
    let data = PyByteArray::new_with(py, parts.length(), read)?;
    let head = PyBytes::new(py, &parts.head);
    Ok((parts.message.from, parts.message.tag, head, data))
}

/// The same into a buffer: sender, tag, head, and the bytes of the data.
#[pyfunction]
pub(crate) fn recv_into<'a>(
    py: Python<'a>,
    source: i64,
    tag: i64,
    data: &Bound<'a, PyAny>,
) -> PyResult<(u32, u32, Bound<'a, PyBytes>, usize)> {
    let view = PyUntypedBuffer::get(data)?;
    if view.readonly() {
        return Err(PyBufferError::new_err(
            "a message is received into memory that may be written",
        ));
    }
    let (begin, room) = bytes(&view)?;
    let parts = wait(py, source, tag)?;
    let length = parts.length();
    if length > room {
        let why = format!(
            "the message of rank {} has {length} bytes, and there is room for {room}",
            parts.message.from
        );
        return Err(JobError::new_err(why));
    }
    // SAFETY: the view has so many bytes, which may be written, and as said above.
    let data = unsafe { slice::from_raw_parts_mut(begin, length) };
    parts.message.read(parts.at, data).map_err(raised)?;
    Ok((parts.message.from, parts.message.tag, PyBytes::new(py, &parts.head), length))
}

/// Whether a message is there now.
#[pyfunction]
pub(crate) fn probe(source: i64, tag: i64) -> PyResult<bool> {
    let (source, tag) = (named(source, "rank")?, named(tag, "tag")?);
    this()?.job.probe(source, tag).map_err(raised)
}

/// A number from outside, or what it was in an earlier start.
#[pyfunction]
pub(crate) fn number(value: u64) -> PyResult<u64> {
    this()?.job.number(value).map_err(raised)
}
