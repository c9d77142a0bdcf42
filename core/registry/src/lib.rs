//! The registry (`docs/protocol/registry.md`; `jgroup-arm.txt`, sections 2 and 4): who can be
//! reached by which name.
//!
//! - [`Registry`]: the state of the group `steadfast.registry`, a deterministic machine that takes
//!   [`Command`]s at ordered times
//! - [`Registrar`]: what one node asks of it: its own bindings made, kept alive and ended, and,
//!   where it leads, the dead ones ended
//!
//! Neither has a clock: time is an argument.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bug;
mod command;
mod machine;
mod registrar;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use command::{
    Address, Answer, Ask, Binding, Command, Ended, Epoch, Listing, Refusal, Technique, Terms,
    Verdict,
};
pub use machine::Registry;
pub use registrar::{AGAIN, Hosted, Registrar, Sight};
