//! The native half of `steadfast_client`: [`client`] for Python. The package in Python has what
//! programs see; here are sessions, sockets, and the threads of Python that wait for them.

mod asynchronous;
mod blocking;
mod errors;
mod options;

use pyo3::prelude::*;

/// The parts of `steadfast_client`; not for programs.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::asynchronous::AsyncClient;
    #[pymodule_export]
    use super::blocking::Client;
}
