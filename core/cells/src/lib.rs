//! Systems of many cells (`docs/protocol/cells.md`; `stheno.txt`, sections 1.1, 2.1 and 3.2).
//!
//! A *cell* is a ring: one cluster. A *system* is a tree of cells.
//!
//! - [`Cell`]: a cell's book, the state of its group `steadfast.cell`: the cells below it, what is
//!   exported, where it is attached. A deterministic machine that takes [`Command`]s in one order
//! - [`Router`]: one node's links to other cells, and what travels by them: attachments, questions
//!   for groups, calls
//! - [`Overlay`]: which cells talk directly: [`Tree`] or [`Mesh`]
//! - [`Path`], [`Name`]: where a cell is, and what its groups are called elsewhere
//!
//! Neither has a clock: time is an argument.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bug;
mod cell;
mod chosen;
mod command;
mod exports;
pub mod limits;
mod mesh;
mod message;
mod output;
mod overlay;
mod router;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use cell::Cell;
pub use chosen::{Chosen, Shape};
pub use command::{
    Attached, Attachment, Carrier, ChildPicture, Command, Count, Epoch, Picture, Place, Record,
    Refusal, Verdict,
};
pub use exports::Report;
pub use mesh::Mesh;
pub use message::{
    Call, Carry, Class, Course, End, Find, Hello, Malformed, MemberCell, Message, OLDEST, Origin,
    Reading, VERSION,
};
pub use output::{Event, LinkId, Output};
pub use overlay::{Overlay, Tree};
pub use router::{LINKING, Made, Router, Sight};
pub use wire::path::{MARK, MAX_DEPTH, MAX_PATH, Name, NameError, Path, Scope};
