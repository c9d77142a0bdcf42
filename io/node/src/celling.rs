//! The node's part in its cell's book (`docs/protocol/cells.md`): its replica of the group
//! `steadfast.cell`. The links of the cell are a process's beside the node (crate `celld`), which
//! follows the book and gives commands by the admin socket.

mod away;
mod service;

pub(crate) use away::SharedCalls;
pub(crate) use service::{CellService, SharedBook};
