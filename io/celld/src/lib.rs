//! The process beside a node of a cell: its links to other cells, and what travels by them
//! (`docs/protocol/cells.md`).
//!
//! ```text
//!  node --admin socket--> desk ----+            +--> desk     what the cell's group is to order
//!  other cells' nodes --> wires ---+-> carrying-+--> wires    messages to other cells
//!  node --client port---> groups --+   (router) +--> groups   which groups to follow
//!                         calls ---+            +--> calls    calls to execute in the cell
//!  callers of the cell -> door ----+            +--> door     the ends of their calls
//! ```
//!
//! One task owns the router (crate `cells`), and everything comes to it by one queue. The process
//! keeps nothing: all that must survive is in the cell's book, and the next process begins with it.
#![forbid(unsafe_code)]

mod calls;
mod carrying;
mod desk;
mod door;
mod groups;
mod inbound;
mod options;
mod own;
mod routes;
mod seen;
mod sessions;
mod wires;

pub use carrying::Carrying;
pub use links::{LinksError, Security};
pub use options::{CarryError, Options};
