//! The native half of `steadfast_client`: [`client`] for Python. The package in Python has what
//! programs see; here are sessions, sockets, and the threads of Python that wait for them.

mod asynchronous;
mod blocking;
mod errors;
mod options;

use os::realtime::Grant;
use pyo3::prelude::*;

/// Has a closer watch this process, so that its node sees its death at once however much memory it
/// has: `None`, or why there is none.
#[pyfunction]
fn begin_closer() -> Option<String> {
    match os::closer::begin() {
        Grant::Refused(why) => Some(why),
        Grant::NotAsked | Grant::InForce => None,
    }
}

/// The parts of `steadfast_client`; not for programs.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::asynchronous::AsyncClient;
    #[pymodule_export]
    use super::begin_closer;
    #[pymodule_export]
    use super::blocking::Client;
}
