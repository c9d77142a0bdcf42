//! Groups whose primary executes calls when they come, and orders what that has changed
//! (`docs/protocol/group.md`, "Warm passive").

mod handler;

use wire::ordered::{Move, Restyle};

/// For what a passive group's primary takes nothing more.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Yield {
    /// Another is to be primary.
    Move(Move),
    /// The group is to have another style.
    Restyle(Restyle),
}
