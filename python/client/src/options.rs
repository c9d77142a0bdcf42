//! Python's arguments as the client's own types.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use client::{Builder, Invocation, Policy, Reading, Tls};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::Unconnected;

/// A client's options.
pub struct Options {
    pub addresses: Vec<String>,
    pub tls: Option<PathBuf>,
    pub priority: u8,
}

impl Options {
    /// # Errors
    /// The certificate cannot be used.
    pub fn builder(&self) -> Result<Builder, Unconnected> {
        let builder = Builder::default().policy(Policy::default().priority(self.priority));
        let Some(folder) = &self.tls else { return Ok(builder) };
        let tls = Tls::from_dir(folder).map_err(|error| Unconnected(error.to_string()))?;
        Ok(builder.tls(tls))
    }
}

/// How a call is made: whether its body is JSON, the age in seconds that a read's state may have
/// (`None`: no read; 0: a linearizable one), and the deadline in seconds.
pub type How = (bool, Option<f64>, f64);

/// # Errors
/// A time is no number of seconds.
pub fn invocation<'a>(
    group: Cow<'a, str>,
    method: &str,
    body: &[u8],
    (json, age, deadline): How,
) -> PyResult<Invocation<'a>> {
    let invocation = Invocation::new(group, method).body(Bytes::copy_from_slice(body));
    let invocation = invocation.within(seconds("deadline", deadline)?);
    let invocation = if json { invocation.json() } else { invocation };
    let Some(age) = age else { return Ok(invocation) };
    let age = seconds("stale", age)?;
    let reading = if age.is_zero() { Reading::Linearizable } else { Reading::Stale(age) };
    Ok(invocation.reading(reading))
}

fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        PyValueError::new_err(format!("{name}={value}: give a number of seconds, such as 0.25"))
    })
}

/// The process in which a client was made. A forked one shares its connections and its numbers of
/// calls, so that the answers would go to either.
pub struct Home(u32);

impl Home {
    pub fn here() -> Home {
        Home(std::process::id())
    }

    pub fn is_here(&self) -> bool {
        self.0 == std::process::id()
    }

    /// # Errors
    /// This process is a fork of the client's.
    pub fn check(&self) -> PyResult<()> {
        if self.is_here() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "this client was made before the process was forked: make a new one in the child",
        ))
    }
}
