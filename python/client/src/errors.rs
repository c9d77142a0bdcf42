//! Errors of the client as Python's exceptions, whose classes are in `_errors.py`.

use client::{CallError, ConnectError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A client that could not be made, and why.
#[derive(Debug)]
pub struct Unconnected(pub String);

impl From<ConnectError> for Unconnected {
    fn from(error: ConnectError) -> Unconnected {
        Unconnected(error.to_string())
    }
}

impl Unconnected {
    pub fn raised(&self, py: Python<'_>) -> PyErr {
        raise(py, "ConnectError", |class| class.call1((&self.0,)))
    }
}

/// A call's error, with its class's name and whether the call was executed.
pub fn raised(py: Python<'_>, error: &CallError) -> PyErr {
    if let CallError::DeadlineTooLong(_) = error {
        return PyValueError::new_err(error.to_string());
    }
    raise(py, name_of(error), |class| {
        let made = match error {
            CallError::Service(body) => class.call1((PyBytes::new(py, body),)),
            CallError::Refused { refusal, reason } => class.call1((format!("{refusal:?}"), reason)),
            error => class.call1((error.to_string(),)),
        }?;
        made.setattr("executed", error.was_executed())?;
        Ok(made)
    })
}

fn name_of(error: &CallError) -> &'static str {
    match error {
        CallError::DeadlineExceeded => "DeadlineExceeded",
        CallError::RetriesSpent => "RetriesSpent",
        CallError::NoSuchGroup(_) => "NoSuchGroup",
        CallError::NoReplica => "NoReplica",
        CallError::Refused { .. } => "Refused",
        CallError::Service(_) => "ServiceError",
        CallError::Unreachable(_) => "Unreachable",
        CallError::Version { .. } => "VersionMismatch",
        CallError::TooManyCalls => "TooManyCalls",
        CallError::Closed => "ClientClosed",
        _ => "CallError",
    }
}

/// An exception of this class, or whatever went wrong on the way to it.
fn raise<'py>(
    py: Python<'py>,
    class: &str,
    make: impl FnOnce(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> PyErr {
    let made =
        py.import("steadfast_client._errors").and_then(|errors| make(errors.getattr(class)?));
    made.map_or_else(|error| error, PyErr::from_value)
}
