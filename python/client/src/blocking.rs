//! The client for plain Python: the calling thread waits, without the lock of the interpreter.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::process::getpid;
use rustix::thread::gettid;

use crate::errors::{Unconnected, raised};
use crate::options::{Home, How, Options, invocation};

/// How often a waiting call looks for signals, such as Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// A session, for any number of threads.
#[pyclass(frozen)]
pub struct Client {
    home: Home,
    client: client::Client,
}

#[pymethods]
impl Client {
    /// Connects to the first address that answers, within 5 s.
    #[new]
    fn connect(
        py: Python<'_>,
        addresses: Vec<String>,
        tls: Option<PathBuf>,
        priority: u8,
    ) -> PyResult<Client> {
        let options = Options { addresses, tls, priority };
        let connected = py.detach(|| -> Result<_, Unconnected> {
            Ok(options.builder()?.connect(&options.addresses)?)
        });
        let client = connected.map_err(|error| error.raised(py))?;
        Ok(Client { home: Home::here(), client })
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        group: Cow<'_, str>,
        method: Cow<'_, str>,
        body: &[u8],
        how: How,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.home.check()?;
        let invocation = invocation(group, &method, body, how)?;
        let mut interrupted = None;
        let ended = py.detach(|| {
            // Python handles signals on the main thread alone.
            if gettid() != getpid() {
                return Some(self.client.call(invocation));
            }
            self.client.call_while(invocation, SIGNALS, || {
                interrupted = Python::attach(|py| py.check_signals()).err();
                interrupted.is_none()
            })
        });
        match ended {
            Some(Ok(result)) => Ok(PyBytes::new(py, &result)),
            Some(Err(error)) => Err(raised(py, &error)),
            None => Err(interrupted.expect("a signal alone ends a call so")),
        }
    }
}
