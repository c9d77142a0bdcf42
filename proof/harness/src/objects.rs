//! Registers and logs by key, clients that call them and record the results, and the verdict: is
//! the history linearizable?

mod alike;
pub mod clients;
pub mod evidence;
mod service;
mod trial;

use alike::common_state;
pub use service::{ASK, Ask, Death, LOOK, Objects, line, log_reply, register_reply};
pub use trial::{Subject, TIMEOUT, Trial};

/// The names of groups of objects end so: a node's process knows them by that.
pub const SUFFIX: &str = "-objects";
