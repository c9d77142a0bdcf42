//! Commands that a replica's service may not have yet (`docs/protocol/poison.md`).
//!
//! All commands pass here in their order. A call of the group's history that may not be executed
//! yet waits, and all that comes after it.

mod acting;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use wire::{ClientId, NodeId};

use crate::api::{Command, ServiceOutcome};
use crate::session::Asked;

/// A command that waits.
#[derive(Clone, Debug)]
pub(super) struct Gated {
    command: Command,
    /// The call's number in the group's history, and when it arrived.
    call: Option<(u64, u64)>,
}

/// An answer that waits until the order says that this replica lives.
#[derive(Clone, Debug)]
pub(super) struct Withheld {
    /// Its number in the group's history.
    number: u64,
    client: ClientId,
    call: u64,
    asked: Asked,
    outcome: ServiceOutcome,
}

/// The error for its caller: the same at every replica.
pub(super) fn reason(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(|node| format!("node {}", node.0)).collect();
    format!(
        "the request ended the services that executed it, at {}: it has changed nothing and is not executed again; \
         look at what it asks for with `steadfast poisoned`, and mend the service before it is sent again",
        names.join(", ")
    )
}
