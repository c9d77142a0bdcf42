//! The other end: a program that serves a replica of its node's in a process of its own.
//!
//! The node has started the program and left the way back in its environment. When the node is
//! gone, or needs the replica no more, serving ends.
//!
//! - `connection`: how a program comes to its node
//! - `in_order`: one thread executes all commands
//! - `lanes`: each lane has a thread
//! - `answers`: frames from and for the replica

use std::env;

use wire::GroupId;
use wire::attach::GROUP_VARIABLE;

use crate::service::{Factory, Service};

mod answers;
mod connection;
mod in_order;
mod lanes;

pub use connection::AttachError;
use connection::Incoming;

/// Serves a replica of the group for which a node has started this program. `make` gives the
/// service in its initial state: now, and when the replica has to begin anew. Panics of its
/// handlers are caught, as in a node's own process. Returns when the node has stopped or needs the
/// replica no more.
///
/// # Errors
/// No node has started this program, it does not let it serve, or the connection broke; or the
/// service's initial state does not come back as it was when another replica is given it.
pub fn attach<S: Service + 'static>(
    make: impl Fn() -> S + Send + 'static,
) -> Result<(), AttachError> {
    let node = Incoming::connect()?;
    let begins = in_order::begins();
    let group = env::var(GROUP_VARIABLE).unwrap_or_default();
    let make: Factory = Box::new(move || Box::new(make()));
    in_order::serve(node, &group, make, begins)
}

/// As [`attach`], for a stateless group: normal, critical and alarm calls have a thread and a
/// service each, so that an alarm waits behind no normal call ([`Lane`](wire::Lane)).
///
/// # Errors
/// As [`attach`], or the group is not stateless.
pub fn attach_in_lanes<S: Service + 'static>(
    make: impl Fn() -> S + Clone + Send + 'static,
) -> Result<(), AttachError> {
    let mut node = Incoming::connect()?;
    let group = env::var(GROUP_VARIABLE).unwrap_or_default();
    if node.introduce(&group, false)?.ordered {
        return Err(AttachError::Ordered(group));
    }
    lanes::serve(node, GroupId::of(&group), || {
        let make = make.clone();
        Box::new(move || Box::new(make()))
    })
}
